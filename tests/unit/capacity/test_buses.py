"""A real NATS server is listened to: ways to log in, breaks, bounds. No cluster is needed."""

from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.edges.nats import period_of
from reconciler.edges.nats_login import find_login
from reconciler.errors import BusError
from reconciler.spec.nats import Bus, NatsConnection, TextRef, bus_name, has_login


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
        (TextRef(namespace="keys", name="nats", key="x"), "secret keys/nats: the cluster that holds it"),
    ],
)
def test_secret_that_cannot_be_read_is_told_by_its_place(ref: TextRef, problem: str) -> None:
    with pytest.raises(BusError, match=problem):
        find_login(Bus("nats:4222", "nats", NatsConnection(("nats",), password=ref)))


def test_certificate_that_cannot_be_read_is_told(tmp_path: Path) -> None:
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
