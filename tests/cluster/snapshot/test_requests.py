"""How often the clusters are asked the same in one run."""

from collections import Counter
from datetime import timedelta

import pytest

from reconciler.cli import planning
from reconciler.pipeline.observe import connect
from reconciler.spec.model import FleetSpec
from tests.cluster.live_fleet import LiveFleet
from tests.cluster.multikueue.credentials import commit_sent, connect_all

Requests = Counter[tuple[str, str, str]]


def requests_of(live_fleet: LiveFleet, caplog: pytest.LogCaptureFixture) -> Requests:
    """The requests of a plan, by cluster, method and path."""
    caplog.clear()
    with caplog.at_level("DEBUG", logger="reconciler.clients.kubernetes"):
        planned = live_fleet.plan()
    assert planned.code == 0, planned
    lines = [vars(record) for record in caplog.records if record.msg == "request"]
    return Counter((line["cluster"], line["method"], line["path"]) for line in lines)


def test_plan_asks_for_each_fact_once(
    wide_live_fleet: LiveFleet, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_sent(wide_live_fleet)
    wide_live_fleet.converge()
    connect_all(wide_live_fleet)
    once = requests_of(wide_live_fleet, caplog)

    def without_memory(spec: FleetSpec, timeout: timedelta) -> object:
        return connect(spec, timeout)

    monkeypatch.setattr(planning, "connect_once", without_memory)
    often = requests_of(wide_live_fleet, caplog)
    assert once.keys() == often.keys() and once.total() < often.total()
    manager = f"{wide_live_fleet.name}-manager"
    kinds = ("clusterqueues", "multikueueconfigs", "localqueues")
    asked = [count for (cluster, _, path), count in once.items() if cluster == manager and path.endswith(kinds)]
    assert len(asked) >= len(kinds) and set(asked) == {1}
