"""docs/design.md lists exactly the files that tests/unit/test_layers.py exempts from the rule."""

import re

import pytest

from tests.support import ROOT
from tests.unit.test_layers import ENGINE, FEATURES, KNOWS_FEATURES, LOOKS, OUTER

DESIGN = (ROOT / "docs" / "design.md").read_text()


@pytest.mark.parametrize(
    ("title", "files"),
    [
        ("Engine files that know features", KNOWS_FEATURES),
        ("Files outside of the outer packages that read clusters", LOOKS),
    ],
)
def test_design_lists_the_files_that_break_the_rule(title: str, files: set[str]) -> None:
    section = DESIGN.partition(f"\n### {title}\n")[2].partition("\n### ")[0]
    first_cells = " ".join(re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE))
    listed = re.findall(r"`([a-z_]+/[a-z_]+\.py)`", first_cells)
    assert sorted(listed) == sorted(files), f"change the table under {title!r} in docs/design.md"


def test_design_and_contributing_name_all_packages_of_each_sort() -> None:
    (outer,) = re.findall(r"the outer packages \((`.*?)\)", DESIGN, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", outer)) == OUTER
    tour = (ROOT / "CONTRIBUTING.md").read_text().partition("## Tour\n")[2].partition("\n## ")[0]
    nouns = {"decoding", "errors", "objects", "quantity", "text"}
    assert (ENGINE | FEATURES | OUTER) - nouns - set(re.findall(r"`(\w+)`", tour)) == set()
