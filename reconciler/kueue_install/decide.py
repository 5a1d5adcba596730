"""Decides the order of clusters, what happens to the Kueue of each, and refuses what would break it.

Decision: workers before their manager. A manager creates Workloads on its workers in the newest API version that it
knows, with all fields that it knows. A worker that is newer than the manager serves that version for several releases;
an older one refuses it, or drops fields silently.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.errors import KfleetError
from reconciler.kueue.configuration import ConfigurationError, read_configuration, refused_gates
from reconciler.kueue.kinds import V1BETA2_SINCE, KueueVersion
from reconciler.kueue.reading import as_map, at
from reconciler.kueue_install.model import (
    BROKEN_REMEDY,
    DEPLOYED,
    NEEDS_RESOURCE_SLICES,
    PENDING_FOR,
    REWRITE,
    WITHOUT_V1BETA1,
    InstallAction,
    InstallCommand,
    InstallRefusal,
    InstallStep,
    Permissions,
    SeenKueue,
    WantedKueue,
    broken_text,
    exact,
    start_problems,
    stored_text,
    versions_that_go,
)
from reconciler.objects import ClusterName
from reconciler.spec.enums import Role
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.text import suggest

_SLICES = "resource.k8s.io/v1/ResourceSlice"
_SLICES_GATE = "KueueDRAIntegrationPartitionableDevices"
# Since this release a Configuration without the block has it, with a timeout of 30 minutes.
_WAITS_FOR_PODS = KueueVersion(0, 19)


def make_step(
    cluster: Cluster,
    seen: SeenKueue,
    target: WantedKueue,
    mode: InstallCommand,
    allowed: Permissions,
    *,
    is_named: bool,
) -> InstallStep:
    """Decide one cluster. One that was not named, and that the other command is for, is skipped."""
    action = _action(seen, target)
    step = InstallStep(
        cluster=cluster.name,
        role=cluster.role,
        namespace=cluster.kueue.namespace,
        action=action,
        running=exact(seen.version) if seen.is_there else "",
        wanted=target.chart,
        release=seen.release_name,
        record=seen.record,
        takes_ownership=allowed.take_ownership,
    )
    other = _for_other_command(cluster, action, seen, mode)
    if other and not is_named:
        return replace(step, action=InstallAction.SKIP, notes=(f"{other.problem}: {other.remedy}",))
    if action is InstallAction.CHECK:
        return step
    refusals = (*((other,) if other else ()), *_refusals(cluster, seen, target, action, allowed))
    return replace(step, refusals=refusals, notes=tuple(_notes(seen, target, action)))


def _action(seen: SeenKueue, target: WantedKueue) -> InstallAction:
    record, running = seen.record, seen.version
    if record is None and not seen.is_there:
        return InstallAction.INSTALL
    if running is not None and running > target.version:
        return InstallAction.DOWNGRADE
    if record is None:
        return InstallAction.TAKE if running == target.version else InstallAction.UPGRADE
    if record.chart == target.chart and (record.status != DEPLOYED or not seen.is_there):
        return InstallAction.REPEAT
    if running != target.version or not seen.is_there:
        return InstallAction.UPGRADE
    is_same = record.chart == target.chart and record.values == target.values
    return InstallAction.CHECK if is_same else InstallAction.VALUES


def _for_other_command(
    cluster: Cluster, action: InstallAction, seen: SeenKueue, mode: InstallCommand
) -> InstallRefusal | None:
    if mode is InstallCommand.UPGRADE and action is InstallAction.INSTALL:
        return InstallRefusal("Kueue is not installed there", f"kfleet kueue install {cluster.name}")
    if mode is InstallCommand.INSTALL and action in {
        InstallAction.UPGRADE,
        InstallAction.DOWNGRADE,
        InstallAction.VALUES,
    }:
        return InstallRefusal(
            f"Kueue {exact(seen.version) or 'of an unknown release'} is installed there already",
            f"kfleet kueue upgrade {cluster.name}",
        )
    return None


def _refusals(
    cluster: Cluster, seen: SeenKueue, target: WantedKueue, action: InstallAction, allowed: Permissions
) -> Iterator[InstallRefusal]:
    if cluster.suspend:
        yield InstallRefusal("the cluster is suspended: spec.suspend is true", "end that in git first")
    if seen.unread:
        yield InstallRefusal(
            f"the records of Helm cannot be read: {seen.unread}", "use an account with the rights of an administrator"
        )
        return
    if seen.tracker:
        yield InstallRefusal(
            f"{seen.tracker} manages Kueue's Deployment and would revert it", "change the release there"
        )
    yield from _refuse_direction(seen, target, action, allowed)
    yield from _refuse_owner(seen, allowed)
    yield from _refuse_pending(seen, allowed)
    yield from _refuse_definitions(seen, target)
    yield from _refuse_start(seen, target)


def _refuse_direction(
    seen: SeenKueue, target: WantedKueue, action: InstallAction, allowed: Permissions
) -> Iterator[InstallRefusal]:
    if text := broken_text(target.version):
        yield InstallRefusal(text, BROKEN_REMEDY)
    if allowed.downgrade:
        return
    if action is InstallAction.DOWNGRADE:
        yield InstallRefusal(
            f"Kueue {exact(seen.version)} is newer than the {target.chart} of git",
            "change git, or allow it with --allow-downgrade",
        )
    elif seen.is_there and seen.version is None:
        yield InstallRefusal(
            "the release that runs is unknown, because neither its image nor its labels name one",
            "if it is not newer than git, allow it with --allow-downgrade",
        )


def _refuse_owner(seen: SeenKueue, allowed: Permissions) -> Iterator[InstallRefusal]:
    ours = f"{seen.namespace}/{seen.release_name}"
    owners = {one.owner for one in seen.definitions.values()} | ({seen.owner} if seen.is_there else set())
    foreign = sorted(owners - {"", ours})
    if foreign:
        yield InstallRefusal(
            f"the Helm release {', '.join(foreign)} has objects of Kueue, and not {ours}",
            "is spec.kueue.namespace right?",
        )
    elif "" in owners and not allowed.take_ownership:
        yield InstallRefusal(
            "Kueue was installed there without Helm",
            "let Helm take its objects over with --take-ownership",
        )
    elif seen.owner and seen.is_there and seen.record is None:
        yield InstallRefusal(
            f"the Helm release {seen.owner} has no record among the Secrets of {seen.namespace}",
            "was it installed with another HELM_DRIVER? kfleet reads Secrets only",
        )


def _refuse_pending(seen: SeenKueue, allowed: Permissions) -> Iterator[InstallRefusal]:
    record = seen.record
    if record is None or not record.is_pending or allowed.clear_pending or record.written is None:
        return
    until = record.written + PENDING_FOR
    if seen.seen_at < until:
        yield InstallRefusal(
            f"another helm works on the release {seen.release_name}, or ended without a trace: revision "
            f"{record.revision} is {record.status} since {record.written:%H:%M} UTC",
            f"wait for it, repeat this after {until:%H:%M} UTC, or say with --clear-pending that none runs",
        )


def _refuse_definitions(seen: SeenKueue, target: WantedKueue) -> Iterator[InstallRefusal]:
    for name, versions in target.definitions.items():
        live = seen.definitions.get(name)
        if live and (going := versions_that_go(live.stored, versions)):
            yield InstallRefusal(f"{name}: {stored_text(going, target.version)}", REWRITE)
    owned = seen.record.definitions if seen.record else frozenset()
    for name in sorted(owned - target.definitions.keys()):
        live = seen.definitions.get(name)
        if live and not live.is_kept:
            yield InstallRefusal(
                f"{name}: the chart {target.chart} has it no longer, so helm would delete it with all its objects",
                f"keep it: kubectl annotate crd {name} helm.sh/resource-policy=keep",
            )


def _refuse_start(seen: SeenKueue, target: WantedKueue) -> Iterator[InstallRefusal]:
    try:
        content = read_configuration(target.configuration)
        for problem in start_problems(target.configuration, target.version):
            yield InstallRefusal(problem.message, problem.remedy)
    except ConfigurationError as error:
        yield InstallRefusal(f"managerConfig.controllerManagerConfigYaml {error}", "correct it in the values")
        return
    for text in refused_gates(target.gates, target.version):
        yield InstallRefusal(f"Kueue {target.version} does not start: {text}", "remove it from the values")
    gates = as_map(content.get("featureGates"))
    if gates and target.gates:
        yield InstallRefusal(
            f"Kueue {target.version} does not start: featureGates are set on its command line and in its Configuration",
            "set them in controllerManager.featureGates or in spec.kueue.config, not in both",
        )
    has_gate = {**gates, **target.gates}.get(_SLICES_GATE, True)
    if target.version == NEEDS_RESOURCE_SLICES and has_gate and _SLICES not in seen.api_versions:
        yield InstallRefusal(
            f"Kueue {exact(target.version)} does not start: the API server does not serve {_SLICES}",
            "use 0.19.1 or newer, or Kubernetes 1.34 or newer",
        )


def _notes(seen: SeenKueue, target: WantedKueue, action: InstallAction) -> Iterator[str]:
    record = seen.record
    if record and record.is_pending:
        yield f"the record of the unfinished revision {record.revision} ({record.status}) is removed first"
    elif action is InstallAction.REPEAT and record:
        yield f"revision {record.revision} of the Helm release is {record.status}: its objects are sent again"
    running = seen.version if seen.is_there else None
    try:
        waits = at(read_configuration(target.configuration), "waitForPodsReady") is not None
    except ConfigurationError:
        return
    if running and running < _WAITS_FOR_PODS <= target.version and not waits:
        yield (
            "since 0.19 Kueue evicts jobs whose pods are not ready within 30 minutes; "
            "waitForPodsReady.timeout in spec.kueue.config sets another time"
        )


def ordered(spec: FleetSpec, names: Sequence[str]) -> tuple[Cluster, ...]:
    """Return the named clusters in the order of the names; else all that have `kueue.install`, the manager last."""
    known = {cluster.name: cluster for cluster in spec.clusters}
    problems = list(_problems(known, names))
    if problems:
        raise ExceptionGroup("clusters", problems)
    if names:
        return tuple(known[ClusterName(name)] for name in dict.fromkeys(names))
    wanted = [cluster for cluster in spec.clusters if cluster.kueue.install]
    if not wanted:
        raise KfleetError("no Cluster of the fleet has spec.kueue.install: add it with the release that it should run")
    return tuple(sorted(wanted, key=lambda cluster: cluster.role is Role.MANAGER))


def _problems(known: Mapping[ClusterName, Cluster], names: Iterable[str]) -> Iterator[KfleetError]:
    for name in dict.fromkeys(names):
        cluster = known.get(ClusterName(name))
        if cluster is None:
            yield KfleetError(f"no cluster {name!r}{suggest(name, known)}; there are: {', '.join(known)}")
        elif cluster.kueue.install is None:
            place = cluster.document.place("spec")
            yield KfleetError(f"{place}: Cluster {name} has no spec.kueue.install: add the release that it should run")


def skew_problems(
    steps: Iterable[tuple[ClusterName, KueueVersion]],
    running: Mapping[ClusterName, KueueVersion],
    manager: ClusterName | None,
    workers: Iterable[ClusterName],
) -> Iterator[tuple[ClusterName, str]]:
    """Yield each step after which the manager writes Workloads that a worker does not serve."""
    releases, senders = dict(running), tuple(workers)
    for cluster, target in steps:
        before = _misunderstood(releases, manager, senders)
        releases[cluster] = target
        for worker in sorted(_misunderstood(releases, manager, senders) - before):
            ours, theirs = releases[manager] if manager else target, releases[worker]
            what = f"then the manager's Kueue {ours} writes Workloads as {_written(ours)}"
            yield cluster, f"{what}, which Kueue {theirs} on {worker} does not serve"


def _misunderstood(
    releases: Mapping[ClusterName, KueueVersion], manager: ClusterName | None, workers: Iterable[ClusterName]
) -> set[ClusterName]:
    ours = releases.get(manager) if manager else None
    if ours is None:
        return set()
    return {worker for worker in workers if worker in releases and not _serves(releases[worker], _written(ours))}


def _written(version: KueueVersion) -> str:
    return "v1beta2" if version >= V1BETA2_SINCE else "v1beta1"


def _serves(version: KueueVersion, api_version: str) -> bool:
    return version >= V1BETA2_SINCE if api_version == "v1beta2" else version < WITHOUT_V1BETA1
