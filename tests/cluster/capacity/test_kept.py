"""The ledger between runs: read before anything is written, and written whatever happens elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests.builders import announcement, cluster_queue, cpu_group, flavor, observed_flavor, open_queue
from tests.cluster.capacity.pool_live_fleet import LEDGER, SHORT, PoolLiveFleet
from tests.cluster.faults.proxy import Deed, Fault, FaultProxy, proxied
from tests.cluster.live_fleet import LiveFleet


@pytest.fixture
def proxy(fleet: Sandbox) -> Iterator[FaultProxy]:
    with proxied(fleet, "worker1") as made:
        yield made


def lead_through(live_fleet: LiveFleet, proxy: FaultProxy, folder: Path) -> None:
    """The same fleet, whose cluster is reached by the proxy from now on."""
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    kubeconfig = proxy.kubeconfig(folder / "proxy.kubeconfig")
    path.write_text(path.read_text().replace(str(live_fleet.sandbox.state.kubeconfig), str(kubeconfig)))
    live_fleet.commit_all()


def test_ledger_that_cannot_be_read_is_not_taken_for_an_empty_one(
    pool_live_fleet: PoolLiveFleet, proxy: FaultProxy, tmp_path: Path
) -> None:
    name, live_fleet = pool_live_fleet.name, pool_live_fleet.live_fleet
    pools = {"connector": pool_live_fleet.url, "subject": pool_live_fleet.subject, "pools": ["cnaf"]}
    heard = observed_flavor(name, "nats", capacity={"nats": pools})
    live_fleet.commit(heard, open_queue(name, name, {"cpu": "50%"}))
    assert pool_live_fleet.apply(cnaf=announcement("8")).code == 0
    assert pool_live_fleet.quotas() == {name: "4"}
    before = pool_live_fleet.ledger()
    lead_through(live_fleet, proxy, tmp_path)
    proxy.inject(Fault(Deed.ANSWER, f"/configmaps/kfleet-{name}-ledger", "GET", status=500, times=99))
    planned = live_fleet.plan("--observe-for", "0")
    assert planned.code == 4 and "the ledger" in str(planned.record["gaps"]), planned
    refused = live_fleet.apply("--observe-for", "0")
    assert refused.code == 1 and "its ledger cannot be read" in refused.err, refused
    assert pool_live_fleet.quotas() == {name: "4"} and pool_live_fleet.ledger() == before
    proxy.let_go()
    assert live_fleet.apply("--observe-for", "0").code == 0
    assert pool_live_fleet.quotas() == {name: "4"}
    pool_live_fleet.clean()


def test_refusal_on_another_cluster_does_not_stop_the_ledger(wide_live_fleet: LiveFleet) -> None:
    manager, worker, other = wide_live_fleet.contexts
    name = wide_live_fleet.name
    strange = cluster_queue(name, cpu_group("4", of=name))
    by_another = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    wide_live_fleet.kubectl(*by_another, given=strange, cluster=other)
    wide_live_fleet.commit(observed_flavor(name, "nodes"), open_queue(name, name, {"cpu": "50%"}))
    refused = wide_live_fleet.apply(*SHORT)
    assert refused.code == 3 and f"{other}/ClusterQueue/{name}" in refused.out, refused
    assert wide_live_fleet.finds("clusterqueues", name, worker)
    assert wide_live_fleet.api(manager).find(LEDGER.format(name)) is not None
    wide_live_fleet.api(manager).delete(LEDGER.format(name))


def test_refusal_of_the_cluster_that_keeps_the_ledger_stops_it(live_fleet: LiveFleet) -> None:
    queue = open_queue(live_fleet.name, live_fleet.name, {"cpu": "50%"})
    live_fleet.commit(flavor(live_fleet.name), open_queue(live_fleet.name, live_fleet.name))
    live_fleet.converge(*SHORT)
    another = {"metadata": {"annotations": {"kfleet.dev/cluster-uid": "of-another"}}}
    live_fleet.api().patch(live_fleet.set_name.path, another)
    live_fleet.commit(observed_flavor(live_fleet.name, "nodes"), queue)
    assert live_fleet.apply(*SHORT).code == 3
    assert live_fleet.api().find(LEDGER.format(live_fleet.name)) is None


def test_refusal_of_one_object_does_not_keep_the_ledger_from_being_written(live_fleet: LiveFleet) -> None:
    strange = cluster_queue(live_fleet.name, cpu_group("4", of=live_fleet.name))
    live_fleet.kubectl("apply", "--server-side", "--field-manager=other", "-f", "-", given=strange)
    live_fleet.commit(
        observed_flavor(live_fleet.name, "nodes"), open_queue(live_fleet.name, live_fleet.name, {"cpu": "50%"})
    )
    assert live_fleet.apply(*SHORT).code == 3
    assert live_fleet.api().find(LEDGER.format(live_fleet.name)) is not None
