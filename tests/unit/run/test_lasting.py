"""What is told of what is not well: not what Kueue has just not looked at yet."""

from datetime import timedelta

from reconciler.health import Ailment
from reconciler.objects import Check, ClusterName, Obstacle, Ref
from reconciler.run.lasting import STANDS_AFTER, Lasting

HUB = ClusterName("hub")
QUEUE = Ailment(Ref(HUB, "kueue.x-k8s.io", "ClusterQueue", "", "q"), "", "not looked at yet")
STOPPED = Ailment(QUEUE.ref, "Stopped", "")
OBSTACLE = Obstacle(HUB, Check.CONNECTION, "timeout", "let it through")
AFTER = STANDS_AFTER.total_seconds()


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def begun() -> tuple[Lasting, Clock]:
    """After a first look that found nothing."""
    clock = Clock()
    lasting = Lasting(clock)
    lasting.note(())
    return lasting, clock


def test_trouble_lasts_when_it_has_stood_for_a_while() -> None:
    lasting, clock = begun()
    lasting.note((QUEUE, OBSTACLE))
    assert not lasting.is_lasting(QUEUE) and not lasting.is_lasting(OBSTACLE)
    assert lasting.due() == STANDS_AFTER
    clock.now += AFTER / 2
    lasting.note((STOPPED, OBSTACLE))
    assert not lasting.is_lasting(STOPPED) and lasting.due() == STANDS_AFTER / 2
    clock.now += AFTER / 2
    lasting.note((STOPPED, OBSTACLE))
    assert lasting.is_lasting(STOPPED) and lasting.is_lasting(OBSTACLE)
    assert lasting.due() is None


def test_trouble_that_ended_begins_anew() -> None:
    lasting, clock = begun()
    lasting.note((QUEUE,))
    clock.now += AFTER
    lasting.note(())
    lasting.note((QUEUE,))
    assert not lasting.is_lasting(QUEUE)


def test_what_the_first_look_finds_lasts() -> None:
    lasting, clock = begun()
    lasting.begin()
    lasting.note((QUEUE,))
    assert lasting.is_lasting(QUEUE)
    clock.now += AFTER
    lasting.note((QUEUE, OBSTACLE))
    assert lasting.is_lasting(QUEUE) and not lasting.is_lasting(OBSTACLE)
    assert lasting.due() == timedelta(seconds=AFTER)
