"""Signatures of commits, made by real keys."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.clients.git import open_repository
from reconciler.clients.git_signature import check_keys, check_signature
from reconciler.errors import GitError
from tests.repositories import example_repository, git
from tests.unit.controller.signers import SshSigner, signed_commit, ssh_signer

GPG = shutil.which("gpg") or "gpg"
GPGCONF = shutil.which("gpgconf") or "gpgconf"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return example_repository(tmp_path / "repository")


@pytest.fixture
def ada(tmp_path: Path) -> SshSigner:
    return ssh_signer(tmp_path / "keys", "ada")


@pytest.fixture
def keyring() -> Iterator[Path]:
    """A folder of gpg with one key; its path is short, because gpg's agent listens there."""
    folder = Path(tempfile.mkdtemp(prefix="k"))
    _gpg(folder, "--passphrase", "", "--quick-gen-key", "Ada <ada@example.org>", "ed25519", "sign")
    yield folder
    subprocess.run([GPGCONF, "--homedir", str(folder), "--kill", "all"], check=False)
    shutil.rmtree(folder, ignore_errors=True)


def _gpg(keyring: Path, *arguments: str) -> str:
    command = [GPG, "--homedir", str(keyring), "--batch", "--quiet", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def problem(repository: Path, revision: str, keys: Path) -> str:
    with open_repository(str(repository)) as opened:
        try:
            check_signature(opened, opened.resolve(revision), str(keys))
        except GitError as error:
            return error.problem
    return ""


def test_commit_of_an_allowed_signer_is_accepted(repository: Path, ada: SshSigner) -> None:
    signed_commit(repository, ada)
    assert problem(repository, "HEAD", ada.keys) == ""


def test_commit_without_a_signature_is_refused(repository: Path, ada: SshSigner) -> None:
    head = git(repository, "rev-parse", "HEAD")
    assert problem(repository, "HEAD", ada.keys) == f"{head[:12]} is not signed"


def test_commit_of_an_unknown_signer_is_refused(repository: Path, ada: SshSigner, tmp_path: Path) -> None:
    head = signed_commit(repository, ssh_signer(tmp_path / "keys", "eve"))
    assert problem(repository, "HEAD", ada.keys) == f"{head[:12]} is signed by a key that is not in {ada.keys}"


def test_commit_that_was_changed_after_signing_is_refused(repository: Path, ada: SshSigner) -> None:
    signed_commit(repository, ada)
    forged = git(repository, "cat-file", "commit", "HEAD").replace("\n\nsigned", "\n\nchanged")
    (repository / "forged").write_text(f"{forged}\n")
    head = git(repository, "hash-object", "-t", "commit", "-w", "forged")
    assert problem(repository, head, ada.keys) == f"{head[:12]} has a signature that does not match its content"


def test_openpgp_keys_are_taken_from_their_file_alone(
    repository: Path, ada: SshSigner, keyring: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "ada.asc"
    keys.write_text(_gpg(keyring, "--armor", "--export", "ada@example.org"))
    monkeypatch.setitem(os.environ, "GNUPGHOME", str(keyring))
    git(repository, "-c", "user.signingkey=ada@example.org", "commit", "--allow-empty", "-S", "-qm", "signed")
    assert problem(repository, "HEAD", keys) == ""
    # The user's own keyring knows the key, and does not count.
    assert "is signed by a key that" in problem(repository, "HEAD", ada.keys)
    signed_commit(repository, ada)
    git(repository, "config", "gpg.ssh.allowedSignersFile", str(ada.keys))
    assert "is signed by a key that" in problem(repository, "HEAD", keys)


def test_keys_that_cannot_be_used_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GitError, match="the signing keys cannot be read: no such file"):
        check_keys(str(tmp_path / "nothing"))
    broken = tmp_path / "broken.asc"
    broken.write_text("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nnonsense\n-----END PGP PUBLIC KEY BLOCK-----\n")
    with pytest.raises(GitError, match="contains OpenPGP keys that gpg does not accept"):
        check_keys(str(broken))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(GitError, match="gpg is not installed"):
        check_keys(str(broken))
