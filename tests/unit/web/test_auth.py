from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.web.auth import (
    FLEET_PATH,
    LARGEST_TOKEN,
    NO_TOKEN,
    Reviewer,
    User,
    access_review,
    bearer_token,
    fleet_attributes,
    is_allowed,
    namespace_attributes,
    reviewed_user,
    token_review,
)

ADA = {"username": "ada", "uid": "7", "groups": ["team"], "extra": {"scope": ["a"]}}


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc.def", "abc.def"),
        ("bearer  abc", "abc"),
        ("Basic YWRh", ""),
        ("Bearer", ""),
        ("", ""),
        ("Bearer tökén", ""),
        (f"Bearer {'x' * (LARGEST_TOKEN + 1)}", ""),
    ],
)
def test_token_is_that_of_a_bearer_header(header: str, token: str) -> None:
    assert bearer_token({"authorization": header}) == token


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"authenticated": False, "user": ADA},
        {"authenticated": "true", "user": ADA},
        {"authenticated": True},
        {"authenticated": True, "user": {"username": ""}},
        {"authenticated": True, "user": ADA, "error": "audience"},
    ],
)
def test_user_is_unknown_unless_the_server_says_otherwise(status: Mapping[str, Any]) -> None:
    assert reviewed_user({"status": status}) is None
    assert reviewed_user({}) is None


def test_user_is_what_the_server_says() -> None:
    user = reviewed_user({"status": {"authenticated": True, "user": ADA}})
    assert user == User("ada", "7", ("team",), (("scope", ("a",)),))


@pytest.mark.parametrize(
    ("status", "allowed"),
    [
        ({"allowed": True}, True),
        ({"allowed": False}, False),
        ({"allowed": True, "denied": True}, False),
        ({}, False),
        ({"allowed": "yes"}, False),
    ],
)
def test_review_allows_only_what_it_says(status: Mapping[str, Any], allowed: bool) -> None:  # noqa: FBT001
    assert is_allowed({"status": status}) is allowed


def test_reviews_ask_about_the_user_and_about_one_thing() -> None:
    user = User("ada", "7", ("team",), (("scope", ("a",)),))
    fleet = access_review(user, fleet_attributes())["spec"]
    assert fleet["nonResourceAttributes"] == {"path": FLEET_PATH, "verb": "get"}
    assert (fleet["user"], fleet["uid"], fleet["groups"], fleet["extra"]) == ("ada", "7", ["team"], {"scope": ["a"]})
    tenant = access_review(user, namespace_attributes("team-a"))["spec"]["resourceAttributes"]
    assert tenant == {"group": "kueue.x-k8s.io", "resource": "localqueues", "verb": "get", "namespace": "team-a"}
    assert token_review("abc")["spec"] == {"token": "abc"}


def test_reader_without_a_token_is_denied_before_anything_is_asked() -> None:
    def fail() -> None:
        raise AssertionError("asked")

    assert Reviewer(fail).decide("", lambda: ()) == NO_TOKEN


def test_reader_is_not_let_in_while_the_manager_does_not_respond() -> None:
    denied = Reviewer(lambda: None).decide("abc", lambda: ("team-a",))
    assert getattr(denied, "status", None) == 503
