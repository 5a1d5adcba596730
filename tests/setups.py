"""Set-ups that people made by hand before they knew kfleet, for tests of the import on values and on real clusters."""

from pathlib import Path
from typing import Any

from tests import fast_yaml

SETUPS: list[dict[str, Any]] = fast_yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
BOTH = ("worker1", "worker2")


def named(value: Any, name: str) -> Any:
    """A document of the set-ups under the name of a test."""
    if isinstance(value, str):
        return value.replace("NAME", name)
    if isinstance(value, dict):
        return {key: named(entry, name) for key, entry in value.items()}
    return [named(entry, name) for entry in value] if isinstance(value, list) else value
