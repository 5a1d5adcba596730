import json
from datetime import timedelta
from typing import Any

import pytest

from reconciler.errors import EdgeError
from reconciler.web.auth import WHOLE_FLEET, ViewScope
from reconciler.web.events import NO_PLAN, NOT_FOR_TENANTS, Feed, Reader
from tests.unit.web.views import example_view

BIOLOGY = ViewScope(is_fleet=False, namespaces=frozenset({"biology"}))
PLAN = {"madeAt": "now", "problem": "", "text": "no changes of vision", "plan": {}}


class ViewSource:
    """A source that counts how often it is read."""

    def __init__(self, *, is_live: bool = True) -> None:
        self.is_live, self.view, self.reads = is_live, example_view(), 0
        self.problem = ""

    def read_view(self) -> dict[str, Any]:
        self.reads += 1
        if self.problem:
            raise EdgeError("east", self.problem)
        return dict(self.view)

    def read_plan(self) -> dict[str, Any]:
        return PLAN


def read(events: Any) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for text in (each.decode() for each in events):
        name, data = text.rstrip("\n").split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_feed_reads_nothing_until_it_is_asked() -> None:
    source = ViewSource()
    feed = Feed(source, timedelta(minutes=5))
    assert source.reads == 0
    assert [feed.latest().number for _ in range(3)] == [1, 1, 1]
    assert source.reads == 1


def test_feed_reads_again_after_the_refresh_interval() -> None:
    source = ViewSource()
    feed = Feed(source, timedelta())
    assert (feed.latest().number, feed.latest().number) == (1, 2)


def test_snapshot_is_read_once() -> None:
    source = ViewSource(is_live=False)
    feed = Feed(source, timedelta())
    assert (feed.latest().number, feed.latest().number, source.reads) == (1, 1, 1)


def test_feed_keeps_the_last_view_and_says_why_there_is_none_newer() -> None:
    source = ViewSource()
    feed = Feed(source, timedelta())
    first = feed.latest()
    source.problem = "gone"
    later = feed.latest()
    assert (later.view, later.problem) == (first.view, "east: gone")


def test_feed_without_any_view_raises() -> None:
    source = ViewSource()
    source.problem = "gone"
    with pytest.raises(EdgeError, match="gone"):
        Feed(source, timedelta()).latest()


def test_reader_gets_the_whole_view_and_then_only_changes() -> None:
    source = ViewSource()
    feed = Feed(source, timedelta())
    reader = Reader(feed)
    first = read(reader.events(feed.latest(), WHOLE_FLEET))
    assert [name for name, _ in first] == ["view", "plan", "history"]
    assert first[0][1]["view"] == source.view
    source.view = {**source.view, "jobs": source.view["jobs"][1:]}
    (name, data), *others = read(reader.events(feed.latest(), WHOLE_FLEET))
    assert (name, others) == ("change", [])
    assert data["change"]["remove"] == {"jobs": [example_view()["jobs"][0]["id"]]}
    assert data["change"]["set"] == {}


def test_reader_gets_nothing_twice() -> None:
    feed = Feed(ViewSource(), timedelta(minutes=5))
    reader = Reader(feed)
    assert len(read(reader.events(feed.latest(), WHOLE_FLEET))) == 3
    assert read(reader.events(feed.latest(), WHOLE_FLEET)) == []


def test_tenant_gets_its_part_and_neither_plan_nor_history() -> None:
    feed = Feed(ViewSource(), timedelta())
    reader = Reader(feed)
    first = dict(read(reader.events(feed.latest(), BIOLOGY)))
    assert {job["namespace"] for job in first["view"]["view"]["jobs"]} == {"biology"}
    assert first["view"]["scope"] == {"fleet": False, "namespaces": ["biology"]}
    assert first["plan"] == dict(NOT_FOR_TENANTS)
    assert "history" not in first
    assert '"vision"' not in json.dumps(first)


def test_change_of_one_tenant_is_not_sent_to_another() -> None:
    source = ViewSource()
    feed = Feed(source, timedelta())
    fleet, tenant = Reader(feed), Reader(feed)
    before = feed.latest()
    list(fleet.events(before, WHOLE_FLEET))
    list(tenant.events(before, BIOLOGY))
    source.view = {**source.view, "jobs": [job for job in source.view["jobs"] if job["namespace"] == "biology"]}
    after = feed.latest()
    assert read(fleet.events(after, WHOLE_FLEET))[0][1]["change"]["remove"]["jobs"]
    assert read(tenant.events(after, BIOLOGY))[0][1]["change"]["remove"] == {}


def test_reader_whose_rights_change_gets_a_whole_view_again() -> None:
    feed = Feed(ViewSource(), timedelta(minutes=5))
    reader = Reader(feed)
    list(reader.events(feed.latest(), WHOLE_FLEET))
    (name, data), *_ = read(reader.events(feed.latest(), BIOLOGY))
    assert (name, data["scope"]["fleet"]) == ("view", False)


def test_missing_plan_says_why() -> None:
    assert NO_PLAN["plan"] is None and NO_PLAN["problem"]
