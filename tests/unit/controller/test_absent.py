"""Which clusters a cycle leaves alone for a while, and for how long."""

import pytest

from reconciler.controller.connections import Pauses
from reconciler.controller.cycle import find_absent
from reconciler.objects import ClusterName, Gap, Ref
from reconciler.plan.make import Comparison
from reconciler.plan.model import Action, ClusterOutcome, Outcome
from reconciler.state.applyset import SetName
from reconciler.state.model import ClusterView

EAST, WEST = ClusterName("east"), ClusterName("west")
QUEUE = Ref(EAST, "kueue.x-k8s.io", "ClusterQueue", "", "q")
WELL = ClusterOutcome(EAST, (Outcome(QUEUE, Action.UPDATE),))


def looks(*, uid: str = "1", problem: str = "") -> Comparison:
    """Two clusters; of the first one, something could not be seen."""
    gaps = (Gap(EAST, "ClusterQueue.kueue.x-k8s.io", problem),) if problem else ()
    set_name = SetName("test", "kueue-system")
    return Comparison([ClusterView(EAST, set_name, uid, gaps=gaps), ClusterView(WEST, set_name, "2")], {})


def test_cluster_that_does_not_answer_is_left_alone() -> None:
    assert find_absent(looks(uid="", problem="refused"), (), 0.0) == {EAST: "refused"}


def test_cluster_that_showed_only_a_part_is_not_left_alone() -> None:
    """What it did not show is a gap, and everything else there is put right."""
    assert find_absent(looks(problem="timed out"), (WELL,), 5.0) == {}


@pytest.mark.parametrize(("writing", "absent"), [(0.1, {}), (5.0, {EAST: "east/ClusterQueue/q: 500"})])
def test_cluster_that_took_no_write_is_left_alone_where_it_was_waited_for(
    writing: float, absent: dict[ClusterName, str]
) -> None:
    failed = ClusterOutcome(EAST, (Outcome(QUEUE, Action.UPDATE, "500"),))
    assert find_absent(looks(), (failed, ClusterOutcome(WEST)), writing) == absent


def test_cluster_whose_writes_only_wait_for_something_is_not_left_alone() -> None:
    waiting = ClusterOutcome(EAST, (Outcome(QUEUE, Action.DELETE, "is drained", is_waiting=True),))
    assert find_absent(looks(), (waiting,), 5.0) == {}
    assert find_absent(looks(), (ClusterOutcome(EAST, problem="its inventory: 500"),), 5.0) == {
        EAST: "its inventory: 500"
    }


def test_pause_grows_until_the_cluster_was_well() -> None:
    pauses = Pauses()
    assert [pauses.next(EAST) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert pauses.next(WEST) == 1
    pauses.end(EAST)
    assert (pauses.next(EAST), pauses.next(WEST)) == (1, 2)
