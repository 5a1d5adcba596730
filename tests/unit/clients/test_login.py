"""TLS contexts that many threads share."""

import contextlib
import ssl

from reconciler.clients.kubeconfig import tls_context


def greeting(context: ssl.SSLContext) -> bytes:
    """What a connection of this context says first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = context.wrap_bio(incoming, outgoing, server_hostname="hub.example")
    with contextlib.suppress(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


def test_list_of_protocols_is_made_once_and_never_replaced_under_another_thread() -> None:
    context = tls_context("")
    context.set_alpn_protocols(["other"])
    said = greeting(context)
    assert b"\x08http/1.1" in said and b"\x05other" not in said
