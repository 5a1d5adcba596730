"""What a plan does to jobs and quotas, by arithmetic on values."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconciler.effects.find import find_effects
from reconciler.effects.model import Effects, Impact, QuotaEffect, may_have_effects
from reconciler.kueue_config.model import Rollout
from reconciler.objects import ClusterName, Gap, ref_of
from reconciler.pipeline.line import guard_disruption
from reconciler.plan.model import Action, Change, ClusterPlan, Plan, Reason, Refused
from reconciler.quantity import ZERO, parse
from reconciler.report.text import effects_lines, effects_markdown
from reconciler.snapshot.model import ClusterObjects, FleetObjects
from reconciler.spec.model import FleetSpec
from reconciler.state.applyset import Inventory, SetName
from tests.builders import (
    Document,
    cpu_group,
    flavor,
    flavor_quotas,
    local_queue,
    native,
    open_queue,
    resource_group,
    resource_quota,
    spec_of,
    tenant,
)
from tests.unit.view.live_objects import (
    ADMITTED,
    NOW,
    condition,
    live_queue,
    live_workload,
    local_queue_of,
    lost_cluster,
    multikueue_check,
    seen_cluster,
)

EAST = ClusterName("east")
TEAM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"site": "east"}}}
FLAVOR = native("ResourceFlavor", "default", {})
SMALL_POD = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}


def change(manifest: Document, action: Action = Action.UPDATE, **more: Any) -> Change:
    return Change(ref_of(EAST, manifest), action, Reason.CHANGED, 0, manifest=manifest, **more)


def plan_of(*changes: Change) -> Plan:
    cluster = ClusterPlan(EAST, "uid", changes, SetName("demo", "kueue-system"), Inventory())
    return Plan("demo", "abc", (cluster,))


def effects_of(live: Sequence[Document], *changes: Change, spec: FleetSpec | None = None) -> Effects:
    return _found(seen_cluster("east", TEAM, FLAVOR, *live), *changes, spec=spec)


def _found(cluster: ClusterObjects, *changes: Change, spec: FleetSpec | None = None) -> Effects:
    objects = FleetObjects(taken_at=NOW, clusters={EAST: cluster})
    return find_effects(spec or spec_of(), plan_of(*changes), objects)


def running(name: str, cpu: str = "2", queue: str = "a", minute: int = 30, **more: Any) -> Document:
    reserved = (condition("QuotaReserved", minute=minute), ADMITTED[1])
    return live_workload(name, *reserved, queue=queue, job=name, held={"cpu": cpu}, **more)


def waiting(name: str, cpu: str = "2", local: str = "main", **more: Any) -> Document:
    pods = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
    return live_workload(
        name, job=name, queueName=local, podSets=[{"name": "main", "count": 1, "template": pods}], **more
    )


def impacts(effects: Effects) -> list[tuple[Impact, str]]:
    return [(one.impact, one.name) for one in effects.workloads]


def team_queue(nominal: str, reserved: str = "0", name: str = "a", **spec: Any) -> Document:
    return live_queue(name, cpu_group(nominal), reserved, cohortName="all", **spec)


RECLAIMS: dict[str, Any] = {"preemption": {"reclaimWithinCohort": "Any"}}


def test_cut_below_use_names_the_latest_and_least_important_workloads() -> None:
    live = [
        team_queue("8", "8"),
        team_queue("8", "2", name="b", **RECLAIMS),
        local_queue_of("a"),
        running("old", minute=10),
        running("new", minute=20),
        running("important", minute=25, priority=100),
        running("middle", minute=15),
    ]
    effects = effects_of(live, change(team_queue("4", "8")))
    assert impacts(effects) == [(Impact.RECLAIMABLE, "new"), (Impact.RECLAIMABLE, "middle")]
    assert {one.by for one in effects.workloads} == {("b",)}
    rows = {one.queue: one for one in effects.quotas}
    assert (str(rows["a"].nominal_before), str(rows["a"].nominal_after), str(rows["a"].in_use)) == ("8", "4", "8")
    assert (str(rows["a"].most_before), str(rows["a"].most_after)) == ("16", "12")
    assert str(rows["b"].most_after) == "12"  # it can borrow less too


def test_cut_below_use_harms_no_workload_if_no_queue_may_reclaim() -> None:
    live = [team_queue("8", "8"), team_queue("8", "2", name="b"), local_queue_of("a"), running("one", "8")]
    effects = effects_of(live, change(team_queue("4", "8")))
    assert impacts(effects) == []
    assert effects.quotas[0].is_above


def test_queue_that_was_above_its_quota_before_is_not_reported_again() -> None:
    live = [team_queue("4", "8"), team_queue("8", "0", name="b", **RECLAIMS), local_queue_of("a"), running("one", "8")]
    assert impacts(effects_of(live, change(team_queue("4", "8", queueingStrategy="StrictFIFO")))) == []


def test_policy_to_reclaim_makes_what_is_borrowed_reclaimable() -> None:
    live = [team_queue("4", "8"), team_queue("8", "0", name="b"), local_queue_of("a"), running("one", "8")]
    effects = effects_of(live, change(team_queue("8", "0", name="b", **RECLAIMS)))
    assert impacts(effects) == [(Impact.RECLAIMABLE, "one")]


def test_flavor_that_leaves_a_queue_makes_what_runs_there_reclaimable() -> None:
    other = resource_group(["cpu"], flavor_quotas("other", resource_quota("cpu", "8")))
    live = [team_queue("8", "8"), team_queue("4", "0", name="b", **RECLAIMS), local_queue_of("a"), running("one", "8")]
    effects = effects_of(
        [*live, native("ResourceFlavor", "other", {})], change(live_queue("a", other, cohortName="all"))
    )
    assert impacts(effects) == [(Impact.RECLAIMABLE, "one")]


def test_borrowed_within_a_cohort_is_reclaimed_only_from_there() -> None:
    def world(nominal: str) -> list[Document]:
        near, far = {"cohortName": "near", **RECLAIMS}, {"cohortName": "all", **RECLAIMS}
        return [
            live_queue("a", cpu_group(nominal), "4", cohortName="near"),
            live_queue("b", cpu_group("8"), "0", **near),
            live_queue("c", cpu_group("4"), "0", **far),
        ]

    cohorts = [native("Cohort", "all", {}), native("Cohort", "near", {"parentName": "all"})]
    live = [*cohorts, *world("4"), local_queue_of("a"), running("one", "4")]
    effects = effects_of(live, change(world("2")[0]))
    assert [(one.impact, one.name, one.by) for one in effects.workloads] == [(Impact.RECLAIMABLE, "one", ("b",))]


def test_drained_queue_names_every_workload_that_it_evicts() -> None:
    live = [team_queue("8", "4"), local_queue_of("a"), running("one"), running("two"), running("else", queue="b")]
    effects = effects_of(live, change(team_queue("8", "4", stopPolicy="HoldAndDrain")))
    assert impacts(effects) == [(Impact.EVICTED, "one"), (Impact.EVICTED, "two")]
    assert effects.workloads[0].why == "ClusterQueue a gets stopPolicy HoldAndDrain"


def test_drained_local_queue_and_drain_before_a_delete_evict_too() -> None:
    live = [team_queue("8", "4"), local_queue_of("a"), running("one", queueName="main")]
    stopped = local_queue("main", "team", "a", stopPolicy="HoldAndDrain")
    assert impacts(effects_of(live, change(stopped))) == [(Impact.EVICTED, "one")]
    deleted = change(team_queue("8"), Action.DELETE, is_drained=True)
    assert impacts(effects_of(live, deleted)) == [(Impact.EVICTED, "one")]


def test_deleted_local_queue_strands_what_waits_there() -> None:
    live = [team_queue("1", "1"), local_queue_of("a"), waiting("one"), running("runs")]
    effects = effects_of(live, change(local_queue_of("a"), Action.DELETE))
    assert impacts(effects) == [(Impact.STRANDED, "one")]
    assert effects.workloads[0].why == "LocalQueue team/main does not exist afterwards"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"namespaceSelector": {"matchLabels": {"site": "west"}}}, "does not select the namespace team"),
        ({"stopPolicy": "Hold"}, "is stopped afterwards"),
    ],
)
def test_queue_that_takes_a_waiting_job_no_longer_strands_it(spec: Document, why: str) -> None:
    live = [team_queue("1", "1"), local_queue_of("a"), waiting("one")]
    effects = effects_of(live, change(team_queue("1", "1", **spec)))
    assert impacts(effects) == [(Impact.STRANDED, "one")]
    assert why in effects.workloads[0].why


@pytest.mark.parametrize(
    ("gone", "spec"),
    [
        (FLAVOR, {}),
        (multikueue_check("slow"), {"admissionChecksStrategy": {"admissionChecks": [{"name": "slow"}]}}),
    ],
)
def test_flavor_or_check_that_goes_strands_what_waits_for_it(gone: Document, spec: Document) -> None:
    live = [team_queue("1", "1", **spec), multikueue_check("slow"), local_queue_of("a"), waiting("one")]
    effects = effects_of(live, change(gone, Action.DELETE))
    assert impacts(effects) == [(Impact.STRANDED, "one")]
    assert f"refers to {gone['kind']} {gone['metadata']['name']}, which does not exist" in effects.workloads[0].why


def test_queue_on_hold_takes_quota_back_only_before_admission() -> None:
    reserved = live_workload("new", condition("QuotaReserved"), queue="a", job="new", held={"cpu": "2"})
    live = [team_queue("8", "4"), local_queue_of("a"), running("old"), reserved]
    effects = effects_of(live, change(team_queue("8", "4", stopPolicy="Hold")))
    assert impacts(effects) == [(Impact.EVICTED, "new")]


def test_quota_says_the_largest_job_that_fits_ever_and_now() -> None:
    live = [team_queue("8", "3"), team_queue("4", "0", name="b"), local_queue_of("a"), running("one", "3")]
    rows = {one.queue: one for one in effects_of(live, change(team_queue("4", "3"))).quotas}
    assert (str(rows["a"].most_before), str(rows["a"].most_after)) == ("12", "8")
    assert (str(rows["a"].free_before), str(rows["a"].free_after)) == ("9", "5")
    assert (str(rows["b"].free_before), str(rows["b"].free_after)) == ("9", "5")


def test_waiting_job_that_preempts_names_who_loses_and_why() -> None:
    live = [
        team_queue("4", "0", **RECLAIMS),
        team_queue("4", "8", name="b"),
        local_queue_of("a"),
        running("old", "4", queue="b", minute=1),
        running("new", "4", queue="b", minute=2),
        waiting("mine", "4"),
    ]
    assert impacts(effects_of(live, change(team_queue("4", "0", **RECLAIMS)))) == []  # it would do so anyway
    live[0] = team_queue("4", "0")
    effects = effects_of(live, change(team_queue("4", "0", **RECLAIMS)))
    assert impacts(effects) == [(Impact.PREEMPTED, "new"), (Impact.STARTS, "mine")]
    assert effects.workloads[0].why == "for team/mine: its queue takes back what is its own"
    assert effects.workloads[0].by == ("a",)


def tried(name: str, local: str, cpu: str = "2") -> Document:
    return waiting(name, cpu, local, status={"conditions": [condition("QuotaReserved", "False", "Pending")]})


TWO_TREES = [
    live_queue("a", cpu_group("8"), cohortName="all"),
    live_queue("b", cpu_group("8"), cohortName="below"),
    native("Cohort", "below", {"parentName": "all"}),
    live_queue("far", cpu_group("8"), cohortName="other"),
    *(local_queue_of(name, name=name) for name in ("a", "b", "far")),
    *(tried(f"waits-{name}", name) for name in ("a", "b", "far")),
]


@pytest.mark.parametrize(
    ("changed", "started"),
    [
        (live_queue("a", cpu_group("9"), cohortName="all"), ["waits-a", "waits-b"]),
        (native("Cohort", "below", {"parentName": "all", "fairSharing": {"weight": "2"}}), ["waits-a", "waits-b"]),
        (live_queue("far", cpu_group("9"), cohortName="all"), ["waits-a", "waits-b", "waits-far"]),
        (native("ResourceFlavor", "default", {"nodeTaints": []}), ["waits-a", "waits-b", "waits-far"]),
        (native("ResourceFlavor", "new", {}), []),
        (local_queue("b", "team", "far"), ["waits-b", "waits-far"]),
        (live_queue("new", cpu_group("9"), cohortName="others"), []),
    ],
    ids=["queue", "cohort", "joins", "flavor", "other flavor", "LocalQueue", "other cohort"],
)
def test_job_that_was_tried_starts_only_with_an_event_of_its_cohorts(changed: Document, started: list[str]) -> None:
    assert impacts(effects_of(TWO_TREES, change(changed))) == [(Impact.STARTS, name) for name in started]


def test_jobs_that_a_plan_evicts_wake_those_that_were_tried() -> None:
    live = [team_queue("4", "4"), local_queue_of("a"), local_queue_of("a", name="b"), tried("waits", "b", "4")]
    live += [running("one", "4", queueName="main")]
    stopped = local_queue("main", "team", "a", stopPolicy="HoldAndDrain")
    assert impacts(effects_of(live, change(stopped))) == [(Impact.EVICTED, "one"), (Impact.STARTS, "waits")]


def test_order_by_past_usage_makes_the_next_steps_unknown() -> None:
    scope: dict[str, Any] = {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}
    live = [team_queue("2", **scope), local_queue_of("a"), waiting("one", "4")]
    effects = effects_of(live, change(team_queue("8", **scope)))
    assert impacts(effects) == [(Impact.POSSIBLE, "one")]
    assert [gap.why for gap in effects.unknown] == ["the order of queue a depends on past usage, which no object shows"]


def test_endless_preemptions_make_the_next_steps_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.scheduling.cycles.MOST_ROUNDS", 0)
    live = [team_queue("2"), local_queue_of("a"), waiting("one")]
    assert [gap.why for gap in effects_of(live, change(team_queue("8"))).unknown] == [
        "its workloads preempt each other in turn"
    ]


def test_topology_that_may_have_no_room_makes_the_next_steps_unknown() -> None:
    near = native("ResourceFlavor", "default", {"topologyName": "racks"})
    live = [TEAM, near, live_queue("a", cpu_group("2")), local_queue_of("a"), waiting("one", "4")]
    found = _found(seen_cluster("east", *live), change(live_queue("a", cpu_group("8"))))
    assert [gap.why for gap in found.unknown] == [
        "flavor default has a topology, and whether its nodes have room is not computed"
    ]
    assert impacts(found) == [(Impact.POSSIBLE, "one")]
    found = _found(seen_cluster("east", *live), change(live_queue("a", cpu_group("3"))))
    assert not found.unknown  # without quota, it does not start on any nodes


def found_unknown(live: Sequence[Document], *changes: Change, configuration: str = "") -> list[str]:
    """Why the next steps are unknown; then nothing is said to start."""
    found = _found(seen_cluster("east", TEAM, FLAVOR, *live, configuration=configuration), *changes)
    assert not {Impact.STARTS, Impact.PREEMPTED} & {one.impact for one in found.workloads}
    return [gap.why for gap in found.unknown]


def configuration_of(**content: Any) -> str:
    return json.dumps({"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", **content})


@pytest.mark.parametrize(
    ("content", "unknown"),
    [
        ({"fairSharing": {}}, ["fairSharing"]),
        ({"resources": {"excludeResourcePrefixes": ["example.com"]}}, ["resources"]),
        ({"waitForPodsReady": {"timeout": "5m"}}, []),
    ],
)
def test_other_rules_of_admission_make_the_next_steps_unknown(content: Document, unknown: list[str]) -> None:
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "kueue-system"}}
    text = configuration_of(**content)
    rollout = Rollout("kueue-system", "c", "kueue", text=text, previous="", version="1", patch="")
    plan = change(config_map, rollout=rollout)
    assert may_have_effects(plan_of(plan))
    found = found_unknown(
        [team_queue("8"), local_queue_of("a"), waiting("one")], plan, configuration=configuration_of()
    )
    why = "the plan changes {} of Kueue's Configuration, and Kueue then tries all workloads again"
    assert found == [why.format(name) for name in unknown]


@pytest.mark.parametrize(
    "spec",
    [
        {"priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}},
        {"priorityClassName": "high", "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass"},
    ],
    ids=["v1beta2", "v1beta1"],
)
def test_other_value_of_a_priority_class_makes_the_next_steps_unknown(spec: Document) -> None:
    live = [team_queue("2"), local_queue_of("a"), waiting("one", priority=5, **spec)]

    def priority_class(name: str, value: int) -> Change:
        return change(native("WorkloadPriorityClass", name, {}) | {"value": value})

    why = "the plan changes the priority of workloads of WorkloadPriorityClass high"
    assert found_unknown(live, priority_class("high", 7)) == [why]
    assert found_unknown(live, priority_class("high", 5)) == []
    assert found_unknown(live, priority_class("low", 7)) == []


def test_requests_that_kueue_counts_in_other_units_make_the_next_steps_unknown() -> None:
    transformations = [{"input": "cpu", "strategy": "Replace", "outputs": {"example.com/units": "2"}}]
    configuration = configuration_of(resources={"transformations": transformations})
    live = [team_queue("2"), local_queue_of("a"), waiting("one", "4")]
    found = found_unknown(live, change(team_queue("1")), configuration=configuration)
    assert found == ["Kueue counts cpu in other units, which is not computed"]


@pytest.mark.parametrize("kind", ["ResourceFlavor", "AdmissionCheck", "Workload"])
def test_kind_that_could_not_be_listed_makes_the_cluster_unknown(kind: str) -> None:
    gap = Gap(EAST, f"{kind}.kueue.x-k8s.io", "forbidden", kind=("kueue.x-k8s.io", kind))
    found = _found(seen_cluster("east", TEAM, *BUSY, gaps=(gap,)), DRAINED)
    assert [str(one) for one in found.unknown] == [f"east: workloads: {kind} could not be listed"]


def test_running_job_larger_than_the_new_quota_can_never_be_admitted_again() -> None:
    live = [live_queue("a", cpu_group("4"), "4"), local_queue_of("a"), holding("large", "3"), holding("small", "1")]
    effects = effects_of(live, change(live_queue("a", cpu_group("2"), "4")))
    assert impacts(effects) == [(Impact.NEVER, "large")]
    assert effects.workloads[0].why.startswith("it runs, but it can never be admitted again: flavor default: cpu 3")
    assert impacts(effects_of(live, change(live_queue("a", cpu_group("5"), "4")))) == []


def test_row_of_a_job_that_others_may_reclaim_says_that_it_cannot_come_back() -> None:
    live = [team_queue("8", "8"), team_queue("1", "0", name="b", **RECLAIMS), local_queue_of("a"), holding("one", "8")]
    (found,) = effects_of(live, change(team_queue("4", "8"))).workloads
    assert (found.impact, found.by) == (Impact.RECLAIMABLE, ("b",))
    assert found.why.endswith("above the queue's own quota; it can never be admitted again")
    (found,) = effects_of(live, change(team_queue("7", "8"))).workloads
    assert found.why.endswith("above the queue's own quota")


def holding(name: str, cpu: str) -> Document:
    """A running workload with the requests of its pods."""
    found = running(name, cpu)
    return {**found, "spec": {**found["spec"], "podSets": waiting(name, cpu)["spec"]["podSets"]}}


def test_stranded_before_the_plan_is_not_an_effect_of_it() -> None:
    live = [team_queue("8"), waiting("one")]
    assert impacts(effects_of(live, change(team_queue("4")))) == []


def test_job_larger_than_the_new_quota_can_never_be_admitted() -> None:
    live = [live_queue("a", cpu_group("4"), "4"), local_queue_of("a"), waiting("large", "3"), waiting("small", "1")]
    effects = effects_of(live, change(live_queue("a", cpu_group("2"), "4")))
    assert impacts(effects) == [(Impact.NEVER, "large")]


def test_more_quota_starts_waiting_jobs_in_order_until_it_is_used() -> None:
    live = [
        live_queue("a", cpu_group("4"), "4"),
        local_queue_of("a"),
        waiting("second", created=2),
        waiting("first", created=1),
        waiting("third", created=3),
        waiting("large", "7", created=4),
        running("holds", "4"),
    ]
    effects = effects_of(live, change(live_queue("a", cpu_group("8"), "4")))
    assert impacts(effects) == [(Impact.STARTS, "first"), (Impact.STARTS, "second"), (Impact.POSSIBLE, "large")]


def test_strict_queue_starts_nothing_behind_a_job_that_does_not_fit() -> None:
    strict: dict[str, Any] = {"queueingStrategy": "StrictFIFO"}
    live = [
        live_queue("a", cpu_group("4"), "4", **strict),
        local_queue_of("a"),
        waiting("large", "6", created=1),
        waiting("small", created=2),
        running("holds", "4"),
    ]
    effects = effects_of(live, change(live_queue("a", cpu_group("8"), "4", **strict)))
    assert impacts(effects) == [(Impact.POSSIBLE, "large")]


def test_tenants_of_queue_and_namespace_are_named() -> None:
    spec = spec_of(flavor("f"), open_queue("a", "f"), tenant("vision", "a", "team"))
    live = [team_queue("8", "2"), local_queue_of("a"), running("one")]
    effects = effects_of(live, change(team_queue("4", "2", stopPolicy="HoldAndDrain")), spec=spec)
    assert [one.tenant for one in effects.workloads] == ["vision"]
    assert [one.tenants for one in effects.quotas] == [("vision",)]
    assert "  east  a (vision)  default  cpu  nominal 8 -> 4" in "\n".join(effects_lines(effects))


def test_cluster_that_was_not_observed_is_unknown_and_not_without_effects() -> None:
    effects = _found(lost_cluster("east"), change(team_queue("4")))
    assert [str(gap) for gap in effects.unknown] == ["east: workloads: the cluster was not observed"]
    assert not effects.quotas
    assert not effects.workloads


def test_plan_without_changes_of_queues_needs_no_look() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}}
    assert not may_have_effects(plan_of(change(secret)))
    assert not may_have_effects(plan_of(change(team_queue("4"), Action.KEEP)))
    assert may_have_effects(plan_of(change(team_queue("4"))))


DRAINED = change(team_queue("8", "4", stopPolicy="HoldAndDrain"))
BUSY = [team_queue("8", "4"), local_queue_of("a"), running("one"), running("two")]


def allowing(count: int | None) -> FleetSpec:
    spec = spec_of()
    policy = replace(spec.fleet.policy, max_evictions=count)
    return replace(spec, fleet=replace(spec.fleet, policy=policy))


@pytest.mark.parametrize(
    ("allowed", "confirmed", "refusals"),
    [(None, None, 0), (2, None, 0), (1, None, 1), (0, 2, 0), (0, 1, 1), (5, 1, 1)],
)
def test_guard_refuses_more_evictions_than_allowed_or_confirmed(
    allowed: int | None, confirmed: int | None, refusals: int
) -> None:
    plan = guard_disruption(allowing(allowed), plan_of(DRAINED), effects_of(BUSY, DRAINED), confirmed)
    assert [one.reason for one in plan.refusals] == [Refused.DISRUPTION] * refusals
    assert plan.is_refused(EAST) is bool(refusals)


def test_guard_refuses_evictions_that_cannot_be_counted() -> None:
    effects = _found(lost_cluster("east"), DRAINED)
    plan = guard_disruption(allowing(3), plan_of(DRAINED), effects)
    assert plan.refusals[0].problem.startswith("how many is not known: the cluster was not observed")
    assert guard_disruption(allowing(3), plan_of(change(team_queue("4"))), effects).refusals == ()


def test_text_cuts_long_lists_with_a_count() -> None:
    busy = [team_queue("99", "24"), local_queue_of("a"), *(running(f"job-{number}") for number in range(12))]
    lines = list(effects_lines(effects_of(busy, change(team_queue("50", "24", stopPolicy="HoldAndDrain")))))
    assert lines[0] == "who is affected"
    assert sum(line.startswith("  evicted: east/Job/team/job-") for line in lines) == 10
    assert "  evicted: and 2 more" in lines
    quota = "  east  a  default  cpu  nominal 99 -> 50, with borrowing 99 -> 50, lends up to 99 -> 50"
    assert lines[-2:] == ["quota", f"{quota}, fits now 75 -> 26, 24 in use"]


@pytest.mark.parametrize(
    ("resource", "before", "after", "want"),
    [
        ("memory", "391701017395", "195850508697", "nominal 364.8Gi -> 182.4Gi, 0 in use"),
        ("cpu", "45600m", "8", "nominal 45.6 -> 8, 0 in use"),
        ("memory", "195850508697", "195850508698", "nominal 195850508697 -> 195850508698, 0 in use"),
        ("memory", "195850508697", "195850508697", "nominal 182.4Gi, 0 in use"),
        ("cpu", None, "8", "nominal (none) -> 8, 0 in use"),
    ],
)
def test_amounts_of_quota_are_short_unless_they_would_look_the_same(
    resource: str, before: str | None, after: str, want: str
) -> None:
    effect = QuotaEffect(
        cluster=EAST,
        queue="a",
        tenants=(),
        flavor="default",
        resource=resource,
        nominal_before=None if before is None else parse(before),
        nominal_after=parse(after),
        most_before=ZERO,
        most_after=ZERO,
        lent_before=ZERO,
        lent_after=ZERO,
        free_before=ZERO,
        free_after=ZERO,
        in_use=ZERO,
    )
    assert list(effects_lines(Effects(quotas=(effect,))))[-1] == f"  east  a  default  {resource}  {want}"


def test_comment_counts_who_loses_and_who_gains() -> None:
    lines = list(effects_markdown(effects_of(BUSY, DRAINED)))
    assert lines[0] == "**Who is affected**: 2 workloads lose something, 0 gain"
    assert lines[2].startswith("- evicted: east/Job/team/one (queue a): ClusterQueue a gets stopPolicy")
