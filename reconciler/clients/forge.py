"""Forges: reports the state of a commit to GitHub, GitLab, Gitea or Forgejo, which show it on the pull request."""

import json
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote, urlsplit

import urllib3

from reconciler.errors import EdgeError

SECONDS = 10.0
# GitHub accepts 140 characters, GitLab 255, Gitea any number.
LONGEST = 140


class ForgeKind(StrEnum):
    GITHUB = "github"
    GITLAB = "gitlab"
    GITEA = "gitea"


class CommitState(StrEnum):
    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Forge:
    """A repository on its forge: `api` is the base URL of the forge's API, `project` is owner/name."""

    kind: ForgeKind
    api: str
    project: str

    @property
    def where(self) -> str:
        return f"{self.kind} {self.api}"


@dataclass(frozen=True, slots=True)
class CommitStatus:
    commit: str
    state: CommitState
    description: str
    context: str


_KNOWN = {
    "github.com": ForgeKind.GITHUB,
    "gitlab.com": ForgeKind.GITLAB,
    "gitea.com": ForgeKind.GITEA,
    "codeberg.org": ForgeKind.GITEA,
}
_ROOTS = {ForgeKind.GITHUB: "/api/v3", ForgeKind.GITLAB: "/api/v4", ForgeKind.GITEA: "/api/v1"}
_OPTION = "--forge"


def find_forge(remote: str, choice: str = "") -> Forge:
    """Return the forge of a remote. `choice` is KIND or KIND=URL, needed if the remote alone does not identify it."""
    word, _, url = choice.partition("=")
    address = urlsplit(_as_url(url or remote))
    if word and word not in list(ForgeKind):
        raise EdgeError(
            f"{_OPTION} {choice}", f"{word!r} is not a forge", f"use one of {', '.join(ForgeKind)}, or KIND=URL"
        )
    kind = ForgeKind(word) if word else _KNOWN.get(address.hostname or "")
    project = address.path.strip("/").removesuffix(".git")
    if kind is None or not address.hostname or "/" not in project:
        hint = f"set {_OPTION} gitea=https://git.example.org/owner/repository, or github or gitlab in place of gitea"
        raise EdgeError("--commit-status", "the remote does not identify the forge to report to", hint)
    return Forge(kind, _api(kind, address.scheme, address.netloc.rpartition("@")[2], address.hostname), project)


def tell_commit(forge: Forge, token: str, status: CommitStatus) -> None:
    """Report the status. Raises EdgeError if the forge rejects it; its message never contains the token."""
    if not (token.isascii() and token.isprintable()):
        raise EdgeError(forge.where, "the token contains line breaks or characters that no token has")
    url, headers, body = _request(forge, token, status)
    headers |= {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "kfleet"}
    try:
        with urllib3.PoolManager(timeout=SECONDS, retries=False) as pool:
            # Follow no redirect: the token is for this server only.
            answer = pool.request("POST", url, body=json.dumps(body), headers=headers, redirect=False)
    except urllib3.exceptions.HTTPError as error:
        raise EdgeError(forge.where, f"no response: {type(error).__name__}") from error
    # GitLab rejects a status that it already has.
    is_known = forge.kind is ForgeKind.GITLAB and answer.status == 400
    if answer.status >= 300 and not is_known:
        raise EdgeError(forge.where, f"{forge.project}: answers {answer.status}", _HINTS.get(answer.status, ""))


_HINTS = {
    401: "the forge does not accept the token",
    403: "the token may not set commit statuses",
    404: "the forge does not have the repository or the commit, or hides it from this token",
}


def _request(forge: Forge, token: str, status: CommitStatus) -> tuple[str, dict[str, str], dict[str, str]]:
    description = status.description if len(status.description) <= LONGEST else f"{status.description[: LONGEST - 1]}…"
    body = {"state": status.state.value, "description": description, "context": status.context}
    if forge.kind is ForgeKind.GITLAB:
        state = "failed" if status.state is CommitState.FAILURE else status.state.value
        url = f"{forge.api}/projects/{quote(forge.project, safe='')}/statuses/{status.commit}"
        return url, {"PRIVATE-TOKEN": token}, {**body, "state": state}
    scheme = "Bearer" if forge.kind is ForgeKind.GITHUB else "token"
    url = f"{forge.api}/repos/{forge.project}/statuses/{status.commit}"
    return url, {"Authorization": f"{scheme} {token}"}, body


def _api(kind: ForgeKind, scheme: str, place: str, host: str) -> str:
    if host == "github.com":
        return "https://api.github.com"
    if scheme == "ssh":
        # The port of ssh does not determine the port of https.
        return f"https://{host}{_ROOTS[kind]}"
    return f"{scheme}://{place}{_ROOTS[kind]}"


def _as_url(remote: str) -> str:
    """Parse a remote; `git@host:owner/name` is ssh too."""
    if "://" in remote:
        return remote
    host, _, path = remote.partition(":")
    return f"ssh://{host}/{path}"
