import copy

from reconciler.web.events import KEYS, find_changes, key_of
from tests.unit.web.views import example_view


def test_changes_name_only_what_is_different() -> None:
    before, after = example_view(), example_view()
    after["jobs"][0] = {**after["jobs"][0], "state": "finished"}
    gone = after["queues"].pop()
    found = find_changes(before, after)
    assert found["set"] == {"jobs": [after["jobs"][0]]}
    assert found["remove"] == {"queues": [gone["id"]]}
    assert found["takenAt"] == after["takenAt"]


def test_equal_views_have_no_changes() -> None:
    found = find_changes(example_view(), example_view())
    assert (found["set"], found["remove"], found["unknown"]) == ({}, {}, [])


def test_list_that_becomes_unknown_is_not_an_empty_list() -> None:
    before, after = example_view(), {**example_view(), "pools": None}
    assert find_changes(before, after)["unknown"] == ["pools"]
    back = find_changes(after, before)
    assert back["unknown"] == []
    assert back["set"]["pools"] == before["pools"]


def test_every_entry_of_a_list_has_a_key_of_its_own() -> None:
    view = example_view()
    for name in KEYS:
        keys = [key_of(name, entry) for entry in view[name]]
        assert len(keys) == len(set(keys)) > 0, name


def test_changes_leave_both_views_as_they_are() -> None:
    before, after = example_view(), {**example_view(), "jobs": []}
    kept = copy.deepcopy((before, after))
    find_changes(before, after)
    assert (before, after) == kept
