"""The examples of the page fit together, and are what kfleet would make."""

import json
from datetime import UTC, datetime, timedelta

from jsonschema import Draft202012Validator

from reconciler.spec.schema import schema_folder
from tests.unit.web.views import as_of, example_history, example_plan, example_view

NOW = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


def test_plan_is_what_its_schema_says_and_what_the_view_counts() -> None:
    plan = example_plan()["plan"]
    schema = json.loads((schema_folder() / "plan.json").read_text())
    assert list(Draft202012Validator(schema).iter_errors(plan)) == []
    ((name, changes),) = [(one["name"], one["changes"]) for one in plan["clusters"]]
    cluster = next(one for one in example_view()["clusters"] if one["name"] == name)
    drift = [one for one in changes if any(field["cause"] == "drift" for field in one["fields"])]
    assert (len(changes), len(drift)) == (cluster["changes"], cluster["drift"])


def test_joined_queues_and_tenants_count_the_jobs_of_the_view() -> None:
    view = example_view()
    for entry, field in [
        *((one, "clusterQueue") for one in view["joined"]),
        *((one, "tenant") for one in view["tenants"]),
    ]:
        states = [job["state"] for job in view["jobs"] if job[field] == entry["name"]]
        assert entry["pending"] == sum(state in {"pending", "reserved", "evicted"} for state in states), entry["name"]
        running = sum(state in {"admitted", "running"} for state in states)
        assert entry["running"] == (None if "unknown" in states else running), entry["name"]


def test_history_is_about_sources_of_the_view_and_ends_before_now() -> None:
    samples = [*example_history(NOW)]
    assert {name for one in samples for name, _ in one.amounts} <= {pool["name"] for pool in example_view()["pools"]}
    assert [one.at for one in samples] == sorted(one.at for one in samples)
    assert NOW - timedelta(hours=6) == samples[0].at < samples[-1].at < NOW


def test_times_of_the_view_stay_as_long_ago() -> None:
    before, after = example_view(), as_of(example_view(), NOW)
    assert after["takenAt"] == "2026-11-20T09:00:00Z"
    for old, new in zip(before["jobs"], after["jobs"], strict=True):
        assert (old["since"] is None) == (new["since"] is None)
        ages = [
            datetime.fromisoformat(view["takenAt"]) - datetime.fromisoformat(job["created"])
            for view, job in ((before, old), (after, new))
        ]
        assert ages[0] == ages[1]
