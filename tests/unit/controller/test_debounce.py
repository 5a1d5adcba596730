"""What is told of what is not well: not what Kueue has just not looked at yet."""

from datetime import timedelta

from reconciler.controller.notices import GRACE_PERIOD, Debouncer
from reconciler.objects import Check, ClusterName, PreflightIssue, Ref
from reconciler.report.health import HealthIssue

HUB = ClusterName("hub")
QUEUE = HealthIssue(Ref(HUB, "kueue.x-k8s.io", "ClusterQueue", "", "q"), "", "not looked at yet")
STOPPED = HealthIssue(QUEUE.ref, "Stopped", "")
OBSTACLE = PreflightIssue(HUB, Check.CONNECTION, "timeout", "let it through")
AFTER = GRACE_PERIOD.total_seconds()


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def begun() -> tuple[Debouncer, Clock]:
    """After a first look that found nothing."""
    clock = Clock()
    persistent = Debouncer(clock)
    persistent.note(())
    return persistent, clock


def test_trouble_lasts_when_it_has_stood_for_a_while() -> None:
    persistent, clock = begun()
    persistent.note((QUEUE, OBSTACLE))
    assert not persistent.is_persistent(QUEUE) and not persistent.is_persistent(OBSTACLE)
    assert persistent.due() == GRACE_PERIOD
    clock.now += AFTER / 2
    persistent.note((STOPPED, OBSTACLE))
    assert not persistent.is_persistent(STOPPED) and persistent.due() == GRACE_PERIOD / 2
    clock.now += AFTER / 2
    persistent.note((STOPPED, OBSTACLE))
    assert persistent.is_persistent(STOPPED) and persistent.is_persistent(OBSTACLE)
    assert persistent.due() is None


def test_trouble_that_ended_begins_anew() -> None:
    persistent, clock = begun()
    persistent.note((QUEUE,))
    clock.now += AFTER
    persistent.note(())
    persistent.note((QUEUE,))
    assert not persistent.is_persistent(QUEUE)


def test_what_the_first_look_finds_lasts() -> None:
    persistent, clock = begun()
    persistent.begin()
    persistent.note((QUEUE,))
    assert persistent.is_persistent(QUEUE)
    clock.now += AFTER
    persistent.note((QUEUE, OBSTACLE))
    assert persistent.is_persistent(QUEUE) and not persistent.is_persistent(OBSTACLE)
    assert persistent.due() == timedelta(seconds=AFTER)
