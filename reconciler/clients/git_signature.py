"""Signatures of commits, verified by git against one file of keys: SSH allowed signers, or OpenPGP public keys.

Only this file is trusted: neither the user's keyring nor git's own configuration.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from git import Git

from reconciler.clients.git import Repository
from reconciler.errors import GitError

PGP_MARK = b"-----BEGIN PGP PUBLIC KEY BLOCK-----"
IMPORT_SECONDS = 30

# Git's states of a signature (%G?) with which a commit is rejected.
_STATES = {
    "N": "is not signed",
    "B": "has a signature that does not match its content",
    "E": "is signed by a key that is not in {keys}",
    "U": "is signed by a key that is not in {keys}",
    "X": "has a signature that has expired",
    "Y": "is signed by a key that has expired",
    "R": "is signed by a key that was revoked",
}


def check_keys(keys: str) -> None:
    """Raise GitError if the file of keys cannot be used."""
    with tempfile.TemporaryDirectory() as keyring:
        _options(keys, Path(keyring))


def check_signature(repository: Repository, commit: str, keys: str) -> None:
    """Raise GitError if the commit is not signed by one of the keys."""
    with tempfile.TemporaryDirectory() as keyring:
        options = _options(keys, Path(keyring))
        git = Git(repository.folder)
        git.update_environment(GNUPGHOME=keyring)
        verify = ["git", *options, "verify-commit", commit]
        status, _, _ = git.execute(verify, with_extended_output=True, with_exceptions=False)
        if status == 0:
            return
        state = str(git.execute(["git", *options, "log", "-1", "--format=%G?", commit]))
    problem = _STATES.get(state, "has a signature that cannot be verified").format(keys=keys)
    raise GitError(repository.origin, f"{commit[:12]} {problem}")


def _options(keys: str, keyring: Path) -> list[str]:
    """Return the configuration by which git finds the keys; OpenPGP keys go into a separate keyring."""
    try:
        is_pgp = PGP_MARK in Path(keys).read_bytes()
    except OSError as error:
        raise GitError(keys, f"the signing keys cannot be read: {(error.strerror or str(error)).lower()}") from error
    if is_pgp:
        _import(keys, keyring)
    signers = os.devnull if is_pgp else str(Path(keys).resolve())
    return ["-c", f"gpg.ssh.allowedSignersFile={signers}"]


def _import(keys: str, keyring: Path) -> None:
    keyring.chmod(0o700)
    command = ["gpg", "--homedir", str(keyring), "--batch", "--quiet", "--no-autostart", "--import", keys]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=IMPORT_SECONDS)
    except FileNotFoundError as error:
        raise GitError(keys, "contains OpenPGP keys, and gpg is not installed") from error
    except subprocess.SubprocessError as error:
        raise GitError(keys, "contains OpenPGP keys that gpg does not accept") from error
