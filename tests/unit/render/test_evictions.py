"""Workloads that a drain evicts are named."""

from reconciler.objects import ClusterName, Manifest, ref_of
from reconciler.render.compute import compute_desired
from reconciler.render.model import DesiredObject
from reconciler.render.running import with_evicted
from tests.builders import cluster_document, flavor, fleet_document, live_queue, native, open_queue, spec_of

EAST = ClusterName("east")
BASE = (fleet_document(), cluster_document("hub", "manager"), cluster_document("east", drain="evict"))


def wanted() -> list[DesiredObject]:
    queue = open_queue("q", "cpu", {"cpu": "8"}, clusters={"names": ["east"]})
    return [*compute_desired(spec_of(flavor("cpu"), queue, base=BASE)).of_cluster(EAST)]


def running(name: str, queue: str = "q", **labels: str) -> Manifest:
    made = native("Workload", name, {})
    status = {"admission": {"clusterQueue": queue}}
    return {**made, "metadata": {"name": name, "namespace": "team1", "labels": labels}, "status": status}


def notes(*manifests: Manifest) -> tuple[str, ...]:
    live = {ref_of(EAST, manifest): manifest for manifest in manifests}
    return tuple(note for entry in with_evicted(wanted(), live) for note in entry.notes)


def test_workloads_that_are_evicted_are_named_by_where_they_go() -> None:
    sent = running("c", **{"kueue.x-k8s.io/multikueue-origin": "multikueue"})
    assert notes(live_queue(reserving=1), running("a"), running("b"), running("d", "other"), sent) == (
        "evicts 2 workloads (team1/a, team1/b), which start again when the queue is resumed",
        "evicts 1 workloads (team1/c) of the manager, which start again on other workers",
    )


def test_many_are_counted_and_the_first_named() -> None:
    (note,) = notes(live_queue(reserving=1), *(running(f"w{number:02}") for number in range(12)))
    assert note.startswith("evicts 12 workloads (team1/w00, ") and "team1/w09 and 2 more)" in note


def test_queue_that_evicts_nothing_says_nothing() -> None:
    assert notes(live_queue(), running("a")) == ()
    assert notes(live_queue(policy="HoldAndDrain", reserving=1), running("a")) == ()
