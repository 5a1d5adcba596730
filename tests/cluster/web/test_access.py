"""Who may look: real tokens, checked by a real API server."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import expect

from reconciler.clients.kubernetes import ApiServer
from reconciler.sandbox.fleet import Sandbox
from reconciler.web.auth import FLEET_PATH, Reviewer
from reconciler.web.events import Feed
from reconciler.web.server import WebServer
from tests.cluster.accounts import account
from tests.cluster.web.conftest import OpenTab
from tests.cluster.web.reading import get, get_with
from tests.cluster.web.served import REFRESH, Shown
from tests.support import eventually

FLEET_RULES: list[dict[str, Any]] = [{"nonResourceURLs": [FLEET_PATH], "verbs": ["get"]}]
CACHED = 0.5
PARTS = ("view", "plan", "history", "events")
OTHERS = ("finetune", "nightly", "10.0.3.1", "pools.east.spot")


@pytest.fixture
def api(fleet: Sandbox) -> ApiServer:
    return fleet.api("manager")


@pytest.fixture
def guarded(api: ApiServer, shown: Shown) -> Iterator[str]:
    """The page as it is served elsewhere than on loopback."""
    server = WebServer("--ui", "127.0.0.1:0", Feed(shown, REFRESH), Reviewer(lambda: api, CACHED))
    yield f"http://127.0.0.1:{server.port}"
    server.close()


@contextmanager
def tenant(api: ApiServer, name: str, namespace: str) -> Iterator[str]:
    """The token of an account that may get LocalQueues of one namespace."""
    rules = [{"apiGroups": ["kueue.x-k8s.io"], "resources": ["localqueues"], "verbs": ["get", "list"]}]
    role = {"kind": "Role", "metadata": {"name": name, "namespace": namespace}, "rules": rules}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    binding = {
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [subject],
    }
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for manifest in (role, binding):
        api.create({"apiVersion": "rbac.authorization.k8s.io/v1", **manifest})
    try:
        with account(api, name, []) as visiting:
            yield visiting.access.token
    finally:
        api.delete(f"/api/v1/namespaces/{namespace}")


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("header", ["", "Bearer wrong", "Bearer eyJhbGciOiJub25lIn0.e30.", "Basic YTpi"])
def test_reader_without_a_valid_token_gets_401_and_no_data(part: str, header: str, guarded: str) -> None:
    answer = get(f"{guarded}/api/{part}", **({"Authorization": header} if header else {}))
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert not any(word in answer.body for word in (*OTHERS, "clusters", "hub"))


def test_reader_with_the_right_for_the_fleet_sees_everything(api: ApiServer, guarded: str, unique: str) -> None:
    with account(api, unique, FLEET_RULES) as visiting:
        answers = {
            part: get_with(visiting.access.token, f"{guarded}/api/{part}") for part in ("view", "plan", "history")
        }
    assert {answer.status for answer in answers.values()} == {200}
    assert all(word in answers["view"].body for word in OTHERS)


def test_tenant_sees_its_namespace_and_nothing_else(
    api: ApiServer, guarded: str, unique: str, shown: Shown, open_tab: OpenTab
) -> None:
    namespace = f"{unique}-biology"
    shown.view = json.loads(
        json.dumps(shown.view).replace('"biology"', f'"{namespace}"').replace("biology/", f"{namespace}/")
    )
    with tenant(api, unique, namespace) as token:
        view = get_with(token, f"{guarded}/api/view")
        assert view.status == 200
        assert {job["namespace"] for job in json.loads(view.body)["jobs"]} == {namespace}
        assert {queue["name"] for queue in json.loads(view.body)["queues"]} == {"research"}
        assert not any(word in view.body for word in OTHERS)
        assert get_with(token, f"{guarded}/api/plan").status == 403
        assert get_with(token, f"{guarded}/api/history").status == 403
        page = open_tab(guarded).page
        page.goto(f"{guarded}/jobs?state=ended")
        page.get_by_label("Token").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("does not accept this token")
        page.get_by_label("Token").fill(token)
        page.keyboard.press("Enter")
        expect(page.locator("#banner")).to_contain_text(f"You see the namespaces {namespace}")
        expect(page.locator(".jobs .body .row")).to_have_count(2)
        assert page.context.cookies() == []


def test_reader_with_no_right_gets_403_and_no_data(api: ApiServer, guarded: str, unique: str) -> None:
    with account(api, unique, []) as visiting:
        answer = get_with(visiting.access.token, f"{guarded}/api/view")
    assert answer.status == 403
    assert not any(word in answer.body for word in OTHERS)


def test_revoked_token_ends_an_open_page(api: ApiServer, guarded: str, unique: str, open_tab: OpenTab) -> None:
    tab = open_tab(guarded)
    with account(api, unique, FLEET_RULES) as visiting:
        token = visiting.access.token
        tab.page.goto(f"{guarded}/fleet")
        tab.page.get_by_label("Token").fill(token)
        tab.page.keyboard.press("Enter")
        expect(tab.page.locator("h1")).to_have_text("Fleet")
    eventually(lambda: get_with(token, f"{guarded}/api/view").status == 401, 30)
    expect(tab.page.get_by_role("alert")).to_be_visible()
    assert not any(word in tab.text("body") for word in ("north", "vision", "reachable"))
    assert tab.violations() == []


def test_page_behind_a_proxy_goes_on_with_the_next_token(
    api: ApiServer, guarded: str, unique: str, open_tab: OpenTab, shown: Shown
) -> None:
    """A proxy with a login sends a token with each request, and a newer one before the last one is over."""
    page = open_tab(guarded).page
    with account(api, f"{unique}-new", FLEET_RULES) as new:
        with account(api, f"{unique}-old", FLEET_RULES) as old:
            page.context.set_extra_http_headers({"Authorization": f"Bearer {old.access.token}"})
            page.goto(f"{guarded}/fleet")
            expect(page.locator("h1")).to_have_text("Fleet")
            page.context.set_extra_http_headers({"Authorization": f"Bearer {new.access.token}"})
        eventually(lambda: get_with(old.access.token, f"{guarded}/api/view").status == 401)
        shown.view = {**shown.view, "fleet": "renamed"}
        expect(page.locator("#fleet-name")).to_have_text("renamed")
        assert page.get_by_label("Token").count() == 0


def test_manager_that_does_not_answer_for_a_while_costs_no_login(
    api: ApiServer, shown: Shown, unique: str, open_tab: OpenTab
) -> None:
    managers = [api]
    feed, reviewer = Feed(shown, REFRESH), Reviewer(lambda: next(iter(managers), None), CACHED)
    with closing(WebServer("--ui", "127.0.0.1:0", feed, reviewer)) as server, account(api, unique, FLEET_RULES) as user:
        page = open_tab(f"http://127.0.0.1:{server.port}").page
        page.goto(f"http://127.0.0.1:{server.port}/fleet")
        page.get_by_label("Token").fill(user.access.token)
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Fleet")
        managers.clear()
        expect(page.locator("#banner .bad")).to_contain_text("The connection to kfleet is lost")
        expect(page.locator(".clusters")).to_contain_text("reachable")
        managers.append(api)
        expect(page.locator("#banner .bad")).to_have_count(0)
        assert page.get_by_label("Token").count() == 0


def test_server_without_a_reviewer_listens_on_loopback_only(shown: Shown, loopback: None) -> None:  # noqa: ARG001
    with pytest.raises(Exception, match="is not a loopback address"):
        WebServer("--listen", "0.0.0.0:0", Feed(shown, timedelta()), None)
