"""Which removed clusters are known, where the manager's record was read late or not at all."""

import pytest

from reconciler.objects import ClusterName
from reconciler.pipeline.observe import why_unopened
from reconciler.spec.model import AccessSpec
from reconciler.state.applyset import Address, Inventory
from tests.unit.plan.paper_clusters import HUB_AND_EAST, PaperClusters, parse, view_of

HUB = ClusterName("hub")
UNREAD = "the record of removed clusters could not be read (502)"
SPEC = parse(*HUB_AND_EAST)
SILENT = PaperClusters(unreachable=frozenset({HUB}))


def recorded(*names: str) -> PaperClusters:
    return PaperClusters(
        inventories={HUB: Inventory(addresses={name: Address("kueue-system", AccessSpec()) for name in names})}
    )


@pytest.mark.parametrize(
    ("paper_clusters", "unread", "why"),
    [
        pytest.param(recorded("east"), "", "", id="all are known"),
        pytest.param(recorded("east"), UNREAD, "", id="the probe has read what the first read had not"),
        pytest.param(recorded("east", "west"), UNREAD, "how to reach west was not known when kfleet connected"),
        pytest.param(SILENT, UNREAD, UNREAD, id="neither read had an answer"),
        pytest.param(SILENT, "", "", id="the first read had an answer"),
    ],
)
def test_removed_clusters_are_known_where_the_record_was_read(
    paper_clusters: PaperClusters, unread: str, why: str
) -> None:
    manager = SPEC.clusters[0]
    assert why_unopened(SPEC, (), view_of(SPEC, manager, paper_clusters), unread) == why
