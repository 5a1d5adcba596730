"""TLS contexts that many threads share."""

import contextlib
import gc
import socket
import ssl
import struct
import warnings

import pytest

from reconciler.edges.login import tls_context


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


def test_connection_that_its_server_has_reset_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        # Closed like this it is reset, as by a server that was killed.
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        accepted.close()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(ConnectionResetError, match="reset by peer"):
            tls_context("").wrap_socket(client, server_hostname="hub.example")
        gc.collect()
    assert [str(one.message) for one in told] == []
