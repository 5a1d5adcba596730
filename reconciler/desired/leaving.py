"""Workers on their way out: who keeps a seat in a MultiKueueConfig, which queues are held meanwhile, and what for.

Decision: a worker of the spec that cannot be seen keeps its seat, because it comes back; one that left the spec may
never come back, so what the manager itself knows to run there decides. Where the manager's configs were not seen, they
stay as they are, because somebody may sit there whom nobody has asked.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.desired.model import DesiredObject, Leaving
from reconciler.desired.queues import DRAIN
from reconciler.desired.shape import desired_object, kueue_manifest, without_empty
from reconciler.desired.workers import check_name, seated_workers
from reconciler.desired.written import offline_api
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue.structure import largest_count
from reconciler.leavers import Departed, Leavers, Seat
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.spec.choices import Dispatch, StopPolicy
from reconciler.spec.model import Cluster, FleetSpec

_HOLDING = "it leaves the fleet, and takes no new jobs"
# Labels and annotations that no document of the fleet brings.
_FOREIGN_MARKS = ("applyset.kubernetes.io/", "kubectl.kubernetes.io/", "kfleet.dev/")


def firm_seats(spec: FleetSpec) -> Mapping[str, frozenset[str]]:
    """The clusters that each config keeps whatever is seen: those that the spec wants there and does not drain."""
    drained = {cluster.name for cluster in spec.clusters if cluster.is_drained}
    return {config: frozenset(clusters) - drained for config, clusters in _wanted_seats(spec, None)}


def still_here(spec: FleetSpec, leavers: Leavers | None) -> Leavers:
    """Of all that leave, those that cannot go yet: seats to be kept, and clusters to be left as they are."""
    if leavers is None or leavers.problem:
        return leavers or Leavers()
    wanted = dict(_wanted_seats(spec, leavers))
    in_spec = {cluster.name for cluster in spec.clusters}
    leaving = [seat for seat in leavers.seats if seat.cluster not in wanted.get(seat.config, ())]
    stuck = [seat for seat in leaving if not _may_leave(seat, is_in_spec=seat.cluster in in_spec)]
    # A config that the spec wants no more goes as a whole. Until then Kueue asks everybody who sits there, and learns
    # nothing of its jobs where one does not let it in.
    whole = {seat.config for seat in leaving if seat.config not in wanted and (seat in stuck or seat.is_busy)}
    seats = tuple(seat for seat in leaving if seat in stuck or seat.config in whole)
    sitting = {seat.cluster for seat in seats}
    return Leavers(
        seats,
        tuple(
            departed
            for departed in leavers.departed
            if not departed.problem and (departed.cluster.name in sitting or any(map(_reserving, departed.queues)))
        ),
        sitting=leavers.sitting,
    )


def staying_in(config: str, waiting: Leavers) -> tuple[ClusterName, ...]:
    """The clusters that a config keeps although the spec does not want them there."""
    return tuple(seat.cluster for seat in waiting.seats if seat.config == config)


def with_room(config: str, wanted: Sequence[str], waiting: Leavers, manager: Cluster) -> tuple[str, ...]:
    """Those of the wanted whom a config takes beside the ones that cannot leave it yet; who sits there already stays.

    One too many, and Kueue would refuse the config, so that nobody could leave it either.
    """
    staying = staying_in(config, waiting)
    if not staying:
        return tuple(wanted)
    most = largest_count("MultiKueueConfig", "spec.clusters", offline_api(manager).version)
    room = len(wanted) if most is None else max(most - len(staying), 0)
    first = sorted(wanted, key=lambda name: (config, name) not in waiting.sitting)
    taken = frozenset(first[:room])
    return tuple(name for name in wanted if name in taken)


def held_for(waiting: Leavers) -> str:
    """Why a config has to stay as it is; empty where it need not."""
    return f"who sits in the live config was not seen ({waiting.problem})" if waiting.problem else ""


def held_queues(spec: FleetSpec, waiting: Leavers, made: Iterable[DesiredObject]) -> Iterator[DesiredObject]:
    """Queues that the spec does not want any more, as they are and stopped, while something runs behind them."""
    refs = {entry.ref for entry in made}
    for cluster, queue in _queues_behind(spec, waiting):
        entry = desired_object(cluster, _held(queue), spec.fleet.document, _HOLDING)
        if entry.ref not in refs:
            refs.add(entry.ref)
            yield entry


def leaving_of(waiting: Leavers, held: Iterable[DesiredObject], wanted: Iterable[DesiredObject]) -> tuple[Leaving, ...]:
    """What every leaver waits for; `held` are the queues that are kept for it, among the `wanted` there may be more."""
    refs = [entry.ref for entry in held]
    takers = {entry.ref for entry in wanted if _takes_jobs(entry)} if waiting.seats else set()
    departed = {entry.cluster.name: entry for entry in waiting.departed}
    return tuple(
        Leaving(
            name,
            _why([seat for seat in waiting.seats if seat.cluster == name], departed.get(name), takers),
            frozenset(ref.name for ref in refs if ref.cluster == name),
            is_whole=name in departed,
        )
        for name in dict.fromkeys((*(seat.cluster for seat in waiting.seats), *departed))
    )


def _wanted_seats(spec: FleetSpec, leavers: Leavers | None) -> Iterator[tuple[str, Sequence[str]]]:
    for queue in spec.queues:
        if queue.dispatch is Dispatch.MULTIKUEUE:
            yield check_name(queue), [worker.name for worker in seated_workers(spec, queue, leavers)]
    for entry in spec.objects:
        if entry.manifest["kind"] == "MultiKueueConfig":
            clusters = as_list(at(entry.manifest, "spec", "clusters"))
            yield entry.manifest["metadata"]["name"], [as_text(cluster) for cluster in clusters]


def _may_leave(seat: Seat, *, is_in_spec: bool) -> bool:
    return seat.running == 0 and (seat.is_held or (bool(seat.problem) and not is_in_spec))


def _queues_behind(spec: FleetSpec, waiting: Leavers) -> Iterator[tuple[Cluster, Manifest]]:
    for departed in waiting.departed:
        yield from ((departed.cluster, queue) for queue in departed.queues)
    clusters = {cluster.name: cluster for cluster in spec.clusters}
    for seat in waiting.seats:
        if seat.cluster in clusters:
            yield from ((clusters[seat.cluster], queue) for queue in seat.queues)


def _held(queue: Manifest) -> dict[str, Any]:
    metadata = queue["metadata"]
    may_evict = as_map(metadata.get("annotations")).get(DRAIN) == "true"
    is_evicting = may_evict or at(queue, "spec", "stopPolicy") == StopPolicy.HOLD_AND_DRAIN.value
    policy = StopPolicy.HOLD_AND_DRAIN if is_evicting else StopPolicy.HOLD
    manifest = kueue_manifest("ClusterQueue", metadata["name"], {**queue["spec"], "stopPolicy": policy.value})
    marks = {name: _own_marks(as_map(metadata.get(name))) for name in ("labels", "annotations")}
    return {**manifest, "metadata": {**manifest["metadata"], **without_empty(marks)}}


def _own_marks(marks: Manifest) -> dict[str, Any]:
    return {name: value for name, value in marks.items() if name == DRAIN or not name.startswith(_FOREIGN_MARKS)}


def _takes_jobs(entry: DesiredObject) -> bool:
    policy = at(entry.manifest, "spec", "stopPolicy") or StopPolicy.NONE.value
    return entry.ref.kind == "ClusterQueue" and policy == StopPolicy.NONE.value


def _why(seats: Sequence[Seat], departed: Departed | None, takers: Collection[Ref]) -> str:
    configs = ", ".join(seat.config for seat in seats)
    then = f"it leaves {configs} when nothing runs there any more" if seats else "then the fleet's objects there go"
    return f"{_state(seats, departed) or _stopping(seats, takers)}; {then}"


def _state(seats: Sequence[Seat], departed: Departed | None) -> str:
    if any(seat.running is None for seat in seats):
        return "the manager did not say what runs there"
    if running := sum(seat.running or 0 for seat in seats):
        return f"{running} of the manager's workloads still run there"
    if problem := next((seat.problem for seat in seats if seat.problem), ""):
        return f"it cannot be seen, so nobody knows what runs there ({problem})"
    if count := sum(map(_reserving, departed.queues if departed else ())):
        return f"{count} workloads still hold quota there"
    if seats and all(seat.is_held for seat in seats):
        return "nothing runs there, but the manager still has jobs for others that leave with it"
    return ""


def _stopping(seats: Sequence[Seat], takers: Collection[Ref]) -> str:
    """A queue that the spec wants as it is cannot be stopped for a seat that the spec does not want."""
    queues = {(seat.cluster, queue["metadata"]["name"]) for seat in seats for queue in seat.queues}
    open_ones = sorted(ref.name for ref in takers if (ref.cluster, ref.name) in queues)
    if open_ones:
        way_out = "set drain: true on the Cluster, or stopPolicy: Hold"
        return f"its queue {', '.join(open_ones)} is wanted there and takes jobs: {way_out}"
    return "its queues are just being stopped, and the next run goes on"


def _reserving(queue: Manifest) -> int:
    return int(at(queue, "status", "reservingWorkloads") or 0)
