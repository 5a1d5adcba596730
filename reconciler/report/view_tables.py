"""The tables of `kfleet get`. What was not observed is `?`; what does not exist is `-`."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from reconciler.quantity import ZERO, Quantity, total
from reconciler.report.tables import NOTHING, UNKNOWN, Cell, Table, age_text, amount_text
from reconciler.snapshot.model import Amounts
from reconciler.view.model import (
    ClusterEntry,
    CohortEntry,
    FleetView,
    JobEntry,
    JobState,
    JoinedQueue,
    PoolEntry,
    PoolState,
    QueueEntry,
    QueueResource,
    QuotaShare,
    TenantEntry,
)

ALL_CLUSTERS = "all"
FULL = 0.8
JOB_STYLES = {
    JobState.RUNNING: "green",
    JobState.ADMITTED: "green",
    JobState.RESERVED: "cyan",
    JobState.PENDING: "yellow",
    JobState.EVICTED: "magenta",
    JobState.FAILED: "red",
    JobState.INACTIVE: "red",
    JobState.UNKNOWN: "red",
}
# What other columns say already: that a job waits, and at which place. That waiting does not help, none says.
IN_OTHER_COLUMNS = re.compile(r"^(?:(?:waits|unknown): |(never: ))(?:place \d+ of queue \S+ on \S+; )?")
# The columns of these resources come first, the others by name.
FIRST = ("cpu", "memory")


def clusters_table(view: FleetView, *, is_wide: bool = False) -> Table:
    columns = ("NAME", "ROLE", "STATE", "KUBERNETES", "KUEUE", "SYNC", "DRIFT", "UNHEALTHY")
    rows = ((*_cluster(one), *(_cluster_more(one) if is_wide else ())) for one in view.clusters)
    more = ("DRAIN", "FIRST PROBLEM") if is_wide else ()
    return Table((*columns, *more), tuple(rows), optional=("KUBERNETES", "ROLE"))


def _cluster(entry: ClusterEntry) -> tuple[Cell, ...]:
    state = "unreachable" if not entry.is_reachable else "incomplete" if entry.gaps else "ok"
    sync = UNKNOWN if entry.changes is None else "in sync" if entry.is_in_sync else f"{entry.changes} changes"
    return (
        Cell(entry.name, "bold"),
        Cell(entry.role),
        Cell(state, "green" if state == "ok" else "red"),
        Cell(entry.kubernetes or UNKNOWN),
        Cell(entry.kueue or UNKNOWN),
        Cell(sync, "" if entry.is_in_sync else "yellow"),
        _count(entry.drift),
        _count(None if entry.unhealthy is None else len(entry.unhealthy), "red"),
    )


def _cluster_more(entry: ClusterEntry) -> tuple[Cell, ...]:
    gaps = (f"{gap.what}: {gap.why}" for gap in entry.gaps)
    problems = (*gaps, *(entry.unhealthy or ()))
    return Cell(entry.drain or UNKNOWN), Cell(problems[0] if problems else NOTHING)


def _count(number: int | None, style: str = "yellow") -> Cell:
    return Cell(UNKNOWN if number is None else str(number), style if number else "")


def queues_table(view: FleetView, *, is_wide: bool = False) -> Table:
    """A row per queue and cluster, after the sum over all clusters; wide, a row per flavor and resource."""
    if is_wide:
        return Table(WIDE_QUEUE, tuple(row for entry in _by_name(view.queues) for row in _wide_queue(entry)))
    names = resource_names(one.resource for entry in view.queues for one in entry.resources or ())
    joined = {one.name: one for one in view.joined if len(one.clusters) > 1}
    rows: list[tuple[Cell, ...]] = []
    before = ""
    for entry in _by_name(view.queues):
        if entry.name != before and entry.name in joined:
            rows.append(_joined_row(joined[entry.name], names))
        rows.append(_queue_row(entry, names))
        before = entry.name
    columns = ("NAME", "CLUSTER", "COHORT", "STATE", "PENDING", "RUNNING", *(column_of(name) for name in names))
    return Table(columns, tuple(rows), optional=("COHORT",))


def _by_name(queues: Iterable[QueueEntry]) -> list[QueueEntry]:
    """Sorting is stable: the clusters of a queue stay in the order of the fleet, and so does an order of the user."""
    first: dict[str, int] = {}
    listed = list(queues)
    for number, entry in enumerate(listed):
        first.setdefault(entry.name, number)
    return sorted(listed, key=lambda entry: first[entry.name])


def resource_names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names), key=lambda name: (name not in FIRST, name)))


def column_of(resource: str) -> str:
    return resource.rpartition("/")[2].upper()


def _queue_row(entry: QueueEntry, names: Iterable[str]) -> tuple[Cell, ...]:
    return (
        Cell(entry.name, "bold"),
        Cell(entry.cluster),
        Cell(entry.cohort or NOTHING),
        _queue_state(entry),
        _count(entry.pending),
        Cell(UNKNOWN if entry.admitted is None else str(entry.admitted)),
        *(_usage(name, entry.resources) for name in names),
    )


def _queue_state(entry: QueueEntry) -> Cell:
    if entry.stopped:
        return Cell("stopped", "magenta")
    if entry.is_active is None:
        return Cell(UNKNOWN)
    return Cell("active", "green") if entry.is_active else Cell("inactive", "red")


def _usage(name: str, resources: tuple[QueueResource, ...] | None) -> Cell:
    """`40/32 +8`: 40 are in use of 32, 8 are borrowed; `2/16 -6`: 6 are lent. Summed over the flavors."""
    if resources is None:
        return Cell(UNKNOWN)
    own = [one for one in resources if one.resource == name]
    if not own:
        return Cell(NOTHING)
    used, nominal = _sum(one.used for one in own), total(one.nominal for one in own)
    borrowed, lent = _sum(one.borrowed for one in own), _sum(one.lent for one in own)
    text = f"{amount_text(name, used)}/{amount_text(name, nominal)}"
    text += f" +{amount_text(name, borrowed)}" if borrowed and borrowed > ZERO else ""
    text += f" -{amount_text(name, lent)}" if lent and lent > ZERO else ""
    return _bar_cell(text, used, nominal)


def _bar_cell(text: str, used: Quantity | None, nominal: Quantity | None) -> Cell:
    if used is None or nominal is None:
        return Cell(text)
    part = used.nanos / nominal.nanos if nominal.nanos else float(used > ZERO)
    return Cell(text, "red" if part > 1 else "yellow" if part >= FULL else "", part)


def _sum(amounts: Iterable[Quantity | None]) -> Quantity | None:
    found = list(amounts)
    known = [amount for amount in found if amount is not None]
    return total(known) if len(known) == len(found) else None


def _joined_row(joined: JoinedQueue, names: Iterable[str]) -> tuple[Cell, ...]:
    by_name = {one.resource: one for one in joined.resources}
    cells = [
        _bar_cell(
            f"{amount_text(name, by_name[name].used)}/{amount_text(name, by_name[name].nominal)}",
            by_name[name].used,
            by_name[name].nominal,
        )
        if name in by_name
        else Cell(NOTHING)
        for name in names
    ]
    running = Cell(UNKNOWN if joined.running is None else str(joined.running))
    return (
        Cell(joined.name, "bold"),
        Cell(ALL_CLUSTERS),
        Cell(NOTHING),
        Cell(NOTHING),
        _count(joined.pending),
        running,
        *cells,
    )


WIDE_QUEUE = (
    "NAME", "CLUSTER", "COHORT", "STATE", "DISPATCH", "PENDING", "RESERVING", "RUNNING", "FLAVOR", "RESOURCE",
    "NOMINAL", "USED", "RESERVED", "BORROWED", "LENT", "NODES", "TENANTS",
)  # fmt: skip


def _wide_queue(entry: QueueEntry) -> Iterator[tuple[Cell, ...]]:
    head = (
        Cell(entry.name, "bold"),
        Cell(entry.cluster),
        Cell("/".join(entry.cohort_path) or NOTHING),
        _queue_state(entry),
        Cell(entry.dispatch),
        *(_count(number) for number in (entry.pending, entry.reserving, entry.admitted)),
    )
    tenants = Cell(",".join(entry.tenants) or NOTHING)
    if not entry.resources:
        blank = UNKNOWN if entry.resources is None else NOTHING
        yield (*head, *(Cell(blank) for _ in range(8)), tenants)
    for one in entry.resources or ():
        yield (*head, *_wide_resource(one), tenants)


def _wide_resource(one: QueueResource) -> Iterator[Cell]:
    yield Cell(one.flavor)
    yield Cell(one.resource)
    yield Cell(amount_text(one.resource, one.nominal))
    yield _bar_cell(amount_text(one.resource, one.used), one.used, one.nominal)
    yield Cell(amount_text(one.resource, one.reserved))
    yield Cell(_shares(one.resource, one.borrowed, one.borrowed_from, "from"))
    yield Cell(_shares(one.resource, one.lent, one.lent_to, "to"))
    yield Cell(UNKNOWN if one.backing.nodes is None else str(one.backing.nodes))


def _shares(resource: str, amount: Quantity | None, shares: tuple[QuotaShare, ...] | None, word: str) -> str:
    """`8 from research 6, cohort company 2`."""
    parts = (f"{one.queue or f'cohort {one.cohort}'} {amount_text(resource, one.amount)}" for one in shares or ())
    others = ", ".join(parts)
    return f"{amount_text(resource, amount)} {word} {others}" if others else amount_text(resource, amount)


def cohorts_table(view: FleetView, *, is_wide: bool = False) -> Table:
    names = resource_names(one.resource for entry in view.cohorts for one in entry.resources)
    columns = ("NAME", "CLUSTER", "PARENT", "QUEUES", *(column_of(name) for name in names))
    return Table(columns, tuple(_cohort(entry, names, is_wide=is_wide) for entry in view.cohorts))


def _cohort(entry: CohortEntry, names: Iterable[str], *, is_wide: bool) -> tuple[Cell, ...]:
    queues = ",".join(entry.queues) if is_wide else str(len(entry.queues))
    cells = []
    for name in names:
        own = [one for one in entry.resources if one.resource == name]
        used, nominal = _sum(one.used for one in own), total(one.nominal for one in own)
        text = f"{amount_text(name, used)}/{amount_text(name, nominal)}"
        cells.append(_bar_cell(text, used, nominal) if own else Cell(NOTHING))
    return Cell(entry.name, "bold"), Cell(entry.cluster), Cell(entry.parent or NOTHING), Cell(queues or NOTHING), *cells


def jobs_table(view: FleetView, *, is_wide: bool = False) -> Table:
    columns = ("NAMESPACE", "NAME", "KIND", "QUEUE", "STATE", "POS", "RUNS ON", "AGE")
    more = ("CLUSTER", "TENANT", "OWNER", "PRIORITY", "REQUESTED", "COPIES") if is_wide else ()
    rows = tuple(_job(one, view.taken_at, is_wide=is_wide) for one in view.jobs)
    return Table((*columns, *more, "REASON"), rows, optional=("KIND", "AGE"))


def _job(entry: JobEntry, now: datetime, *, is_wide: bool) -> tuple[Cell, ...]:
    return (
        Cell(entry.namespace),
        Cell(entry.name, "bold"),
        Cell(entry.kind),
        Cell(entry.cluster_queue or entry.queue or NOTHING),
        Cell(entry.state, JOB_STYLES.get(entry.state, "")),
        Cell(str(entry.position or NOTHING)),
        Cell(UNKNOWN if entry.runs_on is None else entry.runs_on or NOTHING),
        Cell(UNKNOWN if entry.created is None else age_text(now - entry.created)),
        *(_job_more(entry) if is_wide else ()),
        Cell(_why(entry) or NOTHING),
    )


def _why(entry: JobEntry) -> str:
    return entry.reason if entry.state.is_started else IN_OTHER_COLUMNS.sub(r"\1", entry.why) or entry.reason


def _job_more(entry: JobEntry) -> Iterator[Cell]:
    yield Cell(entry.cluster)
    yield Cell(entry.tenant or NOTHING)
    yield Cell(entry.owner or NOTHING)
    yield Cell(NOTHING if entry.priority is None else str(entry.priority))
    yield Cell(amounts_text(entry.requested))
    copies = None if entry.copies is None else ", ".join(f"{one.cluster} {one.state}" for one in entry.copies)
    yield Cell(UNKNOWN if copies is None else copies or NOTHING)


def amounts_text(amounts: Amounts | None) -> str:
    if amounts is None:
        return UNKNOWN
    names = resource_names(amounts)
    return ", ".join(f"{name.rpartition('/')[2]} {amount_text(name, amounts[name])}" for name in names) or NOTHING


def pools_table(view: FleetView, *, is_wide: bool = False) -> Table:
    columns = ("NAME", "SOURCE", "FLAVOR", "STATE", "AGE", "COUNTED", "BECOMES")
    return Table(columns, tuple(_pool(one, is_wide=is_wide) for one in view.pools or ()))


def _pool(entry: PoolEntry, *, is_wide: bool) -> tuple[Cell, ...]:
    return (
        Cell(entry.name, "bold"),
        Cell(entry.source),
        Cell(entry.flavor or NOTHING),
        Cell(UNKNOWN if entry.state is PoolState.UNKNOWN else entry.state, _pool_style(entry.state)),
        Cell(UNKNOWN if entry.age is None else age_text(timedelta(seconds=entry.age))),
        Cell(amounts_text(entry.counted)),
        Cell(UNKNOWN if entry.becomes is None else _first_of(entry.becomes, is_wide=is_wide) or NOTHING),
    )


def _first_of(quotas: tuple[str, ...], *, is_wide: bool) -> str:
    if is_wide or len(quotas) < 2:
        return "; ".join(quotas)
    return f"{quotas[0]} and {len(quotas) - 1} more"


def _pool_style(state: PoolState) -> str:
    return "green" if state is PoolState.FRESH else "red"


def tenants_table(view: FleetView, *, is_wide: bool = False) -> Table:
    columns = ("NAME", "NAMESPACES", "QUEUE", "PENDING", "RUNNING", "USED")
    return Table(columns, tuple(_tenant(one, is_wide=is_wide) for one in view.tenants))


def _tenant(entry: TenantEntry, *, is_wide: bool) -> tuple[Cell, ...]:
    first, *others = entry.namespaces or ("",)
    few = f"{first} and {len(others)} more" if others else first
    return (
        Cell(entry.name, "bold"),
        Cell((",".join(entry.namespaces) if is_wide else few) or NOTHING),
        Cell(",".join(entry.queues) or NOTHING),
        _count(entry.pending),
        Cell(UNKNOWN if entry.running is None else str(entry.running)),
        Cell(amounts_text(entry.used)),
    )


MakeTable = Callable[..., Table]
TABLES: Mapping[str, MakeTable] = {
    "clusters": clusters_table,
    "queues": queues_table,
    "cohorts": cohorts_table,
    "jobs": jobs_table,
    "pools": pools_table,
    "tenants": tenants_table,
}
