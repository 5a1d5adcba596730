"""`kfleet bootstrap`: an account on a worker, and the manager's login there."""

import stat
from base64 import b64decode
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from reconciler.cli.bootstrap import NO_NAMESPACE
from reconciler.errors import ClusterError
from reconciler.objects import Manifest
from reconciler.sandbox.fleet import Sandbox
from reconciler.spec.enums import Role
from tests import fast_yaml
from tests.cluster.deploy.account_live_fleet import OWN, as_account, give_account, take_account
from tests.support import Kfleet


@pytest.fixture
def accounts(fleet: Sandbox) -> Iterator[Sandbox]:
    """Kfleet's account on the manager; the one on worker1 goes with the test."""
    give_account(fleet, "manager", Role.MANAGER)
    yield fleet
    take_account(fleet, "manager", Role.MANAGER)
    take_account(fleet, "worker1", Role.WORKER)


def bootstrap(kfleet: Kfleet, fleet: Sandbox, *options: str) -> tuple[int, str]:
    kubeconfig = str(fleet.state.kubeconfig)
    answer = kfleet("bootstrap", "worker", "east", "--apply", "--kubeconfig", kubeconfig, *options)
    return answer.returncode, answer.stdout + answer.stderr


def token_in(secret: dict[str, dict[str, str]]) -> str:
    kubeconfig = fast_yaml.safe_load(b64decode(secret["data"]["kubeconfig"]))
    return str(kubeconfig["users"][0]["user"]["token"])


def names_of(objects: Iterable[Manifest]) -> list[str]:
    return [one["metadata"]["name"] for one in objects]


def test_bootstrap_gives_the_manager_a_login_and_shows_no_token(kfleet: Kfleet, accounts: Sandbox) -> None:
    code, said = bootstrap(kfleet, accounts, "--context", "worker1", "--manager-context", "manager")
    assert code == 0, said
    token = token_in(accounts.api("manager").get(f"{OWN}/secrets/kfleet-east"))
    assert token not in said and "(364 days)" in said
    assert "in the fleet: Cluster east: access: {secretRef: {namespace: kfleet-system, name: kfleet-east" in said
    account = as_account(accounts, "worker1")
    queues = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
    assert names_of(account.list(queues)) == names_of(accounts.api("worker1").list(queues))
    for path in ("/api/v1/secrets", "/api/v1/namespaces/kueue-system/secrets", "/apis/apps/v1/deployments"):
        with pytest.raises(ClusterError, match="403"):
            list(account.list(path))


def test_bootstrap_writes_the_login_to_a_file_of_one_reader(kfleet: Kfleet, accounts: Sandbox, tmp_path: Path) -> None:
    path = tmp_path / "east.yaml"
    path.write_text("something else")
    path.chmod(0o644)
    wanted = ["--context", "worker1", "--secret-file", str(path), "--server", "https://east.example.org:6443"]
    code, said = bootstrap(kfleet, accounts, *wanted, "--days", "2")
    assert code == 0, said
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    secret = fast_yaml.safe_load(path.read_text())
    assert "https://east.example.org:6443" in b64decode(secret["data"]["kubeconfig"]).decode()
    assert token_in(secret) not in said and "(1 days)" in said


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "--apply needs a destination for the Secret: --manager-context or --secret-file"),
        (("--manager-context", "hub", "--secret-file", "f"), "--apply needs a destination for the Secret"),
        (("--context", "nowhere", "--secret-file", "f"), "no context 'nowhere' in"),
    ],
)
def test_bootstrap_refuses(kfleet: Kfleet, fleet: Sandbox, options: tuple[str, ...], problem: str) -> None:
    code, said = bootstrap(kfleet, fleet, *options)
    assert code != 0 and problem in said


def test_bootstrap_says_that_kueue_is_missing(kfleet: Kfleet, fleet: Sandbox, tmp_path: Path) -> None:
    path = tmp_path / "east.yaml"
    wanted = ["--context", "worker1", "--kueue-namespace", "nowhere", "--secret-file", str(path)]
    code, said = bootstrap(kfleet, fleet, *wanted)
    take_account(fleet, "worker1", Role.WORKER)
    assert code == 1 and NO_NAMESPACE in said
    assert not path.exists()


def test_bootstrap_says_what_the_manager_misses(kfleet: Kfleet, fleet: Sandbox, unique: str) -> None:
    places = ["--context", "worker1", "--manager-context", "manager", "--namespace", unique]
    code, said = bootstrap(kfleet, fleet, *places)
    take_account(fleet, "worker1", Role.WORKER)
    fleet.api("worker1").delete(f"/api/v1/namespaces/{unique}")
    assert code == 1 and "run kfleet bootstrap manager there first" in said


def test_bootstrap_says_that_a_file_cannot_be_written(kfleet: Kfleet, fleet: Sandbox, tmp_path: Path) -> None:
    code, said = bootstrap(kfleet, fleet, "--context", "worker1", "--secret-file", str(tmp_path))
    take_account(fleet, "worker1", Role.WORKER)
    assert code == 1 and f"{tmp_path}: cannot write: Is a directory" in said
