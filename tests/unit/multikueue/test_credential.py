"""Tokens as values: what they say of themselves, and when a new one has to be made."""

import json
from base64 import b64decode, b64encode, urlsafe_b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.multikueue.model import SeenCredential, Token, read_credential, reason_to_issue, subject_of, with_token
from reconciler.objects import ApiEndpoint, ClusterName, TokenRequestSpec
from tests import fast_yaml
from tests.unit.multikueue.test_certificate import certificate

BORN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SUBJECT = subject_of("kueue-system", "multikueue-test")
TOKEN = Token("a.b.c", SUBJECT, BORN, BORN + timedelta(days=30), is_accepted=True)
WISH = TokenRequestSpec(
    ClusterName("east"), "kueue-system", "multikueue-test", timedelta(hours=24), ApiEndpoint("https://east:6443", "CA")
)


def jwt(**claims: Any) -> str:
    parts = ({"alg": "RS256"}, {"sub": SUBJECT, "iat": 1_772_366_400, "exp": 1_774_958_400, **claims})
    return ".".join(urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + ".sig"


def secret(kubeconfig: Any) -> dict[str, Any]:
    text = kubeconfig if isinstance(kubeconfig, str) else fast_yaml.safe_dump(kubeconfig)
    return {"data": {"kubeconfig": b64encode(text.encode()).decode()}}


def test_kubeconfig_holds_one_server_an_inline_authority_and_a_token() -> None:
    made = with_token({"kind": "Secret"}, WISH, "t0ken")
    content = fast_yaml.safe_load(b64decode(made["data"]["kubeconfig"]))
    authority = b64encode(b"CA").decode()
    assert content == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "east", "cluster": {"server": "https://east:6443", "certificate-authority-data": authority}}
        ],
        "users": [{"name": "multikueue-test", "user": {"token": "t0ken"}}],
        "contexts": [{"name": "east", "context": {"cluster": "east", "user": "multikueue-test"}}],
        "current-context": "east",
    }


def test_kubeconfig_leaves_the_authority_out_where_the_systems_own_is_meant() -> None:
    options = TokenRequestSpec(WISH.worker, "a", "b", WISH.lifetime, ApiEndpoint("https://east:6443"))
    content = fast_yaml.safe_load(b64decode(with_token({}, options, "t")["data"]["kubeconfig"]))
    assert content["clusters"][0]["cluster"] == {"server": "https://east:6443"}


def test_token_is_read_back_from_what_was_written() -> None:
    seen = read_credential(with_token({}, WISH, jwt()))
    assert seen.token == Token(jwt(), SUBJECT, BORN, BORN + timedelta(days=30))
    assert seen.endpoint == WISH.endpoint
    assert seen.token.renewed_at == BORN + timedelta(days=20)


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"data": None},
        {"data": {"kubeconfig": "%"}},
        secret("{"),
        secret("[]"),
        secret({"current-context": "a", "contexts": []}),
        secret({"current-context": "a", "contexts": [{"name": "a", "context": {"user": "b"}}], "users": []}),
        with_token({}, WISH, ""),
    ],
)
def test_token_that_cannot_be_read_is_reported_without_quoting_it(broken: dict[str, Any]) -> None:
    assert read_credential(broken) == SeenCredential(problem="the Secret has no kubeconfig with a readable token")


@pytest.mark.parametrize("text", ["no-jwt", jwt(exp=10**30), jwt(iat=-(10**14)), "a.####.c", "a.W10.c"])
def test_token_that_says_nothing_of_itself_is_one_all_the_same(text: str) -> None:
    seen = read_credential(with_token({}, WISH, text))
    assert (seen.token, seen.endpoint) == (Token(text), WISH.endpoint)
    assert reason_to_issue(seen, SUBJECT, BORN, WISH.lifetime, is_asked_for=False)


def test_token_of_a_secret_of_a_service_account_never_ends() -> None:
    """As Kueue's own script makes it: no time in it at all."""
    seen = read_credential(with_token({}, WISH, jwt(exp=None, iat=None)))
    assert seen.token == Token(jwt(exp=None, iat=None), SUBJECT)
    reason = reason_to_issue(seen, SUBJECT, BORN, WISH.lifetime, is_asked_for=False)
    assert reason == "the token has no expiry"


def test_client_certificate_is_distinguished_from_nothing_at_all() -> None:
    content = fast_yaml.safe_load(b64decode(with_token({}, WISH, "")["data"]["kubeconfig"]))
    content["users"][0]["user"] = {"client-certificate-data": "QQ==", "client-key-data": "QQ=="}
    seen = read_credential(secret(content))
    assert (seen.has_certificate, seen.token) == (True, None)
    assert seen.problem == "the Secret holds a client certificate and no token"


def test_client_certificate_is_read_with_its_end() -> None:
    end = BORN + timedelta(days=90)
    content = fast_yaml.safe_load(b64decode(with_token({}, WISH, "")["data"]["kubeconfig"]))
    data = b64encode(certificate(end).encode()).decode()
    content["users"][0]["user"] = {"client-certificate-data": data, "client-key-data": "QQ=="}
    assert read_credential(secret(content)).certificate_end == end


def test_token_of_a_missing_secret_is_missing() -> None:
    assert read_credential(None).is_missing


@pytest.mark.parametrize(
    ("seen", "after", "reason"),
    [
        (SeenCredential(TOKEN), timedelta(days=19, hours=23), ""),
        (
            SeenCredential(TOKEN),
            timedelta(days=20),
            "two thirds of the token's lifetime are over, it expires at 2026-03-31",
        ),
        (SeenCredential(TOKEN), timedelta(days=40), "two thirds of the token's lifetime are over"),
        (SeenCredential(problem="no token"), timedelta(), "no token"),
    ],
)
def test_reason_to_issue_comes_with_age(seen: SeenCredential, after: timedelta, reason: str) -> None:
    found = reason_to_issue(seen, SUBJECT, BORN + after, timedelta(days=30), is_asked_for=False)
    assert found.startswith(reason)
    assert bool(found) == bool(reason)


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (replace(TOKEN, is_accepted=None), ""),
        (replace(TOKEN, is_accepted=False), "the worker does not accept the token"),
        (replace(TOKEN, subject="system:serviceaccount:a:b"), "the token is of system:serviceaccount:a:b"),
    ],
)
def test_reason_to_issue_is_what_was_seen_and_never_what_was_not(token: Token, reason: str) -> None:
    assert reason_to_issue(SeenCredential(token), SUBJECT, BORN, timedelta(days=30), is_asked_for=False) == reason


@pytest.mark.parametrize(
    ("hours", "reason"),
    [
        (720, ""),
        # What the server has shortened is all that there is to get.
        (2000, ""),
        (24, "the token was issued for 720 h, and the spec sets 24 h"),
    ],
)
def test_reason_to_issue_is_that_the_fleet_wants_tokens_to_end_sooner(hours: int, reason: str) -> None:
    found = reason_to_issue(SeenCredential(TOKEN), SUBJECT, BORN, timedelta(hours=hours), is_asked_for=False)
    assert found == reason


def test_reason_to_issue_is_that_an_operator_asks() -> None:
    found = reason_to_issue(SeenCredential(TOKEN), SUBJECT, BORN, timedelta(days=30), is_asked_for=True)
    assert found == "a new token was requested"


def test_token_is_shown_by_no_value_that_holds_it() -> None:
    options = TokenRequestSpec(WISH.worker, "a", "b", WISH.lifetime, WISH.endpoint, kept="s3cret")
    token = Token("s3cret", SUBJECT, BORN, BORN)
    assert not any("s3cret" in repr(value) for value in (options, token, SeenCredential(token)))


def test_request_asks_for_the_lifetime_of_the_fleet() -> None:
    assert WISH.path == "/api/v1/namespaces/kueue-system/serviceaccounts/multikueue-test/token"
    assert WISH.request["spec"] == {"expirationSeconds": 86_400}
