"""20 clusters, 2,000 queues and 2,000 jobs: what the page needs for them. Times are printed, not asserted."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.cluster.web.conftest import OpenTab
from tests.cluster.web.large import large_view
from tests.cluster.web.large_snapshot import write_large_fleet
from tests.cluster.web.served import Shown, served, serving

# Frames while the page scrolls through all jobs and the server changes them.
SCROLL = """() => new Promise(done => {
    const frames = []; let last = performance.now(); let y = 0;
    const step = now => {
        frames.push(now - last); last = now; y += 900; scrollTo(0, y);
        if (y < document.documentElement.scrollHeight && frames.length < 200) requestAnimationFrame(step);
        else done({frames: frames.length, longest: Math.round(Math.max(...frames.slice(1)))});
    };
    requestAnimationFrame(step);
})"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
LONG_TASKS = """() => { window.longTasks = []; new PerformanceObserver(list =>
    window.longTasks.push(...list.getEntries().map(e => Math.round(e.duration)))).observe({type: 'longtask'}); }"""


@pytest.fixture
def large(loopback: None) -> Iterator[tuple[Shown, str]]:  # noqa: ARG001
    source = Shown(large_view())
    with served(source) as base:
        yield source, base


def test_large_fleet_has_few_elements_and_every_job(large: tuple[Shown, str], open_tab: OpenTab) -> None:
    source, base = large
    tab = open_tab(base)
    page = tab.show("jobs?state=waiting")
    expect(page.get_by_role("link", name="Waiting")).to_contain_text("1,000")
    assert page.locator(".jobs .body .row").count() < 60
    times = {"jobs": measured(page)}
    page.evaluate(LONG_TASKS)
    source.change("jobs", "cluster-00/team/job-0002", reason="changed while it scrolls")
    times["scroll"] = page.evaluate(SCROLL)
    expect(page.locator(".jobs .body .row[aria-rowindex='1001']")).to_be_visible()
    assert page.locator(".jobs .body .row").count() < 60
    times["longTasks"] = page.evaluate("window.longTasks")
    tab.show("queues")
    assert page.locator(".cluster-section").count() == 20
    assert page.locator(".cluster-section .queue").count() == 100
    times["queues"] = measured(page)
    print(f"\npage of 20 clusters, 2,000 queues, 2,000 jobs: {json.dumps(times)}")  # noqa: T201


def test_large_snapshot_is_shown_by_the_command(tmp_path: Path, open_tab: OpenTab) -> None:
    """All of it is read before the address is printed, so that the first reader does not wait."""
    snapshot = write_large_fleet(tmp_path)
    times: dict[str, Any] = {}
    with serving("--repo", str(tmp_path), "--snapshot", str(snapshot)) as base:
        tab = open_tab(base)
        page = tab.show("jobs?state=waiting")
        expect(page.locator("#banner")).to_contain_text("This is a snapshot")
        expect(page.get_by_role("link", name="Waiting")).to_contain_text("1,000")
        expect(page.get_by_role("link", name="Active")).to_contain_text("2,000")
        for view, most in {"jobs": 2_000, "queues": 10_000, "fleet": 3_000, "plan": 10_000}.items():
            tab.show(view)
            assert page.locator("*").count() < most
            times[view] = {**measured(page), **page.evaluate(SCROLL)}
        assert tab.problems == []
    print(f"\nsnapshot of 20 clusters, 2,000 queues, 2,000 jobs: {json.dumps(times)}")  # noqa: T201


def measured(page: Page) -> dict[str, float]:
    """Milliseconds until something was painted, and until the data were there."""
    return {"firstPaint": round(page.evaluate(PAINT) or -1), "data": round(page.evaluate("performance.now()"))}
