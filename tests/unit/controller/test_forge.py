"""Commit statuses: which forge is meant, what it is sent, and what happens where it does not take it."""

import pytest

from reconciler.clients.forge import Forge, ForgeKind, find_forge
from reconciler.errors import EdgeError


@pytest.mark.parametrize(
    ("remote", "options", "kind", "api", "project"),
    [
        ("https://github.com/acme/fleet.git", "", "github", "https://api.github.com", "acme/fleet"),
        ("git@github.com:acme/fleet.git", "", "github", "https://api.github.com", "acme/fleet"),
        ("https://bot:pw@gitlab.com/acme/ops/fleet", "", "gitlab", "https://gitlab.com/api/v4", "acme/ops/fleet"),
        ("https://codeberg.org/acme/fleet.git", "", "gitea", "https://codeberg.org/api/v1", "acme/fleet"),
        ("ssh://git@git.example.org:2222/a/f.git", "gitea", "gitea", "https://git.example.org/api/v1", "a/f"),
        ("https://git.example.org:8443/a/f", "github", "github", "https://git.example.org:8443/api/v3", "a/f"),
        ("file:///srv/fleet.git", "gitlab=http://10.0.0.4:81/a/f", "gitlab", "http://10.0.0.4:81/api/v4", "a/f"),
    ],
)
def test_forge_is_found(remote: str, options: str, kind: str, api: str, project: str) -> None:
    assert find_forge(remote, options) == Forge(ForgeKind(kind), api, project)


@pytest.mark.parametrize(
    ("remote", "options", "problem"),
    [
        ("https://git.example.org/a/f", "", "--commit-status: the remote does not identify the forge"),
        ("file:///srv/fleet.git", "gitea", "--commit-status: the remote does not identify the forge"),
        (".", "github", "--commit-status: the remote does not identify the forge"),
        ("https://github.com/fleet", "", "--commit-status: the remote does not identify the forge"),
        ("https://github.com/a/f", "svn", "--forge svn: 'svn' is not a forge"),
    ],
)
def test_forge_that_cannot_be_found_is_reported(remote: str, options: str, problem: str) -> None:
    with pytest.raises(EdgeError, match=problem):
        find_forge(remote, options)
