"""`kfleet run` on a remote repository: pushes are followed at once; what must not be followed is not, and is told."""

import hashlib
import hmac
import json
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError

import pytest

from tests.builders import Document, flavor, main_tenant, open_queue
from tests.cluster.controller.conftest import StartController
from tests.cluster.controller.controllers import Controller
from tests.cluster.controller.forges import ForgeServer
from tests.cluster.live_fleet import SYSTEM, LiveFleet
from tests.repositories import git
from tests.support import eventually
from tests.unit.controller.signers import SshSigner, signed_commit, ssh_signer

SECRET = "a secret of the forge"  # noqa: S105  (of these tests alone)


@dataclass
class Remote:
    """A bare repository, the fleet's folder as a clone of it, and the forge that serves it."""

    live_fleet: LiveFleet
    folder: Path
    signer: SshSigner
    forge: ForgeServer

    def push(self, cpu: str, *, is_signed: bool = True) -> str:
        documents: tuple[Document, ...] = (
            flavor(self.live_fleet.name),
            open_queue(self.live_fleet.name, self.live_fleet.name, {"cpu": cpu}),
        )
        documents = (*documents, main_tenant(self.live_fleet.name, self.live_fleet.name))
        self.live_fleet.write(*documents)
        made = signed_commit(self.live_fleet.folder, self.signer) if is_signed else self.live_fleet.commit_all()
        self.publish()
        return made

    def publish(self, *options: str) -> None:
        git(self.live_fleet.folder, "push", "--quiet", *options, str(self.folder), "HEAD:refs/heads/main")

    def go_back(self, commit: str) -> None:
        git(self.live_fleet.folder, "reset", "--quiet", "--hard", commit)
        self.publish("--force")


def announce(controller: Controller, key: str = SECRET) -> int:
    """What GitHub says of a push."""
    body = json.dumps({"ref": "refs/heads/main"}).encode()
    signature = hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-GitHub-Event": "push", "X-Hub-Signature-256": f"sha256={signature}"}
    request = urllib.request.Request(f"http://127.0.0.1:{controller.port}/webhook", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310  (the address is above)
            return int(answer.status)
    except HTTPError as error:
        return error.code


@pytest.fixture
def remote(live_fleet: LiveFleet, tmp_path: Path) -> Iterator[Remote]:
    folder = tmp_path / "remote.git"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch", "main", str(folder))
    forge = ForgeServer()
    assert live_fleet.repository.head
    yield Remote(live_fleet, folder, ssh_signer(tmp_path / "keys", "ada"), forge)
    forge.close()


@pytest.fixture
def start_remote(remote: Remote, start: StartController, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Controller]:
    """A controller that looks only when it is told."""
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    monkeypatch.setenv("FORGE_TOKEN", "a token of the forge")
    options = ["--repo", remote.folder.as_uri(), "--revision", "main", "--git-interval", "600", "--interval", "600"]
    options += ["--webhook", "env:HOOK_SECRET", "--verify-signatures", str(remote.signer.keys), "--fast-forward-only"]
    options += ["--commit-status", "env:FORGE_TOKEN", "--forge", f"gitea={remote.forge.url}/acme/fleet"]
    return lambda: start(*options)


def told(live_fleet: LiveFleet) -> dict[str, str]:
    """What the status ConfigMap says."""
    found = live_fleet.api().get(f"/api/v1/namespaces/{SYSTEM}/configmaps/kfleet-{live_fleet.name}-status")
    return dict(found["data"])


def test_push_reaches_the_cluster_at_once(remote: Remote, start_remote: Callable[[], Controller]) -> None:
    live_fleet, first = remote.live_fleet, remote.push("9")
    controller = start_remote()
    eventually(lambda: live_fleet.nominal_quota() == "9")
    eventually(lambda: told(live_fleet)["result"] == "applied")
    assert told(live_fleet)["revision"] == first
    eventually(lambda: remote.forge.states(first)[-1:] == ["success"])
    second = remote.push("12")
    assert announce(controller, "guessed") == 401
    assert live_fleet.nominal_quota() == "9"
    assert announce(controller) == 202
    eventually(lambda: live_fleet.nominal_quota() == "12")
    eventually(lambda: told(live_fleet)["revision"] == second)
    eventually(lambda: remote.forge.states(second)[-1:] == ["success"])
    assert controller.metric('kfleet_webhooks_total{result="accepted"}') == 1
    assert controller.metric('kfleet_webhooks_total{result="refused"}') == 1


def assert_refused(remote: Remote, controller: Controller, problem: str, commit: str = "") -> None:
    """The newest push is not followed, and everybody who asks is told why."""
    live_fleet = remote.live_fleet
    before = told(live_fleet)["revision"]
    assert announce(controller) == 202
    eventually(lambda: problem in told(live_fleet).get("problem", ""))
    assert (told(live_fleet)["revision"], told(live_fleet).get("refusedRevision", "")) == (before, commit)
    assert live_fleet.nominal_quota() == "9"
    if commit:
        eventually(lambda: remote.forge.states(commit)[-1:] == ["failure"])


def test_what_must_not_be_followed_changes_nothing_and_is_reported(
    remote: Remote, start_remote: Callable[[], Controller]
) -> None:
    live_fleet, first = remote.live_fleet, remote.push("9")
    controller = start_remote()
    eventually(lambda: told(live_fleet).get("revision") == first)
    assert_refused(remote, controller, "is not signed", remote.push("10", is_signed=False))
    remote.go_back(first)
    assert_refused(remote, controller, "'a lot'", remote.push("a lot"))
    git(live_fleet.folder, "checkout", "--quiet", "--orphan", "rewritten")
    rewritten = signed_commit(live_fleet.folder, remote.signer)
    remote.publish("--force")
    assert_refused(remote, controller, "no commit in common", rewritten)
    away = remote.folder.rename(remote.folder.with_name("away"))
    assert_refused(remote, controller, "cannot be fetched")
    away.rename(remote.folder)
    remote.go_back(first)
    good = remote.push("15")
    assert announce(controller) == 202
    eventually(lambda: live_fleet.nominal_quota() == "15")
    eventually(lambda: told(live_fleet)["revision"] == good and "problem" not in told(live_fleet))


def test_status_is_written_only_when_it_changes(remote: Remote, start_remote: Callable[[], Controller]) -> None:
    live_fleet = remote.live_fleet
    remote.push("9")
    controller = start_remote()
    eventually(lambda: told(live_fleet)["result"] == "applied")
    since = told(live_fleet)["since"]
    cycles = controller.metric("kfleet_reconcile_seconds_count")
    live_fleet.kubectl("delete", "localqueue", "-n", live_fleet.name, "main")
    eventually(lambda: live_fleet.finds("localqueues", "main", namespace=live_fleet.name))
    eventually(lambda: controller.metric("kfleet_reconcile_seconds_count") > cycles)
    assert controller.stop() == 0
    again = start_remote()
    eventually(lambda: again.metric("kfleet_reconcile_seconds_count") >= 1)
    assert told(live_fleet)["since"] == since
