"""The five views in a real browser: what they show, for whom they work, and how they change."""

from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection

import pytest
from playwright.sync_api import expect

from reconciler.web import server
from tests.cluster.web.conftest import OpenTab, Scheme
from tests.cluster.web.served import Shown, served
from tests.unit.web.views import example_history, example_plan

VIEWS = {"fleet": "Fleet", "queues": "Queues", "jobs": "Jobs", "plan": "Plan", "capacity": "Capacity"}
FINETUNE = "hub/vision/pytorchjob-finetune-1a2b3"
OTHERS = ("queues?by=name", f"jobs?job={FINETUNE}", "jobs?q=nothing+has+this", "plan?show=text")
REFUSED = {"reason": "too_many", "cluster": "west", "object": "", "problem": "more deletes than allowed"}
PLAN = example_plan()
PLAN["plan"]["refusals"] = [REFUSED]
TOO_WIDE = """[...document.querySelectorAll('main *, dialog[open] *')]
    .filter(one => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest('pre, .visually-hidden'))
    .map(one => one.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_has_an_address_and_nothing_goes_wrong_in_it(view: str, address: str, open_tab: OpenTab) -> None:
    tab = open_tab(address)
    page = tab.show(view)
    assert tab.text("h1") == VIEWS[view]
    expect(page.locator("#views a[aria-current=page]")).to_have_text(VIEWS[view])
    assert tab.problems == []
    assert [url for url in tab.requests if not url.startswith(f"{address}/")] == []
    assert page.context.cookies() == []


def test_fleet_shows_clusters_with_their_state(address: str, open_tab: OpenTab) -> None:
    tab = open_tab(address)
    tab.show("fleet")
    east = tab.text(".clusters .body .row:has-text('east')")
    assert "reachable" in east and "2 changes" in east and "1 drift" in east and "1 issue" in east
    north = tab.text(".clusters .body .row:has-text('north')")
    assert "not seen" in north and north.count("unknown") == 4


def test_unknown_is_said_and_never_shown_as_zero(address: str, open_tab: OpenTab, shown: Shown) -> None:
    for queue in shown.view["queues"]:
        shown.change("queues", queue["id"], pending=None, admitted=None, resources=None)
    shown.view = {**shown.view, "pools": None, "jobs": []}
    tab = open_tab(address)
    tab.show("queues")
    card = tab.text(".tree > .queue")
    assert "unknown waiting" in card and "unknown admitted" in card and "Quota unknown" in card and "0" not in card
    tab.show("capacity")
    assert "unknown" in tab.text("main")
    tab.show("jobs")
    assert "may have jobs" in tab.text("main")


def test_queues_show_the_tree_and_what_is_borrowed(address: str, open_tab: OpenTab) -> None:
    tab = open_tab(address)
    page = tab.show("queues")
    assert page.locator(".cohort .cohort .queue h4:has-text('training')").count() >= 1
    labels = [bar.get_attribute("aria-label") or "" for bar in page.locator("svg.bar").all()]
    assert any("52 of 96 used" in label for label in labels)
    assert any("borrowed" in label for label in labels)


def test_cohort_shows_the_sum_of_what_is_below_it(address: str, open_tab: OpenTab) -> None:
    page = open_tab(address).show("queues?cluster=west")
    assert page.locator(".cohort > .quotas").all_inner_texts() == ["cpu ondemand\n14 of 32 reserved"] * 2


def test_jobs_are_in_order_with_their_reason_and_place(address: str, open_tab: OpenTab, shown: Shown) -> None:
    tab = open_tab(address)
    page = tab.show("jobs?state=waiting&queue=training")
    assert page.locator(".jobs .body .name").all_inner_texts()[:2] == ["finetune", "render-many"]
    first = tab.text(".jobs .body .row")
    assert "place 1" in first and first.count("place") == 1 and "nvidia.com/gpu: 2 more needed in flavor any" in first
    assert "preempted by PyTorchJob/vision/finetune" in tab.text(".jobs .body .row:has-text('render-many')")
    shown.change("jobs", FINETUNE, why="never: place 1 of queue training on hub; nvidia.com/gpu: 64 requested")
    reason = page.locator(".jobs .body .row").first.locator(".clip-two").first
    expect(reason).to_have_text("never: nvidia.com/gpu: 64 requested")
    tab.show("jobs?state=running")
    assert "on east" in tab.text(".jobs .body .row:has-text('fold')")


def test_ended_job_says_where_it_ran(address: str, open_tab: OpenTab) -> None:
    tab = open_tab(address)
    tab.show("jobs?state=ended")
    assert "Job finished successfully · on east" in tab.text(".jobs .body .row:has-text('align')")
    tab.show("jobs?state=ended&job=hub/biology/job-broken-1a2b3")
    details = tab.text("dialog")
    assert "Ran on\nnot recorded" in details and "nowhere yet" not in details


def test_search_of_the_plan_that_finds_nothing_says_so(address: str, open_tab: OpenTab, shown: Shown) -> None:
    shown.plan = PLAN
    tab = open_tab(address)
    tab.show("plan?q=nothing")
    assert tab.text("main .empty") == "No change matches."


def test_plan_shows_changes_and_text(address: str, open_tab: OpenTab, shown: Shown) -> None:
    tab = open_tab(address)
    tab.show("plan")
    assert "unknown" in tab.text("main")
    shown.plan = PLAN
    expect(tab.page.locator(".change-head")).to_have_count(2)
    text = tab.text("main")
    assert "2 to update" in text and "41 unchanged" in text and "east/ClusterQueue/training" in text
    assert "Never → Any drift (kubectl-edit)" in text and "32 → 28 spec" in text
    assert "more deletes than allowed" in text and "connection refused" in text
    affected = tab.page.locator(".problems", has_text="Who is affected")
    expect(affected).to_contain_text("reclaimable: east/RayJob/vision/resnet-large (queue training, tenant vision)")
    tab.page.get_by_role("link", name="Text").click()
    expect(tab.page.locator("pre")).to_have_text(PLAN["text"])
    assert tab.page.url.endswith("/plan?show=text")


def test_plan_names_the_quotas_before_and_after(address: str, open_tab: OpenTab, shown: Shown) -> None:
    shown.plan = PLAN
    tab = open_tab(address)
    tab.show("plan")
    quotas = tab.text(".problems:has(h2:text-is('Quota'))")
    assert "east/training (vision), cpu of flavor spot: nominal 32 → 28, with borrowing 48 → 44, 30 in use" in quotas
    assert "east/new, cpu of flavor spot: nominal none → 8, with borrowing 0 → 8, 0 in use" in quotas


def test_plan_of_many_changes_shows_some_and_says_how_many_there_are(
    address: str, open_tab: OpenTab, shown: Shown
) -> None:
    change = PLAN["plan"]["clusters"][0]["changes"][0]
    changes = [{**change, "object": f"east/ClusterQueue/queue-{number:03}"} for number in range(150)]
    clusters = [{"name": name, "changes": changes} for name in ("east", "west")]
    shown.plan = {**PLAN, "plan": {**PLAN["plan"], "clusters": clusters}}
    page = open_tab(address).show("plan")
    expect(page.locator(".change-head")).to_have_count(200)
    assert "150 changes" in page.locator(".cluster-section").last.inner_text()
    assert "and 100 more" in page.locator(".cluster-section").last.inner_text()
    page.get_by_label("cluster", exact=True).select_option("west")
    expect(page.locator(".change-head")).to_have_count(150)


def test_history_of_a_source_is_a_line_with_a_gap_where_it_was_silent(
    shown: Shown,
    open_tab: OpenTab,
    loopback: None,  # noqa: ARG001
) -> None:
    with served(shown, example_history(datetime.now(UTC))) as address:
        tab = open_tab(address)
        page = tab.show("capacity")
        lines = page.locator(".pools .row:has-text('pools.east.spot') svg.sparkline")
        expect(lines).to_have_count(2)
        assert (lines.first.get_attribute("aria-label") or "").startswith("cpu: 48 now, from 40 to 64 since ")
        parts = [one.get_attribute("points") or "" for one in lines.first.locator("polyline").all()]
        assert len(parts) == 2 and parts[0].startswith("0.00,3.00 8.33,3.00 33.3")
        assert "40 to 64" in tab.text(".pools .row:has-text('pools.east.spot') .series")
        unseen = tab.text(".pools .row:has-text('north/ondemand')")
        assert unseen.count("unknown") == 3 and "no samples yet" in unseen and "no quota" not in unseen
        assert page.locator("main :text('too few samples')").count() == 0
        assert (tab.violations(), tab.problems) == ([], [])


def test_jobs_of_a_cluster_are_those_with_a_copy_there_too(address: str, open_tab: OpenTab, shown: Shown) -> None:
    copies = [{"cluster": name, "workload": "wl", "state": "pending"} for name in ("east", "west")]
    shown.change("jobs", FINETUNE, state="reserved", runsOn="", copies=copies)
    page = open_tab(address).show("jobs?state=waiting&cluster=west")
    assert page.locator(".jobs .body .name").all_inner_texts() == ["finetune"]


@pytest.mark.parametrize(
    ("view", "name", "entries"),
    [
        ("queues?by=name", "joined", ".tree > .queue"),
        ("queues?cluster=west", "queues", ".tree > .queue"),
        ("capacity", "pools", ".pools .body .row"),
        ("fleet", "tenants", ".tenants > li"),
    ],
)
def test_long_list_shows_some_and_all_on_demand(
    view: str, name: str, entries: str, address: str, open_tab: OpenTab, shown: Shown
) -> None:
    entry = next(one for one in shown.view[name] if one.get("cluster", "west") == "west")
    many = [{**entry, "name": f"{number}", "id": f"west/{number}"} for number in range(400)]
    shown.view = {**shown.view, name: many}
    page = open_tab(address).show(view)
    expect(page.locator(entries)).to_have_count(150)
    page.get_by_role("button", name="Show all 400").click()
    expect(page.locator(entries)).to_have_count(400)
    assert page.get_by_role("button", name="Show all").count() == 0


def test_job_is_followed_without_a_reload(address: str, open_tab: OpenTab, shown: Shown) -> None:
    tab = open_tab(address)
    page = tab.show("jobs")
    row = page.locator(".jobs .body .row:has(.name:text-is('finetune'))")
    row.evaluate("element => { element.isTheSame = true; }")
    row.locator(".name").focus()
    shown.change("jobs", FINETUNE, state="running", runsOn="west", position=None, reason="")
    expect(row).to_contain_text("on west")
    assert row.evaluate("element => element.isTheSame") is True
    expect(page.locator(".jobs .name:has-text('finetune')")).to_be_focused()
    shown.change("jobs", FINETUNE, state="finished")
    expect(row).to_have_count(0)
    assert tab.requests.count(f"{address}/api/events") == 1


def test_filters_are_part_of_the_address(address: str, open_tab: OpenTab) -> None:
    tab = open_tab(address)
    page = tab.show("jobs")
    page.get_by_role("searchbox").fill("fold")
    page.get_by_label("tenant", exact=True).select_option("biology")
    expect(page.locator(".jobs .body .row")).to_have_count(1)
    other = open_tab(address)
    other.show(page.url.removeprefix(f"{address}/"))
    assert other.page.locator(".jobs .body .name").all_inner_texts() == ["fold"]
    assert other.page.get_by_role("searchbox").input_value() == "fold"


def test_page_works_with_the_keyboard_alone(address: str, open_tab: OpenTab) -> None:
    tab = open_tab(address)
    page = tab.show("fleet")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to content")).to_be_focused()
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Jobs")
    page.keyboard.press("/")
    page.keyboard.type("pytorchjob-finetune")
    expect(page.locator(".jobs .body .row")).to_have_count(1)
    page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.matches('select')"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("insufficient unused quota")
    assert "job=hub" in page.url
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.evaluate("document.activeElement.textContent") == "finetune"


def test_old_view_and_missing_clusters_are_said(address: str, open_tab: OpenTab, shown: Shown) -> None:
    tab = open_tab(address)
    page = tab.show("fleet")
    assert "1 cluster not seen: north" in tab.text("#banner")
    assert page.locator("#banner .bad").count() == 0
    shown.is_old = True
    expect(page.locator("#banner .bad")).to_contain_text("What is shown is")


def test_snapshot_is_said_and_ages_are_those_of_its_time(address: str, open_tab: OpenTab, shown: Shown) -> None:
    shown.is_live, shown.is_old = False, True
    taken, job = datetime(2020, 5, 4, 12, tzinfo=UTC), shown.view["jobs"][0]
    shown.view = {**shown.view, "takenAt": taken.isoformat()}
    shown.change("jobs", job["id"], since=(taken - timedelta(minutes=5)).isoformat())
    tab = open_tab(address)
    tab.show(f"jobs?q={job['name']}")
    assert "This is a snapshot: everything is as it was at May 4, 2020" in tab.text("#banner")
    assert tab.text(".jobs .body .since") == "5 min"


def test_lost_server_is_said_and_data_stay(shown: Shown, open_tab: OpenTab, loopback: None) -> None:  # noqa: ARG001
    with served(shown) as address:
        tab = open_tab(address)
        tab.show("fleet")
    expect(tab.page.locator("#banner .bad")).to_contain_text("The connection to kfleet is lost")
    assert "reachable" in tab.text(".clusters")


def test_stream_whose_view_is_rarely_read_is_not_silent(
    shown: Shown,
    loopback: None,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The page would take it for lost, and open another one again and again."""
    monkeypatch.setattr(server, "HEARTBEAT", timedelta(milliseconds=50))
    with served(shown, refresh=timedelta(hours=1)) as address:
        connection = HTTPConnection(address.removeprefix("http://"), timeout=20)
        connection.request("GET", "/api/events")
        stream = connection.getresponse()
        lines = [stream.readline() for _ in range(40)]
        connection.close()
    assert lines[0] == b"event: view\n"
    assert lines.count(b": \n") > 5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", [*VIEWS, *OTHERS])
def test_axe_finds_no_violation(view: str, scheme: Scheme, address: str, open_tab: OpenTab, shown: Shown) -> None:
    shown.plan = PLAN
    tab = open_tab(address, scheme=scheme)
    tab.show(view)
    assert tab.violations() == []


def test_details_of_a_job_begin_with_their_first_line_on_a_narrow_screen(address: str, open_tab: OpenTab) -> None:
    page = open_tab(address, width=360, height=600).show(f"jobs?job={FINETUNE}")
    dialog = page.get_by_role("dialog")
    assert dialog.evaluate("element => element.scrollHeight > element.clientHeight")
    assert dialog.evaluate("element => element.scrollTop") < 30
    expect(dialog.get_by_role("heading", name="finetune")).to_be_focused()


def test_reason_has_two_lines_on_a_narrow_screen(address: str, open_tab: OpenTab) -> None:
    page = open_tab(address, width=360, height=800).show("jobs")
    row = page.locator(".jobs .body .row:has-text('render-many')")
    reason = row.locator(".clip-two").first.bounding_box() or {"height": 0, "y": 0}
    queue = row.locator(".cell.queue").bounding_box() or {"y": 0}
    assert 30 < reason["height"] <= queue["y"] - reason["y"]


def test_quota_with_long_names_is_readable_on_a_narrow_screen(address: str, open_tab: OpenTab) -> None:
    page = open_tab(address, width=360, height=800).show("queues?cluster=east")
    names = page.locator(".quota-name").all()
    assert len(names) == 5  # cpu of two cohorts, cpu and GPUs of training, cpu of research
    assert all((name.bounding_box() or {"height": 999})["height"] < 60 for name in names)


@pytest.mark.parametrize("width", [360, 1920])
@pytest.mark.parametrize("view", [*VIEWS, *OTHERS])
def test_page_fits_narrow_and_wide_screens(
    view: str, width: int, address: str, open_tab: OpenTab, shown: Shown
) -> None:
    shown.plan = PLAN
    tab = open_tab(address, width=width, height=800)
    page = tab.show(view)
    assert tab.overflow() <= 0
    assert page.evaluate(TOO_WIDE) == []
