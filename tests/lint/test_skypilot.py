"""What lint says of teams that use SkyPilot, beside the examples of its rules."""

import pytest

from tests.lint.fleets import find

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
UNSAID = "nothing in the fleet says that the Kueue of {} manages plain pods"


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


def test_team_of_a_queue_that_kubestellar_serves_is_told_to_take_another() -> None:
    """And nothing else: to manage pods on the manager would not help."""
    (finding,) = find(FLEET.format(dispatch="kubestellar", hub="", east=""))
    assert (finding.rule, finding.field) == ("KF097", "spec.queue")
    assert "carries none" in finding.problem and "dispatch none or multikueue" in finding.hint


def test_team_whose_queue_does_not_exist_is_told_that_alone() -> None:
    found = find("kind: Tenant\nmetadata: {name: b}\nspec: {namespaces: [b], queue: nope, skypilot: {}}\n")
    assert [finding.rule for finding in found] == ["KF001"]
