"""Dashboards and alerts on a real cluster."""

import json
from typing import Any

from tests import fast_yaml
from tests.cluster.live_fleet import SYSTEM, LiveFleet

# As much of the Prometheus operator's definition as the API server needs to take the rules.
RULES: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "prometheusrules.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "scope": "Namespaced",
        "names": {"kind": "PrometheusRule", "plural": "prometheusrules", "singular": "prometheusrule"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                },
            }
        ],
    },
}


def commit(live_fleet: LiveFleet, monitoring: dict[str, Any] | None, *documents: dict[str, Any]) -> None:
    live_fleet.write(*documents)
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    written = [document for document in fast_yaml.safe_load_all(path.read_text()) if document]
    for document in written:
        if document["kind"] == "Fleet" and monitoring is not None:
            document["spec"]["monitoring"] = monitoring
    path.write_text(fast_yaml.safe_dump_all(written))
    live_fleet.commit_all()


def test_dashboards_and_rules_are_applied_and_go_away(live_fleet: LiveFleet) -> None:
    commit(live_fleet, {"alerts": "configMap"})
    live_fleet.converge()
    place = f"/api/v1/namespaces/{SYSTEM}/configmaps/kfleet-{live_fleet.name}"
    dashboard = live_fleet.api().get(f"{place}-dashboard-queues")
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(dashboard["data"][f"kfleet-{live_fleet.name}-queues.json"])["panels"]
    assert live_fleet.api().find(f"{place}-alerts")
    commit(live_fleet, {"alerts": "none", "dashboards": False}, RULES)
    applied = live_fleet.apply("--confirm-deletes", "4")
    assert applied.code == 0, applied
    assert live_fleet.api().find(f"{place}-dashboard-queues") is None
    commit(live_fleet, {"dashboards": False}, RULES)
    live_fleet.converge()
    rules = live_fleet.api().get(
        f"/apis/monitoring.coreos.com/v1/namespaces/{SYSTEM}/prometheusrules/kfleet-{live_fleet.name}-alerts"
    )
    assert {group["name"] for group in rules["spec"]["groups"]} == {"kfleet-kueue", "kfleet-kfleet", "kfleet-gpus"}


def test_rules_without_the_operator_are_refused_with_a_reason(live_fleet: LiveFleet) -> None:
    commit(live_fleet, {"dashboards": False})
    planned = live_fleet.plan()
    assert planned.code == 3
    assert "monitoring.coreos.com/v1 PrometheusRule is not served" in planned.out
