"""Views for tests of the page."""

import json
from typing import Any

from tests.support import ROOT

EXAMPLE = ROOT / "tests" / "unit" / "view" / "example.json"


def example_view() -> dict[str, Any]:
    """The documented example, with the names of its tenants' namespaces."""
    view: dict[str, Any] = json.loads(EXAMPLE.read_text())
    return view
