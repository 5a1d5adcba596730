"""Kubeconfig files for tests: a home of their own, and secrets that must not get out."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import fast_yaml

SECRETS = ("s3cret-token", "c3VwZXItc2VjcmV0LWtleQ==", "hunter2", "https://10.9.8.7:6443")


def move_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in the folder, with no kubeconfig but those that the test writes."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)


def kubeconfig(path: Path, contexts: Sequence[str], current: str = "", clusters: Sequence[str] = ()) -> Path:
    """Contexts with a cluster and a user each, and every kind of secret."""
    names = clusters or contexts
    token, key, password, server = SECRETS
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": current,
        "contexts": [
            {"name": context, "context": {"cluster": cluster, "user": context}}
            for context, cluster in zip(contexts, names, strict=True)
        ],
        "clusters": [{"name": name, "cluster": {"server": server}} for name in dict.fromkeys(names)],
        "users": [
            {"name": name, "user": {"token": token, "client-key-data": key, "password": password}} for name in contexts
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(fast_yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
    return path
