"""What the manager offers stays as it was while a worker is not observed: less of it would let others preempt jobs."""

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests import fast_yaml
from tests.builders import Document, flavor, main_tenant, observed_flavor, open_queue
from tests.cluster.controller.controllers import Controller
from tests.cluster.faults.proxy import proxied
from tests.cluster.ledgers import LEDGER, make_older
from tests.cluster.live_fleet import SYSTEM, LiveFleet
from tests.cluster.multikueue.credentials import connect_all
from tests.cluster.multikueue.drains import apply_until, end, is_complete, submit, where
from tests.support import eventually, revive

CYCLES = "kfleet_reconcile_seconds_count"
RECLAIMING = {"preemption": {"reclaimWithinCohort": "Any"}}


def halves(live_fleet: LiveFleet, shared: Document) -> tuple[Document, ...]:
    """Two queues of a cohort with half of a flavor each, of which the second takes back what the first has borrowed."""
    name = live_fleet.name
    common: dict[str, Any] = {"dispatch": "multikueue", "cohort": name}
    share = {"cpu": "50%"}
    return (
        shared,
        open_queue(f"{name}-q", shared["metadata"]["name"], share, **common),
        open_queue(f"{name}-r", shared["metadata"]["name"], share, **common, **RECLAIMING),
        main_tenant(name, f"{name}-q"),
    )


def offered(live_fleet: LiveFleet) -> dict[str, str]:
    """The nominal cpu of both queues on the manager."""
    groups = {
        suffix: live_fleet.queue(f"{live_fleet.name}-{suffix}", "manager")["spec"]["resourceGroups"] for suffix in "qr"
    }
    return {suffix: group["flavors"][0]["resources"][0]["nominalQuota"] for suffix, (group,) in groups.items()}


def lead_through(live_fleet: LiveFleet, worker: str, kubeconfig: Path, context: str = "") -> None:
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    documents = [*fast_yaml.safe_load_all(path.read_text())]
    one = next(entry for entry in documents if entry["metadata"]["name"] == f"{live_fleet.name}-{worker}")
    one["spec"]["access"] = {"context": context or worker, "kubeconfig": str(kubeconfig)}
    path.write_text(fast_yaml.safe_dump_all(documents))
    live_fleet.commit_all()


def shrink_at_once(live_fleet: LiveFleet, **capacity: str) -> None:
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    documents = [*fast_yaml.safe_load_all(path.read_text())]
    fleet = next(entry for entry in documents if entry["kind"] == "Fleet")
    fleet["spec"]["policy"]["capacity"] = {"shrinkDelay": "0s", **capacity}
    path.write_text(fast_yaml.safe_dump_all(documents))
    live_fleet.commit_all()


def test_worker_that_left_the_spec_counts_until_its_jobs_have_ended(wide_live_fleet: LiveFleet) -> None:
    name = wide_live_fleet.name
    documents = halves(wide_live_fleet, flavor(f"{name}-cpu", {"cpu": "20"}))
    wide_live_fleet.commit(*documents)
    wide_live_fleet.converge()
    connect_all(wide_live_fleet)
    submit(wide_live_fleet, "kept")
    gone = where(wide_live_fleet, "kept")
    assert offered(wide_live_fleet) == {"q": "20", "r": "20"}

    wide_live_fleet.contexts = {
        cluster: context for cluster, context in wide_live_fleet.contexts.items() if context != gone
    }
    wide_live_fleet.commit(*documents)
    for _ in range(2):
        applied = wide_live_fleet.apply()
        assert applied.code == 0, applied
        assert f"waiting: {name}-{gone}: 1 of the manager's workloads still run there" in applied.out
        assert offered(wide_live_fleet)["q"] == "20"
    end(wide_live_fleet, gone, "kept")
    apply_until(wide_live_fleet, gone)
    assert is_complete(wide_live_fleet, "kept")
    assert offered(wide_live_fleet)["q"] == "10"


def test_worker_that_does_not_answer_costs_no_quota(wide_live_fleet: LiveFleet, tmp_path: Path) -> None:
    name = wide_live_fleet.name
    wide_live_fleet.write(*halves(wide_live_fleet, observed_flavor(f"{name}-cpu", "nodes")))
    with proxied(wide_live_fleet.sandbox, "worker2") as proxy:
        lead_through(wide_live_fleet, "worker2", proxy.kubeconfig(tmp_path / "proxy.yaml"))
        wide_live_fleet.converge()
        before = offered(wide_live_fleet)
        assert all(int(cpu) for cpu in before.values())
    then = make_older(wide_live_fleet, timedelta(hours=1))

    planned = wide_live_fleet.plan()
    assert (planned.code, planned.actions) == (4, {}), planned
    lost = wide_live_fleet.apply()
    assert lost.code == 4 and f"gap: {name}-worker2: " in lost.out, lost
    assert f"notice: {name}-worker2/{name}-cpu: not observed since {then}: its capacity stays" in lost.err, lost
    assert offered(wide_live_fleet) == before
    wide_live_fleet.api("manager").delete(LEDGER.format(name))


def test_worker_that_is_lost_costs_no_quota_under_a_controller(wide_live_fleet: LiveFleet) -> None:
    """Also after `staleAfter`, and with no delay for what shrinks: both are for what was observed."""
    name = wide_live_fleet.name
    wide_live_fleet.write(*halves(wide_live_fleet, observed_flavor(f"{name}-cpu", "nodes")))
    shrink_at_once(wide_live_fleet, staleAfter="5s")
    wide_live_fleet.converge()
    before = offered(wide_live_fleet)
    assert all(int(cpu) for cpu in before.values())
    controller = Controller(wide_live_fleet.folder, ("--interval", "1", "--cluster-timeout", "3"))
    try:
        eventually(lambda: controller.said("leading"), 60)
        wide_live_fleet.sandbox.kill("worker2/kube-apiserver")
        eventually(lambda: controller.said("cluster lost"), 60)
        time.sleep(6)
        cycles = controller.metric(CYCLES)
        eventually(lambda: controller.metric(CYCLES) >= cycles + 3, 60)
        assert offered(wide_live_fleet) == before
    finally:
        controller.kill()
        revive(wide_live_fleet.sandbox, "worker2")
    for path in (LEDGER.format(name), f"/api/v1/namespaces/{SYSTEM}/configmaps/kfleet-{name}-status"):
        wide_live_fleet.api("manager").delete(path)


def test_worker_whose_access_leads_to_another_server_keeps_the_capacity_that_it_had(wide_live_fleet: LiveFleet) -> None:
    """The other server has no nodes: as capacity of the worker they would be less, and jobs would be preempted."""
    name = wide_live_fleet.name
    wide_live_fleet.write(*halves(wide_live_fleet, observed_flavor(f"{name}-cpu", "nodes")))
    shrink_at_once(wide_live_fleet)
    wide_live_fleet.converge()
    before = offered(wide_live_fleet)
    assert all(int(cpu) for cpu in before.values())
    lead_through(wide_live_fleet, "worker2", wide_live_fleet.sandbox.state.kubeconfig, context="manager")
    for _ in range(2):
        refused = wide_live_fleet.apply()
        assert refused.code == 3 and f"{name}-worker2: the cluster is not the same as before" in refused.out, refused
        assert offered(wide_live_fleet) == before
    wide_live_fleet.api("manager").delete(LEDGER.format(name))
