"""What `kfleet observe` says of a source: its amounts, whether it becomes less, and which nodes do not count."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler.capacity.model import Entry, Ledger, ObservedCapacity, Sample
from reconciler.cli.observe import left_out, observed_table, shrinking
from reconciler.pipeline.load import load_files
from reconciler.pipeline.render import Rendered, render_offline
from reconciler.spec.files import FleetFiles
from tests import fast_yaml
from tests.builders import cluster_document, fleet_document, observed_flavor, open_queue
from tests.unit.capacity.ledgers import NODES, amounts

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


def test_source_that_shrinks_says_to_what_and_when() -> None:
    last = Sample(NODES, NOW, amounts(cpu=8, memory=4))
    since = {"cpu": NOW - timedelta(seconds=20)}
    entry = Entry(last, NOW, amounts(cpu=16, memory=4), shrink_pending_since=since, shrink_peak=amounts(cpu=8))
    assert list(shrinking(entry, NOW, timedelta(seconds=60))) == ["cpu shrinks to 8 in 40s"]
    assert list(shrinking(entry, NOW + timedelta(hours=1), timedelta(seconds=60))) == ["cpu shrinks to 8 in 0s"]


def test_source_that_does_not_shrink_says_nothing() -> None:
    entry = Entry(Sample(NODES, NOW, amounts(cpu=8)), NOW, amounts(cpu=8))
    assert list(shrinking(entry, NOW, timedelta(seconds=60))) == []


def observed(**more: Any) -> Rendered:
    """A flavor of the nodes of one cluster, and a queue with half of it."""
    text = fast_yaml.safe_dump_all(
        [
            fleet_document("demo"),
            cluster_document("east", "standalone"),
            observed_flavor("cpu", "nodes"),
            open_queue("night", "cpu", {"cpu": "50%", "memory": "50%"}),
        ]
    )
    seen = amounts(cpu="91200m", memory=391701017395)
    ledger = Ledger((Entry(Sample(NODES, NOW - timedelta(seconds=12), seen), NOW, seen),))
    revision = load_files(FleetFiles("demo", "", {"fleet/all.yaml": text.encode()}))
    return render_offline(revision, ObservedCapacity(NOW, ledger, ledger, **more))


def test_amounts_are_as_people_write_them() -> None:
    (_, row) = observed_table(observed())
    assert row.endswith("cpu 91.2, memory 364.8Gi  east/ClusterQueue/night: cpu: cpu 45.6, memory 182.4Gi")
    assert not re.search(r"[0-9]{6}", row)


def test_terminal_that_is_too_narrow_for_the_table_gets_lines() -> None:
    seen = observed()
    assert list(observed_table(seen, 200)) == list(observed_table(seen))
    assert list(observed_table(seen, 60)) == [
        "east/cpu: fresh, seen 12s ago",
        "  counts as  cpu 91.2, memory 364.8Gi",
        "  becomes    east/ClusterQueue/night: cpu: cpu 45.6, memory",
        "             182.4Gi",
    ]


def test_nodes_that_do_not_count_are_named() -> None:
    seen = observed(left_out=("east: 1 of 3 nodes of flavor cpu: n1 (cordoned)",))
    assert list(left_out(seen)) == ["not counted: east: 1 of 3 nodes of flavor cpu: n1 (cordoned)"]
    assert list(left_out(observed())) == []
