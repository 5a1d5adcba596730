"""Signatures of commits, checked by git itself against one file of keys: allowed signers of SSH, or keys of OpenPGP.

Nothing but this file counts: neither the keyring of the user nor what git's own configuration trusts.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from git import Git

from reconciler.edges.git import Repository
from reconciler.errors import GitError

PGP_MARK = b"-----BEGIN PGP PUBLIC KEY BLOCK-----"
IMPORT_SECONDS = 30

# What git calls the state of a signature (%G?), where the commit is not accepted.
_STATES = {
    "N": "is not signed",
    "B": "has a signature that does not fit its content",
    "E": "is signed by a key that {keys} does not hold",
    "U": "is signed by a key that {keys} does not hold",
    "X": "has a signature that has expired",
    "Y": "is signed by a key that has expired",
    "R": "is signed by a key that was revoked",
}


def check_keys(keys: str) -> None:
    """GitError where the file of keys cannot be used."""
    with tempfile.TemporaryDirectory() as keyring:
        _options(keys, Path(keyring))


def check_signature(repository: Repository, commit: str, keys: str) -> None:
    """GitError where the commit is not signed by one of the keys."""
    with tempfile.TemporaryDirectory() as keyring:
        options = _options(keys, Path(keyring))
        git = Git(repository.folder)
        git.update_environment(GNUPGHOME=keyring)
        verify = ["git", *options, "verify-commit", commit]
        status, _, _ = git.execute(verify, with_extended_output=True, with_exceptions=False)
        if status == 0:
            return
        state = str(git.execute(["git", *options, "log", "-1", "--format=%G?", commit]))
    problem = _STATES.get(state, "has a signature that cannot be checked").format(keys=keys)
    raise GitError(repository.origin, f"{commit[:12]} {problem}")


def _options(keys: str, keyring: Path) -> list[str]:
    """How git finds the keys; those of OpenPGP are put into a keyring of their own."""
    try:
        is_pgp = PGP_MARK in Path(keys).read_bytes()
    except OSError as error:
        raise GitError(keys, f"the keys of signers cannot be read: {(error.strerror or str(error)).lower()}") from error
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
        raise GitError(keys, "holds keys of OpenPGP, and there is no gpg to check them with") from error
    except subprocess.SubprocessError as error:
        raise GitError(keys, "holds keys of OpenPGP that gpg does not take") from error
