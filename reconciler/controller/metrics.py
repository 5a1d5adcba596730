"""The Prometheus metrics of kfleet. Most of them are computed from the last cycle at scrape time."""

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from reconciler.capacity.model import ObservedCapacity
from reconciler.controller.cycle import CycleReport
from reconciler.controller.notices import made_placements
from reconciler.controller.revisions import GitState
from reconciler.controller.triggers import PushResult
from reconciler.kueue.reading import as_list, as_text, at, quantity_at
from reconciler.objects import ClusterName, Manifest
from reconciler.quantity import Quantity
from reconciler.snapshot.model import PoolKey

_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_NANO = 10**9


class Metrics(Collector):
    def __init__(
        self,
        git: Callable[[], GitState] = GitState,
        fleet: Callable[[], str] = str,
        silences: Callable[[], Mapping[ClusterName, float]] = dict,
    ) -> None:
        """`git` returns the state of the repository, `fleet` the name of its fleet, or an empty text.

        `silences` returns the longest silence of a watch of each cluster, in seconds.
        """
        self._git, self._fleet, self._silences = git, fleet, silences
        self.registry = CollectorRegistry()
        self.is_leader = False
        self._last: CycleReport | None = None
        self._seconds = Histogram(
            "kfleet_reconcile_seconds", "Time of a cycle.", buckets=_BUCKETS, registry=self.registry
        )
        self._writes = Counter(
            "kfleet_writes", "Objects written.", ("cluster", "action", "result"), registry=self.registry
        )
        self._placements = Counter(
            "kfleet_placements",
            "Steps of jobs that KubeStellar downsyncs.",
            ("cluster", "step"),
            registry=self.registry,
        )
        self._failures = Counter("kfleet_cycle_failures", "Cycles that ended in an error.", registry=self.registry)
        self._webhooks = Counter("kfleet_webhooks", "Pushes announced by a forge.", ("result",), registry=self.registry)
        self.registry.register(self)

    def note(self, report: CycleReport) -> None:
        self._last = report
        self._seconds.observe(report.seconds)
        for cluster in report.outcomes:
            for outcome in cluster.outcomes:
                result = "done" if outcome.is_done else "waiting" if outcome.is_waiting else "failed"
                self._writes.labels(cluster.name, outcome.action.value, result).inc()
        for step in made_placements(report.plan, report.outcomes):
            self._placements.labels(step.cluster or "", step.verb.value).inc()

    def note_failure(self) -> None:
        self._failures.inc()

    def note_webhook(self, verdict: PushResult) -> None:
        self._webhooks.labels(verdict.value).inc()

    def end_leading(self) -> None:
        """Drop the last cycle: a follower does not observe, so its values would be outdated."""
        self.is_leader, self._last = False, None

    def collect(self) -> Iterator[Metric]:
        leader = GaugeMetricFamily("kfleet_leader", "1 on the replica that writes.", labels=("fleet",))
        leader.add_metric((self._fleet(),), int(self.is_leader))
        yield leader
        yield from self._git_metrics()
        report = self._last
        if report is not None:
            yield from _plan_metrics(report)
            yield self._silence_metric()
            yield from _health_metrics(report)
            yield from _quota_metrics(report)
            yield from _capacity_metrics(report)

    def _git_metrics(self) -> Iterator[Metric]:
        state = self._git()
        refused = GaugeMetricFamily("kfleet_revision_refused", "1 while the newest commit is not followed.")
        refused.add_metric((), int(bool(state.problem)))
        known = GaugeMetricFamily("kfleet_revision_known", "0 while no revision could be read: nothing is written.")
        known.add_metric((), int(state.is_known))
        age = GaugeMetricFamily("kfleet_fetch_age_seconds", "Time since the repository was last fetched.")
        age.add_metric((), state.age.total_seconds())
        yield from (refused, known, age)

    def _silence_metric(self) -> Metric:
        silence = GaugeMetricFamily(
            "kfleet_watch_silence_seconds", "Longest silence of an open watch.", labels=("cluster",)
        )
        for name, seconds in self._silences().items():
            silence.add_metric((name,), seconds)
        return silence

    def describe(self) -> tuple[Metric, ...]:
        """No descriptions: without this method the registry would collect all metrics on registration."""
        return ()


def _plan_metrics(report: CycleReport) -> Iterator[Metric]:
    info = GaugeMetricFamily("kfleet_revision_info", "The revision that is followed.", labels=("fleet", "revision"))
    info.add_metric((report.plan.fleet, report.plan.revision), 1)
    objects = GaugeMetricFamily(
        "kfleet_objects", "Objects by their action in the last plan.", labels=("cluster", "action")
    )
    drift = GaugeMetricFamily("kfleet_changed_fields", "Fields that differed, by cause.", labels=("cluster", "cause"))
    for cluster in report.plan.clusters:
        for action, count in Tally(change.action.value for change in cluster.changes).items():
            objects.add_metric((cluster.name, action), count)
        causes = Tally(field.cause.value for change in cluster.changes for field in change.fields)
        for cause, count in causes.items():
            drift.add_metric((cluster.name, cause), count)
    gaps = GaugeMetricFamily("kfleet_gaps", "What could not be observed.", labels=("cluster",))
    for name, count in Tally(str(gap.cluster) for gap in report.plan.gaps).items():
        gaps.add_metric((name,), count)
    refusals = GaugeMetricFamily("kfleet_refusals", "Refusals by guards.")
    refusals.add_metric((), len(report.plan.refusals))
    reached = GaugeMetricFamily("kfleet_cluster_reachable", "1 if the cluster responded.", labels=("cluster",))
    seen = {view.name for view in report.looks.views if view.is_reachable}
    for entry in report.rendered.spec.clusters:
        reached.add_metric((entry.name,), int(entry.name in seen))
    fights = GaugeMetricFamily(
        "kfleet_written_back_objects",
        "Objects that another field manager reverts each time.",
        labels=("cluster", "manager"),
    )
    pairs = ((one.ref.cluster, name) for one in report.fights for name in one.managers or ("",))
    for (cluster_name, manager), count in Tally(pairs).items():
        fights.add_metric((cluster_name, manager), count)
    yield from (info, objects, drift, gaps, refusals, reached, fights)


def _health_metrics(report: CycleReport) -> Iterator[Metric]:
    preflight_issues = GaugeMetricFamily(
        "kfleet_preflight_issues", "Preflight issues, which keep the fleet from working.", labels=("cluster", "check")
    )
    for (cluster, check), count in Tally(
        (one.cluster, one.check.value) for one in report.plan.preflight_issues
    ).items():
        preflight_issues.add_metric((cluster, check), count)
    health_issues = GaugeMetricFamily("kfleet_unhealthy_objects", "Unhealthy objects.", labels=("cluster", "kind"))
    for (cluster, kind), count in Tally((one.ref.cluster, one.ref.kind) for one in report.health_issues).items():
        health_issues.add_metric((cluster, kind), count)
    yield from (preflight_issues, health_issues)


def _quota_metrics(report: CycleReport) -> Iterator[Metric]:
    labels = ("cluster", "queue", "flavor", "resource")
    quota = GaugeMetricFamily("kfleet_quota", "Desired nominal quota.", labels=labels)
    usage = GaugeMetricFamily("kfleet_usage", "Quota of a queue's flavors that workloads have reserved.", labels=labels)
    for entry in report.rendered.desired.objects:
        if entry.ref.kind == "ClusterQueue":
            for flavor, resource, amount in _quotas(entry.manifest):
                quota.add_metric((entry.ref.cluster, entry.ref.name, flavor, resource), amount)
    for view in report.looks.views:
        for ref, live in view.live.items():
            if ref.kind == "ClusterQueue":
                for flavor, resource, amount in _used(live):
                    usage.add_metric((ref.cluster, ref.name, flavor, resource), amount)
    yield from (quota, usage)


def _capacity_metrics(report: CycleReport) -> Iterator[Metric]:
    capacity = GaugeMetricFamily(
        "kfleet_capacity", "Current capacity of a flavor.", labels=("cluster", "flavor", "resource")
    )
    for place, amounts in report.rendered.snapshot.observations.capacities.items():
        for resource, amount in amounts.items():
            capacity.add_metric((place.cluster, place.flavor, resource), _number(amount))
    yield capacity
    yield from _source_metrics(report.rendered.snapshot.capacity)


def _source_metrics(look: ObservedCapacity | None) -> Iterator[Metric]:
    pools = GaugeMetricFamily(
        "kfleet_pool_capacity", "Current capacity of a resource pool.", labels=("source", "resource")
    )
    age = GaugeMetricFamily("kfleet_observation_age_seconds", "Age of the last sample of a source.", labels=("source",))
    bad = CounterMetricFamily(
        "kfleet_nats_bad_messages", "Messages of a message bus that could not be used.", labels=("bus",)
    )
    now = datetime.now(UTC)
    for entry in look.ledger.entries if look else ():
        age.add_metric((str(entry.source),), (now - entry.last.seen_at).total_seconds())
        for resource, amount in entry.granted.items() if isinstance(entry.source.place, PoolKey) else ():
            pools.add_metric((str(entry.source), resource), _number(amount))
    for bus, count in look.bad_messages.items() if look else ():
        bad.add_metric((bus,), count)
    yield from (pools, age, bad)


def _quotas(queue: Manifest) -> Iterator[tuple[str, str, float]]:
    for group in as_list(at(queue, "spec", "resourceGroups")):
        for flavor in as_list(at(group, "flavors")):
            yield from _amounts(flavor, "nominalQuota")


def _used(queue: Manifest) -> Iterator[tuple[str, str, float]]:
    # Not flavorsUsage: jobs that KubeStellar downsyncs reserve quota and are never Admitted.
    for flavor in as_list(at(queue, "status", "flavorsReservation")):
        yield from _amounts(flavor, "total")


def _amounts(flavor: Any, field: str) -> Iterator[tuple[str, str, float]]:
    for resource in as_list(at(flavor, "resources")):
        amount = quantity_at(at(resource, field))
        if amount is not None:
            yield as_text(at(flavor, "name")), as_text(at(resource, "name")), _number(amount)


def _number(amount: Quantity) -> float:
    return amount.nanos / _NANO
