"""Views for tests and pictures of the page: one fleet, its plan, and what its sources counted before."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from reconciler.effects.model import Effects, Impact, QuotaEffect, WorkloadEffect
from reconciler.kueue.kinds import GROUP
from reconciler.objects import ClusterName, Gap, Ref
from reconciler.plan.model import Action, Cause, Change, ClusterPlan, FieldChange, Plan, Reason
from reconciler.plan.record import plan_record
from reconciler.quantity import NANO, Quantity
from reconciler.report.text import effects_lines, effects_record, plan_text
from reconciler.state.applyset import Inventory, SetName
from reconciler.web.auth import Record
from reconciler.web.events import CapacitySample
from tests.support import ROOT

EXAMPLE = ROOT / "tests" / "unit" / "view" / "example.json"
EAST = ClusterName("east")
KEPT = 41
NOMINAL = "spec.resourceGroups[0].flavors[spot].resources[cpu].nominalQuota"
SPOT, ONDEMAND, OLD = "nats:4222/pools.east.spot", "west/ondemand", "nats:4222/pools.east.old"
# The cpu of the pool, by the hours that have passed since; it was silent once.
SPOT_CPU = {6.0: 64, 5.5: 64, 4.0: 56, 3.5: None, 3.0: 40, 2.0: 44, 1.0: 48}


def example_view() -> dict[str, Any]:
    """The documented example, with the names of its tenants' namespaces."""
    view: dict[str, Any] = json.loads(EXAMPLE.read_text())
    return view


def example_plan() -> dict[str, Any]:
    """What the next apply would do to the example: a queue gets less quota, and an edit is taken back."""
    view = example_view()
    changes = (
        update("training", FieldChange(NOMINAL, "32", "28", Cause.SPEC)),
        update(
            "research", FieldChange("spec.preemption.reclaimWithinCohort", "Never", "Any", Cause.DRIFT, "kubectl-edit")
        ),
    )
    kept = (Change(queue_on_east(f"kept-{number}"), Action.KEEP, Reason.CHANGED, 0) for number in range(KEPT))
    east = ClusterPlan(EAST, "uid", (*changes, *kept), SetName(view["fleet"], "kueue-system"), Inventory())
    gap = Gap(ClusterName("north"), "the cluster", "connection refused (https://10.0.3.1:6443)")
    plan = Plan(view["fleet"], view["revision"], (east,), gaps=(gap,))
    quotas = (quota("training", 32, 28, most=48, used=30), quota("new", None, 8, most=0, tenant="new"))
    effects = Effects(workloads=(reclaimable(),), quotas=quotas)
    return {
        "madeAt": view["takenAt"],
        "problem": "",
        "text": plan_text(plan, effects=tuple(effects_lines(effects))),
        "plan": plan_record(plan),
        "effects": effects_record(effects),
    }


def queue_on_east(name: str) -> Ref:
    return Ref(EAST, GROUP, "ClusterQueue", "", name)


def update(queue: str, field: FieldChange) -> Change:
    return Change(queue_on_east(queue), Action.UPDATE, Reason.CHANGED, 0, (field,))


def quota(
    queue: str, before: int | None, after: int, *, most: int, used: int = 0, tenant: str = "vision"
) -> QuotaEffect:
    """What can be borrowed changes by as much as the nominal quota; nothing is lent, and nothing fits now."""
    nothing = Quantity(0)
    return QuotaEffect(
        cluster=EAST,
        queue=queue,
        tenants=(tenant,),
        flavor="spot",
        resource="cpu",
        nominal_before=None if before is None else cpus(before),
        nominal_after=cpus(after),
        most_before=cpus(most),
        most_after=cpus(most + after - (before or 0)),
        lent_before=nothing,
        lent_after=nothing,
        free_before=nothing,
        free_after=nothing,
        in_use=cpus(used),
    )


def cpus(count: int) -> Quantity:
    return Quantity(count * NANO)


def reclaimable() -> WorkloadEffect:
    return WorkloadEffect(
        cluster=EAST,
        namespace="vision",
        name="resnet-large",
        kind="RayJob",
        queue="training",
        tenant="vision",
        impact=Impact.RECLAIMABLE,
        why="cpu of flavor spot is then above the queue's own quota",
        by=("research",),
    )


def example_history(until: datetime) -> Iterator[CapacitySample]:
    """What the sources of the example counted in the six hours before: one grew, one was silent, one went."""
    for hours, cpu in SPOT_CPU.items():
        known = {} if cpu is None else {(SPOT, "cpu"): f"{cpu}", (SPOT, "nvidia.com/gpu"): f"{cpu // 8}"}
        fixed = {(ONDEMAND, "cpu"): "32", (ONDEMAND, "nvidia.com/gpu"): "8"}
        old = {(OLD, "cpu"): "16" if hours > 3 else "0"}
        yield CapacitySample(until - timedelta(hours=hours), {**known, **fixed, **old})


def as_of(view: Record, now: datetime) -> dict[str, Any]:
    """The view as if it were taken now: every time in it is as long ago as in the example."""
    passed = now - datetime.fromisoformat(view["takenAt"])
    return {**view, "takenAt": stamp(now), "jobs": [later(job, passed) for job in view["jobs"]]}


def later(job: Record, passed: timedelta) -> dict[str, Any]:
    times = {name: job[name] and stamp(datetime.fromisoformat(job[name]) + passed) for name in ("since", "created")}
    return {**job, **times}


def stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
