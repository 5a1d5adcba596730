"""Message buses: their servers, and the locations of their credentials."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from reconciler.objects import Manifest

USUAL_PORT = "4222"

_SERVER = re.compile(r"(\[[^\]]*\]|[^:/]*)(?::([0-9]+))?.*", re.DOTALL)
# NATS treats a user without a password as a token, which is just as secret.
_LOGIN = re.compile(r"(//|^|,\s*)[^/@,]+@")
# Up to the last @ of a server: a password may contain an @ itself.
_WHOLE_LOGIN = re.compile(r"((?:^|,\s*)(?:[a-z]+://)?|//)[^,\s]*@")
_END_OF_HOST = re.compile(r"[/?#\\]")


@dataclass(frozen=True, slots=True)
class TextRef:
    """The location of a secret text: an environment variable, a file, or a Secret on the manager."""

    env: str = ""
    file: str = ""
    namespace: str = ""
    name: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class NatsConnection:
    """Credentials for the servers of a bus, used if a MasterQueue or a Flavor names these servers and no others."""

    servers: tuple[str, ...]
    user: str = ""
    password: TextRef | None = None
    token: TextRef | None = None
    credentials: TextRef | None = None
    ca: TextRef | None = None
    certificate: TextRef | None = None
    key: TextRef | None = None

    @property
    def sends_secrets(self) -> bool:
        """Whether a server receives a secret that it could reuse; with a certificate it does not."""
        return any((self.password, self.token, self.credentials))


@dataclass(frozen=True, slots=True)
class Bus:
    """A bus that the fleet subscribes to. The connector may contain a password; the name never does.

    `unnamed` are servers of the connector that are missing in the Fleet's entry with the credentials of the others.
    """

    name: str
    connector: str = field(repr=False)
    login: NatsConnection | None = None
    unnamed: tuple[str, ...] = ()


def addresses(connector: str) -> tuple[str, ...]:
    """Return the servers of a connector as host:port, without anything secret."""
    return tuple(_address(part.strip()) for part in connector.split(",") if part.strip())


# Called for every pool of every observation.
@lru_cache(maxsize=256)
def bus_name(connector: str) -> str:
    return ",".join(sorted(set(addresses(connector))))


def has_login(connector: str) -> bool:
    """Whether the connector itself contains a password or a token."""
    return _LOGIN.search(connector) is not None


def logins_of(connector: str) -> frozenset[str]:
    """Return the credentials in the connector itself. They are secret."""
    parts = (part.rpartition("@")[0].rpartition("//")[2].strip() for part in connector.split(","))
    return frozenset(part for part in parts if part)


def find_bus(connector: str, connections: Iterable[NatsConnection]) -> Bus:
    """Return the bus of a connector, with the credentials of the first connection that names its servers."""
    asked, known = set(addresses(connector)), tuple(connections)
    login = min((one for one in known if asked & _named(one)), key=lambda one: not asked <= _named(one), default=None)
    unnamed = tuple(sorted(asked - _named(login))) if login else ()
    return Bus(bus_name(connector), connector, login, unnamed)


def is_misread(connector: str) -> bool:
    """Whether a client would parse another server out of the connector than the one after its last @."""
    return any(_END_OF_HOST.search(part.partition("//")[2].rpartition("@")[0]) for part in connector.split(","))


def without_logins(value: Any) -> Any:
    """Return a value without the users, passwords and tokens in URLs of message buses."""
    if isinstance(value, str):
        return _WHOLE_LOGIN.sub(r"\1***@", value)
    if isinstance(value, Mapping):
        return {name: without_logins(entry) for name, entry in value.items()}
    return [without_logins(entry) for entry in value] if isinstance(value, list | tuple) else value


def read_connection(entry: Manifest) -> NatsConnection:
    tls = entry.get("tls", {})
    return NatsConnection(
        servers=tuple(entry["servers"]),
        user=entry.get("user", ""),
        password=_ref(entry.get("password")),
        token=_ref(entry.get("token")),
        credentials=_ref(entry.get("credentials")),
        ca=_ref(tls.get("ca")),
        certificate=_ref(tls.get("certificate")),
        key=_ref(tls.get("key")),
    )


def _ref(entry: Manifest | None) -> TextRef | None:
    if entry is None:
        return None
    secret = entry.get("secretRef", {})
    return TextRef(
        entry.get("env", ""),
        entry.get("file", ""),
        secret.get("namespace", ""),
        secret.get("name", ""),
        secret.get("key", ""),
    )


def _named(connection: NatsConnection) -> set[str]:
    return set(addresses(",".join(connection.servers)))


def _address(server: str) -> str:
    # A password may contain anything, even an @: the host is after the last one.
    match = _SERVER.fullmatch(server.rpartition("@")[2].rpartition("//")[2])
    host, port = match.groups() if match else ("", None)
    return f"{host}:{port or USUAL_PORT}"
