"""A real NATS server is listened to: ways to log in, breaks, bounds. No cluster is needed."""

import asyncio
import gc
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import nats
import pytest

from reconciler.clients.nats import LARGEST_PAYLOAD, MOST_SUBJECTS, Login, NatsFeed
from reconciler.clients.nats_login import find_login
from reconciler.sandbox.certificates import make_authority, make_client_pair, make_server_pair
from reconciler.spec.nats import Bus, NatsConnection, TextRef, find_bus
from tests.cluster.capacity.nats_servers import Server, operator_mode, running
from tests.support import eventually

pytestmark = pytest.mark.usefixtures("loopback")


SECRET = "hunter2"  # noqa: S105  (made up)


@contextmanager
def listening(login: Login) -> Iterator[NatsFeed]:
    feed = NatsFeed(login, ["pools"], problem_of_text)
    try:
        yield feed
    finally:
        feed.close()


def problem_of_text(payload: bytes) -> str:
    return "is bad" if payload.startswith(b"bad") else ""


def publish(server: str, *messages: tuple[str, bytes], **options: Any) -> None:
    async def send() -> None:
        connection = await nats.connect(server, **options)
        for subject, payload in messages:
            await connection.publish(subject, payload)
        await connection.drain()

    asyncio.run(send())


def hears(feed: NatsFeed, server: str, **options: Any) -> bool:
    eventually(lambda: not feed.heard().problem)
    publish(server, ("pools.cnaf", b"{}"), **options)
    return bool(eventually(lambda: "pools.cnaf" in feed.heard().messages))


def bus(server: Server, **login: Any) -> Bus:
    return find_bus(server.address, [NatsConnection((f"nats://{server.address}",), **login)])


def test_feed_keeps_the_last_message_of_every_pool(tmp_path: Path) -> None:
    with running(tmp_path) as server, listening(Login((server.address,))) as feed:
        eventually(lambda: not feed.heard().problem)
        many = [(f"pools.p{number % 3}", str(number).encode()) for number in range(300)]
        publish(server.address, *many, ("other.p0", b"x"), ("pools.a.b", b"x"))
        eventually(
            lambda: feed.heard().messages.get("pools.p2") and feed.heard().messages["pools.p2"].payload == b"299"
        )
        assert {subject: message.payload for subject, message in feed.heard().messages.items()} == {
            "pools.p0": b"297", "pools.p1": b"298", "pools.p2": b"299",
        }  # fmt: skip
        assert feed.heard().messages["pools.p0"].period is not None


def test_user_and_password_by_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUS_PASSWORD", SECRET)
    users = f'authorization: {{ user: kueue, password: "{SECRET}" }}'
    with running(tmp_path, users) as server:
        login = find_login(bus(server, user="kueue", password=TextRef(env="BUS_PASSWORD")))
        with listening(login) as feed:
            assert hears(feed, server.address, user="kueue", password=SECRET)
        assert SECRET not in repr(login)


def test_password_inside_of_the_connector(tmp_path: Path) -> None:
    users = f'authorization: {{ user: kueue, password: "{SECRET}" }}'
    with running(tmp_path, users) as server:
        connector = f"nats://kueue:{SECRET}@{server.address}"
        found = find_bus(connector, [])
        with listening(find_login(found)) as feed:
            assert hears(feed, server.address, user="kueue", password=SECRET)
        assert SECRET not in repr(found) and found.name == server.address


def test_token_by_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n")
    with running(tmp_path, f'authorization: {{ token: "{SECRET}" }}') as server:
        login = find_login(bus(server, token=TextRef(file=str(tmp_path / "token"))))
        with listening(login) as feed:
            assert hears(feed, server.address, token=SECRET)


def test_credentials_file(tmp_path: Path) -> None:
    settings, credentials = operator_mode(tmp_path)
    path = tmp_path / "user.creds"
    path.write_text(credentials)
    ref = TextRef(file=str(path))
    with running(tmp_path, settings) as server, listening(find_login(bus(server, credentials=ref))) as feed:
        assert hears(feed, server.address, user_credentials=str(path))


def test_tls_with_certificates_of_ones_own(tmp_path: Path) -> None:
    authority = make_authority("bus")
    pairs = {"server": make_server_pair(authority, "127.0.0.1"), "client": make_client_pair(authority, "kfleet", "x")}
    (tmp_path / "ca.pem").write_text(authority.certificate)
    for name, pair in pairs.items():
        (tmp_path / f"{name}.pem").write_text(pair.certificate)
        (tmp_path / f"{name}.key").write_text(pair.key)
    files = f'cert_file: "{tmp_path}/server.pem", key_file: "{tmp_path}/server.key", ca_file: "{tmp_path}/ca.pem"'
    refs = {
        name: TextRef(file=str(tmp_path / path))
        for name, path in {"ca": "ca.pem", "certificate": "client.pem", "key": "client.key"}.items()
    }
    with running(tmp_path, f"tls: {{ {files}, verify: true }}") as server:
        login = find_login(bus(server, **refs))
        with listening(login) as feed:
            assert hears(feed, server.address, tls=login.tls)
        with listening(find_login(bus(server))) as foreign:
            assert eventually(lambda: foreign.heard().problem not in ("", "not connected yet"))


def test_wrong_password_is_reported_without_it(tmp_path: Path) -> None:
    users = 'authorization: { user: kueue, password: "right" }'
    with running(tmp_path, users) as server, listening(Login((f"nats://kueue:{SECRET}@{server.address}",))) as feed:
        problem = eventually(lambda: "uthorization" in feed.heard().problem and feed.heard().problem)
        assert SECRET not in problem


def test_feed_begins_when_the_server_comes_and_goes_on_when_it_comes_back(tmp_path: Path) -> None:
    server = Server(tmp_path, "")
    server.stop()
    try:
        with listening(Login((server.address,))) as feed:
            eventually(lambda: feed.heard().problem not in ("", "not connected yet"))
            server.start()
            assert hears(feed, server.address)
            server.stop()
            eventually(lambda: feed.heard().problem)
            assert feed.heard().listened == timedelta()
            assert "pools.cnaf" in feed.heard().messages
            server.start()
            eventually(lambda: not feed.heard().problem)
            publish(server.address, ("pools.lyon", b"{}"))
            eventually(lambda: "pools.lyon" in feed.heard().messages)
    finally:
        server.stop()


# The library leaves the connections of its refused attempts to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_feed_goes_on_after_the_server_refused_its_login_for_a_while(tmp_path: Path) -> None:
    users = 'authorization: {{ user: kueue, password: "{}" }}'
    with running(tmp_path, users.format("right")) as server:
        address = f"kueue:right@{server.address}"
        with listening(Login((f"nats://{address}",))) as feed:
            assert hears(feed, address)
            server.configure(users.format("other"))
            eventually(lambda: "uthorization" in feed.heard().problem)
            server.configure(users.format("right"))
            eventually(lambda: not feed.heard().problem)
            publish(address, ("pools.lyon", b"{}"))
            eventually(lambda: "pools.lyon" in feed.heard().messages)
    gc.collect()  # here, and not in some other test


def test_subject_that_the_server_denies_is_one_that_is_not_heard(tmp_path: Path) -> None:
    users = 'authorization: {{ users: [ {{ user: kueue, password: "x"{} }} ] }}'
    denied = users.format(', permissions: { subscribe: { deny: "pools.*" } }')
    with running(tmp_path, denied) as server:
        address = f"kueue:x@{server.address}"
        with listening(Login((f"nats://{address}",))) as feed:
            eventually(lambda: "permissions violation" in feed.heard().problem.lower())
            assert feed.heard().listened == timedelta()
            server.stop()
            eventually(lambda: "permissions violation" not in feed.heard().problem.lower())
            server.start()  # the library connects again, and asks for the same
            eventually(lambda: "permissions violation" in feed.heard().problem.lower())
            server.stop()
            server.configure(users.format(""))
            server.start()
            assert hears(feed, address)


def test_second_server_takes_over(tmp_path: Path) -> None:
    with (
        running(tmp_path) as first,
        running(tmp_path) as second,
        listening(Login((first.address, second.address))) as feed,
    ):
        eventually(lambda: not feed.heard().problem)
        first.stop()
        second.stop()
        eventually(lambda: feed.heard().problem)
        second.start()
        assert hears(feed, second.address)


def test_connection_that_breaks_before_the_greeting_is_closed(tmp_path: Path) -> None:
    """A connection that is left open is a ResourceWarning, and with it a failure, once its memory is freed."""
    with running(tmp_path) as server, listening(Login((server.address,))) as feed:
        eventually(lambda: not feed.heard().problem)
        server.stop()
        with hanging_up(server.port) as accepted:
            eventually(lambda: len(accepted) > 2)
    gc.collect()
    assert feed.heard().problem


@contextmanager
def hanging_up(port: int) -> Iterator[list[str]]:
    """A server that ends every connection before it says a word; the addresses of its callers."""
    accepted: list[str] = []
    with socket.create_server(("127.0.0.1", port)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, caller = server.accept()
                    accepted.append(str(caller))
                    connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield accepted
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


def test_feed_is_bounded(tmp_path: Path) -> None:
    with running(tmp_path) as server, listening(Login((server.address,))) as feed:
        eventually(lambda: not feed.heard().problem)
        crowd = [(f"pools.p{number}", b"{}") for number in range(MOST_SUBJECTS + 5)]
        publish(server.address, ("pools.large", b"x" * (LARGEST_PAYLOAD + 1)), *crowd)
        eventually(lambda: feed.heard().ignored == 6)
        assert len(feed.heard().messages) == MOST_SUBJECTS


def test_pool_that_is_not_asked_for_takes_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.clients.nats.MOST_SUBJECTS", 3)
    with running(tmp_path) as server:
        feed = NatsFeed(Login((server.address,)), ["pools"], problem_of_text, lambda subject: subject == "pools.cnaf")
        try:
            eventually(lambda: not feed.heard().problem)
            publish(server.address, *((f"pools.{name}", b"bad") for name in "abcd"))
            publish(server.address, *((f"pools.{name}", b"{}") for name in "abcd"), ("pools.cnaf", b"{}"))
            eventually(lambda: feed.heard().messages or feed.heard().ignored)
            heard = feed.heard()
            assert heard.messages.keys() == {"pools.cnaf"} and not heard.bad and not heard.ignored
        finally:
            feed.close()


def test_pool_that_has_not_spoken_for_long_makes_room_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.clients.nats.MOST_SUBJECTS", 3)
    with running(tmp_path) as server, listening(Login((server.address,))) as feed:
        eventually(lambda: not feed.heard().problem)
        publish(server.address, *((f"pools.{name}", b"{}") for name in "abcad"))
        eventually(lambda: feed.heard().ignored == 1)
        assert feed.heard().messages.keys() == {"pools.a", "pools.b", "pools.c"}
        monkeypatch.setattr("reconciler.clients.nats.FORGOTTEN_AFTER", 0.0)
        publish(server.address, ("pools.d", b"{}"))
        eventually(lambda: "pools.d" in feed.heard().messages)
        assert feed.heard().messages.keys() == {"pools.a", "pools.c", "pools.d"}
        assert feed.heard().ignored == 1


def test_message_that_cannot_be_used_is_counted_and_takes_nobodys_place(tmp_path: Path) -> None:
    with running(tmp_path) as server, listening(Login((server.address,))) as feed:
        eventually(lambda: not feed.heard().problem)
        publish(server.address, ("pools.a", b"good"), ("pools.a", b"bad"), ("pools.a", b"bad 2"), ("pools.b", b"bad"))
        eventually(lambda: feed.heard().bad_count == 3)
        heard = feed.heard()
        assert {subject: message.payload for subject, message in heard.messages.items()} == {"pools.a": b"good"}
        assert heard.bad == {"pools.a": "is bad", "pools.b": "is bad"}
        publish(server.address, ("pools.a", b"better"))
        eventually(lambda: feed.heard().messages["pools.a"].payload == b"better")
        assert feed.heard().bad == {"pools.b": "is bad"} and feed.heard().bad_count == 3


def test_clock_that_is_set_makes_no_message_older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Later(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]  # a plain datetime is enough
            return datetime.now(tz) + timedelta(days=1)

    with running(tmp_path) as server, listening(Login((server.address,))) as feed:
        assert hears(feed, server.address)
        before = feed.heard().messages["pools.cnaf"].received_at
        monkeypatch.setattr("reconciler.clients.nats.datetime", Later)
        after = feed.heard().messages["pools.cnaf"].received_at
        assert abs(after - before - timedelta(days=1)) < timedelta(minutes=1)


def test_wait_ends_when_something_is_heard(tmp_path: Path) -> None:
    with running(tmp_path) as server, listening(Login((server.address,))) as feed:
        eventually(lambda: not feed.heard().problem)
        while feed.wait(timedelta()):
            pass
        assert not feed.wait(timedelta(milliseconds=10))
        publish(server.address, ("pools.cnaf", b"{}"))
        assert feed.wait(timedelta(seconds=30))
