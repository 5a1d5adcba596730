"""Dashboards and alerts as values: what Grafana and Prometheus would trip over."""

import json
import re
from datetime import timedelta

import pytest

from reconciler.monitoring.grafana import COLUMNS, DCGM_METRICS, Dashboard, dashboard_json
from reconciler.monitoring.render import all_dashboards, rule_groups
from reconciler.objects import Manifest
from reconciler.render.compute import compute_desired
from tests import fast_yaml
from tests.support import ROOT
from tests.unit.monitoring.names import expressions, named_metrics
from tests.unit.plan.paper_clusters import parse

DOCUMENT = (ROOT / "docs" / "monitoring.md").read_text()
HUB = "kind: Cluster\nmetadata: {name: hub}\nspec: {role: manager}\n"
EAST = "kind: Cluster\nmetadata: {name: east}\nspec: {role: worker, kueue: {namespace: batch}}\n"


def objects(monitoring: str, *clusters: str) -> dict[str, Manifest]:
    fleet = f"kind: Fleet\nmetadata: {{name: science}}\nspec: {{monitoring: {monitoring}}}\n"
    return {str(entry.ref): entry.manifest for entry in compute_desired(parse(fleet, *clusters)).objects}


def test_fleet_without_monitoring_has_no_dashboards() -> None:
    fleet = "kind: Fleet\nmetadata: {name: science}\n"
    assert compute_desired(parse(fleet, HUB)).objects == ()


def test_monitoring_goes_to_the_manager() -> None:
    found = objects("{}", HUB, EAST)
    assert set(found) == {
        "hub/ConfigMap/kueue-system/kfleet-science-dashboard-gpus",
        "hub/ConfigMap/kueue-system/kfleet-science-dashboard-kfleet",
        "hub/ConfigMap/kueue-system/kfleet-science-dashboard-queues",
        "hub/PrometheusRule/kueue-system/kfleet-science-alerts",
    }


def test_monitoring_goes_where_the_spec_says() -> None:
    found = objects("{clusters: [workers], dashboards: false, alerts: configMap}", HUB, EAST)
    assert set(found) == {"east/ConfigMap/batch/kfleet-science-alerts"}
    rules = fast_yaml.safe_load(
        found["east/ConfigMap/batch/kfleet-science-alerts"]["data"]["kfleet-science.rules.yaml"]
    )
    assert rules["groups"] == rule_groups("science", timedelta(seconds=90))
    both = objects("{clusters: [manager, workers], namespace: monitoring, alerts: none}", HUB, EAST)
    assert {name.partition("/kfleet-")[0] for name in both} == {"hub/ConfigMap/monitoring", "east/ConfigMap/monitoring"}


def test_objects_carry_the_labels_that_are_looked_for() -> None:
    found = objects("{labels: {release: stack}}", HUB)
    labels = {manifest["kind"]: manifest["metadata"]["labels"] for manifest in found.values()}
    assert labels == {
        "ConfigMap": {"grafana_dashboard": "1", "release": "stack"},
        "PrometheusRule": {"release": "stack"},
    }


def test_dashboard_in_its_configmap_is_the_dashboard() -> None:
    data = objects("{}", HUB)["hub/ConfigMap/kueue-system/kfleet-science-dashboard-kfleet"]["data"]
    (name, text), *_ = data.items()
    assert name == "kfleet-science-kfleet.json"
    assert json.loads(text)["title"] == "kfleet (science)"


def test_silence_is_what_the_policy_says() -> None:
    fleet = (
        "kind: Fleet\nmetadata: {name: science}\n"
        "spec: {monitoring: {dashboards: false}, policy: {capacity: {staleAfter: 5m}}}\n"
    )
    found = compute_desired(parse(fleet, HUB)).objects[0].manifest
    alerts = [rule["expr"] for group in found["spec"]["groups"] for rule in group["rules"]]
    assert "kfleet_observation_age_seconds > 300" in alerts


@pytest.mark.parametrize("dashboard", all_dashboards(), ids=lambda one: one.name)
def test_panels_lie_side_by_side(dashboard: Dashboard) -> None:
    panels = dashboard_json("science", dashboard)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for place in (panel["gridPos"] for panel in panels):
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert place["x"] + place["w"] <= COLUMNS
        taken |= cells


@pytest.mark.parametrize("dashboard", all_dashboards(), ids=lambda one: one.name)
def test_every_choice_is_offered_and_used(dashboard: Dashboard) -> None:
    content = dashboard_json("science", dashboard)
    offered = {entry["name"] for entry in content["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]+)", json.dumps(content["panels"])))
    assert used == offered


def test_dashboards_of_two_fleets_live_in_one_grafana() -> None:
    names = ("science", "s" * 200)
    uids = {dashboard_json(name, one)["uid"] for name in names for one in all_dashboards()}
    assert len(uids) == 2 * len(all_dashboards())
    assert all(len(uid) <= 40 for uid in uids)


def test_expressions_are_balanced() -> None:
    for expression in expressions():
        for left, right in ("()", "{}", "[]"):
            assert expression.count(left) == expression.count(right), expression
        assert expression.count('"') % 2 == 0, expression


def test_missing_leader_is_that_of_the_fleet_and_is_missed_where_one_was_seen() -> None:
    groups = {name: rule_groups(name, timedelta(seconds=90)) for name in ("science", "art")}
    alerts = {
        name: {rule["alert"]: rule for group in found for rule in group["rules"]} for name, found in groups.items()
    }
    assert alerts["science"]["KfleetNoLeader"]["expr"] == (
        'sum(kfleet_leader{fleet="science"}) < 1'
        ' or (count(count_over_time(kfleet_leader{fleet="science"}[1d])) unless count(kfleet_leader{fleet="science"}))'
    )
    assert "science" not in str(alerts["art"]["KfleetNoLeader"])


def test_alerts_have_names_of_their_own_and_say_what_to_do() -> None:
    rules = [rule for group in rule_groups("science", timedelta(seconds=90)) for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    documented = set(re.findall(r"^\| `(\w+)` \|", DOCUMENT, re.MULTILINE))
    assert {rule["alert"] for rule in rules} <= documented


def test_metrics_of_dcgm_are_those_that_the_document_lists() -> None:
    assert (
        named_metrics("DCGM_") == set(DCGM_METRICS) == set(re.findall(r"^\| `(DCGM_\w+)` \|", DOCUMENT, re.MULTILINE))
    )
