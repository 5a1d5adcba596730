"""A look at the capacity as a document that can be kept and used again."""

from collections.abc import Mapping
from typing import Any

from reconciler.capacity.model import CapacityLook, Ledger
from reconciler.capacity.record import FORMAT, amounts_record, entry_record, read_amounts, read_entry, read_time
from reconciler.objects import ClusterName, Gap
from reconciler.observed import UsePlace

KIND = "Observations"


def look_record(look: CapacityLook) -> dict[str, Any]:
    return {
        "kind": KIND,
        "format": FORMAT,
        "at": look.now.isoformat(),
        "sources": [entry_record(entry) for entry in look.ledger.entries],
        "usage": [
            {"cluster": place.cluster, "queue": place.queue, "flavor": place.flavor, "amounts": amounts_record(used)}
            for place, used in look.usage.items()
        ],
        "gaps": [{"cluster": gap.cluster, "what": gap.what, "why": gap.why} for gap in look.gaps],
        "conditions": list(look.conditions),
    }


def read_look(record: Mapping[str, Any]) -> CapacityLook:
    """The look of a document; ValueError where it is none."""
    if not isinstance(record, dict) or record.get("kind") != KIND or record.get("format") != FORMAT:
        raise ValueError(f"is no document of kind {KIND} and format {FORMAT}; make one with: kfleet observe -o json")
    try:
        ledger = Ledger(tuple(read_entry(entry) for entry in record["sources"]))
        return CapacityLook(
            read_time(record["at"]),
            ledger,
            ledger,
            {
                UsePlace(ClusterName(one["cluster"]), one["queue"], one["flavor"]): read_amounts(one["amounts"])
                for one in record["usage"]
            },
            tuple(Gap(ClusterName(one["cluster"]), one["what"], one["why"]) for one in record["gaps"]),
            tuple(record["conditions"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"cannot be read: {type(error).__name__} {error}") from error
