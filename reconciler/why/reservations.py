"""Reservations on the manager that no worker can serve: they block the quota of others until their job is deleted."""

from collections.abc import Iterator

from reconciler.kueue.workloads import has_condition, usage_of
from reconciler.objects import Manifest
from reconciler.why.dispatch import multikueue_reason, way_of
from reconciler.why.index import ClusterIndex, Stories, is_active, title_of
from reconciler.why.model import State


def unserved_reservations(stories: Stories) -> Iterator[str]:
    """One sentence per job that holds quota on the manager and never starts, because each worker is too small for it.

    A job that waits until a worker has room is not one of them, nor is one of a worker that was not observed.
    """
    manager = stories.manager
    for workload in manager.workloads.values() if manager else ():
        is_holding = has_condition(workload, "QuotaReserved") and not has_condition(workload, "Finished")
        if manager is None or not is_holding or not is_active(workload):
            continue
        if way_of(manager, manager.queue_of(workload)) != "multikueue":
            continue
        reason = multikueue_reason(stories, manager, workload)
        if reason.state is State.NEVER:
            yield _sentence(manager, workload)


def _sentence(manager: ClusterIndex, workload: Manifest) -> str:
    title = title_of(manager.job_of(workload), workload)
    held = ", ".join(
        f"{amount} {resource} of flavor {flavor}"
        for flavor, amounts in sorted(usage_of(workload).items())
        for resource, amount in sorted(amounts.items())
    )
    what = f"holds {held} of queue {manager.queue_of(workload)}" if held else "is admitted"
    return f"{title} {what}, and no worker can ever run it: kfleet why {title.partition('/')[2]}"
