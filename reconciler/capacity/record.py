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

from reconciler.capacity.model import Entry, Ledger, Sighting, Source
from reconciler.objects import ClusterName, Manifest
from reconciler.observed import Amounts, FlavorPlace, Freshness, PoolPlace
from reconciler.quantity import parse
from reconciler.spec.choices import CapacitySource

FORMAT = 1
KEY = "ledger.json"
PACKED = f"{KEY}.gz"
LARGEST_PLAIN = 500_000
_ALWAYS = ("amounts", "granted")


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
        content = orjson.loads(plain or gzip.decompress(b64decode(packed)))
        if content["format"] != FORMAT:
            raise ValueError(f"has the format {content['format']}, this kfleet reads {FORMAT}")
        return Ledger(tuple(read_entry(record) for record in content["sources"]))
    except (KeyError, TypeError, OSError, EOFError) as error:
        raise ValueError(f"cannot be read: {type(error).__name__} {error}") from error


def entry_record(entry: Entry) -> Mapping[str, Any]:
    place = entry.source.place
    where = (
        {"bus": place.bus, "subject": place.subject, "pool": place.name}
        if isinstance(place, PoolPlace)
        else {"cluster": place.cluster, "flavor": place.flavor}
    )
    record = {
        "seenAt": entry.last.seen_at.isoformat(),
        "changedAt": entry.changed_at.isoformat(),
        "amounts": amounts_record(entry.last.amounts),
        "granted": amounts_record(entry.granted) if entry.granted != entry.last.amounts else None,
        "lowerSince": {name: since.isoformat() for name, since in entry.lower_since.items()},
        "lowerMost": amounts_record(entry.lower_most),
        "labels": entry.last.labels,
        "taints": list(entry.last.taints),
        "period": entry.last.period.total_seconds() if entry.last.period else None,
        "stale": True if entry.freshness is Freshness.STALE else None,
    }
    kept = {name: value for name, value in record.items() if value is not None and (value or name in _ALWAYS)}
    return {"kind": entry.source.kind.value, **where, **kept}


def read_entry(record: Mapping[str, Any]) -> Entry:
    amounts = read_amounts(record["amounts"])
    sighting = Sighting(
        Source(CapacitySource(record["kind"]), _read_place(record)),
        read_time(record["seenAt"]),
        amounts,
        record.get("labels", {}),
        tuple(record.get("taints", ())),
        timedelta(seconds=record["period"]) if "period" in record else None,
    )
    return Entry(
        sighting,
        read_time(record["changedAt"]),
        read_amounts(record["granted"]) if "granted" in record else amounts,
        {name: read_time(since) for name, since in record.get("lowerSince", {}).items()},
        read_amounts(record.get("lowerMost", {})),
        Freshness.STALE if record.get("stale") else Freshness.FRESH,
    )


def _read_place(record: Mapping[str, Any]) -> FlavorPlace | PoolPlace:
    if "pool" in record:
        return PoolPlace(record["bus"], record["subject"], record["pool"])
    return FlavorPlace(ClusterName(record["cluster"]), record["flavor"])


def read_time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"time {text!r} has no zone")
    return found


def amounts_record(amounts: Amounts) -> Mapping[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def read_amounts(texts: Mapping[str, Any]) -> Amounts:
    return {name: parse(text) for name, text in texts.items()}
