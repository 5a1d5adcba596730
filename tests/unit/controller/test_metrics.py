"""Every metric that the documents name exists, and every metric that exists is documented."""

from datetime import timedelta

from prometheus_client import generate_latest

from reconciler.capacity.ledger import merge
from reconciler.capacity.model import Ledger, ObservedCapacity
from reconciler.controller.cycle import CycleReport
from reconciler.controller.metrics import Metrics
from reconciler.controller.revisions import GitState
from reconciler.objects import ClusterName, Ref
from reconciler.pipeline.load import Source, load_files, read_files
from reconciler.pipeline.render import Rendered, Snapshot, render_offline
from reconciler.plan.make import Comparison
from reconciler.plan.model import Plan
from reconciler.state.applyset import SetName
from reconciler.state.model import ClusterView
from tests.support import ROOT
from tests.unit.capacity.ledgers import BUS, NODES, at, look, remembered, rules


def report_of(rendered: Rendered, plan: Plan, *views: ClusterView) -> CycleReport:
    return CycleReport(rendered=rendered, plan=plan, looks=Comparison(views=views, predictions={}), seconds=0.1)


def test_pools_and_bad_messages_of_a_bus_are_shown() -> None:
    computed = load_files(read_files(Source(str(ROOT))))
    silent = merge(remembered(cpu=100), look(at(300)), rules())
    ledger = Ledger((*remembered(NODES).entries, *remembered(cpu=100).entries))
    metrics = Metrics()
    for known, count in ((ledger, 100), (silent, 0)):
        looked = ObservedCapacity(at(300), known, known, bad_messages={BUS: 3})
        seen = Rendered(desired=computed.desired, snapshot=Snapshot(spec=computed.spec, capacity=looked))
        metrics.note(report_of(seen, Plan(computed.spec.fleet.name, "abc", (), ())))
        shown = generate_latest(metrics.registry).decode()
        wanted = f'kfleet_pool_capacity{{resource="cpu",source="{BUS}/interlink.resources.cnaf"}} {count}.0'
        assert [line for line in shown.splitlines() if line.startswith("kfleet_pool_capacity{")] == [wanted]
        assert f'kfleet_nats_bad_messages_total{{bus="{BUS}"}} 3.0' in shown


def test_usage_is_what_is_reserved_also_by_jobs_that_are_never_admitted() -> None:
    computed = load_files(read_files(Source(str(ROOT))))
    hub = ClusterName("hub")
    reserved = [{"name": "cpu", "resources": [{"name": "cpu", "total": "180"}]}]
    unused = [{"name": "cpu", "resources": [{"name": "cpu", "total": "0"}]}]
    live = {"status": {"flavorsReservation": reserved, "flavorsUsage": unused}}
    view = ClusterView(hub, SetName("f", "kueue-system"), "uid", live={Ref(hub, "", "ClusterQueue", "", "q"): live})
    metrics = Metrics()
    metrics.note(report_of(render_offline(computed), Plan("f", "abc", (), ()), view))
    shown = generate_latest(metrics.registry).decode()
    assert 'kfleet_usage{cluster="hub",flavor="cpu",queue="q",resource="cpu"} 180.0' in shown


def test_replica_that_does_not_lead_shows_nothing_of_what_it_saw() -> None:
    computed = load_files(read_files(Source(str(ROOT))))
    plan = Plan(computed.spec.fleet.name, "abc", (), ())
    metrics = Metrics(fleet=lambda: "science")
    metrics.is_leader = True
    metrics.note(report_of(render_offline(computed), plan))
    assert b"kfleet_revision_info" in generate_latest(metrics.registry)
    metrics.end_leading()
    shown = generate_latest(metrics.registry)
    assert b'kfleet_leader{fleet="science"} 0.0' in shown and b"kfleet_revision_info" not in shown


def test_longest_silence_of_the_watches_of_a_cluster_is_shown() -> None:
    computed = load_files(read_files(Source(str(ROOT))))
    metrics = Metrics(silences=lambda: {ClusterName("east"): 42.0})
    text = 'kfleet_watch_silence_seconds{cluster="east"} 42.0'
    assert text not in generate_latest(metrics.registry).decode()
    metrics.note(report_of(render_offline(computed), Plan("f", "abc", (), ())))
    assert text in generate_latest(metrics.registry).decode()


def test_repository_that_cannot_be_fetched_is_shown() -> None:
    metrics = Metrics(lambda: GitState(is_known=False, problem="cannot be fetched", age=timedelta(seconds=90)))
    shown = generate_latest(metrics.registry).decode()
    for line in ("kfleet_revision_known 0.0", "kfleet_revision_refused 1.0", "kfleet_fetch_age_seconds 90.0"):
        assert line in shown.splitlines()
