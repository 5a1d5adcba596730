"""How a message bus is logged in to: what the connector holds, and what the Fleet says where to find."""

import os
import ssl
import tempfile
from base64 import b64decode
from pathlib import Path

from reconciler.edges.nats import Login
from reconciler.errors import BusError, ClusterError
from reconciler.ports import ClusterPort
from reconciler.spec.nats import Bus, NatsConnection, TextRef


def find_login(bus: Bus, manager: ClusterPort | None = None, namespace: str = "") -> Login:
    """`manager` and `namespace` are where a Secret lies that the Fleet names; BusError says what is missing."""
    login = bus.login
    own = tuple(part.strip() for part in bus.connector.split(",") if part.strip())
    if login is None:
        return Login(tuple(_with_scheme(server) for server in own))
    read = _Reader(bus.name, manager, namespace)
    servers = dict.fromkeys(_with_scheme(server) for server in (*own, *login.servers))
    return Login(
        tuple(servers),
        user=login.user,
        password=read.text(login.password),
        token=read.text(login.token).strip(),
        credentials=read.text(login.credentials),
        tls=_tls(bus.name, login, read),
    )


class _Reader:
    """Reads secret texts, wherever they are kept; a message names the place and never the text."""

    def __init__(self, bus: str, manager: ClusterPort | None, namespace: str) -> None:
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
            raise BusError(self._bus, f"cannot read {path}: {getattr(error, 'strerror', 'no text')}") from error

    def _from_secret(self, ref: TextRef) -> str:
        namespace = ref.namespace or self._namespace
        if self._manager is None:
            raise BusError(self._bus, f"secret {namespace}/{ref.name}: the cluster that holds it cannot be reached")
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
            # The ssl module takes client certificates from files only. Readable by this user alone, gone at once.
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:
                pair.write(read.text(login.certificate) + "\n" + read.text(login.key))
                pair.flush()
                context.load_cert_chain(pair.name)
    except ssl.SSLError as error:
        raise BusError(bus, f"tls: {error.reason or 'no certificate that could be read'}") from error
    return context


def _with_scheme(server: str) -> str:
    return server if "://" in server else f"nats://{server}"
