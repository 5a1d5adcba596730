from typing import Any

import pytest

from reconciler.state.values import is_equal, is_quantity

QUOTA = ("spec", "resourceGroups", "flavors", "resources", "nominalQuota")


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        ("9", 9, QUOTA),
        ("9000m", "9", QUOTA),
        ("1Gi", "1024Mi", ("spec", "borrowingLimit")),
        ("1", 1.0, ("spec", "fairSharing", "weight")),
        ("500m", 0.5, ("spec", "containers", "requests", "cpu")),
        ([1, (2,)], [1, [2]], ()),
        ({"a": [{"nominalQuota": 1}]}, {"a": [{"nominalQuota": "1"}]}, ()),
        ("science", "science", ("spec", "cohortName")),
        (None, None, ()),
    ],
)
def test_is_equal(one: Any, other: Any, path: tuple[str, ...]) -> None:
    assert is_equal(one, other, path)
    assert is_equal(other, one, path)


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        ("9", 9, ("spec", "cohortName")),
        ("9", "90", QUOTA),
        ("many", "more", QUOTA),
        (True, 1, QUOTA),
        (True, 1, ()),
        (None, "0", QUOTA),
        ([], None, ()),
        ([1], [1, 1], ()),
        ([1, 2], [2, 1], ()),
        ({"a": 1}, {"a": 1, "b": 2}, ()),
        ({}, [], ()),
    ],
)
def test_is_equal_sees_a_difference(one: Any, other: Any, path: tuple[str, ...]) -> None:
    assert not is_equal(one, other, path)
    assert not is_equal(other, one, path)


@pytest.mark.parametrize(
    "path",
    [
        ("metadata", "labels", "weight"),
        ("metadata", "annotations", "nominalQuota"),
        ("data", "weight"),
        ("data", "limits", "cpu"),
        ("spec", "nodeLabels", "weight"),
        ("spec", "template", "metadata", "labels", "weight"),
        (),
    ],
)
def test_is_quantity_takes_no_text_for_one(path: tuple[str, ...]) -> None:
    assert not is_quantity(path)
    assert not is_equal("1", "1000m", path)


@pytest.mark.parametrize(
    "path",
    [
        *(("spec", field) for field in ("nominalQuota", "borrowingLimit", "lendingLimit", "weight")),
        *(("spec", field, "cpu") for field in ("requests", "limits", "allocatable", "capacity", "hard", "overhead")),
    ],
    ids=lambda path: path[1],
)
def test_is_equal_by_value_in_every_field_of_quantities(path: tuple[str, ...]) -> None:
    assert is_equal("1", "1000m", path)
    assert not is_equal("1", "2", path)


@pytest.mark.parametrize(
    "field",
    ["labels", "annotations", "matchLabels", "nodeLabels", "nodeSelector", "data", "stringData", "binaryData"],
)
def test_is_equal_by_letter_in_every_field_of_texts(field: str) -> None:
    for path in (("spec", field, "weight"), ("spec", field, "limits", "cpu")):
        assert not is_equal("1", "1000m", path)
        assert is_equal("1", "1", path)
