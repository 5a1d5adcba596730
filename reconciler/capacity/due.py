"""When the ledger changes by itself."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from reconciler.capacity.ledger import Rules, effective_timeout
from reconciler.capacity.model import Ledger
from reconciler.observed import Freshness

# A moment later than the time itself, so that it is surely over.
_AFTER = timedelta(milliseconds=50)


def next_due(ledger: Ledger, rules: Rules, now: datetime) -> timedelta | None:
    """How long until some source falls silent, is gone for good, or has been smaller for long enough."""
    return min((max(when - now, timedelta()) + _AFTER for when in _moments(ledger, rules)), default=None)


def _moments(ledger: Ledger, rules: Rules) -> Iterator[datetime]:
    for entry in ledger.entries:
        yield from (since + rules.policy.shrink_delay for since in entry.lower_since.values())
        timeout = rules.timeouts.get(entry.source)
        if timeout is not None and entry.freshness is Freshness.FRESH:
            yield entry.last.seen_at + effective_timeout(entry, timeout)
