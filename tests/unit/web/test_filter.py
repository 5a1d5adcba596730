import json
import re

import jsonschema

from reconciler.web.auth import NOT_SHOWN, WHOLE_FLEET, Record, ViewScope, namespaces_in, narrow
from tests.support import ROOT
from tests.unit.web.views import example_view

BIOLOGY = ViewScope(is_fleet=False, namespaces=frozenset({"biology"}))
OTHERS = ("vision", "platform", "training", "batch", "resnet-large", "finetune", "nightly", "sweep", "10.0.3.1")


def test_whole_fleet_is_the_view_itself() -> None:
    view = example_view()
    assert narrow(view, WHOLE_FLEET) is view


def test_tenant_sees_its_jobs_queues_and_clusters() -> None:
    shown = narrow(example_view(), BIOLOGY)
    assert {job["namespace"] for job in shown["jobs"]} == {"biology"}
    assert {job["name"] for job in shown["jobs"]} >= {"fold"}
    assert {queue["name"] for queue in shown["queues"]} == {"research"}
    assert {tenant["name"] for tenant in shown["tenants"]} == {"biology"}
    assert {entry["name"] for entry in shown["joined"]} == {"research"}
    assert {"hub", "east"} <= {cluster["name"] for cluster in shown["clusters"]}


def test_tenant_sees_no_name_of_another_tenant() -> None:
    assert words_of_others(narrow(example_view(), BIOLOGY)) == []
    assert words_of_others(example_view()) == list(OTHERS)


def test_tenant_sees_the_words_of_kueue_and_not_the_story_that_names_other_jobs() -> None:
    view = example_view()
    job = next(one for one in view["jobs"] if one["name"] == "fold")
    job |= {"state": "pending", "reason": "insufficient quota", "why": "waits: preempted by Job/vision/finetune"}
    (shown,) = (one for one in narrow(view, BIOLOGY)["jobs"] if one["name"] == "fold")
    assert (shown["reason"], shown["why"]) == ("insufficient quota", "")


def test_tenant_sees_that_a_cluster_was_not_observed_and_not_why() -> None:
    view = example_view()
    view["jobs"][0] |= {"namespace": "biology", "runsOn": "north", "copies": [], "reason": ""}
    shown = narrow(view, BIOLOGY)
    north = next(cluster for cluster in shown["clusters"] if cluster["name"] == "north")
    assert north["reachable"] is False
    assert [gap["why"] for gap in north["gaps"]] == [NOT_SHOWN]
    assert (north["inSync"], north["changes"], north["unhealthy"]) == (None, None, None)


def test_tenant_sees_neither_capacity_nor_revision_nor_who_borrows() -> None:
    view = example_view()
    for queue in view["queues"]:
        for entry in queue["resources"] or ():
            entry["backing"] = {"nodes": 6, "pools": ["nats/east.spot"]}
    shown = narrow(view, BIOLOGY)
    assert (shown["pools"], shown["revision"], shown["cohorts"]) == (None, "", [])
    assert {(queue["cohort"], *queue["cohortPath"]) for queue in shown["queues"]} == {("",)}
    resources = [entry for queue in shown["queues"] for entry in queue["resources"]]
    assert {entry["borrowedFrom"] for entry in resources} == {None}
    assert [entry["backing"] for entry in resources] == [{"nodes": 6, "pools": None}] * len(resources)
    assert not any(word in json.dumps(shown) for word in ("nats/", "company", '"ml"'))


def test_queue_whose_local_queues_are_unknown_is_shown_to_its_tenants() -> None:
    view = example_view()
    unseen = {**view["queues"][0], "id": "x/q", "name": "q", "localQueues": None, "resources": None}
    view["queues"] = [{**unseen, "tenants": ["biology"]}, {**unseen, "id": "x/other", "tenants": ["vision"]}]
    assert [queue["id"] for queue in narrow(view, BIOLOGY)["queues"]] == ["x/q"]


def test_reader_of_one_namespace_of_a_tenant_does_not_see_the_sums_of_the_tenant() -> None:
    view = example_view()
    view["tenants"] = [{**view["tenants"][0], "name": "both", "namespaces": ["biology", "secret"]}]
    assert narrow(view, BIOLOGY)["tenants"] == []


def test_nothing_is_seen_without_a_namespace_of_the_fleet() -> None:
    shown = narrow(example_view(), ViewScope(is_fleet=False, namespaces=frozenset({"elsewhere"})))
    assert [shown[name] for name in ("jobs", "queues", "clusters", "joined", "tenants", "gaps")] == [[]] * 6


def test_narrowed_view_still_matches_its_schema() -> None:
    schema = json.loads((ROOT / "schemas" / "view.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    assert list(validator.iter_errors(narrow(example_view(), BIOLOGY))) == []


def test_namespaces_are_those_of_queues_jobs_and_tenants() -> None:
    view = example_view()
    view["jobs"] = [{**view["jobs"][0], "namespace": "of-a-job"}]
    view["tenants"] = [{**view["tenants"][0], "namespaces": ["of-a-tenant"]}]
    view["queues"] = [
        {**view["queues"][0], "localQueues": ["of-a-queue/jobs"]},
        {**view["queues"][0], "localQueues": None},
    ]
    assert namespaces_in(view) == ("of-a-job", "of-a-queue", "of-a-tenant")


def words_of_others(view: Record) -> list[str]:
    text = json.dumps(view)
    return [word for word in OTHERS if re.search(rf"\b{re.escape(word)}\b", text)]
