"""Keys of people who sign commits, and commits that they sign."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.repositories import git

KEYGEN = shutil.which("ssh-keygen") or "ssh-keygen"
MAIL = "ada@example.org"


@dataclass(frozen=True)
class SshSigner:
    """A key, and the file of allowed signers that names it."""

    key: Path
    keys: Path


def ssh_signer(folder: Path, name: str) -> SshSigner:
    folder.mkdir(exist_ok=True)
    key = folder / name
    subprocess.run([KEYGEN, "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    keys = folder / f"{name}-allowed"
    keys.write_text(f'{MAIL} namespaces="git" {key.with_suffix(".pub").read_text()}')
    return SshSigner(key, keys)


def signed_commit(folder: Path, signer: SshSigner) -> str:
    git(folder, "add", "--all")
    key = f"user.signingkey={signer.key}"
    git(folder, "-c", "gpg.format=ssh", "-c", key, "commit", "--quiet", "--allow-empty", "-S", "--message", "signed")
    return git(folder, "rev-parse", "HEAD")
