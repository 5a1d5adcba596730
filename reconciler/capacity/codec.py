"""The ledger as text, and back: what is kept on the manager between runs.

Decision: the amounts that count are kept beside those that were seen, so that a restart changes nothing; a text above
half of what a ConfigMap can hold is packed.
"""

import gzip
from base64 import b64decode, b64encode
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import orjson

from reconciler.capacity.model import Condition, Entry, Ledger, ObservedCapacity, Sample, SourceKey
from reconciler.decoding import unpacked
from reconciler.objects import ClusterName, Gap, Manifest
from reconciler.quantity import parse
from reconciler.snapshot.model import Amounts, FlavorKey, Freshness, PoolKey, UsageKey
from reconciler.spec.enums import CapacitySource

FORMAT = 1
KEY = "ledger.json"
PACKED = f"{KEY}.gz"
LARGEST_PLAIN = 500_000
_ALWAYS = ("amounts", "granted")
KIND = "Observations"


def ledger_content(ledger: Ledger) -> Manifest:
    """The `data` or `binaryData` of the ledger's ConfigMap."""
    text = orjson.dumps({"format": FORMAT, "sources": [entry_record(entry) for entry in ledger.entries]})
    if len(text) <= LARGEST_PLAIN:
        return {"data": {KEY: text.decode()}, "binaryData": {}}
    return {"data": {}, "binaryData": {PACKED: b64encode(gzip.compress(text, mtime=0)).decode()}}


def read_ledger(manifest: Manifest) -> Ledger:
    """The ledger of a ConfigMap; ValueError where it holds none that can be read."""
    plain = (manifest.get("data") or {}).get(KEY)
    packed = (manifest.get("binaryData") or {}).get(PACKED, "")
    if not plain and not packed:
        raise ValueError(f"has neither {KEY} nor {PACKED}")
    try:
        content = orjson.loads(plain or unpacked(b64decode(packed)))
        if content["format"] != FORMAT:
            raise ValueError(f"has the format {content['format']}, this kfleet reads {FORMAT}")
        return Ledger(tuple(read_entry(record) for record in content["sources"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"cannot be read: {type(error).__name__} {error}") from error


def entry_record(entry: Entry) -> Mapping[str, Any]:
    place = entry.source.place
    where = (
        {"bus": place.bus, "subject": place.subject, "pool": place.name}
        if isinstance(place, PoolKey)
        else {"cluster": place.cluster, "flavor": place.flavor}
    )
    record = {
        "seenAt": entry.last.seen_at.isoformat(),
        "changedAt": entry.changed_at.isoformat(),
        "amounts": amounts_record(entry.last.amounts),
        "granted": amounts_record(entry.granted) if entry.granted != entry.last.amounts else None,
        "shrinkPendingSince": {name: since.isoformat() for name, since in entry.shrink_pending_since.items()},
        "shrinkPeak": amounts_record(entry.shrink_peak),
        "labels": entry.last.labels,
        "taints": list(entry.last.taints),
        "period": entry.last.period.total_seconds() if entry.last.period else None,
        "stale": True if entry.freshness is Freshness.STALE else None,
    }
    kept = {name: value for name, value in record.items() if value is not None and (value or name in _ALWAYS)}
    return {"kind": entry.source.kind.value, **where, **kept}


def read_entry(record: Mapping[str, Any]) -> Entry:
    amounts = read_amounts(record["amounts"])
    sample = Sample(
        source=SourceKey(CapacitySource(record["kind"]), _read_place(record)),
        seen_at=read_time(record["seenAt"]),
        amounts=amounts,
        labels=record.get("labels", {}),
        taints=tuple(record.get("taints", ())),
        period=timedelta(seconds=record["period"]) if "period" in record else None,
    )
    return Entry(
        last=sample,
        changed_at=read_time(record["changedAt"]),
        granted=read_amounts(record["granted"]) if "granted" in record else amounts,
        shrink_pending_since={name: read_time(since) for name, since in record.get("shrinkPendingSince", {}).items()},
        shrink_peak=read_amounts(record.get("shrinkPeak", {})),
        freshness=Freshness.STALE if record.get("stale") else Freshness.FRESH,
    )


def _read_place(record: Mapping[str, Any]) -> FlavorKey | PoolKey:
    if "pool" in record:
        return PoolKey(record["bus"], record["subject"], record["pool"])
    return FlavorKey(ClusterName(record["cluster"]), record["flavor"])


def read_time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"time {text!r} has no zone")
    return found


def amounts_record(amounts: Amounts) -> Mapping[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def read_amounts(texts: Mapping[str, Any]) -> Amounts:
    return {name: parse(text) for name, text in texts.items()}


def look_record(look: ObservedCapacity) -> dict[str, Any]:
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
        "conditions": [condition.text for condition in look.conditions],
        "leftOut": list(look.left_out),
    }


def read_look(record: Mapping[str, Any]) -> ObservedCapacity:
    """The look of a document; ValueError where it is none."""
    if not isinstance(record, dict) or record.get("kind") != KIND or record.get("format") != FORMAT:
        raise ValueError(f"is not a document of kind {KIND} and format {FORMAT}; make one with: kfleet observe -o json")
    try:
        ledger = Ledger(tuple(read_entry(entry) for entry in record["sources"]))
        return ObservedCapacity(
            now=read_time(record["at"]),
            kept=ledger,
            ledger=ledger,
            usage={
                UsageKey(ClusterName(one["cluster"]), one["queue"], one["flavor"]): read_amounts(one["amounts"])
                for one in record["usage"]
            },
            gaps=tuple(Gap(ClusterName(one["cluster"]), one["what"], one["why"]) for one in record["gaps"]),
            conditions=tuple(Condition(text) for text in record["conditions"]),
            left_out=tuple(record.get("leftOut", ())),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"cannot be read: {type(error).__name__} {error}") from error
