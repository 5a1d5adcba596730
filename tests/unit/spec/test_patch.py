from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.spec.patch import apply_operation, merge

VALUE: dict[str, Any] = {"a": {"b": [1, 2, 3], "c/d": "x", "~": 0}, "e": None}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


# The examples of RFC 7386, appendix A.
@pytest.mark.parametrize(
    ("value", "patch", "merged"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_follows_the_rfc(value: object, patch: object, merged: object) -> None:
    assert merge(value, patch) == merged


@given(json_values)
def test_merge_of_nothing_changes_nothing(value: object) -> None:
    assert merge({"v": value}, {}) == {"v": value}


@pytest.mark.parametrize(
    ("operation", "changed"),
    [
        ({"op": "add", "path": "/a/b/1", "value": 9}, {"b": [1, 9, 2, 3]}),
        ({"op": "add", "path": "/a/b/-", "value": 9}, {"b": [1, 2, 3, 9]}),
        ({"op": "add", "path": "/a/b/3", "value": 9}, {"b": [1, 2, 3, 9]}),
        ({"op": "add", "path": "/a/new", "value": {}}, {"new": {}}),
        ({"op": "replace", "path": "/a/b/0", "value": None}, {"b": [None, 2, 3]}),
        ({"op": "replace", "path": "/a/c~1d", "value": "z"}, {"c/d": "z"}),
        ({"op": "replace", "path": "/a/~0", "value": 1}, {"~": 1}),
        ({"op": "remove", "path": "/a/b/2"}, {"b": [1, 2]}),
        ({"op": "move", "from": "/a/b/0", "path": "/a/b/2"}, {"b": [2, 3, 1]}),
        ({"op": "copy", "from": "/a/b/0", "path": "/a/n"}, {"n": 1}),
        ({"op": "test", "path": "/a/b", "value": [1, 2, 3]}, {}),
    ],
)
def test_operation_follows_the_rfc(operation: dict[str, object], changed: dict[str, object]) -> None:
    before = repr(VALUE)
    assert apply_operation(VALUE, operation) == {**VALUE, "a": {**VALUE["a"], **changed}}
    assert repr(VALUE) == before


def test_operation_replaces_in_place() -> None:
    patched = apply_operation({"a": 1, "b": 2}, {"op": "replace", "path": "/a", "value": 3})
    assert list(patched.items()) == [("a", 3), ("b", 2)]
    assert apply_operation({"a": 1}, {"op": "replace", "path": "", "value": {}}) == {}


@pytest.mark.parametrize(
    ("operation", "problem"),
    [
        ({"op": "add", "path": "/x/y", "value": 1}, "there is no /x"),
        ({"op": "add", "path": "/a/b/9", "value": 1}, "/a/b/9: '9' is not a position in a list of 4"),
        ({"op": "add", "path": "/a/b/01", "value": 1}, "'01' is not a position in a list"),
        ({"op": "add", "path": "/a/c~1d/x", "value": 1}, "/a/c~1d is 'x': it has no fields"),
        ({"op": "replace", "path": "/a/x", "value": 1}, "there is no /a/x: use op add"),
        ({"op": "remove", "path": "/a/x"}, "there is no /a/x"),
        ({"op": "replace", "path": "/a/b/7", "value": 1}, "/a/b/7: '7' is not a position in a list of"),
        ({"op": "remove", "path": "/a/b/-"}, "'-' is not a position in a list"),
        ({"op": "remove", "path": ""}, "a patch cannot remove a whole document"),
        ({"op": "test", "path": "/a/b/0", "value": 2}, "the test failed: /a/b/0 is 1, not 2"),
        ({"op": "test", "path": "/a/b/0", "value": True}, "the test failed: /a/b/0 is 1, not true"),
        ({"op": "move", "from": "/a", "path": "/a/b"}, "/a cannot move into itself"),
        ({"op": "copy", "from": "/x", "path": "/y"}, "there is no /x"),
    ],
)
def test_operation_that_does_not_fit_says_why(operation: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        apply_operation(VALUE, operation)
    assert problem in str(caught.value)


def test_operations_that_copy_the_document_into_itself_are_stopped() -> None:
    copies = [{"op": "copy", "from": "", "path": f"/k{number}"} for number in range(100)]
    with pytest.raises(ValueError, match="the document grows beyond 500000 values"):
        reduce(apply_operation, copies, {"a": [1, 2, 3]})


def test_operations_that_nest_ever_deeper_are_stopped() -> None:
    moves = [{"op": "add", "path": "/a" * depth, "value": {}} for depth in range(1, 100)]
    with pytest.raises(ValueError, match="nested deeper than 64 levels"):
        reduce(apply_operation, moves, {})
