"""What is expected of an apply while the server cannot be asked."""

from reconciler.state.merge import merged

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
