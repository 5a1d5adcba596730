"""`kfleet init`: write a small fleet to start from, for the clusters of a kubeconfig."""

import os
import shlex
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import click

from reconciler.cli.init_contexts import Contexts, InitChoice, choose, choose_standalones, distinct, read_contexts
from reconciler.cli.init_texts import PRE_COMMIT, starter_files
from reconciler.errors import EdgeError, KfleetError
from reconciler.kueue.structure import problem_of_name
from reconciler.spec.files import SCHEMA_FILE, SUFFIXES
from reconciler.spec.schema_bundle import schema_text
from reconciler.text import quote_value

FOLDER = "fleet"
SCHEMA = Path("schemas") / "kfleet.json"
PRE_COMMIT_FILE = ".pre-commit-config.yaml"


@click.command()
@click.option(
    "--kubeconfig", default="", metavar="FILE", help="File with the contexts. [default: $KUBECONFIG, or ~/.kube/config]"
)
@click.option("--manager", default="", metavar="CONTEXT", help="The manager. [default: the current context]")
@click.option(
    "--worker", "workers", multiple=True, metavar="CONTEXT", help="A worker; repeatable. [default: all other contexts]"
)
@click.option(
    "--standalone",
    "standalones",
    multiple=True,
    metavar="CONTEXT",
    help="A cluster that runs its own jobs, instead of a manager and workers; repeatable.",
)
@click.option("--into", default=FOLDER, show_default=True, metavar="FOLDER", help="Folder to write the files to.")
@click.option("--name", default="fleet", show_default=True, help="Name of the fleet.")
@click.option(
    "--pre-commit/--no-pre-commit",
    "has_pre_commit",
    default=None,
    help=f"Write {PRE_COMMIT_FILE}, which validates the fleet before each commit. [default: ask on a terminal]",
)
@click.option("--no-input", is_flag=True, help="Ask nothing, on a terminal either.")
def init(
    kubeconfig: str,
    manager: str,
    workers: tuple[str, ...],
    standalones: tuple[str, ...],
    into: str,
    name: str,
    has_pre_commit: bool | None,
    no_input: bool,
) -> None:
    """Write a small starting fleet for the clusters of a kubeconfig.

    Contacts no cluster, copies only names of contexts from the kubeconfig, and overwrites nothing. A single context
    becomes a standalone cluster; of several, one becomes the manager and the others its workers, unless --standalone
    names them. On a terminal the command asks what the options do not say.

    \b
    Examples:
      kfleet init
      kfleet init --manager hub --worker east --worker west --name research
      kfleet init --standalone lyon --standalone turin --pre-commit
    """
    if problem := problem_of_name(name):
        raise KfleetError(f"--name: {problem}")
    folder = Path(into)
    refuse_existing(folder)
    contexts = read_contexts(kubeconfig)
    is_asking = not no_input and sys.stdin.isatty() and sys.stdout.isatty()
    choice = _choose(contexts, manager, workers, standalones, is_asking=is_asking)
    if has_pre_commit is None:
        has_pre_commit = is_asking and click.confirm("Validate the fleet before each commit, by pre-commit?")
    schema = _schema_for(folder)
    files = starter_files(name, choice.members, schema)
    if schema == SCHEMA_FILE:
        files = {**files, SCHEMA_FILE: schema_text()}
    write_files(folder, files)
    _print_clusters(choice)
    click.echo("\n" + "\n".join(f"wrote {folder / file}" for file in files))
    if has_pre_commit:
        _write_pre_commit(folder)
    print_next(folder, kubeconfig)


def _choose(
    contexts: Contexts, manager: str, workers: tuple[str, ...], standalones: tuple[str, ...], *, is_asking: bool
) -> InitChoice:
    if standalones and (manager or workers):
        raise KfleetError("--standalone: a starting fleet has a manager with workers, or standalone clusters only")
    if standalones:
        return choose_standalones(contexts, standalones)
    if manager or workers or not is_asking or len(distinct(contexts)) == 1:
        return choose(contexts, manager, workers)
    return _ask(contexts)


def _ask(contexts: Contexts) -> InitChoice:
    """Ask what the clusters are. An empty answer gives what the command does without a terminal."""
    known = distinct(contexts)
    click.echo("Contexts: " + ", ".join(map(_printable, known)))
    is_dispatched = click.confirm("Does one of them, the manager, dispatch jobs to the others?", default=True)
    if not is_dispatched:
        named = click.prompt("Standalone clusters, separated by spaces", default="all")
        return choose_standalones(contexts, known if named == "all" else tuple(named.split()))
    default = contexts.current or known[0]
    manager = click.prompt("Context of the manager", default=default)
    named = click.prompt("Workers, separated by spaces", default="all others")
    return choose(contexts, manager, () if named == "all others" else tuple(named.split()))


def _write_pre_commit(folder: Path) -> None:
    """Beside what exists: pre-commit has one file per repository, at its top."""
    top, relative = _place(folder)
    path = top / PRE_COMMIT_FILE
    text = PRE_COMMIT.format(option="" if relative == FOLDER else f" --path {shlex.quote(relative)}")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        click.echo(f"{path} exists: add this to it:\n\n{text}", err=True)
    except OSError as error:
        raise EdgeError(str(path), f"cannot write: {error.strerror}") from error
    else:
        click.echo(f"wrote {os.path.relpath(path)}")


def refuse_existing(folder: Path) -> None:
    """Refuse a folder with YAML files: all YAML files of a folder are one fleet, so the new files would join it."""
    found = [path for path in folder.rglob("*") if path.name.endswith(SUFFIXES)]
    visible = sorted(path for path in found if not _is_hidden(path.relative_to(folder)))
    if visible:
        names = ", ".join(map(str, visible))
        raise EdgeError(str(folder), f"already contains a fleet: {names}", "choose an empty folder with --into FOLDER")


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _schema_for(folder: Path) -> str:
    """Return the schema's path relative to the folder: that of the user's repository, or else a copy in the folder."""
    if (folder.absolute().parent / SCHEMA).is_file():
        return f"../{SCHEMA.as_posix()}"
    return SCHEMA_FILE


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write all files or none: each is first written in full under a temporary name, then all are renamed."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    placed: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".kfleet-init-", dir=folder) as stage:
            for name, text in files.items():
                (Path(stage) / name).write_text(text, encoding="utf-8")
            for name in files:
                (Path(stage) / name).rename(folder / name)
                placed.append(folder / name)
    except OSError as error:
        _undo(placed, made)
        raise EdgeError(str(folder), f"cannot write: {error.strerror}; nothing was written") from error


def _undo(placed: list[Path], made: list[Path]) -> None:
    for path in placed:
        path.unlink(missing_ok=True)
    for path in made:
        with suppress(OSError):  # the folder was never created, or another process has written to it
            path.rmdir()


def _print_clusters(choice: InitChoice) -> None:
    rows = [("CLUSTER", "ROLE", "CONTEXT")]
    rows += [(member.name, str(member.role), _printable(member.context)) for member in choice.members]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, role, context in rows:
        click.echo(f"{name.ljust(widths[0])}  {role.ljust(widths[1])}  {context}")
    for double in choice.doubles:
        click.echo(f"skipped: context {quote_value(double)} points to a cluster that is listed already", err=True)


def _printable(text: str) -> str:
    return text if text.isprintable() else repr(text)


def print_next(folder: Path, kubeconfig: str) -> None:
    option = _path_option(folder)
    export = f"export KUBECONFIG={shlex.quote(os.fspath(Path(kubeconfig).absolute()))}"
    commands = {
        **({export: "use the same contexts"} if kubeconfig else {}),
        f"kfleet validate{option}": "check the files",
        f"kfleet render{option}": "print the objects of each cluster",
        f"kfleet plan{option}": "show what would change on the clusters",
        f"kfleet apply{option}": "apply it, once the files are committed",
        "kfleet explain queue": "list the fields of a Queue",
    }
    width = max(map(len, commands))
    click.echo("\nNext:")
    for command, why in commands.items():
        click.echo(f"  {command.ljust(width)}  {why}")


def _path_option(folder: Path) -> str:
    """Return the option by which other commands find the folder, relative to the repository or else to here."""
    _, relative = _place(folder)
    return "" if relative == FOLDER else f" --path {shlex.quote(relative)}"


def _place(folder: Path) -> tuple[Path, str]:
    """Return the top of the repository, or else this folder, and the path of the fleet from there."""
    here = Path.cwd()
    top = next((path for path in (here, *here.parents) if (path / ".git").exists()), here)
    path = folder.resolve()
    return top, os.fspath(path.relative_to(top)) if path.is_relative_to(top) else os.fspath(path)
