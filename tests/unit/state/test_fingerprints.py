from typing import Any

import pytest

from reconciler.state.tracking import MOST, SIZE, as_text, fingerprints, read_text

PLACE = ("spec", "resourceGroups", 0, "nominalQuota")


def test_fingerprints_are_of_every_field_and_its_value() -> None:
    whole = fingerprints({"a": {"b": 1, "c": [True, "x"]}, "d": {}, "e": []})
    parts = [
        fingerprints(1, ("a", "b")),
        fingerprints(True, ("a", "c", 0)),
        fingerprints("x", ("a", "c", 1)),
        fingerprints({}, ("d",)),
        fingerprints([], ("e",)),
    ]
    assert [len(part) for part in parts] == [1] * 5
    assert whole == frozenset().union(*parts)
    assert len(whole) == 5


def test_fingerprints_of_what_is_not_there_are_none() -> None:
    assert fingerprints(None, PLACE) == frozenset()
    assert fingerprints({"a": None}) == frozenset()


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (("9", PLACE), ("9000m", PLACE), True),
        (("1Gi", PLACE), ("1024Mi", PLACE), True),
        ((9, PLACE), ("9", PLACE), True),
        (("9", PLACE), ("10", PLACE), False),
        (("none", PLACE), ("none", PLACE), True),
        (("9", ("metadata", "labels", "weight")), ("9.0", ("metadata", "labels", "weight")), False),
        (("9", ("spec", "a")), (9, ("spec", "a")), False),
        (("x", ("a", 0)), ("x", ("a", 1)), False),
        (("x", ("a", 0)), ("x", ("a", "0")), False),
    ],
)
def test_fingerprints_are_the_same_where_the_values_are(one: Any, other: Any, is_same: bool) -> None:  # noqa: FBT001
    assert (fingerprints(*one) == fingerprints(*other)) is is_same


def test_fingerprints_of_two_sorts_never_meet() -> None:
    assert not fingerprints({"a": 1}) & fingerprints({"a": 1}, sort="spec")


def test_text_of_fingerprints_can_be_read_again_and_is_short() -> None:
    found = fingerprints({f"field-{number}": number for number in range(40)})
    assert read_text(as_text(found)) == found
    assert len(as_text(found)) == 40 * SIZE * 4 / 3


def test_text_of_very_many_fingerprints_is_none_at_all() -> None:
    assert as_text(fingerprints(list(range(MOST))))
    assert not as_text(fingerprints(list(range(2 * MOST))))


@pytest.mark.parametrize("text", ["", "%", "abc"])
def test_text_that_is_none_of_ours_says_nothing(text: str) -> None:
    assert read_text(text) == frozenset()


def test_fingerprints_know_quantities_in_items_of_lists() -> None:
    place = ("spec", "limits", 0, "cpu")
    assert fingerprints("1", place) == fingerprints("1000m", place)
    assert fingerprints("1", place) != fingerprints("1", ("spec", "limits", 1, "cpu"))
