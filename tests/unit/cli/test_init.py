import json
import os
import pty
import re
import shlex
import stat
import subprocess
from pathlib import Path

import pytest

from reconciler.cli import execute
from reconciler.clients.working_tree import read_folder
from reconciler.pipeline.load import Revision, load_files
from reconciler.pipeline.render import render_offline, write_offline
from reconciler.spec.enums import Dispatch, Role
from reconciler.spec.schema_bundle import bundled_schema
from tests import fast_yaml
from tests.support import ROOT, Kfleet, kfleet_program, read_until
from tests.unit.kubeconfigs import SECRETS, kubeconfig, move_home

FILES = [".kfleet.schema.json", "clusters.yaml", "flavors.yaml", "fleet.yaml", "queues.yaml", "tenants.yaml"]
ODD = {
    "arn:aws:eks:eu-west-1:123:cluster/prod": "prod-2",
    "gke_p_z_name": "name",
    "admin@Prod": "prod-3",
    "prod": "prod",
    "default/api-crc-testing:6443/kubeadmin": "api-crc-testing",
    "iam@east.eu-west-1.eksctl.io": "east.eu-west-1.eksctl.io",
    "123": "123",
    "1e3": "1e3",
    "on": "on",
    "workers": "workers-2",
    "manager": "manager-2",
    "日本": "cluster",
    "Größe_2": "grosse-2",
    'a "quoted": # name\n---\nkind: Evil': "a-quoted-name-kind-evil",
    "x" * 80: "x" * 63,
    "x" * 79 + "y": "x" * 61 + "-2",
    "- [": "cluster-2",
}


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    move_home(tmp_path, monkeypatch)


def written(path: str = "fleet") -> Revision:
    """What the files say; they must be free of every error and warning."""
    computed = load_files(read_folder(path))
    assert computed.findings == ()
    assert computed.desired.gaps == ()
    assert all(write_offline(render_offline(computed), cluster.name) for cluster in computed.spec.clusters)
    return computed


def roles(computed: Revision) -> dict[str, Role]:
    return {cluster.access.context: cluster.role for cluster in computed.spec.clusters}


def test_init_makes_a_standalone_cluster_of_a_single_context() -> None:
    kubeconfig(Path("home/.kube/config"), ["only"])
    assert execute(["init"]) == 0
    computed = written()
    assert roles(computed) == {"only": Role.STANDALONE}
    assert [queue.dispatch for queue in computed.spec.queues] == [Dispatch.NONE]
    assert sorted(path.name for path in Path("fleet").iterdir()) == FILES


def test_init_makes_the_current_context_the_manager() -> None:
    kubeconfig(Path("home/.kube/config"), ["east", "hub"], current="hub")
    assert execute(["init", "--name", "research"]) == 0
    computed = written()
    assert roles(computed) == {"hub": Role.MANAGER, "east": Role.WORKER}
    assert [queue.dispatch for queue in computed.spec.queues] == [Dispatch.MULTIKUEUE]
    assert computed.spec.fleet.name == "research"


def test_init_makes_the_first_context_the_manager_where_none_is_current() -> None:
    kubeconfig(Path("home/.kube/config"), ["a", "b", "c", "d", "e"], current="gone")
    assert execute(["init"]) == 0
    workers = dict.fromkeys(["b", "c", "d", "e"], Role.WORKER)
    assert roles(written()) == {"a": Role.MANAGER, **workers}


def test_init_takes_the_contexts_of_the_options() -> None:
    kubeconfig(Path("home/.kube/config"), ["a", "b", "c", "d"], current="a")
    assert execute(["init", "--manager", "d", "--worker", "b", "--worker", "b", "--into", "one"]) == 0
    assert roles(written("one")) == {"d": Role.MANAGER, "b": Role.WORKER}
    assert execute(["init", "--manager", "d", "--into", "two"]) == 0
    assert roles(written("two"))["d"] is Role.MANAGER and len(roles(written("two"))) == 4
    assert execute(["init", "--worker", "a", "--into", "three"]) == 0
    assert roles(written("three")) == {"b": Role.MANAGER, "a": Role.WORKER}


def test_init_takes_as_many_workers_as_multikueue_does() -> None:
    kubeconfig(Path("home/.kube/config"), [f"c{number}" for number in range(21)])
    assert execute(["init"]) == 0
    assert list(roles(written()).values()).count(Role.WORKER) == 20


def test_init_gives_odd_contexts_clean_names_of_their_own() -> None:
    kubeconfig(Path("kubeconfig"), [*ODD])
    assert execute(["init", "--kubeconfig", "kubeconfig"]) == 0
    assert {cluster.access.context: cluster.name for cluster in written().spec.clusters} == ODD


def test_init_lets_a_manager_be_called_manager() -> None:
    kubeconfig(Path("home/.kube/config"), ["worker1", "manager"], current="manager")
    assert execute(["init"]) == 0
    assert [cluster.name for cluster in written().spec.clusters] == ["manager", "worker1"]


def test_init_takes_one_context_for_each_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig(Path("home/.kube/config"), ["a", "b", "c"], current="b", clusters=["one", "one", "two"])
    assert execute(["init"]) == 0
    assert roles(written()) == {"b": Role.MANAGER, "c": Role.WORKER}
    assert capsys.readouterr().err == "skipped: context 'a' points to a cluster that is listed already\n"


def test_init_reads_every_file_of_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    first = kubeconfig(Path("one"), ["a"], current="null")
    second = kubeconfig(Path("two"), ["b", "a"], current="b")
    monkeypatch.setenv("KUBECONFIG", f"{first}::missing:{second}")
    assert execute(["init"]) == 0
    assert roles(written()) == {"b": Role.MANAGER, "a": Role.WORKER}


def test_init_believes_the_first_file_that_has_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    first = kubeconfig(Path("one"), ["a"], clusters=["one"])
    second = kubeconfig(Path("two"), ["a", "b"], clusters=["two", "one"])
    monkeypatch.setenv("KUBECONFIG", f"{first}:{second}")
    assert execute(["init"]) == 0
    assert roles(written()) == {"a": Role.STANDALONE}


def test_init_copies_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig(Path("home/.kube/config"), ["a", "b"])
    assert execute(["init"]) == 0
    told = capsys.readouterr()
    texts = [path.read_text() for path in Path("fleet").iterdir()]
    assert len(texts) == len(FILES)
    for text in (*texts, told.out, told.err):
        assert not any(secret in text for secret in SECRETS)


def test_init_tells_what_it_wrote_and_what_comes_next(capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig(Path("home/.kube/config"), ["hub", "gke_p_z_east"], current="hub")
    assert execute(["init"]) == 0
    assert capsys.readouterr().out == (
        "CLUSTER  ROLE     CONTEXT\n"
        "hub      manager  hub\n"
        "east     worker   gke_p_z_east\n"
        "\n"
        "wrote fleet/fleet.yaml\n"
        "wrote fleet/clusters.yaml\n"
        "wrote fleet/flavors.yaml\n"
        "wrote fleet/queues.yaml\n"
        "wrote fleet/tenants.yaml\n"
        "wrote fleet/.kfleet.schema.json\n"
        "\n"
        "Next:\n"
        "  kfleet validate       check the files\n"
        "  kfleet render         print the objects of each cluster\n"
        "  kfleet plan           show what would change on the clusters\n"
        "  kfleet apply          apply it, once the files are committed\n"
        "  kfleet explain queue  list the fields of a Queue\n"
    )


def test_init_tells_commands_that_find_the_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kubeconfig(tmp_path / "my kubeconfig", ["a\nb"])
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/sub").mkdir()
    monkeypatch.chdir(tmp_path / "repo/sub")
    assert execute(["init", "--kubeconfig", str(path)]) == 0
    told = capsys.readouterr().out
    assert f"  export KUBECONFIG='{path}'  use the same contexts\n" in told
    assert "  kfleet validate --path sub/fleet" in told
    assert "\na-b      standalone  'a\\nb'\n" in told
    assert execute(["init", "--kubeconfig", str(path), "--into", str(tmp_path / "else where")]) == 0
    assert f"  kfleet render --path '{tmp_path / 'else where'}'" in capsys.readouterr().out


def test_init_explains_only_what_exists(capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig(Path("home/.kube/config"), ["a", "b"])
    assert execute(["init"]) == 0
    text = "".join(path.read_text() for path in Path("fleet").iterdir()) + capsys.readouterr().out
    topics = re.findall(r"kfleet explain (\S+)", text)
    assert len(topics) > 5
    assert [topic for topic in topics if execute(["explain", topic]) != 0] == []


def test_init_names_a_schema_that_is_there(tmp_path: Path) -> None:
    kubeconfig(Path("home/.kube/config"), ["a"])
    assert execute(["init"]) == 0
    first = Path("fleet/fleet.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=.kfleet.schema.json"
    assert json.loads(Path("fleet/.kfleet.schema.json").read_text()) == bundled_schema()
    assert written().findings == ()
    (tmp_path / "repo/schemas").mkdir(parents=True)
    (tmp_path / "repo/schemas/kfleet.json").write_text("{}")
    assert execute(["init", "--into", "repo/fleet"]) == 0
    first = (tmp_path / "repo/fleet/queues.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=../schemas/kfleet.json"
    assert not (tmp_path / "repo/fleet/.kfleet.schema.json").exists()
    written("repo/fleet")


def test_init_makes_several_standalone_clusters() -> None:
    kubeconfig(Path("home/.kube/config"), ["a", "b", "c"], current="c")
    assert execute(["init", "--standalone", "a", "--standalone", "b"]) == 0
    computed = written()
    assert roles(computed) == {"a": Role.STANDALONE, "b": Role.STANDALONE}
    assert [queue.dispatch for queue in computed.spec.queues] == [Dispatch.NONE]
    assert "worker" not in "".join(Path(f"fleet/{name}").read_text() for name in FILES if name.endswith("yaml"))


def test_init_writes_a_configuration_for_pre_commit(capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig(Path("home/.kube/config"), ["a"])
    assert execute(["init", "--into", "queues", "--pre-commit"]) == 0
    assert "wrote .pre-commit-config.yaml\n" in capsys.readouterr().out
    (hook,) = fast_yaml.safe_load(Path(".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert hook["entry"] == "kfleet validate --path queues" and re.search(hook["files"], "queues/a.yaml")
    assert execute(shlex.split(hook["entry"])[1:]) == 0
    Path("queues/queues.yaml").write_text("kind: Queue")
    assert execute(shlex.split(hook["entry"])[1:]) == 1


def test_init_keeps_a_configuration_of_pre_commit_that_exists(capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig(Path("home/.kube/config"), ["a"])
    Path(".pre-commit-config.yaml").write_text("repos: []\n")
    assert execute(["init", "--pre-commit"]) == 0
    assert Path(".pre-commit-config.yaml").read_text() == "repos: []\n"
    assert "exists: add this to it:" in capsys.readouterr().err


def test_hooks_of_the_project_call_what_exists() -> None:
    for hook in fast_yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text()):
        program, *arguments = shlex.split(hook["entry"])
        assert program == "kfleet" and execute([*arguments, "--path", "fleet", "--repo", str(ROOT)]) == 0


@pytest.mark.parametrize(
    ("answers", "want"),
    [
        ("\n\n\n\n", {"b": Role.MANAGER, "a": Role.WORKER, "c": Role.WORKER}),
        ("y\nc\na\nn\n", {"c": Role.MANAGER, "a": Role.WORKER}),
        ("n\n\nn\n", dict.fromkeys(("a", "b", "c"), Role.STANDALONE)),
        ("n\na c\ny\n", {"a": Role.STANDALONE, "c": Role.STANDALONE}),
    ],
    ids=["all defaults", "manager and worker", "all standalone", "some standalone"],
)
def test_init_asks_on_a_terminal(tmp_path: Path, answers: str, want: dict[str, Role]) -> None:
    kubeconfig(Path("home/.kube/config"), ["a", "b", "c"], current="b")
    assert "Contexts: a, b, c" in typed(tmp_path, answers, "init")
    assert roles(written()) == want
    assert Path(".pre-commit-config.yaml").exists() == answers.endswith("y\n")


@pytest.mark.parametrize("arguments", [("--manager", "a", "--no-pre-commit"), ("--no-input",)])
def test_init_asks_nothing_that_options_say(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    kubeconfig(Path("home/.kube/config"), ["a", "b"], current="a")
    shown = typed(tmp_path, "", "init", *arguments)
    assert "?" not in shown and "Contexts:" not in shown
    assert roles(written()) == {"a": Role.MANAGER, "b": Role.WORKER}


def typed(home: Path, answers: str, *arguments: str) -> str:
    """Run the command at a terminal, and type the answers ahead."""
    ours, theirs = pty.openpty()
    os.write(ours, answers.encode())
    settings = os.environ | {"HOME": str(home / "home"), "TERM": "dumb"}
    process = subprocess.Popen(
        [kfleet_program(), *arguments], cwd=home, stdin=theirs, stdout=theirs, stderr=theirs, env=settings
    )
    os.close(theirs)
    shown = read_until(ours)
    os.close(ours)
    assert process.wait(timeout=60) == 0, shown
    return shown


def test_init_writes_files_that_others_may_read() -> None:
    kubeconfig(Path("home/.kube/config"), ["a"])
    Path("plain").write_text("")
    assert execute(["init"]) == 0
    modes = {stat.S_IMODE(path.stat().st_mode) for path in Path("fleet").iterdir()}
    assert modes == {stat.S_IMODE(Path("plain").stat().st_mode)}


def test_init_writes_beside_files_that_are_no_part_of_a_fleet() -> None:
    kubeconfig(Path("home/.kube/config"), ["a"])
    Path("repo/.github").mkdir(parents=True)
    Path("repo/.github/ci.yaml").write_text("on: push")
    Path("repo/README.md").write_text("mine")
    assert execute(["init", "--into", "repo"]) == 0
    written("repo")
    assert Path("repo/README.md").read_text() == "mine"


def test_init_takes_contexts_that_name_no_cluster() -> None:
    Path("kc").write_text("current-context: null\ncontexts: [{name: a}, {name: b, context: x}, {name: c, context: {}}]")
    assert execute(["init", "--kubeconfig", "kc"]) == 0
    assert list(roles(written())) == ["a", "b", "c"]


def test_init_runs_as_a_command(kfleet: Kfleet, kfleet_in_process: Kfleet, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "kubeconfig", ["hub", "east"], current="hub")
    folder = str(tmp_path / "made")
    assert kfleet("init", "--into", folder, KUBECONFIG=str(path)).returncode == 0
    validated = kfleet_in_process("validate", "--path", folder)
    assert (validated.returncode, validated.stdout) == (0, "0 errors, 0 warnings\n")
    rendered = kfleet_in_process("render", "--path", folder)
    assert rendered.returncode == 0 and "kind: MultiKueueConfig" in rendered.stdout


def test_job_of_the_first_page_is_taken_by_the_fleet_of_init(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    (job,) = re.findall(r"^```yaml\n(apiVersion: batch/v1.*?)^```", page, re.MULTILINE | re.DOTALL)
    kubeconfig(Path("home/.kube/config"), ["hub", "east"])
    assert execute(["init"]) == 0
    Path("job.yaml").write_text(job)
    assert execute(["check", "job.yaml"]) == 0, capsys.readouterr().out
