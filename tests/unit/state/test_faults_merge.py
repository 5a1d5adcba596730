"""What is expected of an apply while the server cannot be asked."""

from reconciler.state.dry_run import find_conflicts, merged
from reconciler.state.model import Conflict

LIVE = {
    "metadata": {
        "name": "a",
        "managedFields": [
            {
                "manager": "kfleet",
                "operation": "Apply",
                "fieldsV1": {"f:spec": {"f:nodeLabels": {"f:x": {}, "f:y": {}}, "f:tolerations": {}}},
            }
        ],
    },
    "spec": {"nodeLabels": {"x": "1", "y": "2", "z": "3"}, "tolerations": [{"key": "a"}]},
}


def test_merged_takes_wanted_values_and_keeps_those_of_others() -> None:
    wanted = {"metadata": {"name": "a"}, "spec": {"nodeLabels": {"x": "9", "y": "2"}, "tolerations": []}}
    assert merged(LIVE, wanted, "kfleet")["spec"] == {"nodeLabels": {"x": "9", "y": "2", "z": "3"}, "tolerations": []}


def test_merged_drops_what_the_manager_applied_and_no_longer_wants() -> None:
    wanted = {"metadata": {"name": "a"}, "spec": {"nodeLabels": {"x": "1"}}}
    assert merged(LIVE, wanted, "kfleet")["spec"] == {"nodeLabels": {"x": "1", "z": "3"}}


def test_merged_drops_nothing_of_an_object_that_the_manager_never_applied() -> None:
    wanted = {"metadata": {"name": "a"}, "spec": {"nodeLabels": {"x": "1"}}}
    assert merged(LIVE, wanted, "somebody")["spec"] == LIVE["spec"]


def contested(labels: dict[str, str], owner: dict[str, str]) -> list[Conflict]:
    live = {
        "metadata": {
            "name": "a",
            "managedFields": [{**owner, "fieldsV1": {"f:spec": {"f:nodeLabels": {"f:x": {}}, "f:topologyName": {}}}}],
        },
        "spec": {"nodeLabels": {"x": "1", "y": "2"}, "topologyName": "t"},
    }
    return list(find_conflicts(live, {"metadata": {"name": "a"}, "spec": {"nodeLabels": labels}}, "kfleet"))


def test_conflict_is_another_value_of_a_field_that_another_manager_owns() -> None:
    other, own = ({"manager": name, "operation": "Update"} for name in ("other", "kfleet"))
    assert contested({"x": "9", "y": "9"}, other) == [Conflict(".spec.nodeLabels.x", "other")]
    assert contested({"x": "1", "y": "9"}, other) == []
    assert contested({"x": "9"}, own) == []
