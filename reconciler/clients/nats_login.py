"""Credentials of a message bus: those in its connector, and those that the Fleet refers to."""

import os
import ssl
import tempfile
from base64 import b64decode
from pathlib import Path

from reconciler.clients.nats import Login
from reconciler.clients.protocols import ClusterClient
from reconciler.errors import BusError, ClusterError, EdgeError
from reconciler.spec.nats import Bus, NatsConnection, TextRef, is_misread

VARIABLE = "env:"


def find_login(bus: Bus, manager: ClusterClient | None = None, namespace: str = "") -> Login:
    """`manager` and `namespace` locate the Secrets that the Fleet names; BusError reports what is missing.

    A connector may come from an object on the manager: it is untrusted. The Fleet's secrets go only to servers that the
    Fleet itself names, spelled as the Fleet spells them, so that no other reading of the connector can redirect them.
    """
    _check_connector(bus)
    login = bus.login
    own = tuple(part.strip() for part in bus.connector.split(",") if part.strip())
    if login is None:
        return Login(tuple(_with_scheme(server) for server in own))
    read = _Reader(bus.name, manager, namespace)
    named = login.servers if login.sends_secrets else (*own, *login.servers)
    servers = dict.fromkeys(_with_scheme(server) for server in named)
    return Login(
        tuple(servers),
        user=login.user,
        password=read.text(login.password),
        token=read.text(login.token).strip(),
        credentials=read.text(login.credentials),
        tls=_tls(bus.name, login, read),
    )


def _check_connector(bus: Bus) -> None:
    if is_misread(bus.connector):
        raise BusError(bus.name, "a user or password in its connector contains '/', '?' or '#': keep it in spec.nats")
    if bus.unnamed:
        others = ", ".join(bus.unnamed)
        problem = f"spec.nats of the Fleet has credentials for some of its servers and does not name {others}"
        raise BusError(bus.name, f"{problem}: name all of them in one entry, or use another connector for the others")


class _Reader:
    """Reads secret texts from any location; a message names the location and never the text."""

    def __init__(self, bus: str, manager: ClusterClient | None, namespace: str) -> None:
        self._bus, self._manager, self._namespace = bus, manager, namespace

    def text(self, ref: TextRef | None) -> str:
        if ref is None:
            return ""
        if ref.env:
            return self._from_variable(ref.env)
        return self._from_file(ref.file) if ref.file else self._from_secret(ref)

    def _from_variable(self, name: str) -> str:
        if not os.environ.get(name):
            raise BusError(self._bus, f"the environment variable {name} is not set")
        return os.environ[name]

    def _from_file(self, path: str) -> str:
        try:
            return Path(path).expanduser().read_text().rstrip("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise BusError(self._bus, f"cannot read {path}: {getattr(error, 'strerror', 'is not text')}") from error

    def _from_secret(self, ref: TextRef) -> str:
        namespace = ref.namespace or self._namespace
        if self._manager is None:
            raise BusError(self._bus, f"secret {namespace}/{ref.name}: its cluster cannot be reached")
        try:
            secret = self._manager.get(f"/api/v1/namespaces/{namespace}/secrets/{ref.name}")
        except ClusterError as error:
            raise BusError(self._bus, f"secret {namespace}/{ref.name}: {error.problem}") from error
        encoded = (secret.get("data") or {}).get(ref.key)
        if encoded is None:
            raise BusError(self._bus, f"secret {namespace}/{ref.name} has no key {ref.key!r}")
        return b64decode(encoded).decode(errors="replace")


def _tls(bus: str, login: NatsConnection, read: _Reader) -> ssl.SSLContext | None:
    if login.ca is None and login.certificate is None:
        return None
    try:
        context = ssl.create_default_context(cadata=read.text(login.ca) or None)
        if login.certificate is not None:
            # The ssl module loads client certificates only from files: private to this user, and deleted at once.
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:
                pair.write(read.text(login.certificate) + "\n" + read.text(login.key))
                pair.flush()
                context.load_cert_chain(pair.name)
    except ssl.SSLError as error:
        raise BusError(bus, f"tls: {error.reason or 'no readable certificate'}") from error
    return context


def _with_scheme(server: str) -> str:
    return server if "://" in server else f"nats://{server}"


def read_secret(option: str, place: str) -> str:
    """Read the text at a location, `env:NAME` or a file; it is read for every use, so that a renewed secret counts."""
    text = _from_variable(option, place) if place.startswith(VARIABLE) else _from_file(option, place)
    if not text:
        raise EdgeError(f"{option} {place}", "is empty", "an empty secret would accept every request")
    return text


def _from_variable(option: str, place: str) -> str:
    name = place.removeprefix(VARIABLE)
    if name not in os.environ:
        raise EdgeError(f"{option} {place}", f"the environment variable {name} is not set")
    return os.environ[name].strip()


def _from_file(option: str, place: str) -> str:
    try:
        return Path(place).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = (getattr(error, "strerror", "") or "is not text").lower()
        hint = "set the path of a file, or env:NAME for an environment variable"
        raise EdgeError(f"{option} {place}", f"cannot be read: {reason}", hint) from error
