"""The page with real clusters behind it."""

import json
import re
from contextlib import AbstractContextManager

import pytest
from playwright.sync_api import expect

from tests.builders import flavor, main_job, main_tenant, observed_flavor, open_queue
from tests.cluster.controller.controllers import Controller
from tests.cluster.live_fleet import LiveFleet
from tests.cluster.multikueue.drains import end, start_fleet, submit, where
from tests.cluster.web.conftest import OpenTab
from tests.cluster.web.reading import get
from tests.cluster.web.served import serving
from tests.support import eventually, revive

PLANTED = "planted-secret-4711"


def running_ui(live_fleet: LiveFleet) -> AbstractContextManager[str]:
    return serving("--repo", str(live_fleet.folder), "--refresh", "1", "--cluster-timeout", "15")


def test_job_is_seen_from_waiting_to_finished_without_a_reload(live_fleet: LiveFleet, open_tab: OpenTab) -> None:
    name = live_fleet.name
    live_fleet.commit(flavor(name), open_queue(name, name, {"cpu": "1"}), main_tenant(name, name))
    live_fleet.converge()
    with running_ui(live_fleet) as address:
        tab = open_tab(address)
        page = tab.show(f"jobs?queue={name}")
        live_fleet.api().create(main_job("first", name, seconds=3600))
        row = page.locator(".jobs .body .row:has-text('first')")
        expect(row).to_contain_text("on worker1", timeout=60_000)
        live_fleet.api().create(main_job("second", name, seconds=3600))
        waiting = page.locator(".jobs .body .row:has-text('second')")
        expect(waiting).to_contain_text("cpu: 1 more needed", timeout=60_000)
        expect(waiting).to_contain_text("place 1")
        live_fleet.api().delete(f"/apis/batch/v1/namespaces/{name}/jobs/first?propagationPolicy=Background")
        expect(waiting).to_contain_text("on worker1", timeout=60_000)
        finish(live_fleet, "second")
        expect(waiting).to_have_count(0, timeout=60_000)
        page.get_by_role("link", name="Ended").click()
        expect(page.locator(".jobs .body .row:has-text('second')")).to_contain_text("finished")
        page.get_by_role("link", name="Plan", exact=True).click()
        expect(page.locator("main")).to_contain_text("no changes", timeout=60_000)
        assert tab.requests.count(f"{address}/api/events") == 1
        assert tab.problems == []


def finish(live_fleet: LiveFleet, job: str) -> None:
    pods = f"/api/v1/namespaces/{live_fleet.name}/pods"
    api = live_fleet.api()
    (pod,) = eventually(
        lambda: [one for one in api.list(pods, f"job-name={job}") if one["status"].get("phase") == "Running"], 60
    )
    api.patch(f"{pods}/{pod['metadata']['name']}/status", {"status": {"phase": "Succeeded"}})


def test_dispatched_job_shows_its_worker_and_a_dead_worker_becomes_unknown(
    wide_live_fleet: LiveFleet, open_tab: OpenTab
) -> None:
    start_fleet(wide_live_fleet)
    name = wide_live_fleet.name
    submit(wide_live_fleet, "train")
    worker = where(wide_live_fleet, "train")
    dead = next(one for one in ("worker1", "worker2") if one != worker)
    with running_ui(wide_live_fleet) as address:
        tab = open_tab(address)
        page = tab.show(f"jobs?queue={name}-q")
        expect(page.locator(".jobs .body .row")).to_contain_text(f"on {name}-{worker}", timeout=60_000)
        page.get_by_role("link", name="Queues").click()
        section = page.locator(f".cluster-section:has(h2:text-is('{name}-{dead}'))")
        expect(section.locator(".queue").first).to_contain_text("used", timeout=60_000)
        wide_live_fleet.sandbox.kill(f"{dead}/kube-apiserver")
        try:
            expect(page.locator("#banner")).to_contain_text(f"not seen: {name}-{dead}", timeout=60_000)
            expect(section.locator(".queue").first).to_contain_text("unknown")
            assert not re.search(r"\b0\b", section.inner_text().replace(name, ""))
            page.get_by_role("link", name="Fleet").click()
            # By its name: the manager's row names the dead worker too, as soon as Kueue has lost it.
            expect(page.locator(f".clusters .row:has(.name:text-is('{name}-{dead}'))")).to_contain_text("not seen")
        finally:
            revive(wide_live_fleet.sandbox, dead)
        expect(page.locator("#banner")).not_to_contain_text("not seen", timeout=90_000)
    end(wide_live_fleet, worker, "train")


def test_secrets_and_credentials_are_nowhere_in_what_is_served(wide_live_fleet: LiveFleet) -> None:
    """Planted in everything that kfleet reads: Secrets, Jobs, and the kubeconfigs of the workers."""
    start_fleet(wide_live_fleet)
    name, api = wide_live_fleet.name, wide_live_fleet.api("manager")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "planted", "namespace": name}}
    api.create({**secret, "stringData": {"token": PLANTED}})
    job = main_job("planted", name, seconds=3600)
    job["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": PLANTED}]
    api.create(job)
    path = f"/api/v1/namespaces/kueue-system/secrets/multikueue-{name}-worker1"
    kubeconfig = api.get(path)["data"]["kubeconfig"]
    with running_ui(wide_live_fleet) as address:
        eventually(lambda: json.loads(get(f"{address}/api/plan").body)["plan"], 60)
        eventually(lambda: "planted" in get(f"{address}/api/view").body, 60)
        everything = "".join(get(f"{address}/api/{part}").body for part in ("view", "plan", "history"))
    assert PLANTED not in everything
    assert kubeconfig not in everything and "BEGIN CERTIFICATE" not in everything
    assert not re.search(r"eyJ[A-Za-z0-9_-]{20,}", everything)


def test_controller_serves_the_page_with_the_plan_of_its_cycle(live_fleet: LiveFleet, open_tab: OpenTab) -> None:
    name = live_fleet.name
    live_fleet.commit(observed_flavor(name, "nodes"), open_queue(name, name), main_tenant(name, name))
    controller = Controller(live_fleet.folder, ("--revision", "master", "--ui", "127.0.0.1:0"))
    try:
        (line,) = eventually(lambda: controller.said("page"), 30)
        eventually(lambda: live_fleet.finds("clusterqueues", name), 60)
        tab = open_tab(f"http://127.0.0.1:{line['port']}")
        page = tab.show("fleet")
        expect(page.locator(".clusters .row:has-text('worker1')")).to_contain_text("in sync", timeout=60_000)
        tab.show("plan")
        expect(page.locator("main")).to_contain_text("Made at")
        tab.show("queues")
        expect(page.locator(".queue")).to_contain_text("0 of 9 used")
        tab.show("capacity")
        expect(page.locator(f".pools .body .row:has-text('worker1/{name}')")).to_contain_text("fresh")
    finally:
        assert controller.stop() == 0


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1.attacker.example:80"])
def test_page_without_a_login_is_not_served_under_another_name(host: str, address: str) -> None:
    answer = get(f"{address}/api/view", Host=host)
    assert answer.status == 421
    assert "clusters" not in answer.body
