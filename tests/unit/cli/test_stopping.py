"""`kfleet run` and `kfleet ui` end on a signal, however many come and whenever."""

import subprocess
import sys

import pytest

# The lock of the event is what a call of it holds: it stands for any call that a signal interrupts.
_INTERRUPTED = """
import signal
from reconciler.cli.output import stop_on_signals

stop = stop_on_signals()
assert not stop.is_set()
with stop._cond:
    signal.raise_signal(signal.{first})
    signal.raise_signal(signal.{second})
stop.wait()
print("stopped")
"""


@pytest.mark.parametrize(("first", "second"), [("SIGTERM", "SIGTERM"), ("SIGINT", "SIGTERM"), ("SIGINT", "SIGINT")])
def test_signals_that_interrupt_a_call_of_the_event_stop_a_command(first: str, second: str) -> None:
    code = _INTERRUPTED.format(first=first, second=second)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "stopped\n", "")
