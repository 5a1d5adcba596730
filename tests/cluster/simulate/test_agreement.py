"""A few of the situations of `python -m tests.cluster.simulate`: original, twin and arithmetic say the same."""

import os
from collections.abc import Iterator

import pytest

from reconciler.sandbox.fleet import Sandbox, start_empty
from reconciler.simulate.change import KueueSetup, Release
from tests.cluster.simulate.__main__ import FAIR
from tests.cluster.simulate.agreement import Agreement
from tests.cluster.simulate.situations import situation


@pytest.fixture
def sandbox(fleet: Sandbox) -> Iterator[Sandbox]:
    """Beside the fleet of the tests, which is up already."""
    assert fleet.state.parts
    made = start_empty(f"agreement-{os.getpid()}")
    yield made
    made.discard()


@pytest.mark.parametrize(
    ("numbers", "configuration"), [((16, 22, 34, 36), ""), ((13, 15, 17, 23), FAIR)], ids=["plain", "fair sharing"]
)
def test_twin_and_arithmetic_are_like_the_original(
    sandbox: Sandbox, numbers: tuple[int, ...], configuration: str
) -> None:
    situations = [situation(number, is_fair=bool(configuration)) for number in numbers]
    setup = KueueSetup(release=Release("0.19.0", "0.19.0"), configuration=configuration)
    verdicts = Agreement(sandbox=sandbox, setup=setup, situations=situations).verdicts()
    assert sum(one.moved for one in verdicts) > 0  # the changes are such that something moves
    assert [one for one in verdicts if one.restored or one.changed or one.computed] == []
