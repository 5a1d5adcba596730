"""Which part of a plan a twin plays, on which Kueue, and with which Configuration. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.kueue.configuration import ConfigurationError, read_configuration, write_configuration
from reconciler.kueue.kinds import GROUP, KueueVersion, KueueVersionError, parse_version
from reconciler.kueue.reading import as_map, as_text
from reconciler.objects import ClusterName, Manifest
from reconciler.plan.model import Action, Change, ClusterPlan, Plan, Refused
from reconciler.simulate.restore import CHECK, RESTORED, played_check

WRITES = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE})
# Guards that an operator can confirm. A simulation is there to see what is confirmed.
CONFIRMABLE = frozenset({Refused.TOO_MANY, Refused.DISRUPTION})
GATES_FLAG = "--feature-gates="
# What decides about admission and preemption.
TAKEN = ("fairSharing", "admissionFairSharing", "resources")
# What would evict or end workloads that have no pods here.
LEFT_OUT = ("waitForPodsReady", "objectRetentionPolicies")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedChange:
    """The plan of one cluster for its twin. `configuration` is a new Configuration of Kueue, if the plan has one."""

    plan: Plan
    configuration: str = field(default="", repr=False)
    notes: tuple[str, ...] = ()


def touched_clusters(plan: Plan) -> tuple[ClusterName, ...]:
    """The clusters on which a plan changes what decides about admission."""
    return tuple(one.name for one in plan.clusters if any(_is_played(change) for change in one.changes))


def why_refused(plan: Plan, cluster: ClusterName) -> str:
    """Why nothing would be written to a cluster, whatever an operator confirms."""
    kept = _without_confirmable(plan)
    if not kept.is_refused(cluster):
        return ""
    return "; ".join(str(one) for one in kept.refusals if one.ref is None and one.cluster in {None, cluster})


def played_change(plan: Plan, cluster: ClusterName) -> PlayedChange:
    part = next((one for one in plan.clusters if one.name == cluster), None)
    if part is None:
        return PlayedChange(plan=replace(plan, clusters=(), refusals=(), placements=()))
    rollout = next((change.rollout for change in part.changes if change.rollout and _is_written(change)), None)
    changes = tuple(_for_twin(change) for change in part.changes if _is_played(change) and not change.rollout)
    # Objects that the twin does not have are not gone from the fleet, so its inventory is not narrowed.
    played = replace(part, changes=changes, is_complete=False, is_ending=False, digests=part.inventory.digests)
    confirmed = _without_confirmable(plan)
    return PlayedChange(
        plan=replace(confirmed, clusters=(played,), placements=()),
        configuration=rollout.text if rollout else "",
        notes=tuple(_notes(plan, part)),
    )


def _without_confirmable(plan: Plan) -> Plan:
    return replace(plan, refusals=tuple(one for one in plan.refusals if one.reason not in CONFIRMABLE))


def _is_written(change: Change) -> bool:
    return change.action in WRITES or change.action is Action.DELETE


def _is_played(change: Change) -> bool:
    if not _is_written(change):
        return False
    if change.rollout is not None:
        return True
    if change.ref.group == GROUP and change.ref.kind in RESTORED:
        return change.ref.kind != CHECK or change.action is not Action.UPDATE
    return (change.ref.group, change.ref.kind) == ("", "Namespace") and change.action in WRITES


def _for_twin(change: Change) -> Change:
    is_check = change.ref.kind == CHECK and change.manifest is not None and change.action in WRITES
    return change._replace(manifest=played_check(change.manifest or {})) if is_check else change


def _notes(plan: Plan, part: ClusterPlan) -> Iterator[str]:
    yield from (
        f"played as if confirmed: {one}"
        for one in plan.refusals
        if one.reason in CONFIRMABLE and one.cluster == part.name
    )
    left = sorted({change.ref.kind for change in part.changes if _is_written(change) and not _is_played(change)})
    if left:
        yield f"not played, because a twin has nothing that acts on it: {', '.join(left)}"


@dataclass(frozen=True, slots=True)
class Release:
    """`runs` is what is known of the cluster's Kueue, and `played` the release of the twin."""

    runs: str
    played: str

    @property
    def is_exact(self) -> bool:
        return self.runs.removeprefix("v") == self.played


@dataclass(frozen=True, slots=True, kw_only=True)
class KueueSetup:
    """How the Kueue of a cluster was started: the text of its Configuration, and the arguments of its command."""

    release: Release
    configuration: str = ""
    arguments: tuple[str, ...] = ()


def choose_release(observed: str, written: str, available: Iterable[str]) -> Release:
    """The release that runs on the cluster, or the nearest; without an image tag, what the spec says."""
    versions = {parse_version(text): text for text in sorted(available, reverse=True)}
    for text in (observed, written):
        try:
            wanted = parse_version(text)
        except KueueVersionError:
            continue
        return Release(text, versions[min(versions, key=lambda one: _distance(one, wanted))])
    return Release("", versions[max(versions)])


def _distance(one: KueueVersion, other: KueueVersion) -> tuple[int, int, int]:
    return abs(one.major - other.major), abs(one.minor - other.minor), abs(one.patch - other.patch)


def twin_configuration(sandbox: str, live: str) -> str:
    """The Configuration of a sandbox, with what the cluster's own says about admission, in the version of that."""
    own = _read(live)
    taken = {name: value for name, value in own.items() if name in (*TAKEN, "apiVersion")}
    return write_configuration({**read_configuration(sandbox), **taken}) if taken else sandbox


def twin_gates(sandbox: str, setup: KueueSetup) -> str:
    """The flag of the feature gates. Kueue takes them from its command or its Configuration; a sandbox uses the flag.

    Another release may not know a gate, and would not start with it.
    """
    if not setup.release.is_exact:
        return sandbox
    gates = dict(_written_gates(sandbox))
    written = {
        name: str(value).lower() for name, value in as_map(_read(setup.configuration).get("featureGates")).items()
    }
    flags = dict(gate for argument in setup.arguments for gate in _written_gates(argument))
    return GATES_FLAG + ",".join(f"{name}={value}" for name, value in {**written, **flags, **gates}.items())


def setup_notes(setup: KueueSetup) -> Iterator[str]:
    """What the twin has not in common with the cluster."""
    if not setup.release.is_exact:
        runs = (
            f"Kueue {setup.release.runs} runs there" if setup.release.runs else "the release of its Kueue is not known"
        )
        yield f"{runs}; played with {setup.release.played}, the nearest that a sandbox has, without its feature gates"
    if not setup.configuration:
        yield "Kueue's Configuration could not be read; played with its defaults"
    left_out = [name for name in LEFT_OUT if _read(setup.configuration).get(name)]
    if left_out:
        yield f"not played of Kueue's Configuration: {', '.join(left_out)}"


def _written_gates(argument: str) -> Iterator[tuple[str, str]]:
    if argument.startswith(GATES_FLAG):
        for gate in filter(None, argument.removeprefix(GATES_FLAG).split(",")):
            name, _, value = gate.partition("=")
            yield name.strip(), value.strip()


def _read(text: str) -> Manifest:
    try:
        content: Any = read_configuration(text) if text else {}
    except ConfigurationError:
        return {}
    found: Mapping[str, Any] = as_map(content)
    return found if as_text(found.get("kind")) else {}
