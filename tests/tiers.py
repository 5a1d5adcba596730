"""Two tiers of tests: `unit` needs this process and files only, `cluster` talks to real servers.

The fixtures of a test decide. Whatever starts a server asks for `loopback`, directly or through another fixture, and
so does a test that is in tests/cluster. All others are in tests/unit, where a socket fails the test.
"""

import itertools
from collections.abc import Iterable
from pathlib import Path

import pytest

LOOPBACK = "loopback"
UNIT = Path(__file__).parent / "unit"
# Every worker has these for itself. Other fixtures that outlive a test keep their tests on one worker.
_PER_WORKER = frozenset({LOOPBACK, "fleet", "_programs", "_own_state_folder"})


def is_cluster_test(item: pytest.Item) -> bool:
    return LOOPBACK in _fixtures(item)


def mark_tiers(items: Iterable[pytest.Item]) -> None:
    """Mark the tests that need servers, and refuse those that are in the folder of the other tier."""
    misplaced = []
    for item in items:
        if is_cluster_test(item):
            item.add_marker(pytest.mark.cluster)
        if is_cluster_test(item) is item.path.is_relative_to(UNIT):
            misplaced.append(item.nodeid)
    if misplaced:
        raise pytest.UsageError(
            "tests/unit holds the tests without servers, tests/cluster those whose fixtures ask for `loopback`; "
            f"in the wrong folder: {', '.join(misplaced)}"
        )


def groups_of(items: Iterable[pytest.Item]) -> dict[str, str]:
    """Which tests stay on one worker: a file of the unit tier, and tests that share what outlives a test."""
    return {item.nodeid: group for item in items if (group := _group(item))}


def in_order(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """First what brings clusters of its own, while workers have no fleet yet; then groups; then what stands alone."""
    return sorted(items, key=_rank)


def _rank(item: pytest.Item) -> int:
    if not is_cluster_test(item):
        return 3
    shared = next(iter(_shared(item)), None)
    return 2 if shared is None else int(shared.scope != "package")


def _group(item: pytest.Item) -> str:
    """A folder is a group of its own: where its tests take long, they are in two folders."""
    if not is_cluster_test(item):
        return str(item.path)
    shared = next(iter(_shared(item)), None)
    if shared is None:
        return ""
    if shared.scope == "package":
        return str(item.path.parent)
    return shared.argname if shared.scope == "session" else shared.baseid


def _shared(item: pytest.Item) -> Iterable[pytest.FixtureDef[object]]:
    """The fixtures of a test that are made once for several, those of the widest scope first."""
    definitions = getattr(item, "_fixtureinfo").name2fixturedefs.values()  # noqa: B009  (not a public attribute)
    found = [
        definition
        for definition in itertools.chain.from_iterable(definitions)
        if definition.scope != "function" and definition.argname not in _PER_WORKER and _is_ours(definition)
    ]
    return sorted(found, key=lambda definition: (definition.scope != "session", len(definition.baseid)))


def _is_ours(definition: pytest.FixtureDef[object]) -> bool:
    return definition.func.__module__.startswith("tests.")


def _fixtures(item: pytest.Item) -> list[str]:
    return list(getattr(item, "fixturenames", ()))
