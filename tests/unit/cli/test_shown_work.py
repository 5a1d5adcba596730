"""What a person at a terminal sees while clusters are looked at, and what a pipe does not."""

from datetime import UTC, datetime, timedelta

import click
import pytest

from reconciler.capacity.model import ObservedCapacity
from reconciler.cli.output import count_changes, renewed_text
from reconciler.cli.planning import listened_to
from reconciler.errors import ExitCode
from reconciler.objects import ClusterName, Ref
from reconciler.pipeline.capacity import ObserveOptions
from reconciler.plan.model import Action, Change, ClusterPlan, Outcome, Plan, Reason
from reconciler.state.applyset import Inventory, SetName
from tests.builders import CLUSTERS, annotated, master_queue, spec_of


def created(name: str) -> Change:
    return Change(Ref(ClusterName("hub"), "", "ConfigMap", "x", name), Action.CREATE, Reason.MISSING, 0)


def test_changes_are_counted_cluster_by_cluster_as_they_are_tried() -> None:
    changes = tuple(created(name) for name in ("a", "b"))
    kept = created("c")._replace(action=Action.KEEP)
    part = ClusterPlan(ClusterName("hub"), "uid", (*changes, kept), SetName("test", "x"), Inventory())
    told: list[tuple[str, str]] = []
    tell = count_changes(Plan("test", "", (part,)), lambda cluster, step: told.append((cluster, step)))
    tell(Outcome(changes[0].ref, Action.CREATE))
    tell(Outcome(changes[1].ref, Action.CREATE, "409 conflict"))
    assert told == [("hub", "0 of 2 changes"), ("hub", "1 of 2 changes"), ("hub", "2 of 2 changes")]


def test_bus_that_is_listened_to_has_a_line_of_its_own() -> None:
    master = master_queue("pools", "nats://nats:4222", "resources")
    spec = spec_of(annotated(master, {CLUSTERS: "east"}))
    (line,) = listened_to(spec, ObserveOptions())
    assert line.startswith("NATS nats:4222")
    assert listened_to(spec, ObserveOptions(timedelta())) == ()
    assert listened_to(spec, ObserveOptions(recorded=ObservedCapacity(datetime.now(UTC)))) == ()
    assert listened_to(spec_of(), ObserveOptions()) == ()


def test_interrupt_ends_a_watch_without_a_message() -> None:
    def interrupted() -> None:
        with renewed_text() as show:
            show("a table")
            raise KeyboardInterrupt

    with pytest.raises(click.exceptions.Exit) as raised:
        interrupted()
    assert raised.value.exit_code == ExitCode.INTERRUPTED
