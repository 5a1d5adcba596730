"""Against real repositories, made by git itself."""

import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from reconciler.clients import git
from reconciler.clients.git import open_repository
from reconciler.errors import GitError
from reconciler.sandbox.certificates import make_authority, make_server_pair

pytestmark = pytest.mark.usefixtures("loopback")


@contextmanager
def silent_server(folder: Path, *, has_tls: bool) -> Iterator[str]:
    """The address of a server that takes connections and then says nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair = make_server_pair(make_authority("silent"), "127.0.0.1")
    (folder / "pair.pem").write_text(pair.certificate + pair.key)
    context.load_cert_chain(folder / "pair.pem")
    taken: list[socket.socket] = []

    def take() -> None:
        # After a failed fetch git connects again, to learn whether the server or the clone is at fault.
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                taken.append(context.wrap_socket(connection, server_side=True) if has_tls else connection)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for connection in taken:
            connection.close()


@pytest.fixture
def _lonely_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without the programs by which GitPython finds what git has started: it cannot end them."""
    (tmp_path / "bin").mkdir()
    for name in ("git", "ssh", "sh"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("GIT_SSL_NO_VERIFY", "1")


@pytest.mark.usefixtures("_lonely_git")
def test_https_server_that_falls_silent_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(git._ENVIRONMENT, "GIT_CONFIG_VALUE_3", "1")
    with (
        silent_server(tmp_path, has_tls=True) as address,
        pytest.raises(GitError, match=r"cannot be fetched.*too slow"),
    ):
        open_repository(f"https://{address}/x.git", cache=tmp_path / "cache")


@pytest.mark.usefixtures("_lonely_git")
def test_ssh_server_that_is_silent_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GIT_SSH_COMMAND", raising=False)
    monkeypatch.setattr(git, "SSH", git.SSH.replace("ConnectTimeout=60", "ConnectTimeout=1"))
    with (
        silent_server(tmp_path, has_tls=False) as address,
        pytest.raises(GitError, match=r"cannot be fetched.*timed out"),
    ):
        open_repository(f"ssh://{address}/x.git", cache=tmp_path / "cache")


@pytest.mark.skipif(not (shutil.which("pgrep") or shutil.which("ps")), reason="GitPython needs one of them for it")
@pytest.mark.parametrize("transport", ["https", "ssh"])
def test_fetch_has_a_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(git, "FETCH_SECONDS", 1)
    with silent_server(tmp_path, has_tls=False) as address, pytest.raises(GitError, match="did not complete in 1 secs"):
        open_repository(f"{transport}://{address}/x.git", cache=tmp_path / "cache")
