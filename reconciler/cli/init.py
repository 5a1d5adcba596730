"""`kfleet init`: write a small fleet to start from, for the clusters of a kubeconfig."""

import os
import shlex
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import click

from reconciler.cli.init_contexts import InitChoice, choose, read_contexts
from reconciler.cli.init_texts import starter_files
from reconciler.errors import EdgeError, KfleetError
from reconciler.kueue.syntax import problem_of_name
from reconciler.spec.files import SUFFIXES
from reconciler.text import quote_value

FOLDER = "fleet"
SCHEMA = Path("schemas") / "kfleet.json"


@click.command()
@click.option(
    "--kubeconfig", default="", metavar="FILE", help="File with the contexts. [default: $KUBECONFIG, or ~/.kube/config]"
)
@click.option("--manager", default="", metavar="CONTEXT", help="The manager. [default: the current context]")
@click.option(
    "--worker", "workers", multiple=True, metavar="CONTEXT", help="A worker; repeatable. [default: all other contexts]"
)
@click.option("--into", default=FOLDER, show_default=True, metavar="FOLDER", help="Folder to write the files to.")
@click.option("--name", default="fleet", show_default=True, help="Name of the fleet.")
def init(kubeconfig: str, manager: str, workers: tuple[str, ...], into: str, name: str) -> None:
    """Write a small starting fleet for the clusters of a kubeconfig.

    Contacts no cluster, copies only names of contexts from the kubeconfig, and overwrites nothing. A single context
    becomes a standalone cluster; of several, one becomes the manager and the others its workers.

    \b
    Examples:
      kfleet init
      kfleet init --manager hub --worker east --worker west --name research
    """
    if problem := problem_of_name(name):
        raise KfleetError(f"--name: {problem}")
    choice = choose(read_contexts(kubeconfig), manager, workers)
    folder = Path(into)
    refuse_existing(folder)
    files = starter_files(name, choice.members, _schema_for(folder))
    write_files(folder, files)
    _print_clusters(choice)
    click.echo("\n" + "\n".join(f"wrote {folder / file}" for file in files))
    print_next(folder, kubeconfig)


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
    """Return the schema's path relative to the folder, if the user's repository contains it: never an absolute path."""
    return f"../{SCHEMA.as_posix()}" if (folder.absolute().parent / SCHEMA).is_file() else ""


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
    here = Path.cwd()
    top = next((path for path in (here, *here.parents) if (path / ".git").exists()), here)
    path = folder.resolve()
    relative = os.fspath(path.relative_to(top)) if path.is_relative_to(top) else os.fspath(path)
    return "" if relative == FOLDER else f" --path {shlex.quote(relative)}"
