"""What lint says of teams that use SkyPilot, beside the examples of its rules."""

import pytest

from tests import fast_yaml
from tests.unit.lint.lint_findings import find

FLEET = """\
kind: Cluster
metadata: {{name: hub}}
spec: {{role: manager{hub}}}
---
kind: Cluster
metadata: {{name: east, labels: {{site: cnaf}}}}
spec: {{role: worker{east}}}
---
kind: Queue
metadata: {{name: research}}
spec: {{dispatch: {dispatch}, quota: [{{flavor: cpu, resources: {{cpu: 50%, memory: 50%}}}}]}}
---
kind: Tenant
metadata: {{name: astro}}
spec: {{namespaces: [astro], queue: research, skypilot: {{}}}}
"""
PODS = ", kueue: {config: {integrations: {frameworks: {add: [pod]}}}}"
UNSAID = "the fleet does not configure the Kueue of {} to manage plain pods"


@pytest.mark.parametrize(
    ("dispatch", "hub", "east", "named"),
    [
        ("multikueue", "", "", ["east", "hub"]),
        ("multikueue", PODS, "", ["east"]),
        ("multikueue", "", PODS, ["hub"]),
        ("multikueue", PODS, PODS, []),
        ("none", "", "", ["east"]),
        ("none", "", PODS, []),
    ],
)
def test_pods_are_managed_where_they_are_submitted_and_where_they_run(
    dispatch: str, hub: str, east: str, named: list[str]
) -> None:
    found = [one.problem for one in find(FLEET.format(dispatch=dispatch, hub=hub, east=east)) if one.rule == "KF092"]
    assert found == [UNSAID.format(name) for name in named]


def test_team_of_a_queue_that_kubestellar_serves_is_advised_to_take_another() -> None:
    """And nothing else: to manage pods on the manager would not help."""
    (finding,) = find(FLEET.format(dispatch="kubestellar", hub="", east=""))
    assert (finding.rule, finding.field) == ("KF097", "spec.queue")
    assert "supports none" in finding.problem and "dispatch none or multikueue" in finding.hint


def test_team_whose_queue_does_not_exist_is_reported_for_that_alone() -> None:
    found = find("kind: Tenant\nmetadata: {name: b}\nspec: {namespaces: [b], queue: nope, skypilot: {}}\n")
    assert [finding.rule for finding in found] == ["KF001"]


NAMES = (
    "{kueue: {local_queue_name: QUEUE}}",
    "{quota: {queue: QUEUE}}",
    "{pod_config: {metadata: {labels: {kueue.x-k8s.io/queue-name: QUEUE}}}}",
)
SCOPES = (
    "kubernetes: %s",
    "kubernetes: {context_configs: {east: %s}}",
    "workspaces: {lab: {kubernetes: %s}}",
    "workspaces: {lab: {kubernetes: {context_configs: {east: %s}}}}",
)
CONFIGS = [scope % name for scope in SCOPES for name in NAMES]


@pytest.mark.parametrize("config", CONFIGS)
def test_queue_of_another_team_is_found_wherever_a_config_names_it(config: str) -> None:
    team = f"skypilot: {{config: {{{config}}}}}"
    fleet = FLEET.format(dispatch="none", hub="", east=PODS).replace("skypilot: {}", team)
    (finding,) = find(fleet.replace("QUEUE", "physics"))
    assert (finding.rule, finding.problem) == ("KF093", "'physics' is not the team's LocalQueue, research")
    assert find(fleet.replace("QUEUE", "research")) == ()


@pytest.mark.parametrize("config", CONFIGS)
def test_queue_of_another_namespace_is_found_wherever_a_config_map_names_it(config: str) -> None:
    def found(queue: str) -> list[str]:
        written = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "sky", "namespace": "astro", "annotations": {"kfleet.dev/clusters": "east"}},
            "data": {"config.yaml": config.replace("QUEUE", queue)},
        }
        fleet = FLEET.format(dispatch="none", hub="", east=PODS)
        return [one.rule for one in find(f"{fleet}---\n{fast_yaml.safe_dump(written)}")]

    assert (found("physics"), found("research")) == (["KF095"], [])
