"""A look at the capacity as a document: read as it was written, and refused where it is something else."""

import json
from typing import Any

import pytest

from reconciler.capacity.codec import look_record, read_look
from reconciler.capacity.model import Condition, Ledger, ObservedCapacity
from reconciler.objects import ClusterName, Gap
from reconciler.snapshot.model import UsageKey
from tests.unit.capacity.ledgers import NODES, POOL, START, amounts, remembered

LEDGER = Ledger((*remembered(POOL, cpu=8).entries, *remembered(NODES).entries))
LOOK = ObservedCapacity(
    START,
    LEDGER,
    LEDGER,
    {UsageKey(ClusterName("east"), "q", "cpu"): amounts(cpu="500m", memory="1Gi")},
    (Gap(ClusterName("west"), "nodes", "403 forbidden"),),
    (Condition("east: queue q: more is used than there is"),),
)


def test_look_is_read_as_it_was_written() -> None:
    assert read_look(json.loads(json.dumps(look_record(LOOK)))) == LOOK


def test_look_is_a_document_with_a_kind_and_a_format() -> None:
    record = look_record(LOOK)
    assert (record["kind"], record["format"], record["at"]) == ("Observations", 1, "2026-01-31T12:00:00+00:00")
    assert record["gaps"] == [{"cluster": "west", "what": "nodes", "why": "403 forbidden"}]
    assert record["usage"] == [
        {"cluster": "east", "queue": "q", "flavor": "cpu", "amounts": {"cpu": "500m", "memory": "1Gi"}}
    ]


@pytest.mark.parametrize("record", [None, [], {}, {"kind": "Observations"}, {"kind": "Plan", "format": 1}])
def test_document_that_is_not_a_look_is_refused(record: Any) -> None:
    with pytest.raises(
        ValueError, match="is not a document of kind Observations and format 1; make one with: kfleet obs"
    ):
        read_look(record)


@pytest.mark.parametrize(
    "broken", [{"sources": None}, {"at": None}, {"usage": [{}]}, {"gaps": [3]}, {"sources": [{"kind": "nodes"}]}]
)
def test_look_with_a_broken_part_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="cannot be read: "):
        read_look({**look_record(LOOK), **broken})
