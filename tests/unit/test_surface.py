"""The public surface is what was agreed to: a rename shows in a diff, and is chosen."""

import pytest

from tests.unit.surface import GOLDEN, difference, surface
from tests.unit.surface_code import ELSEWHERE, SERVERS
from tests.unit.surface_source import read_source, source_at_hand

HOW = "If the change is meant: pytest tests/unit/test_surface.py --accept, then read the diff and commit it."


def test_public_surface_is_what_was_agreed_to(pytestconfig: pytest.Config) -> None:
    agreed, now = GOLDEN.read_text() if GOLDEN.exists() else "", surface()
    if now == agreed:
        return
    changes = difference(agreed, now)
    if pytestconfig.getoption("accept", default=False):
        GOLDEN.write_text(now)
        pytest.fail(f"{GOLDEN.name} is written anew. Read the diff:\n{changes}", pytrace=False)
    pytest.fail(f"the public surface has changed:\n{changes}\n{HOW}", pytrace=False)


def test_filters_by_package_match_something() -> None:
    """A package that was renamed would otherwise take its part of the surface with it."""
    with source_at_hand():
        modules = [file.short for file in read_source()]
    assert [prefix for prefix in (*SERVERS, *ELSEWHERE) if not any(name.startswith(prefix) for name in modules)] == []


def test_every_section_has_lines() -> None:
    sections = [part.splitlines() for part in GOLDEN.read_text().split("\n\n")]
    assert len(sections) > 20
    assert [lines[0] for lines in sections if len(lines) < 2] == []


def test_paths_that_are_served_are_part_of_the_surface() -> None:
    served = {line for line in GOLDEN.read_text().splitlines() if line.startswith("path ")}
    assert {"path /healthz", "path /metrics", "path /readyz", "path /webhook"} <= served
