"""Documents that cannot drift: what they say is compared with what the code does."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from reconciler import cli
from reconciler.pipeline.load import Source, load_files, read_files
from tests.support import ROOT

COMMANDS = (ROOT / "docs" / "commands.md").read_text()


def command(name: str) -> click.Command:
    found = cli.kfleet.get_command(click.Context(cli.kfleet), name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_command_is_documented_and_its_summary_is_its_own(name: str) -> None:
    found = command(name)
    assert f"`kfleet {name}" in COMMANDS
    assert (found.help or "").split("\n")[0] == cli.COMMANDS[name]
    for below in found.commands if isinstance(found, click.Group) else ():
        assert f"`kfleet {name} {below}" in COMMANDS


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_option_of_a_command_has_a_help_text(name: str) -> None:
    found = command(name)
    commands = [found, *found.commands.values()] if isinstance(found, click.Group) else [found]
    silent = [
        f"{entry.name} {parameter.opts[0]}"
        for entry in commands
        for parameter in entry.params
        if isinstance(parameter, click.Option) and not parameter.help and "--output" not in parameter.opts
    ]
    assert silent == []


def test_exit_codes_are_documented() -> None:
    rows = re.findall(r"^\| (\d) \|", COMMANDS, re.MULTILINE)
    assert rows == ["0", "1", "2", "3", "4"]


def test_links_of_documents_lead_somewhere() -> None:
    dead = [
        f"{document.name}: {target}"
        for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", re.sub(r"`[^`\n]*`", "", document.read_text()))
        if not (document.parent / target).exists()
    ]
    assert dead == []


def anchors(document: Path) -> set[str]:
    """The names that forges give to headings."""
    titles = re.findall(r"^#+ (.*)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_anchors_of_links_are_headings() -> None:
    dead = [
        f"{document.name}: {target}#{anchor}"
        for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        for target, anchor in re.findall(r"\]\((?!https?://)([^)#\s]*)#([^)]+)\)", document.read_text())
        if anchor not in anchors(document.parent / target if target else document)
    ]
    assert dead == []


def written_commands() -> Iterator[tuple[str, list[str]]]:
    """Every `kfleet …` line of a code block, as its document and its words."""
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for block in re.findall(r"^```(?:sh|console|bash)\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL):
            for line in re.findall(r"^(?:\$ )?kfleet (.*)$", block.replace("\\\n", " "), re.MULTILINE):
                words = shlex.split(re.split(r" (?:[|>&]|2>)", line)[0], comments=True)
                yield f"{document.name}: kfleet {line}", words


@pytest.mark.parametrize(("where", "words"), [*written_commands()])
def test_command_in_a_document_exists_with_its_options(where: str, words: list[str]) -> None:
    assert words[0] in cli.COMMANDS or words[0].startswith("--"), where
    if words[0].startswith("--"):
        return
    found = command(words[0])
    for word in words[1:]:
        if word == "--":
            break
        if isinstance(found, click.Group) and not word.startswith("-"):
            found = found.commands[word]
        if word.startswith("-") and word != "-":
            known = {option for parameter in found.params for option in parameter.opts} | {"-h", "--help"}
            assert word.partition("=")[0] in known, where


# Conditions on properties that are described where they are declared.
CONDITIONS = {"if", "then", "else"}


def properties(schema: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, list):
        for number, entry in enumerate(schema):
            yield from properties(entry, f"{path}[{number}]")
    elif isinstance(schema, dict):
        for name, entry in schema.items():
            if name in CONDITIONS:
                continue
            if name == "properties":
                yield from ((f"{path}.{key}", value) for key, value in entry.items())
            yield from properties(entry, f"{path}.{name}")


@pytest.mark.parametrize("path", sorted((ROOT / "schemas").glob("*.json")), ids=lambda path: path.stem)
def test_schema_describes_every_property(path: Path) -> None:
    found = list(properties(json.loads(path.read_text()), path.stem))
    silent = [name for name, value in found if not (isinstance(value, dict) and value.get("description"))]
    assert silent == []


@pytest.mark.parametrize("overlay", ["", *sorted(path.name for path in (ROOT / "overlays").iterdir())])
def test_example_fleet_is_without_a_finding(overlay: str) -> None:
    computed = load_files(read_files(Source(repo=str(ROOT), overlay=overlay)), overlay)
    assert [str(finding.problem) for finding in computed.findings] == []
    assert {entry.ref.cluster for entry in computed.desired.objects} == {entry.name for entry in computed.spec.clusters}


def prose_of(document: Path) -> str:
    """A document without its blocks of code and without tables."""
    text = re.sub(r"^ *```.*?^ *```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("|"))


PARAGRAPH_END = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )")  # an empty line, or the next item of a list
GENERATED = {"lint.md", "reference.md"}
WRITTEN = [*ROOT.glob("*.md"), *(one for one in (ROOT / "docs").glob("*.md") if one.name not in GENERATED)]


@pytest.mark.parametrize("document", WRITTEN, ids=lambda path: path.name)
def test_prose_is_wrapped_in_short_paragraphs(document: Path) -> None:
    prose = prose_of(document)
    assert [line for line in prose.splitlines() if len(line) > 160] == []
    assert [text[:80] for text in PARAGRAPH_END.split(prose) if len(text.split()) > 90] == []
