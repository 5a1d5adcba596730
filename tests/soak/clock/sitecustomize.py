"""Another time of day for a Python program: as many seconds ahead as a file says, each time that it asks.

Timers go on as they do: only what the wall clock says is different, as after a jump of the machine's clock.
"""

import datetime as dt
import os
import time
from pathlib import Path
from typing import Self

_file = Path(os.environ["KFLEET_WALK_CLOCK"])
_time = time.time


def _ahead() -> float:
    return float(_file.read_text() or 0)


class _Datetime(dt.datetime):
    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> Self:
        return super().now(tz) + dt.timedelta(seconds=_ahead())


dt.datetime = _Datetime  # type: ignore[misc]
time.time = lambda: _time() + _ahead()
