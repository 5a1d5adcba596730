"""A real NATS server is listened to: ways to log in, breaks, bounds. No cluster is needed."""

from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.clients.nats import period_of
from reconciler.clients.nats_login import find_login
from reconciler.errors import BusError
from reconciler.spec.nats import Bus, NatsConnection, TextRef, bus_name, find_bus, has_login, without_logins


@pytest.mark.parametrize(
    ("pauses", "period"),
    [
        ((), None),
        ((30,), None),
        ((1, 30), 30),
        ((30, 600), 600),
        ((30, 30, 30, 30, 30), 30),
        ((30, 30, 30, 30, 600), 30),
        ((30, 30, 600, 30, 31, 30), 31),
        ((1, 1, 1, 30, 30), 30),
        ((600, 600, 30, 30, 30, 30), 30),
    ],
)
def test_period_of_a_pool_is_not_the_outage_that_it_once_had(pauses: tuple[float, ...], period: float | None) -> None:
    assert period_of(pauses) == (None if period is None else timedelta(seconds=period))


@pytest.mark.parametrize(
    ("ref", "problem"),
    [
        (TextRef(env="NOT_SET_ANYWHERE"), "the environment variable NOT_SET_ANYWHERE is not set"),
        (TextRef(file="/does/not/exist"), "cannot read /does/not/exist"),
        (TextRef(namespace="keys", name="nats", key="x"), "secret keys/nats: its cluster"),
    ],
)
def test_secret_that_cannot_be_read_is_reported_by_its_place(ref: TextRef, problem: str) -> None:
    with pytest.raises(BusError, match=problem):
        find_login(Bus("nats:4222", "nats", NatsConnection(("nats",), password=ref)))


def test_certificate_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(BusError, match="tls: "):
        find_login(Bus("n", "nats", NatsConnection(("nats",), ca=TextRef(file=str(tmp_path / "ca.pem")))))


@pytest.mark.parametrize(
    ("connector", "name", "is_secret"),
    [
        ("nats://nats:4222", "nats:4222", False),
        ("nats", "nats:4222", False),
        ("tls://user:pa@ss@nats", "nats:4222", True),
        ("nats://token@b:1, nats://a", "a:4222,b:1", True),
        ("user:secret@nats", "nats:4222", True),
        ("nats://[::1]:7", "[::1]:7", False),
    ],
)
def test_bus_is_named_by_its_servers_alone(connector: str, name: str, *, is_secret: bool) -> None:
    assert bus_name(connector) == name
    assert has_login(connector) == is_secret


KNOWN = NatsConnection(("tls://known:4222", "tls://spare"), user="kueue", password=TextRef(env="BUS_PASSWORD"))


@pytest.mark.parametrize("connector", ["known", "nats://spare:4222,nats://known", "nats://evil:x@known"])
def test_login_of_the_fleet_goes_to_servers_in_the_words_of_the_fleet(
    connector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUS_PASSWORD", "hush")
    login = find_login(find_bus(connector, [KNOWN]))
    assert (login.servers, login.password) == (("tls://known:4222", "tls://spare"), "hush")


@pytest.mark.parametrize("connector", ["evil,known", "nats://known:4222,nats://evil:4222"])
def test_login_of_the_fleet_goes_nowhere_where_a_server_is_not_named(
    connector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUS_PASSWORD", "hush")
    with pytest.raises(BusError, match="does not name evil:4222"):
        find_login(find_bus(connector, [KNOWN]))


def test_login_is_of_the_entry_that_names_all_servers() -> None:
    both = NatsConnection(("known", "evil"))
    assert find_bus("evil,known", [KNOWN, both]).login is both


@pytest.mark.parametrize("connector", ["nats://evil/@known", "nats://evil?@known", "nats://evil#@known"])
def test_connector_that_can_be_read_in_two_ways_is_not_used(connector: str) -> None:
    assert bus_name(connector) == "known:4222"
    for connections in ([], [KNOWN]):
        with pytest.raises(BusError, match="a user or password in its connector contains"):
            find_login(find_bus(connector, connections))


def test_certificate_alone_keeps_the_login_of_the_connector() -> None:
    login = find_login(find_bus("nats://user:word@known", [NatsConnection(("known",))]))
    assert login.servers == ("nats://user:word@known", "nats://known")


def test_text_without_logins_holds_nothing_of_them() -> None:
    assert without_logins({"c": ["nats://u:pa@ss@one, tok@two", "nats://u:p/w@one", 1]}) == {
        "c": ["nats://***@one, ***@two", "nats://***@one", 1]
    }
