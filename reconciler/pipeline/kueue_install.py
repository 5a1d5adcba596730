"""The line of `kfleet kueue`: what runs on each cluster, what helm would send, and the plan of the steps."""

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from reconciler.apply.kueue_health import (
    DEFINITIONS,
    FORBIDDEN,
    KNOWN_DEFINITIONS,
    find_manager,
    health_problems,
    running_release,
)
from reconciler.apply.kueue_install import Installer, Rehearsal, Report, rehearse
from reconciler.clients.helm import Chart, Helm
from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError, EdgeError, KfleetError
from reconciler.kueue.kinds import KueueVersion
from reconciler.kueue.reading import as_map, as_text, at
from reconciler.kueue_config.model import APPLIED
from reconciler.kueue_config.observe import find_configuration
from reconciler.kueue_config.plan import GITOPS_TRACKERS
from reconciler.kueue_install.decide import make_step, skew_problems
from reconciler.kueue_install.model import (
    InstallAction,
    InstallCommand,
    InstallPlan,
    InstallRefusal,
    InstallStep,
    KueueStatus,
    Permissions,
    SeenKueue,
    WantedKueue,
)
from reconciler.kueue_install.records import (
    RecordError,
    chart_values,
    definition_of,
    make_target,
    newest_record,
    owner_of,
    read_objects,
)
from reconciler.kueue_install.text import status_of, unseen
from reconciler.objects import ClusterName, Gap
from reconciler.pipeline.apply import writing
from reconciler.pipeline.observe import Connections
from reconciler.spec.enums import Role
from reconciler.spec.model import Cluster, FleetSpec
from reconciler.spec.places import home_cluster

_PARALLEL = 16
_OWN_MANAGERS = ("kfleet", "python-urllib3")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallOrder:
    """What a person has asked for; `is_named` says that the clusters were named on the command line."""

    helm: Helm
    charts: Mapping[ClusterName, Chart]
    mode: InstallCommand
    allowed: Permissions
    is_named: bool
    timeout: timedelta


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan, and what carries it out."""

    plan: InstallPlan
    installer: Installer


def observe_kueue(cluster: Cluster, client: ApiServer, more: tuple[str, ...] = ()) -> SeenKueue:
    """Read what a cluster has of Kueue. `more` are CRDs that kfleet does not know, of the chart."""
    namespace = cluster.kueue.namespace
    deployment = find_manager(client, namespace)
    configuration = find_configuration(client, namespace)
    names = (*KNOWN_DEFINITIONS, *more)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        found = dict(zip(names, pool.map(lambda name: client.find(f"{DEFINITIONS}/{name}"), names), strict=True))
    seen = SeenKueue(
        cluster=cluster.name,
        namespace=namespace,
        release=running_release(deployment),
        deployment=as_text(at(deployment, "metadata", "name")),
        owner=owner_of(deployment),
        tracker=_tracker(deployment),
        is_configured=APPLIED in as_map(at(configuration, "metadata", "annotations")),
        definitions={name: definition_of(entry) for name, entry in found.items() if entry},
        api_versions=frozenset(f"{kind.api_version}/{kind.kind}" for kind in client.discover()),
        seen_at=datetime.now(UTC),
    )
    return _with_record(client, seen)


def _with_record(client: ApiServer, seen: SeenKueue) -> SeenKueue:
    """Add what helm has recorded. Few accounts may read Secrets; what runs can be seen without them."""
    path = f"/api/v1/namespaces/{seen.namespace}/secrets"
    try:
        return replace(seen, record=newest_record(client.list(path, f"owner=helm,name={seen.release_name}")))
    except RecordError as error:
        return replace(seen, unread=str(error))
    except ClusterError as error:
        if error.status != FORBIDDEN:
            raise
        return replace(seen, unread=error.problem)


def _tracker(deployment: Mapping[str, object] | None) -> str:
    metadata = as_map(at(deployment, "metadata"))
    marks = {**as_map(metadata.get("labels")), **as_map(metadata.get("annotations"))}
    return next((tool for mark, tool in GITOPS_TRACKERS.items() if mark in marks), "")


def observe_status(spec: FleetSpec, connections: Connections) -> tuple[KueueStatus, ...]:
    """What runs on all clusters against what git says, with its health."""
    lost = {gap.cluster: gap.why for gap in connections.gaps}

    def look(cluster: Cluster) -> KueueStatus:
        client = connections.clients.get(cluster.name)
        if client is None:
            return unseen(cluster, lost.get(cluster.name, "no connection"))
        try:
            seen = observe_kueue(cluster, client)
        except ClusterError as error:
            return unseen(cluster, error.problem)
        if not seen.is_there:
            return status_of(cluster, seen)
        try:
            problems = tuple(health_problems(client, seen.namespace, tuple(seen.definitions)))
        except ClusterError as error:
            return status_of(cluster, seen, why=error.problem)
        return status_of(cluster, seen, problems)

    with ThreadPoolExecutor(_PARALLEL) as pool:
        return tuple(pool.map(look, spec.clusters))


def prepare(
    spec: FleetSpec, connections: Connections, clusters: tuple[Cluster, ...], order: InstallOrder, report: Report
) -> Prepared:
    """Observe the clusters, render the chart for each, decide the steps, and rehearse them on the servers."""
    lost = {gap.cluster: gap.why for gap in connections.gaps}
    targets: dict[ClusterName, WantedKueue] = {}
    steps: list[InstallStep] = []
    gaps: list[Gap] = []
    releases: dict[ClusterName, KueueVersion] = {}
    for cluster in clusters:
        client = connections.clients.get(cluster.name)
        if client is None:
            gaps.append(Gap(cluster.name, "the cluster", lost.get(cluster.name, "no connection")))
            continue
        try:
            found = _prepare_one(cluster, client, order, report)
        except ClusterError as error:
            gaps.append(Gap(cluster.name, "Kueue", error.problem))
            continue
        steps.append(found.step)
        targets[cluster.name] = found.target
        releases |= found.releases
    releases |= _other_releases(spec, connections, {cluster.name for cluster in clusters})
    plan = InstallPlan(order.mode, _with_skew(spec, steps, targets, releases), tuple(gaps))
    installer = Installer(
        helm=order.helm,
        clients=connections.clients,
        charts=order.charts,
        targets=targets,
        timeout=order.timeout,
    )
    return Prepared(plan, installer)


class _PreparedCluster(NamedTuple):
    step: InstallStep
    target: WantedKueue
    releases: Mapping[ClusterName, KueueVersion]


def _prepare_one(cluster: Cluster, client: ApiServer, order: InstallOrder, report: Report) -> _PreparedCluster:
    report(cluster.name, "observing")
    seen = observe_kueue(cluster, client)
    target = _target(order.helm, order.charts[cluster.name], cluster, seen)
    if unknown := tuple(target.definitions.keys() - set(KNOWN_DEFINITIONS)):
        seen = observe_kueue(cluster, client, unknown)
    step = make_step(cluster, seen, target, order.mode, order.allowed, is_named=order.is_named)
    if step.has_work and not step.refusals:
        report(cluster.name, "rehearsing")
        is_forced = order.allowed.force_conflicts or order.allowed.take_ownership
        step = _rehearsed(step, seen, rehearse(client, target, is_forced=is_forced), is_forced=is_forced)
    running = seen.version if seen.is_there else None
    return _PreparedCluster(step, target, {cluster.name: running} if running else {})


def _target(helm: Helm, chart: Chart, cluster: Cluster, seen: SeenKueue) -> WantedKueue:
    install = cluster.kueue.install
    if install is None:
        raise KfleetError(f"Cluster {cluster.name} has no spec.kueue.install")
    values = chart_values(install, cluster.kueue.configuration, chart.defaults)
    text = helm.render(chart, seen.release_name, seen.namespace, values, seen.api_versions)
    # As helm keeps them: compared with its record.
    return make_target(chart.version, json.loads(json.dumps(values)), read_objects(text))


def _rehearsed(step: InstallStep, seen: SeenKueue, rehearsal: Rehearsal, *, is_forced: bool) -> InstallStep:
    """Others' fields are not overwritten, except in the Configuration that kfleet itself has changed."""
    own = {
        (subject, manager)
        for subject, manager in rehearsal.managers
        if seen.is_configured and subject.startswith("ConfigMap ") and manager in _OWN_MANAGERS
    }
    refusals = [
        InstallRefusal(
            f"{subject}: {manager} manages fields that the chart sets too",
            "write them into spec.kueue.install.values, or overwrite them with --force-conflicts",
        )
        for subject, manager in rehearsal.managers
        if (subject, manager) not in own
    ]
    return replace(
        step,
        refusals=(*rehearsal.refusals, *refusals),
        is_forced=is_forced or bool(own),
    )


def _other_releases(
    spec: FleetSpec, connections: Connections, known: set[ClusterName]
) -> Mapping[ClusterName, KueueVersion]:
    """Read the releases of clusters that are no part of the run: a manager has to understand its workers."""
    found: dict[ClusterName, KueueVersion] = {}
    for cluster in spec.clusters:
        client = connections.clients.get(cluster.name)
        if cluster.name in known or client is None or cluster.role is Role.STANDALONE:
            continue
        with suppress(ClusterError):
            seen = observe_kueue(cluster, client)
            if seen.is_there and seen.version is not None:
                found[cluster.name] = seen.version
    return found


def _with_skew(
    spec: FleetSpec,
    steps: list[InstallStep],
    targets: Mapping[ClusterName, WantedKueue],
    releases: Mapping[ClusterName, KueueVersion],
) -> tuple[InstallStep, ...]:
    manager = spec.manager.name if spec.manager else None
    workers = [cluster.name for cluster in spec.clusters if cluster.role is Role.WORKER]
    going = [(step.cluster, targets[step.cluster].version) for step in steps if step.action is not InstallAction.SKIP]
    problems: dict[ClusterName, list[InstallRefusal]] = {}
    for cluster, problem in skew_problems(going, releases, manager, workers):
        remedy = "choose another order of the clusters, or a release between them first"
        problems.setdefault(cluster, []).append(InstallRefusal(problem, remedy))
    return tuple(replace(step, refusals=(*step.refusals, *problems.get(step.cluster, ()))) for step in steps)


def fetch_charts(helm: Helm, source: str, clusters: tuple[Cluster, ...], folder: Path) -> Mapping[ClusterName, Chart]:
    """Fetch the chart of each release once. One that is another release than git says is an error."""
    charts: dict[str, Chart] = {}
    for number, cluster in enumerate(clusters):
        version = cluster.kueue.install.version if cluster.kueue.install else ""
        if version not in charts:
            place = folder / str(number)
            place.mkdir()
            charts[version] = helm.fetch(source, version, place)
    for version, chart in charts.items():
        if chart.name != "kueue":
            raise EdgeError("--chart", f"is the chart {chart.name!r}, and not kueue")
        if chart.version != version:
            names = [
                cluster.name
                for cluster in clusters
                if cluster.kueue.install and cluster.kueue.install.version == version
            ]
            raise EdgeError(
                "--chart",
                f"is Kueue {chart.version}, but git says {version} for {', '.join(names)}",
                "name only clusters that get this release, or change spec.kueue.install.version",
            )
    return {cluster.name: charts[cluster.kueue.install.version] for cluster in clusters if cluster.kueue.install}


@contextmanager
def holding_lease(spec: FleetSpec, connections: Connections) -> Iterator[Callable[[], str]]:
    """Hold the lease of the fleet, unless its namespace is still missing: then no other kfleet can hold it either."""
    home = home_cluster(spec)
    client = connections.clients.get(home.name)
    if client is not None and client.find(f"/api/v1/namespaces/{home.kueue.namespace}") is None:
        yield lambda: ""
        return
    with writing(spec, connections) as policy:
        yield policy.forbidden
