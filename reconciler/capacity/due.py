"""When the ledger changes by itself."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from reconciler.capacity.ledger import Rules, effective_timeout, patience
from reconciler.capacity.model import Ledger
from reconciler.observed import Freshness

# A moment later than the time itself, so that it is surely over.
_AFTER = timedelta(milliseconds=50)


def next_due(ledger: Ledger, rules: Rules, now: datetime) -> timedelta | None:
    """How long until some source falls silent, or has been smaller for long enough."""
    return min((when - now + _AFTER for when in _moments(ledger, rules, now)), default=None)


def _moments(ledger: Ledger, rules: Rules, now: datetime) -> Iterator[datetime]:
    for entry in ledger.entries:
        yield from (max(since + rules.policy.shrink_delay, now) for since in entry.lower_since.values())
        timeout = rules.timeouts.get(entry.source)
        if timeout is not None and entry.freshness is Freshness.FRESH:
            silent_at = entry.last.seen_at + effective_timeout(entry.last, timeout)
            # Its time is over and it still counts: somebody has to listen for a while before its silence does.
            yield silent_at if silent_at > now else now + patience(entry.last.period)
