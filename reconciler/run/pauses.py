"""How long a cluster is left alone: twice as long each time, until it was well."""

from reconciler.objects import ClusterName

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0


class Pauses:
    def __init__(self) -> None:
        self._last: dict[ClusterName, float] = {}

    def next(self, name: ClusterName) -> float:
        """Seconds until it is asked again."""
        last = self._last.get(name, FIRST_PAUSE / 2)
        self._last[name] = min(2 * last, LONGEST_PAUSE)
        return self._last[name]

    def end(self, name: ClusterName) -> None:
        self._last.pop(name, None)
