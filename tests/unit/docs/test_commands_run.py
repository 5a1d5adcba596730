"""Every command of a document: its arguments are accepted, and it runs where it needs no cluster."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest

from reconciler import cli
from reconciler.errors import EdgeError
from tests import fast_yaml
from tests.builders import asking, job, pod, pod_spec
from tests.repositories import commit, edit, example_repository
from tests.support import ROOT
from tests.unit.docs.test_documents import command, written_commands

# They read files alone; --live, --snapshot and --skypilot of another server need more.
OFFLINE = frozenset(("check", "diff", "explain", "render", "validate", "version"))
ONLINE_OPTIONS = frozenset(("--live", "--snapshot"))
COMMANDS = {tuple(words): where for where, words in written_commands() if not words[0].startswith("--")}


def is_offline(words: tuple[str, ...]) -> bool:
    return words[0] in OFFLINE and not ONLINE_OPTIONS.intersection(words)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository like this one, on a branch that changes a quota, with the files that documents name."""
    repo = example_repository(tmp_path_factory.mktemp("docs") / "repo")
    shutil.copytree(ROOT / "docs" / "examples", repo / "docs" / "examples")
    commit(repo)
    edit(repo / "fleet" / "queues.yaml", 'nvidia.com/gpu: "20"', 'nvidia.com/gpu: "24"')
    asks = pod_spec(asking(cpu="1"))
    jobs = {"job.yaml": job("train", asks, namespace="astro", queue="astro"), "pod.yaml": pod("train", asks)}
    for name, manifest in {**jobs, "train.yaml": jobs["job.yaml"]}.items():
        (repo / name).write_text(fast_yaml.safe_dump(manifest))
    for name in ("world.json.gz", "seen.json", "observations.json", "plan.json"):
        (repo / name).touch()
    return repo


def descended(words: tuple[str, ...]) -> tuple[click.Command, list[str]]:
    found, rest = command(words[0]), list(words[1:])
    while isinstance(found, click.Group) and rest and not rest[0].startswith("-"):
        found, rest = found.commands[rest[0]], rest[1:]
    return found, rest


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_arguments_of_a_command_in_a_document_are_accepted(
    words: tuple[str, ...], checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkout)
    found, rest = descended(words)
    problem = ""
    # The snapshots of the checkout are empty, which is not about the arguments.
    with suppress(EdgeError):
        try:
            found.make_context(words[0], rest).close()
        except click.UsageError as error:
            problem = error.format_message()
    assert problem == "", COMMANDS[words]


@pytest.mark.parametrize("words", [*filter(is_offline, COMMANDS)], ids=" ".join)
def test_command_in_a_document_runs(
    words: tuple[str, ...], checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(checkout)
    code = cli.execute([*words])
    shown = capsys.readouterr()
    assert code != 1 and "Traceback" not in shown.err, (COMMANDS[words], shown.err)
    assert shown.out, COMMANDS[words]


def offline_commands() -> Iterator[str]:
    yield from (words[0] for words in COMMANDS if is_offline(words))


def test_documents_show_every_command_that_needs_no_cluster() -> None:
    assert set(offline_commands()) == OFFLINE
