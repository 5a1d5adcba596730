"""Objects that a server takes, with a few of their values damaged."""

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from tests.unit.kueue.cases import GOOD

Path = tuple[str | int, ...]

LARGEST = 1500
WORDS = ("", "A", "a", "b-1", "a b", "a.b", "a_b", "a/b", "a\n", "a" * 64, "a" * 254, "Any", "Never", "Exists", "true")
NUMBERS = (0, -1, 2**31, 2**63, True)
QUANTITIES = ("0", "-0", "1n", "2n", "1.", ".", "1Ki", "1ki", "1e3", "1e-20", "0x1", "100%", " 1", "9" * 21, "\u0661")
NESTED: tuple[Any, ...] = ([], {}, ["a"], ["a", "a"], [{}], {"a": "b"}, {"a": 1})
FIELDS = (
    "borrowingLimit",
    "cohortName",
    "effect",
    "example.com/x",
    "fairSharing",
    "key",
    "lendingLimit",
    "name",
    "nominalQuota",
    "onFlavors",
    "operator",
    "stopPolicy",
    "topologyName",
    "value",
    "weight",
)
ODD = st.sampled_from((*WORDS, *NUMBERS, *QUANTITIES, *NESTED))
# What the object is must stay, or another object would be judged.
FIXED = (("apiVersion",), ("kind",), ("metadata",), ("metadata", "name"), ("metadata", "namespace"))


@st.composite
def mutants(draw: st.DrawFn, version: str) -> dict[str, Any]:
    """One of the good cases after one to three accidents.

    Two accidents are left out. Kueue's webhooks for ClusterQueue and ResourceFlavor rewrite the object before it is
    checked: they drop a field without a value and turn a missing quota into 0. There kfleet is stricter on purpose.
    """
    manifest: dict[str, Any] = copy.deepcopy(dict(draw(st.sampled_from(_originals(version)))))
    for _ in range(draw(st.integers(1, 3))):
        paths = [path for path in _paths(manifest) if path not in ((), *FIXED)]
        if paths:
            _damage(draw, manifest, draw(st.sampled_from(paths)))
    return manifest


def _originals(version: str) -> list[Any]:
    cases = [case for case in GOOD if version in case.versions and not case.gates]
    return [case.manifest for case in cases if len(repr(case.manifest)) < LARGEST and "None" not in repr(case.manifest)]


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from _paths(child, (*path, key))


def _damage(draw: st.DrawFn, manifest: dict[str, Any], path: Path) -> None:
    parent: Any = manifest
    for key in path[:-1]:
        parent = parent[key]
    key, value = path[-1], parent[path[-1]]
    accident = draw(st.sampled_from(("change", "lose", "repeat", "add")))
    if accident == "lose" and key != "nominalQuota":
        del parent[key]
    elif accident == "repeat" and isinstance(value, list) and value:
        value.append(copy.deepcopy(draw(st.sampled_from(value))))
    elif accident == "add" and isinstance(value, dict):
        value[draw(st.sampled_from(FIELDS))] = copy.deepcopy(draw(ODD))
    else:
        parent[key] = copy.deepcopy(draw(ODD))
