"""NATS servers of a test's own, with the ways to log in that people use."""

import base64
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection

import nkeys
from nacl.signing import SigningKey

from reconciler.sandbox.control_plane import nats_program
from reconciler.sandbox.ports import ReservedPorts

StartServer = Callable[[str], str]


class Server:
    """One server, which can be stopped and started again on the same port."""

    def __init__(self, folder: Path, settings: str) -> None:
        self._reserved = ReservedPorts()
        (self.port,) = self._reserved.take(1)
        self._config = folder / f"nats-{self.port}.conf"
        self._process: subprocess.Popen[bytes] | None = None
        self.configure(settings)
        self.start()

    def configure(self, settings: str) -> None:
        """What it is told, now where it runs."""
        self._config.write_text(f'listen: "127.0.0.1:{self.port}"\n{settings}\n')
        if self._process is not None:
            self._process.send_signal(signal.SIGHUP)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [nats_program(), "-c", str(self._config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 20
        while True:
            try:
                create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                assert time.monotonic() < deadline, "the server does not listen"
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def running(folder: Path, settings: str = "") -> Iterator[Server]:
    server = Server(folder, settings)
    try:
        yield server
    finally:
        server.stop()


def operator_mode(folder: Path) -> tuple[str, str]:
    """Settings of a server that trusts an operator, and the credentials file of a user of its only account."""
    operator, account, user = (
        _key(prefix) for prefix in (nkeys.PREFIX_BYTE_OPERATOR, nkeys.PREFIX_BYTE_ACCOUNT, nkeys.PREFIX_BYTE_USER)
    )
    operator_token = _token(operator, operator, {"type": "operator", "version": 2})
    unlimited = {
        "subs": -1,
        "data": -1,
        "payload": -1,
        "imports": -1,
        "exports": -1,
        "wildcards": True,
        "conn": -1,
        "leaf": -1,
    }
    account_token = _token(operator, account, {"type": "account", "version": 2, "limits": unlimited})
    user_token = _token(account, user, {"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1})
    (folder / "operator.jwt").write_text(operator_token)
    preload = f'resolver_preload: {{ {_public(account)}: "{account_token}" }}'
    settings = f'operator: "{folder}/operator.jwt"\nresolver: MEMORY\n{preload}'
    credentials = (
        f"-----BEGIN NATS USER JWT-----\n{user_token}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{bytes(user.seed).decode()}\n------END USER NKEY SEED------\n"
    )
    return settings, credentials


def _key(prefix: int) -> nkeys.KeyPair:
    raw = bytes(SigningKey.generate())
    seed = nkeys.encode_seed(raw, prefix)
    return nkeys.from_seed(bytearray(seed))


def _public(key: nkeys.KeyPair) -> str:
    return bytes(key.public_key).decode()


def _token(issuer: nkeys.KeyPair, subject: nkeys.KeyPair, claims: dict[str, object]) -> str:
    head = {"typ": "JWT", "alg": "ed25519-nkey"}
    body = {
        "jti": "x",
        "iat": int(time.time()),
        "iss": _public(issuer),
        "name": "test",
        "sub": _public(subject),
        "nats": claims,
    }
    text = ".".join(_encoded(json.dumps(part).encode()) for part in (head, body))
    return f"{text}.{_encoded(issuer.sign(text.encode()))}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
