"""What has not been well for a while: Kueue needs a moment to look at what was written, and that is no news."""

import time
from collections.abc import Callable, Iterable
from datetime import timedelta

from reconciler.health import Ailment
from reconciler.objects import Obstacle

STANDS_AFTER = timedelta(seconds=10)

Trouble = Ailment | Obstacle


class Lasting:
    """Since when each trouble is known. What is found by the first look was there before us, and lasts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] | None = None

    def begin(self) -> None:
        self._since = None

    def note(self, troubles: Iterable[Trouble]) -> None:
        """Everything that is not well now; what is not among it has ended."""
        now, known = self._clock(), self._since
        first = now if known is not None else now - STANDS_AFTER.total_seconds()
        self._since = {name: (known or {}).get(name, first) for name in map(_name, troubles)}

    def is_lasting(self, trouble: Trouble) -> bool:
        return self._age((self._since or {}).get(_name(trouble), self._clock())) >= STANDS_AFTER

    def due(self) -> timedelta | None:
        """When the next of them has stood long enough to be told."""
        ages = (self._age(since) for since in (self._since or {}).values())
        return min((STANDS_AFTER - age for age in ages if age < STANDS_AFTER), default=None)

    def _age(self, since: float) -> timedelta:
        return timedelta(seconds=self._clock() - since)


def _name(trouble: Trouble) -> str:
    """Without the reason, which may change while the trouble stays."""
    return str(trouble.ref) if isinstance(trouble, Ailment) else f"{trouble.cluster}: {trouble.check}"
