"""Patterns for names of pools: what Python searches, in linear time."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.spec.formats import LONGEST_NAME, check_pattern, is_found

NAMES = st.text("abcxyzABC019_.-", max_size=LONGEST_NAME)
PARTS = (
    "^",
    "$",
    "a",
    "b-",
    "podman",
    ".",
    "[a-c]",
    "[^x]",
    r"\d",
    r"\w+",
    r"\.",
    "(ab|c)",
    "x*",
    "y?",
    "z{0,3}",
    "(?:a|b)+",
    r"\b",
)


def test_pattern_with_nested_repeats_holds_up_nothing() -> None:
    """Python's own engine takes hours for this one."""
    began = time.process_time()
    assert not is_found("^([a-z0-9]+-?)+$", "a" * 62 + "_")
    assert is_found("^([a-z0-9]+-?)+$", "a" * 63)
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("pattern", "name", "is_there"),
    [
        ("", "cnaf", True),
        ("podman-.*", "x-podman-y", True),
        ("podman", "PODMAN", False),
        ("(?i)podman", "PODMAN", True),
    ],
)
def test_pattern_is_searched_anywhere_and_by_case(pattern: str, name: str, *, is_there: bool) -> None:
    assert is_found(pattern, name) is is_there


@given(st.lists(st.sampled_from(PARTS), max_size=6).map("".join), NAMES)
def test_pattern_finds_what_python_finds(pattern: str, name: str) -> None:
    try:
        check_pattern(pattern)
    except ValueError:
        return
    assert is_found(pattern, name) is (re.search(pattern, name) is not None)


def test_name_that_is_too_long_for_a_pool_is_not_matched() -> None:
    assert is_found(".*", "a" * LONGEST_NAME) and not is_found(".*", "a" * (LONGEST_NAME + 1))


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("a(?=b)", "'a(?=b)' cannot be matched in linear time: invalid perl operator: (?="),
        (r"(a)\1", "cannot be matched in linear time"),
        ("a{1001}", "cannot be matched in linear time"),
        ("a{,3}", "'a{,3}' contains {,3}, which is ambiguous: write {0,3}"),
        ("[[:alpha:]]", "contains [:alpha:], which is ambiguous"),
        (r"\pN", "is not a regular expression: bad escape"),
        ("(", "is not a regular expression: missing )"),
    ],
)
def test_pattern_that_another_engine_would_read_otherwise_is_refused(pattern: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        check_pattern(pattern)
