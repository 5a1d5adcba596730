import pytest

from reconciler.spec.selectors import LabelSelector, parse_selector, read_selector

LABELS = {"site": "cnaf", "gpu": "a100"}


@pytest.mark.parametrize(
    ("text", "is_match"),
    [
        ("site=cnaf", True),
        ("site==cnaf", True),
        ("site!=cnaf", False),
        ("other!=x", True),
        ("site in (cnaf, lyon)", True),
        ("site notin (cnaf,lyon)", False),
        ("gpu", True),
        ("!gpu", False),
        ("site=cnaf,gpu in (a100,h100),!spot", True),
        ("site=cnaf,gpu=h100", False),
        ("example.org/site=", False),
    ],
)
def test_selector_text_matches_as_in_kubernetes(text: str, *, is_match: bool) -> None:
    assert parse_selector(text).matches(LABELS) is is_match


@pytest.mark.parametrize("wrong", ["", "=x", "site in cnaf", "site in (a b)", "a,,b", "site=a=b", "(a)", "-a"])
def test_selector_text_that_cannot_be_read_is_named(wrong: str) -> None:
    with pytest.raises(ValueError, match="is not a label selector"):
        parse_selector(wrong)


@pytest.mark.parametrize(
    ("manifest", "is_match"),
    [
        ({}, True),
        ({"matchLabels": {"site": "cnaf"}}, True),
        ({"matchLabels": {"site": "cnaf", "gpu": "h100"}}, False),
        ({"matchExpressions": [{"key": "site", "operator": "In", "values": ["cnaf"]}]}, True),
        ({"matchExpressions": [{"key": "site", "operator": "NotIn", "values": ["cnaf"]}]}, False),
        ({"matchExpressions": [{"key": "rack", "operator": "NotIn", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_selector_manifest_matches_and_is_written_again(manifest: dict[str, object], *, is_match: bool) -> None:
    selector = read_selector(manifest)
    assert selector.matches(LABELS) is is_match
    assert selector.manifest() == manifest


def test_selector_without_requirements_matches_everything() -> None:
    assert LabelSelector({}).matches({})
