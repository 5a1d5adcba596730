"""The ledger between runs: read before anything is written, and written whatever happens elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.sandbox.fleet import Sandbox
from tests.cluster.capacity.pools import LEDGER, SHORT, PoolWorld
from tests.cluster.engine.worlds import World
from tests.cluster.faults.proxy import Deed, Fault, FaultProxy, proxied
from tests.documents import cluster_queue
from tests.unit.capacity.documents import announcement, observed_flavor, share_queue


@pytest.fixture
def proxy(fleet: Sandbox) -> Iterator[FaultProxy]:
    with proxied(fleet, "worker1") as made:
        yield made


def lead_through(world: World, proxy: FaultProxy, folder: Path) -> None:
    """The same fleet, whose cluster is reached by the proxy from now on."""
    path = world.folder / "fleet" / "fleet.yaml"
    kubeconfig = proxy.kubeconfig(folder / "proxy.kubeconfig")
    path.write_text(path.read_text().replace(str(world.sandbox.state.kubeconfig), str(kubeconfig)))
    world.commit_all()


def test_ledger_that_cannot_be_read_is_not_taken_for_an_empty_one(
    pool_world: PoolWorld, proxy: FaultProxy, tmp_path: Path
) -> None:
    name, world = pool_world.name, pool_world.world
    pools = {"connector": pool_world.url, "subject": pool_world.subject, "pools": ["cnaf"]}
    flavor = observed_flavor(name, "nats", capacity={"nats": pools})
    world.commit(flavor, share_queue(name, name, cpu="50%"))
    assert pool_world.apply(cnaf=announcement("8")).code == 0
    assert pool_world.quotas() == {name: "4"}
    before = pool_world.ledger()
    lead_through(world, proxy, tmp_path)
    proxy.inject(Fault(Deed.ANSWER, f"/configmaps/kfleet-{name}-ledger", "GET", status=500, times=99))
    planned = world.plan("--observe-for", "0")
    assert planned.code == 4 and "the ledger" in str(planned.record["gaps"]), planned
    refused = world.apply("--observe-for", "0")
    assert refused.code == 1 and "its ledger cannot be read" in refused.err, refused
    assert pool_world.quotas() == {name: "4"} and pool_world.ledger() == before
    proxy.let_go()
    assert world.apply("--observe-for", "0").code == 0
    assert pool_world.quotas() == {name: "4"}
    pool_world.clean()


def test_refusal_on_another_cluster_does_not_stop_the_ledger(wide_world: World) -> None:
    manager, worker, other = wide_world.contexts
    name = wide_world.name
    strange = cluster_queue(name, name, cpu="4")
    by_another = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    wide_world.kubectl(*by_another, given=strange, cluster=other)
    wide_world.commit(observed_flavor(name, "nodes"), share_queue(name, name, cpu="50%"))
    refused = wide_world.apply(*SHORT)
    assert refused.code == 3 and f"{other}/ClusterQueue/{name}" in refused.out, refused
    assert wide_world.finds("clusterqueues", name, worker)
    assert wide_world.api(manager).find(LEDGER.format(name)) is not None
    wide_world.api(manager).delete(LEDGER.format(name))


def test_refusal_on_the_cluster_that_keeps_the_ledger_stops_it(world: World) -> None:
    strange = cluster_queue(world.name, world.name, cpu="4")
    world.kubectl("apply", "--server-side", "--field-manager=other", "-f", "-", given=strange)
    world.commit(observed_flavor(world.name, "nodes"), share_queue(world.name, world.name, cpu="50%"))
    assert world.apply(*SHORT).code == 3
    assert world.api().find(LEDGER.format(world.name)) is None
