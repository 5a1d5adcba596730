"""Every metric that the documents name exists, and every metric that exists is documented."""

import re
from pathlib import Path

from prometheus_client import generate_latest

from reconciler.pipeline.offline import Source, compute, read_files
from reconciler.plan import Plan
from reconciler.plan.make import Looks
from reconciler.run.cycle import CycleReport
from reconciler.run.metrics import Metrics
from tests.engine.documents import flavor, queue, tenant
from tests.engine.worlds import World
from tests.run.conftest import StartController
from tests.support import eventually

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "run.md"


def test_metrics_are_those_of_the_document(world: World, start: StartController) -> None:
    name = world.name
    world.commit(flavor(name), queue(name, name), tenant(name, name))
    controller = start()
    eventually(lambda: controller.metric("kfleet_reconcile_seconds_count") >= 1)
    _, text = controller.get("/metrics")
    shown = set(re.findall(r"^# TYPE (kfleet_\w+) ", text, re.MULTILINE))
    shown = {name for name in shown if not name.endswith("_created")}
    documented = set(re.findall(r"^\| `(kfleet_\w+)` \|", DOCUMENT.read_text(), re.MULTILINE))
    assert shown == documented


def test_replica_that_does_not_lead_shows_nothing_of_what_it_saw() -> None:
    computed = compute(read_files(Source(str(ROOT))))
    plan = Plan(computed.spec.fleet.name, "abc", (), ())
    metrics = Metrics()
    metrics.is_leader = True
    metrics.note(CycleReport(computed, plan, Looks([], {}), 0.1))
    assert b"kfleet_revision_info" in generate_latest(metrics.registry)
    metrics.end_leading()
    shown = generate_latest(metrics.registry)
    assert b"kfleet_leader 0.0" in shown and b"kfleet_revision_info" not in shown
