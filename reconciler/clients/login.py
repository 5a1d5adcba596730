"""Addresses and credentials of API servers, and connections that use them."""

import errno
import os
import socket
import ssl
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.exceptions import LocationParseError
from urllib3.util import make_headers, parse_url


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


class _SharedContext(ssl.SSLContext):
    """A TLS context that several threads can share.

    urllib3 sets the ALPN protocols again for each connection. OpenSSL then frees the old list, which another thread may
    be copying: its ClientHello is garbage, and the server ends that connection with "decode error".
    """

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
