"""One writer at a time: who holds the fleet's lease is told, and a dead holder loses it."""

import time

from reconciler.lease import DURATION, MARGIN, Loss


def test_writing_ends_while_what_was_sent_is_still_on_its_way() -> None:
    """Whoever takes the lease after its duration must not meet a request that was sent just before."""
    now = time.monotonic()
    assert not Loss(now).why()
    assert Loss(now - (DURATION - MARGIN).total_seconds()).why().startswith("the lease is lost")
