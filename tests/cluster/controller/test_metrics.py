"""Every metric that the documents name exists, and every metric that exists is documented."""

import re

from tests.builders import team_documents
from tests.cluster.controller.conftest import StartController
from tests.cluster.live_fleet import LiveFleet
from tests.support import ROOT, eventually

DOCUMENT = ROOT / "docs" / "run.md"


def test_metrics_are_those_of_the_document(live_fleet: LiveFleet, start: StartController) -> None:
    name = live_fleet.name
    live_fleet.commit(*team_documents(name))
    controller = start()
    eventually(lambda: controller.metric("kfleet_reconcile_seconds_count") >= 1)
    _, text = controller.get("/metrics")
    shown = set(re.findall(r"^# TYPE (kfleet_\w+) ", text, re.MULTILINE))
    shown = {name for name in shown if not name.endswith("_created")}
    documented = set(re.findall(r"^\| `(kfleet_\w+)` \|", DOCUMENT.read_text(), re.MULTILINE))
    assert shown == documented
