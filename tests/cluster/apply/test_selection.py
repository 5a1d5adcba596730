"""`kfleet apply` of a part of a fleet, without writing, and at a terminal."""

import os
import pty
import subprocess

from tests.builders import flavor, open_queue
from tests.cluster.live_fleet import LiveFleet
from tests.support import kfleet_program, read_until


def test_apply_of_one_cluster_leaves_the_other_for_later(wide_live_fleet: LiveFleet) -> None:
    live = wide_live_fleet
    names = list(live.contexts)
    live.commit(flavor(live.name))
    first, second = names[1], names[2]  # flavors are on the workers
    dry = live.apply("--dry-run", "--cluster", first)
    assert dry.code == 0 and f"{first}\n" in dry.out and f"{second}\n" not in dry.out
    assert not live.finds("resourceflavors", live.name, first), "a dry run wrote"
    assert live.apply("--cluster", first).code == 0
    assert live.finds("resourceflavors", live.name, first)
    assert not live.finds("resourceflavors", live.name, second)
    assert live.plan().actions == {f"{second}/ResourceFlavor/{live.name}": "create"}
    live.converge()


def test_apply_of_one_object_brings_what_it_needs_and_prunes_nothing(live_fleet: LiveFleet) -> None:
    live = live_fleet
    live.commit(flavor(live.name), flavor(f"{live.name}-old"))
    live.converge()
    live.commit(flavor(live.name), flavor(f"{live.name}-new"), open_queue(live.name, f"{live.name}-new"))
    applied = live.apply("--only", f"*/ClusterQueue/{live.name}")
    assert applied.code == 0, applied
    assert live.finds("clusterqueues", live.name) and live.finds("resourceflavors", f"{live.name}-new")
    assert live.finds("resourceflavors", f"{live.name}-old"), "what was not selected was pruned"
    assert live.plan().actions == {f"worker1/ResourceFlavor/{live.name}-old": "delete"}
    live.converge()


def test_apply_asks_at_a_terminal(live_fleet: LiveFleet) -> None:
    live_fleet.commit(flavor(live_fleet.name))
    assert answered(live_fleet, "n") == 3
    assert not live_fleet.finds("resourceflavors", live_fleet.name)
    assert answered(live_fleet, "y") == 0
    assert live_fleet.finds("resourceflavors", live_fleet.name)


def answered(live_fleet: LiveFleet, answer: str) -> int:
    """The exit code of an apply that a person answers."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [kfleet_program(), "apply", "--repo", str(live_fleet.folder)], stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    assert "Apply this plan?" in read_until(ours, "Apply this plan?")
    os.write(ours, f"{answer}\n".encode())
    read_until(ours)
    os.close(ours)
    return process.wait(timeout=120)
