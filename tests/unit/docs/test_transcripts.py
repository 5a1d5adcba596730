"""What documents show of plans and observations is what the code prints."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from reconciler.capacity.model import Entry, Ledger, ObservedCapacity, Sample, SourceKey
from reconciler.cli.observe import observed_table
from reconciler.clients.working_tree import read_folder
from reconciler.pipeline.load import load_files
from reconciler.pipeline.render import render_offline
from reconciler.plan.model import Action, Plan
from reconciler.quantity import parse
from reconciler.report.text import plan_text
from reconciler.snapshot.model import PoolKey
from reconciler.spec.enums import CapacitySource
from reconciler.spec.files import FleetFiles
from tests import fast_yaml
from tests.builders import ALL_DELETES, cluster_document, fleet_document, master_queue
from tests.support import ROOT
from tests.unit.plan.paper_clusters import applied_clusters, plan_of

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


def transcript(page: str, command: str) -> str:
    return (ROOT / page).read_text().partition(f"$ {command}\n")[2].partition("```")[0]


def test_readme_shows_what_plan_prints() -> None:
    """The example fleet, after somebody changed a queue of it and deleted another."""
    spec = load_files(read_folder(str(ROOT / "fleet"))).spec
    drift = {"spec": {"preemption": {"withinClusterQueue": "Never"}}}
    paper_clusters = applied_clusters(spec).edited("cnaf-gpu/ClusterQueue/gpu", drift, manager="kubectl-patch")
    made = with_tokens(plan_of(spec, paper_clusters.without("cnaf-cpu/LocalQueue/genomics/genomics")))
    assert f"{plan_text(made, took='0.5 s')}\n" == transcript("README.md", "kfleet plan")


def with_tokens(made: Plan) -> Plan:
    """The tokens of the workers are good; without a look at the clusters nobody knows."""
    clusters = (
        replace(
            cluster,
            changes=tuple(
                change._replace(action=Action.KEEP) if change.ref.kind == "Secret" else change
                for change in cluster.changes
            ),
        )
        for cluster in made.clusters
    )
    return replace(made, clusters=tuple(clusters))


def test_page_of_capacity_shows_what_observe_prints() -> None:
    pools = master_queue("pools", "nats://nats:4222", "interlink.resources")
    pools["spec"]["flavors"][0].pop("canLendTo")
    text = fast_yaml.safe_dump_all(
        [fleet_document("research", policy=ALL_DELETES), cluster_document("hub", "standalone"), pools]
    )
    amounts = {name: parse(amount) for name, amount in (("cpu", "16"), ("memory", "64Gi"), ("pods", "50"))}
    source = SourceKey(CapacitySource.NATS, PoolKey("nats:4222", "interlink.resources", "cnaf"))
    seen_at = NOW - timedelta(seconds=12)
    ledger = Ledger((Entry(Sample(source, seen_at, amounts), seen_at, amounts),))
    computed = load_files(FleetFiles("test", "", {"fleet/all.yaml": text.encode()}))
    seen = render_offline(computed, ObservedCapacity(NOW, ledger, ledger))
    assert [*observed_table(seen)] == transcript("docs/capacity.md", "kfleet observe").splitlines()
