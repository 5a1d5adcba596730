"""A cluster before and after a plan: its queues, cohorts, flavors and namespaces, with the current usage."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.admission.state import AdmissionFacts, ClusterState, admission_settings, build_state
from reconciler.effects.model import WRITES
from reconciler.effects.woken import Address, woken_queues
from reconciler.kueue.configuration import ConfigurationError, assumed_settings, read_configuration, read_settings
from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import GROUP, first_version
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.plan.model import Action, Change
from reconciler.scheduling.build import read_scheduler_settings
from reconciler.scheduling.model import SchedulerSettings
from reconciler.snapshot.model import ClusterObjects

WORKLOAD = "Workload"
PRIORITY_CLASS = "WorkloadPriorityClass"
# Without these an effect on a cluster cannot be computed.
NEEDED = (
    ("", "Namespace"),
    *((GROUP, kind) for kind in ("ClusterQueue", "LocalQueue", "Cohort", "ResourceFlavor", "AdmissionCheck", WORKLOAD)),
)
# What of Kueue's Configuration decides about admission.
DECIDING = ("fairSharing", "admissionFairSharing", "resources", "featureGates")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedCluster:
    """`drained` are the queues whose workloads the plan evicts before it deletes them.

    In the queues that are `woken`, Kueue tries again what it has tried in vain before the plan. `reconfigured` are the
    settings of its Configuration that change, and `priorities` the values of priority classes that the plan writes.
    """

    name: ClusterName
    before: ClusterState
    after: ClusterState
    workloads: tuple[Manifest, ...] = field(repr=False)
    drained: frozenset[str] = frozenset()
    woken: frozenset[str] = frozenset()
    configuration: str = ""
    reconfigured: tuple[str, ...] = ()
    priorities: Mapping[str, int] = field(default_factory=dict)
    settings: SchedulerSettings = field(default_factory=SchedulerSettings)


def read_change(
    objects: ClusterObjects,
    changes: Iterable[Change],
    earlier: Iterable[Change] = (),
    removed: Iterable[Ref] = (),
) -> ChangedCluster:
    """`earlier` are changes that count as done: those that would be made anyway. `removed` are objects that go too."""
    listed, done = tuple(changes), tuple(earlier)
    live = dict(_live(objects))
    before, after = _changed(live, done), _changed(live, listed)
    for ref in removed:
        after.pop((ref.kind, ref.namespace, ref.name), None)
    facts = _facts(objects)
    state = build_state(objects.name, after.values(), facts)
    return ChangedCluster(
        name=objects.name,
        before=build_state(objects.name, before.values(), facts),
        after=state,
        workloads=objects.of(GROUP, WORKLOAD),
        configuration=objects.configuration,
        reconfigured=tuple(_reconfigured(objects.configuration, listed)),
        priorities=dict(_priorities(listed)),
        settings=read_scheduler_settings(objects.configuration, facts.version),
        drained=_drained(listed) - _drained(done),
        woken=woken_queues(before, after, state),
    )


def _reconfigured(before: str, changes: Iterable[Change]) -> Iterator[str]:
    for change in changes:
        if change.rollout:
            old, new = _content(before), _content(change.rollout.text)
            yield from (name for name in DECIDING if old.get(name) != new.get(name))


def _priorities(changes: Iterable[Change]) -> Iterator[tuple[str, int]]:
    for change in changes:
        value = at(change.manifest, "value")
        if change.ref.kind == PRIORITY_CLASS and change.action in WRITES and isinstance(value, int):
            yield change.ref.name, value


def _content(configuration: str) -> Mapping[str, object]:
    try:
        return read_configuration(configuration) if configuration else {}
    except ConfigurationError:
        return {}


def _drained(changes: Iterable[Change]) -> frozenset[str]:
    return frozenset(one.ref.name for one in changes if one.is_drained and one.ref.kind == "ClusterQueue")


def _live(objects: ClusterObjects) -> Iterator[tuple[Address, Manifest]]:
    for (group, kind), found in objects.objects.items():
        if (group == GROUP and kind != WORKLOAD) or (group, kind) == ("", "Namespace"):
            for one in found:
                yield _address(one), _with_status(to_canonical(one).manifest, one)


def _changed(before: Mapping[Address, Manifest], changes: Iterable[Change]) -> dict[Address, Manifest]:
    after = dict(before)
    for change in changes:
        address = (change.ref.kind, change.ref.namespace, change.ref.name)
        if change.ref.group not in {GROUP, ""} or change.manifest is None:
            continue
        if change.action is Action.DELETE:
            after.pop(address, None)
        elif change.action in WRITES:
            after[address] = _written(change.manifest, before.get(address, {}))
    return after


def _written(manifest: Manifest, live: Manifest) -> Manifest:
    """A namespace keeps labels that git does not mention, and a queue its status."""
    written = _with_status(to_canonical(manifest).manifest, live)
    if manifest.get("kind") != "Namespace":
        return written
    labels = {**as_map(at(live, "metadata", "labels")), **as_map(at(manifest, "metadata", "labels"))}
    labels["kubernetes.io/metadata.name"] = as_text(at(manifest, "metadata", "name"))
    return {**written, "metadata": {**as_map(written["metadata"]), "labels": labels}}


def _with_status(manifest: Manifest, live: Manifest) -> Manifest:
    return {**manifest, "status": live.get("status") or {}}


def _address(manifest: Manifest) -> Address:
    metadata = manifest["metadata"]
    return str(manifest["kind"]), as_text(metadata.get("namespace")), as_text(metadata.get("name"))


def _facts(objects: ClusterObjects) -> AdmissionFacts:
    """The Configuration of the running Kueue, or its defaults if it could not be read."""
    try:
        content, settings = read_configuration(objects.configuration), read_settings(objects.configuration)
    except ConfigurationError:
        content, settings = {}, assumed_settings({})
    return AdmissionFacts(
        admission_settings(settings, content, objects.namespace), first_version(objects.kueue), is_live=True
    )


def owner_of(workload: Manifest) -> tuple[str, str]:
    """The kind and name of the job; a Workload without one stands for itself."""
    owners = map(as_map, as_list(at(workload, "metadata", "ownerReferences")))
    owner = next((one for one in owners if one.get("controller")), None)
    if owner is None:
        return WORKLOAD, as_text(at(workload, "metadata", "name"))
    return as_text(owner.get("kind")), as_text(owner.get("name"))
