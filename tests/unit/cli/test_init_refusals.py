"""What `kfleet init` refuses: one clear message, and nothing written."""

import subprocess
from pathlib import Path

import pytest

from reconciler.cli import execute
from reconciler.cli.init import write_files
from reconciler.errors import EdgeError
from tests.support import kfleet_program
from tests.unit.kubeconfigs import SECRETS, kubeconfig, move_home


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    move_home(tmp_path, monkeypatch)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    before = sorted(Path().rglob("*"))
    assert execute(["init", *arguments]) == 1
    assert sorted(Path().rglob("*")) == before
    told = capsys.readouterr()
    assert told.out == ""
    return told.err


@pytest.mark.parametrize(
    "content",
    [
        'users: [{user: {token: "s3cret-token" "hunter2"}}]',
        "password: *hunter2",
        "password: %hunter2",
        "password: `hunter2`",
        "password: &hunter2 &s3cret-token x",
        "password: !hunter2!s3cret-token x",
        "? {hunter2: s3cret-token}: x",
        '"hunter2',
    ],
)
def test_init_quotes_no_secret_of_a_broken_kubeconfig(capsys: pytest.CaptureFixture[str], content: str) -> None:
    Path("broken").write_text(content)
    told = refused(capsys, "--kubeconfig", "broken")
    assert told.startswith("error: broken:1: is not valid YAML: ")
    assert not any(secret in told for secret in SECRETS)


def test_init_overwrites_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig(Path("home/.kube/config"), ["a"])
    Path("fleet/sub").mkdir(parents=True)
    for name in ("queues.yaml", "sub/mine.yml"):
        Path("fleet", name).write_text("mine")
    told = refused(capsys)
    assert told == (
        "error: fleet: already contains a fleet: fleet/queues.yaml, fleet/sub/mine.yml\n"
        "hint:  choose an empty folder with --into FOLDER\n"
    )
    assert Path("fleet/queues.yaml").read_text() == "mine"


def test_init_makes_no_folder_below_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    kubeconfig(Path("home/.kube/config"), ["a"])
    Path("file").write_text("mine")
    assert refused(capsys, "--into", "file") == "error: file: cannot write: File exists; nothing was written\n"
    told = refused(capsys, "--into", "file/below")
    assert told == "error: file/below: cannot write: Not a directory; nothing was written\n"


def test_init_leaves_nothing_behind_when_the_disk_is_full(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "kubeconfig", [f"context-{number}" for number in range(20)])
    # A limit on the size of files fails in the middle of a write, as a full disk does.
    command = f'ulimit -f 1; exec "{kfleet_program()}" init --kubeconfig "{path}" --into made/fleet'
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "error: made/fleet: cannot write: File too large; nothing was written\n"
    assert not (tmp_path / "made").exists()


def test_write_files_takes_back_what_it_placed(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").mkdir()
    with pytest.raises(EdgeError, match="cannot write: Is a directory; nothing was written"):
        write_files(tmp_path, {"a.yaml": "a: 1", "b.yaml": "b: 1"})
    assert [path.name for path in tmp_path.iterdir()] == ["b.yaml"]


def test_init_says_when_there_is_no_kubeconfig(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = refused(capsys)
    assert told.startswith(f"error: kubeconfig: no such file: {Path.cwd()}/home/.kube/config\nhint:  set --kubeconfig")
    monkeypatch.setenv("KUBECONFIG", "one:two")
    assert refused(capsys).startswith("error: $KUBECONFIG: no such file: one, two\nhint: ")
    told = refused(capsys, "--kubeconfig", "three")
    assert told == "error: three: cannot read the kubeconfig: No such file or directory\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a: 1\nb: }", "kc:2: is not valid YAML: while parsing a block node, did not find expected node content"),
        (
            b"a: 1\n---\nb: 1",
            "kc:2: is not valid YAML: expected a single document in the stream, but found another document",
        ),
        (b"a: \xff\xfe", "kc: is not valid YAML: invalid leading UTF-8 octet"),
        (b"- " * 5000, "kc: is not valid YAML: it is nested too deeply"),
        (b"just text", "kc: is not a kubeconfig: it is not a mapping"),
        (b" " * (10 * 2**20 + 1), "kc: is not a kubeconfig: it has more than 10485760 bytes"),
    ],
)
def test_init_says_why_a_kubeconfig_cannot_be_read(
    capsys: pytest.CaptureFixture[str], content: bytes, problem: str
) -> None:
    Path("kc").write_bytes(content)
    assert refused(capsys, "--kubeconfig", "kc") == f"error: {problem}\n"


def test_init_says_what_is_wrong_with_every_kubeconfig_at_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("one").write_text("just text")
    Path("two").mkdir()
    monkeypatch.setenv("KUBECONFIG", "one:two")
    assert refused(capsys) == (
        "error: one: is not a kubeconfig: it is not a mapping\nerror: two: cannot read the kubeconfig: Is a directory\n"
    )


@pytest.mark.parametrize(
    "content",
    [
        "",
        "contexts: null",
        "contexts: []",
        "contexts: {a: b}",
        "contexts: [a, {context: {cluster: x}}, {name: ''}, {name: [x]}]",
        "clusters: []\ncurrent-context: a",
    ],
)
def test_init_says_when_there_are_no_contexts(capsys: pytest.CaptureFixture[str], content: str) -> None:
    Path("kc").write_text(content)
    assert refused(capsys, "--kubeconfig", "kc").startswith("error: kc: the kubeconfig has no contexts\nhint: ")


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        (
            ("--manager", "hbu", "--worker", "wset"),
            [
                "--manager: no context 'hbu' in the kubeconfig; did you mean hub?",
                "--worker: no context 'wset' in the kubeconfig; did you mean west?",
            ],
        ),
        (
            ("--worker", "zzz"),
            ["--worker: no context 'zzz' in the kubeconfig; there are: 'hub', 'west', 'west-admin'"],
        ),
        (
            ("--manager", "hub", "--worker", "hub"),
            ["--worker: 'hub' is the manager: a manager cannot be its own worker"],
        ),
        (
            ("--worker", "west", "--worker", "hub"),
            ["--worker: every context is a worker: none is left for the manager"],
        ),
        (
            ("--manager", "west", "--worker", "west-admin"),
            ["'west-admin': points to the same cluster as 'west': choose one of the two"],
        ),
        (("--name", "My Fleet"), ["--name: 'My Fleet' does not consist of"]),
        (("--name", ""), ["--name: is empty"]),
    ],
)
def test_init_refuses_options_that_make_no_fleet(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], problems: list[str]
) -> None:
    kubeconfig(Path("home/.kube/config"), ["hub", "west", "west-admin"], clusters=["hub", "west", "west"])
    lines = refused(capsys, *arguments).splitlines()
    assert len(lines) == len(problems)
    assert all(line.startswith(f"error: {problem}") for line, problem in zip(lines, problems, strict=True))


def test_init_refuses_more_workers_than_multikueue_takes(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"c{number}" for number in range(22)]
    kubeconfig(Path("home/.kube/config"), names)
    assert refused(capsys) == (
        "error: 21 contexts would be workers: MultiKueue takes at most 20 for a queue; choose them with --worker\n"
    )
    chosen = [part for name in names[1:21] for part in ("--worker", name)]
    assert execute(["init", *chosen]) == 0
    assert Path("fleet/clusters.yaml").read_text().count("role: worker") == 20


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--standalone", "a", "--manager", "b"), "has a manager with workers, or standalone clusters only"),
        (("--standalone", "c"), "--standalone: no context 'c' in the kubeconfig"),
        (("--standalone", "a", "--standalone", "also-a"), "points to the same cluster as"),
    ],
)
def test_init_refuses_standalone_clusters_that_cannot_be(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], problem: str
) -> None:
    kubeconfig(Path("home/.kube/config"), ["a", "b", "also-a"], clusters=["one", "two", "one"])
    assert problem in refused(capsys, *arguments)
