"""The public surface is what was agreed to: a rename shows in a diff, and is chosen."""

import pytest

from tests.unit.surface import GOLDEN, difference, surface

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
