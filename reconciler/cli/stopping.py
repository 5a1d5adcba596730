"""SIGTERM and SIGINT for the commands that run until they are stopped."""

import queue
import signal
import threading
from types import FrameType


def stop_on_signals() -> threading.Event:
    """Return an event that SIGTERM and SIGINT set.

    A thread sets it. A signal handler that did it would wait for ever for the event's lock where a second signal
    interrupts it, or where the first one interrupts the main thread in a call of the same event.
    """
    stop = threading.Event()
    received: queue.SimpleQueue[int] = queue.SimpleQueue()

    def receive(number: int, _frame: FrameType | None) -> None:
        received.put(number)

    def wait() -> None:
        received.get()
        stop.set()

    threading.Thread(target=wait, daemon=True).start()
    signal.signal(signal.SIGTERM, receive)
    signal.signal(signal.SIGINT, receive)
    return stop
