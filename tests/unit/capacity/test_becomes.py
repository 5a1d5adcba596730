"""Which quotas stand on a source of capacity."""

import pytest

from reconciler.capacity.ledger import flavor_source
from reconciler.capacity.model import SourceKey
from reconciler.capacity.quota import quotas_of
from reconciler.objects import ClusterName
from reconciler.render.compute import compute_desired
from reconciler.snapshot.model import FlavorKey, Observations, Pool, PoolKey
from reconciler.spec.enums import CapacitySource
from tests.builders import master_queue, observed_flavor, open_queue, spec_of
from tests.unit.capacity.ledgers import amounts

BUS = {"connector": "nats://nats:4222", "subject": "s", "poolRegExp": "^cn"}
SPEC = spec_of(
    observed_flavor("cpu", "nodes"),
    observed_flavor("far", "nats", {"nats": BUS}, clusters={"names": ["west"]}),
    open_queue("q", "cpu", {"cpu": "50%"}),
    open_queue("r", "far", {"cpu": "3"}, clusters={"names": ["west"]}),
    master_queue("main", "nats://nats:4222", "s"),
)
SEEN = Observations(
    {FlavorKey(cluster.name, "cpu"): amounts(cpu=16) for cluster in SPEC.clusters},
    pools=(Pool(PoolKey("nats:4222", "s", "cnaf"), amounts(cpu=8)),),
)


def pool(name: str, subject: str = "s") -> SourceKey:
    return SourceKey(CapacitySource.NATS, PoolKey("nats:4222", subject, name))


@pytest.mark.parametrize(
    ("source", "quotas"),
    [
        (flavor_source(CapacitySource.NODES, ClusterName("east"), "cpu"), ["east/ClusterQueue/q: cpu: cpu 8"]),
        (flavor_source(CapacitySource.NODES, ClusterName("east"), "other"), []),
        (
            pool("cnaf"),
            [
                "hub/ClusterQueue/main: main-nats-cnaf: cpu 8, memory 0, pods 0, nvidia.com/gpu 0",
                "hub/ClusterQueue/main-branch: main-nats-cnaf: cpu 0, memory 0, pods 0, nvidia.com/gpu 0",
                "west/ClusterQueue/r: far: cpu 3",
            ],
        ),
        (pool("lyon"), []),
        (pool("cnaf", "other"), []),
    ],
)
def test_quotas_of_a_source_are_those_of_its_flavors(source: SourceKey, quotas: list[str]) -> None:
    objects = [(entry.ref, entry.manifest) for entry in compute_desired(SPEC, SEEN).objects]
    assert list(quotas_of(SPEC, source, objects)) == quotas
