"""Reasons to look at the fleet again, gathered from many threads."""

import threading
from datetime import timedelta

# Long enough for a burst to become one look, short enough that nobody notices.
BURST = timedelta(milliseconds=10)
MOST_REASONS = 20


class Wakeups:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._reasons: dict[str, None] = {}
        self._is_asked = False

    def wake(self, reason: str) -> None:
        with self._changed:
            if len(self._reasons) < MOST_REASONS:
                self._reasons[reason] = None
            self._is_asked = True
            self._changed.notify_all()

    def wait(self, longest: timedelta) -> tuple[str, ...]:
        """The reasons since the last call; none where only the time is over."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_asked, longest.total_seconds()):
                return ()
            self._changed.wait(BURST.total_seconds())
            reasons = tuple(self._reasons)
            self._reasons.clear()
            self._is_asked = False
            return reasons
