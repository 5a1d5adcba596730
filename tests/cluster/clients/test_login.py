"""TLS contexts that many threads share."""

import gc
import socket
import struct
import warnings

import pytest

from reconciler.clients.kubeconfig import tls_context

pytestmark = pytest.mark.usefixtures("loopback")


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
