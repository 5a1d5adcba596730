"""The capacity of the last hours, kept in memory. One sample a minute; a restart begins anew. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.web.filter import Record

EVERY = timedelta(minutes=1)
KEPT = 6 * 60


@dataclass(frozen=True, slots=True)
class CapacitySample:
    """What each source counted at one time, by its name and the resource. A source that is missing was unknown."""

    at: datetime
    amounts: Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class CapacityHistory:
    samples: tuple[CapacitySample, ...] = ()

    def with_sample(self, sample: CapacitySample) -> "CapacityHistory":
        """The history with one more sample, unless the last one is from the same minute."""
        if not sample.amounts or (self.samples and sample.at - self.samples[-1].at < EVERY):
            return self
        return CapacityHistory((*self.samples, sample)[-KEPT:])


def sample_of(view: Record, at: datetime) -> CapacitySample:
    counted = (
        ((pool["name"], resource), amount)
        for pool in view["pools"] or ()
        if pool["state"] != "unknown"
        for resource, amount in (pool["counted"] or {}).items()
    )
    return CapacitySample(at, dict(counted))


def history_record(history: CapacityHistory) -> Record:
    """One series per source and resource; an amount that was unknown at its time is null."""
    keys = sorted({key for sample in history.samples for key in sample.amounts})
    return {
        "times": [_stamp(sample.at) for sample in history.samples],
        "series": [
            {"name": name, "resource": resource, "amounts": list(_amounts(history.samples, (name, resource)))}
            for name, resource in keys
        ],
    }


def _amounts(samples: Iterable[CapacitySample], key: tuple[str, str]) -> Iterable[str | None]:
    return (sample.amounts.get(key) for sample in samples)


def _stamp(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
