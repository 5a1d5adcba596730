"""Every metric that the documents name exists, and every metric that exists is documented."""

from dataclasses import replace

from prometheus_client import generate_latest

from reconciler.capacity.ledger import merge
from reconciler.capacity.model import CapacityLook, Ledger
from reconciler.pipeline.offline import Source, compute, read_files
from reconciler.plan import Plan
from reconciler.plan.make import Looks
from reconciler.run.cycle import CycleReport
from reconciler.run.metrics import Metrics
from tests.support import ROOT
from tests.unit.capacity.ledgers import BUS, NODES, at, look, remembered, rules


def test_pools_and_bad_messages_of_a_bus_are_shown() -> None:
    computed = compute(read_files(Source(str(ROOT))))
    silent = merge(remembered(cpu=100), look(at(300)), rules())
    ledger = Ledger((*remembered(NODES).entries, *remembered(cpu=100).entries))
    metrics = Metrics()
    for known, count in ((ledger, 100), (silent, 0)):
        looked = CapacityLook(at(300), known, known, bad_messages={BUS: 3})
        seen = replace(computed, look=looked)
        metrics.note(CycleReport(seen, Plan(computed.spec.fleet.name, "abc", (), ()), Looks([], {}), 0.1))
        shown = generate_latest(metrics.registry).decode()
        wanted = f'kfleet_pool_capacity{{resource="cpu",source="{BUS}/interlink.resources.cnaf"}} {count}.0'
        assert [line for line in shown.splitlines() if line.startswith("kfleet_pool_capacity{")] == [wanted]
        assert f'kfleet_nats_bad_messages_total{{bus="{BUS}"}} 3.0' in shown


def test_replica_that_does_not_lead_shows_nothing_of_what_it_saw() -> None:
    computed = compute(read_files(Source(str(ROOT))))
    plan = Plan(computed.spec.fleet.name, "abc", (), ())
    metrics = Metrics(fleet=lambda: "science")
    metrics.is_leader = True
    metrics.note(CycleReport(computed, plan, Looks([], {}), 0.1))
    assert b"kfleet_revision_info" in generate_latest(metrics.registry)
    metrics.end_leading()
    shown = generate_latest(metrics.registry)
    assert b'kfleet_leader{fleet="science"} 0.0' in shown and b"kfleet_revision_info" not in shown
