"""Message buses: which servers, and where the secrets to log in are kept."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from reconciler.objects import Manifest

USUAL_PORT = "4222"

_SERVER = re.compile(r"(\[[^\]]*\]|[^:/]*)(?::([0-9]+))?.*", re.DOTALL)
# NATS takes a user without a password for a token, which is as secret.
_LOGIN = re.compile(r"(//|^|,\s*)[^/@,]+@")


@dataclass(frozen=True, slots=True)
class TextRef:
    """Where a secret text is kept: an environment variable, a file, or a Secret on the manager."""

    env: str = ""
    file: str = ""
    namespace: str = ""
    name: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class NatsConnection:
    """How to log in to the servers of a bus, wherever a MasterQueue or a Flavor names one of them."""

    servers: tuple[str, ...]
    user: str = ""
    password: TextRef | None = None
    token: TextRef | None = None
    credentials: TextRef | None = None
    ca: TextRef | None = None
    certificate: TextRef | None = None
    key: TextRef | None = None


@dataclass(frozen=True, slots=True)
class Bus:
    """A bus that the fleet listens to. The connector may hold a password; the name never does."""

    name: str
    connector: str = field(repr=False)
    login: NatsConnection | None = None


def addresses(connector: str) -> tuple[str, ...]:
    """The servers of a connector as host:port, without anything secret."""
    return tuple(_address(part.strip()) for part in connector.split(",") if part.strip())


# Asked for every pool of every look.
@lru_cache(maxsize=256)
def bus_name(connector: str) -> str:
    return ",".join(sorted(set(addresses(connector))))


def has_login(connector: str) -> bool:
    """Whether the connector itself holds a password or a token."""
    return _LOGIN.search(connector) is not None


def logins_of(connector: str) -> frozenset[str]:
    """The logins that a connector itself holds. They are secret."""
    parts = (part.rpartition("@")[0].rpartition("//")[2].strip() for part in connector.split(","))
    return frozenset(part for part in parts if part)


def find_bus(connector: str, connections: Iterable[NatsConnection]) -> Bus:
    """The bus of a connector, with the login of the first connection that names one of its servers."""
    known = set(addresses(connector))
    login = next((one for one in connections if known & set(addresses(",".join(one.servers)))), None)
    return Bus(bus_name(connector), connector, login)


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


def _address(server: str) -> str:
    # A password may hold anything, an @ too: what counts stands behind the last one.
    match = _SERVER.fullmatch(server.rpartition("@")[2].rpartition("//")[2])
    host, port = match.groups() if match else ("", None)
    return f"{host}:{port or USUAL_PORT}"
