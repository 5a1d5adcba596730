"""`kfleet init`: a small fleet to start from, for the clusters of a kubeconfig."""

import os
import shlex
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import click

from reconciler.cli.init_choice import Choice, choose
from reconciler.cli.init_contexts import read_contexts
from reconciler.cli.init_texts import starter_files
from reconciler.errors import EdgeError, KfleetError
from reconciler.kueue.syntax import problem_of_name
from reconciler.spec.files import SUFFIXES
from reconciler.spec.wording import shown

FOLDER = "fleet"
SCHEMA = Path("schemas") / "kfleet.json"


@click.command()
@click.option(
    "--kubeconfig", default="", metavar="FILE", help="Where the contexts are. [default: $KUBECONFIG, or ~/.kube/config]"
)
@click.option("--manager", default="", metavar="CONTEXT", help="The manager. [default: the current context]")
@click.option(
    "--worker", "workers", multiple=True, metavar="CONTEXT", help="A worker; repeatable. [default: all other contexts]"
)
@click.option("--into", default=FOLDER, show_default=True, metavar="FOLDER", help="Where the files are written.")
@click.option("--name", default="fleet", show_default=True, help="Name of the fleet.")
def init(kubeconfig: str, manager: str, workers: tuple[str, ...], into: str, name: str) -> None:
    """Write a small starting fleet for the clusters of a kubeconfig.

    Asks no cluster, copies nothing but names of contexts, and overwrites nothing. A single context becomes a
    standalone cluster; of several, one is the manager and the others are its workers.

    \b
    Examples:
      kfleet init
      kfleet init --manager hub --worker east --worker west --name research
    """
    if problem := problem_of_name(name):
        raise KfleetError(f"--name: {problem}")
    choice = choose(read_contexts(kubeconfig), manager, workers)
    folder = Path(into)
    _refuse_existing(folder)
    files = starter_files(name, choice.members, _schema_for(folder))
    write_files(folder, files)
    _print_clusters(choice)
    click.echo("\n" + "\n".join(f"wrote {folder / file}" for file in files))
    _print_next(folder, kubeconfig)


def _refuse_existing(folder: Path) -> None:
    """A fleet is all YAML files of its folder: beside others, the new ones would be a second fleet in it."""
    found = [path for path in folder.rglob("*") if path.name.endswith(SUFFIXES)]
    visible = sorted(path for path in found if not _is_hidden(path.relative_to(folder)))
    if visible:
        names = ", ".join(map(str, visible))
        raise EdgeError(str(folder), f"there is a fleet already: {names}", "choose an empty folder with --into FOLDER")


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _schema_for(folder: Path) -> str:
    """The schema beside the folder, where the user's repository has it; a path of this machine would help nobody."""
    return f"../{SCHEMA.as_posix()}" if (folder.absolute().parent / SCHEMA).is_file() else ""


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """All of the files or none: each is written in full under another name, then all get theirs."""
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
        with suppress(OSError):  # it was never made, or somebody else has put something into it
            path.rmdir()


def _print_clusters(choice: Choice) -> None:
    rows = [("CLUSTER", "ROLE", "CONTEXT")]
    rows += [(member.name, str(member.role), _printable(member.context)) for member in choice.members]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, role, context in rows:
        click.echo(f"{name.ljust(widths[0])}  {role.ljust(widths[1])}  {context}")
    for double in choice.doubles:
        click.echo(f"left out: context {shown(double)} leads to a cluster that is there already", err=True)


def _printable(text: str) -> str:
    return text if text.isprintable() else repr(text)


def _print_next(folder: Path, kubeconfig: str) -> None:
    option = _path_option(folder)
    export = f"export KUBECONFIG={shlex.quote(os.fspath(Path(kubeconfig).absolute()))}"
    commands = {
        **({export: "where the contexts are"} if kubeconfig else {}),
        f"kfleet validate{option}": "is everything right?",
        f"kfleet render{option}": "the objects that each cluster would hold",
        f"kfleet plan{option}": "what would change on the clusters",
        f"kfleet apply{option}": "change it, once the files are committed",
        "kfleet explain queue": "what else can be said",
    }
    width = max(map(len, commands))
    click.echo("\nNext:")
    for command, why in commands.items():
        click.echo(f"  {command.ljust(width)}  {why}")


def _path_option(folder: Path) -> str:
    """How other commands find the folder: from the top of the repository, or from here where there is none."""
    here = Path.cwd()
    top = next((path for path in (here, *here.parents) if (path / ".git").exists()), here)
    path = folder.resolve()
    relative = os.fspath(path.relative_to(top)) if path.is_relative_to(top) else os.fspath(path)
    return "" if relative == FOLDER else f" --path {shlex.quote(relative)}"
