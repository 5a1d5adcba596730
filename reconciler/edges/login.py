"""How to reach and log in to an API server, and connections that do."""

import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

import urllib3


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach and log in to an API server."""

    server: str
    ca: str
    token: str = ""
    client_certificate: str = ""
    client_key: str = ""
    is_unverified: bool = False

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def __repr__(self) -> str:
        return f"Access({self.server})"


def new_pool(access: Access, connections: int) -> urllib3.PoolManager:
    """Connections that log in. A login that no server could take is a ValueError, which never quotes it."""
    if not (access.token.isascii() and access.token.isprintable()):
        raise ValueError("the token holds line breaks or characters that no token has")
    context = tls_context(access.ca, access.client_certificate, access.client_key, is_unverified=access.is_unverified)
    return urllib3.PoolManager(ssl_context=context, maxsize=connections, block=True, retries=False, num_pools=2)


def tls_context(ca: str, certificate: str = "", key: str = "", *, is_unverified: bool = False) -> ssl.SSLContext:
    """A context from texts; without an authority, the system's own are believed."""
    try:
        context = ssl.create_default_context(cadata=ca or None)
    except (ssl.SSLError, ValueError, TypeError):
        raise ValueError("the certificate authority is no certificate in PEM form") from None
    if is_unverified:
        # The kubeconfig says so: a warning with every request would tell its owner nothing new.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        _load_pair(context, certificate, key)
    return context


def _load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    # The ssl module takes client certificates from files only. Readable by this user alone, gone at once.
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:
        pair.write(certificate + "\n" + key)
        pair.flush()
        try:
            # A password, so that nobody is asked for one: a controller has no terminal.
            context.load_cert_chain(pair.name, password="")
        except ssl.SSLError:
            raise ValueError(
                "the client certificate and its key cannot be used: not in PEM form, encrypted, or not a pair"
            ) from None
