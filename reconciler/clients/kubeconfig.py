"""A kubeconfig as the user wrote it: addresses and credentials of API servers, and connections that use them.

Every part is checked when it is used, because broken credentials of one cluster must not block access to the others.
No message quotes a value: the wrong value may be a token.
"""

import binascii
import errno
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import time
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import getproxies, proxy_bypass

import urllib3
import yaml
from urllib3.exceptions import LocationParseError
from urllib3.util import make_headers, parse_url

from reconciler.decoding import load_yaml
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName

TIMEOUT = timedelta(seconds=20)
# Bytes per second, below which a long answer counts as one that does not end.
SLOWEST = 64 * 1024
_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_CLUSTER_FIELDS = {
    "server": "server",
    "tls-server-name": "tls-server-name",
    "insecure-skip-tls-verify": "insecure-skip-tls-verify",
    "certificate-authority-data": "certificate-authority-data",
    "proxy-url": "proxy-url",
}
# A word this long in a plugin's output may be a token.
_MAY_BE_SECRET = re.compile(r"[^\s/]{20,}")


@dataclass(frozen=True, slots=True)
class ClusterLogin:
    """The address and the credentials of an API server.

    The credentials of a plugin may expire at `expires`; `renew` asks it for new ones.
    """

    server: str
    ca: str
    token: str = ""
    client_certificate: str = ""
    client_key: str = ""
    is_unverified: bool = False
    server_name: str = ""
    proxy: str = field(default="", repr=False)
    expires: datetime | None = field(default=None, compare=False)
    renew: Callable[[], "ClusterLogin"] | None = field(default=None, compare=False, repr=False)

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def __repr__(self) -> str:
        return f"Access({self.server})"


def new_pool(access: ClusterLogin, connections: int) -> urllib3.PoolManager:
    """Return authenticated connections. Raises ValueError for unusable credentials, without quoting them."""
    if not (access.token.isascii() and access.token.isprintable()):
        raise ValueError("the token contains line breaks or characters that no token has")
    context = tls_context(access.ca, access.client_certificate, access.client_key, is_unverified=access.is_unverified)
    options: dict[str, Any] = {"ssl_context": context, "maxsize": connections, "block": True, "retries": False}
    if access.server_name:
        options["server_hostname"] = access.server_name
    try:
        proxy = parse_url(access.proxy or _proxy_around(access.server))
    except LocationParseError:
        raise ValueError("its proxy is not a URL such as http://10.0.0.9:3128") from None
    if proxy.scheme is None:
        return urllib3.PoolManager(**options)
    if proxy.scheme not in {"http", "https"}:
        raise ValueError(f"its proxy has the scheme {proxy.scheme}, and only http and https are supported")
    headers = make_headers(proxy_basic_auth=proxy.auth) if proxy.auth else None
    return urllib3.ProxyManager(proxy._replace(auth=None).url, proxy_headers=headers, **options)


def _proxy_around(server: str) -> str:
    """Return the proxy from the environment, as kubectl reads it: never for this machine itself."""
    host = parse_url(server).host or ""
    if host == "localhost" or host.startswith("127.") or host == "[::1]" or proxy_bypass(host):
        return ""
    return getproxies().get(parse_url(server).scheme or "", "")


@dataclass(slots=True)
class _Deadline:
    """When an answer has to be complete: `seconds` after it was first waited for, and later for one that is long."""

    seconds: float
    until: float = 0.0

    def check(self) -> None:
        self.until = self.until or time.monotonic() + self.seconds
        if time.monotonic() > self.until:
            raise TimeoutError("timed out")

    def extend(self, received: int) -> None:
        self.until += received / SLOWEST


_answer_deadline: ContextVar[_Deadline | None] = ContextVar("answer_deadline", default=None)


@contextmanager
def answered_within(seconds: float) -> Iterator[None]:
    """Limit the time of a whole answer in this thread. The timeout of a socket begins anew with each byte."""
    token = _answer_deadline.set(_Deadline(seconds))
    try:
        yield
    finally:
        _answer_deadline.reset(token)


class _TimedSocket(ssl.SSLSocket):
    def recv_into(self, *arguments: Any, **options: Any) -> int:
        deadline = _answer_deadline.get()
        if deadline is None:
            return super().recv_into(*arguments, **options)
        deadline.check()
        received = super().recv_into(*arguments, **options)
        deadline.extend(received)
        return received


class _SharedContext(ssl.SSLContext):
    """A TLS context that several threads can share.

    urllib3 sets the ALPN protocols again for each connection. OpenSSL then frees the old list, which another thread may
    be copying: its ClientHello is garbage, and the server ends that connection with "decode error".
    """

    sslsocket_class = _TimedSocket

    def set_alpn_protocols(self, alpn_protocols: Iterable[str]) -> None:
        """Keep the list as `tls_context` made it."""

    def wrap_socket(self, sock: socket.socket, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        """Handle a reset by a server that was killed just now: Python's own wrapping would leak the connection."""
        try:
            sock.getpeername()
        except OSError:
            sock.close()
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)) from None
        return super().wrap_socket(sock, *arguments, **options)


def tls_context(ca: str, certificate: str = "", key: str = "", *, is_unverified: bool = False) -> ssl.SSLContext:
    """Create a context from PEM texts; without an authority, trust the system's own."""
    context = _SharedContext(ssl.PROTOCOL_TLS_CLIENT)
    ssl.SSLContext.set_alpn_protocols(context, ["http/1.1"])
    try:
        if ca:
            context.load_verify_locations(cadata=ca)
        else:
            context.load_default_certs()
    except (ssl.SSLError, ValueError, TypeError):
        raise ValueError("the certificate authority is not a certificate in PEM form") from None
    if is_unverified:
        # The kubeconfig disables verification: a warning with every request would not inform its owner.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        _load_pair(context, certificate, key)
    return context


def _load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    # The ssl module loads client certificates only from files. The file is private to this user and deleted at once.
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:
        pair.write(certificate + "\n" + key)
        pair.flush()
        try:
            # Pass a password, because OpenSSL would prompt for one otherwise: a controller has no terminal.
            context.load_cert_chain(pair.name, password="")
        except ssl.SSLError:
            raise ValueError(
                "the client certificate and its key cannot be used: not in PEM form, encrypted, or not a pair"
            ) from None


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """A kubeconfig, the cluster it is read for, its origin, and the base folder of its relative paths."""

    cluster: ClusterName
    origin: str
    content: Mapping[str, Any]
    folder: Path = Path()

    def names(self, section: str) -> list[str]:
        return [str(entry["name"]) for entry in self.entries(section) if entry.get("name")]

    def entry(self, section: str, noun: str, name: str) -> Mapping[str, Any]:
        named = {str(entry.get("name")): entry.get(noun) or {} for entry in self.entries(section)}
        if name not in named:
            raise self.wrong(f"there is no {noun} {name!r}; there are: {', '.join(sorted(named)) or 'none'}")
        if not isinstance(named[name], dict):
            raise self.wrong(f"the {noun} {name!r} is not a mapping")
        return named[name]

    def text(self, entry: Mapping[str, Any], name: str) -> str:
        """Return a certificate or key that is in the kubeconfig, or in a file that it names."""
        if data := entry.get(f"{name}-data"):
            return decoded(self.cluster, f"{self.origin}: {name}-data", data)
        if path := entry.get(name):
            return read_text(self.cluster, self.folder / str(path))
        return ""

    def wrong(self, problem: str) -> ClusterError:
        return ClusterError(self.cluster, f"{self.origin}: {problem}")

    def entries(self, section: str) -> list[Mapping[str, Any]]:
        found = self.content.get(section) or []
        if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
            raise self.wrong(f"{section} is not a list of mappings")
        return found


def parse_kubeconfig(cluster: ClusterName, origin: str, text: str, folder: Path = Path()) -> Kubeconfig:
    try:
        content = load_yaml(text)
    except yaml.YAMLError:
        # The text of the error may quote a line of the file, and with it a token.
        raise ClusterError(cluster, f"{origin}: is not valid YAML") from None
    if not isinstance(content, dict):
        raise ClusterError(cluster, f"{origin}: is not a kubeconfig: {'empty' if content is None else 'not a mapping'}")
    return Kubeconfig(cluster, origin, content, folder)


def decoded(cluster: ClusterName, origin: str, data: object) -> str:
    try:
        return b64decode(str(data)).decode()
    except (binascii.Error, ValueError):
        raise ClusterError(cluster, f"{origin}: is not valid base64 text") from None


def read_text(cluster: ClusterName, path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ClusterError(cluster, f"cannot read {path}: {getattr(error, 'strerror', 'is not text')}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecCredential:
    token: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    expires: datetime | None = None


def run_plugin(kubeconfig: Kubeconfig, entry: Mapping[str, Any], server: Mapping[str, Any]) -> ExecCredential:
    """Run a plugin and return its credential. An error names the plugin and quotes no secret."""
    if not isinstance(entry, Mapping) or not all(_is_variable(one) for one in entry.get("env") or ()):
        raise kubeconfig.wrong("exec: is not a mapping with command, args and env (a list of name and value)")
    version, command = str(entry.get("apiVersion") or ""), str(entry.get("command") or "")
    if version not in _VERSIONS:
        raise kubeconfig.wrong(f"exec: its apiVersion must be one of {', '.join(_VERSIONS)}")
    if not command:
        raise kubeconfig.wrong("exec: names no command")
    if entry.get("interactiveMode") == "Always":
        raise kubeconfig.wrong(f"exec: {command} wants to prompt for input, and there is no terminal")
    printed = _run(kubeconfig, entry, command, _settings(entry, version, server))
    return _read_credential(kubeconfig, command, version, printed)


def _is_variable(entry: object) -> bool:
    return isinstance(entry, Mapping) and {"name", "value"} <= entry.keys()


def _settings(entry: Mapping[str, Any], version: str, server: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment of a plugin, with the cluster information that Kubernetes passes to it."""
    spec: dict[str, Any] = {"interactive": False}
    if entry.get("provideClusterInfo"):
        spec["cluster"] = {name: server[known] for known, name in _CLUSTER_FIELDS.items() if known in server}
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    named = {str(one["name"]): str(one["value"]) for one in entry.get("env") or ()}
    return {**os.environ, **named, "KUBERNETES_EXEC_INFO": json.dumps(info)}


def _run(kubeconfig: Kubeconfig, entry: Mapping[str, Any], command: str, settings: Mapping[str, str]) -> str:
    # As with kubectl, a command with a slash is relative to the file.
    program = str(kubeconfig.folder / command) if "/" in command and not Path(command).is_absolute() else command
    arguments = [str(one) for one in entry.get("args") or ()]
    try:
        process = subprocess.Popen(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=settings,
            start_new_session=True,
        )
    except OSError as error:
        hint = str(entry.get("installHint") or "").strip()
        reason = f"exec: {command} cannot be run: {(error.strerror or '').lower()}"
        raise kubeconfig.wrong(f"{reason}; {hint}" if hint else reason) from error
    with process:
        try:
            out, err = process.communicate(timeout=TIMEOUT.total_seconds())
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            problem = f"exec: {command} returned no credential within {TIMEOUT.total_seconds():.0f} s and was killed"
            raise kubeconfig.wrong(problem) from None
    if process.returncode:
        raise kubeconfig.wrong(f"exec: {command} exited with {process.returncode}: {_last_line(err)}")
    return out


def _last_line(text: str) -> str:
    lines = text.strip().splitlines() or ["it printed nothing"]
    return _MAY_BE_SECRET.sub("…", lines[-1])[:200]


def _read_credential(kubeconfig: Kubeconfig, command: str, version: str, printed: str) -> ExecCredential:
    try:
        answer = json.loads(printed)
        kind, told, status = answer["kind"], answer["apiVersion"], answer["status"]
        credential = ExecCredential(
            token=str(status.get("token") or ""),
            certificate=str(status.get("clientCertificateData") or ""),
            key=str(status.get("clientKeyData") or ""),
            expires=_time(status.get("expirationTimestamp")),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        # The error would quote the output, which may be a token.
        raise kubeconfig.wrong(f"exec: the output of {command} is not an ExecCredential") from None
    if (kind, told) != ("ExecCredential", version):
        raise kubeconfig.wrong(f"exec: {command} must print an ExecCredential of {version}")
    if not credential.token and not credential.certificate:
        raise kubeconfig.wrong(f"exec: {command} returned neither token nor certificate")
    if bool(credential.certificate) != bool(credential.key):
        raise kubeconfig.wrong(
            f"exec: {command} returned a certificate without its key, or a key without its certificate"
        )
    if credential.expires is not None and credential.expires <= datetime.now(UTC):
        raise kubeconfig.wrong(
            f"exec: {command} returned a credential that expired at {credential.expires:%Y-%m-%dT%H:%MZ}"
        )
    return credential


def _time(text: object) -> datetime | None:
    return None if not text else datetime.fromisoformat(str(text)).astimezone(UTC)
