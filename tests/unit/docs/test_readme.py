"""The first screen: short, with the reasons, pictures that exist, and commands that need no cluster."""

import re

from tests.support import ROOT

README = (ROOT / "README.md").read_text()


def test_readme_is_short() -> None:
    assert len(README.split()) < 1200


def test_readme_says_why_in_a_table_before_it_says_how() -> None:
    why, _, rest = README.partition("## Install\n")
    assert len(re.findall(r"^\| (?!\|)[^-|].*\|$", why, re.MULTILINE)) >= 6
    assert rest.index("kfleet validate") < rest.index("make demo")


def test_four_commands_of_readme_need_no_cluster() -> None:
    first = README.partition("pipx install .\n")[2].partition("kfleet doctor")[0]
    assert [line.split()[1] for line in first.splitlines()] == ["validate", "render", "explain", "check"]


def test_pictures_of_readme_exist_and_have_a_description() -> None:
    pictures = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", README)
    assert len(pictures) >= 2
    assert [path for text, path in pictures if len(text) < 20 or not (ROOT / path).exists()] == []


def test_readme_names_its_limits() -> None:
    for words in ("**Status:** alpha", "Kueue 0.10 to 0.19", "## What kfleet never does"):
        assert words in README, words
