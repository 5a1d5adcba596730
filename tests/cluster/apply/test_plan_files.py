"""Saved plans are applied as they were read by a person, or not at all; and what `apply` takes at all."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from reconciler.spec.schema import schema_folder
from tests.builders import flavor, team_documents
from tests.cluster.live_fleet import LiveFleet
from tests.support import Kfleet

SCHEMA = json.loads((schema_folder() / "plan.json").read_text())


@pytest.fixture
def saved(live_fleet: LiveFleet, tmp_path: Path) -> Path:
    """A saved plan of a change: one queue gets another quota."""
    live_fleet.commit(*team_documents(live_fleet.name))
    live_fleet.converge()
    live_fleet.commit(*team_documents(live_fleet.name, {"cpu": "7"}))
    path = tmp_path / "plan.json"
    assert live_fleet.run("plan", "--out", str(path)).code == 0
    return path


def refusal_of(live_fleet: LiveFleet, saved: Path, *options: str) -> str:
    """What is said where a saved plan is refused; nothing is written then."""
    before = live_fleet.quiet_versions()
    answer = live_fleet.apply("--plan", str(saved), *options)
    assert answer.code == 3, answer
    assert live_fleet.versions() == before
    assert "the saved plan is stale, nothing was written" in answer.err
    return answer.err


def test_saved_plan_is_applied_once(live_fleet: LiveFleet, saved: Path) -> None:
    applied = live_fleet.apply("--plan", str(saved))
    assert (applied.code, live_fleet.nominal_quota()) == (0, "7"), applied
    said = refusal_of(live_fleet, saved)
    assert f"worker1/ClusterQueue/{live_fleet.name}: the saved plan changes it, the current plan does not" in said


def test_apply_tells_machines_the_plan_and_what_became_of_it(live_fleet: LiveFleet) -> None:
    live_fleet.commit(*team_documents(live_fleet.name))
    answer = live_fleet.apply("-o", "json", "--wait", "20")
    assert answer.code == 0, answer
    Draft202012Validator(SCHEMA).validate(
        {name: value for name, value in answer.record.items() if name not in {"outcomes", "unhealthy"}}
    )
    written = {change["object"]: change for cluster in answer.record["outcomes"] for change in cluster["changes"]}
    assert answer.actions == {name: change["action"] for name, change in written.items()}
    assert all(change["done"] for change in written.values()) and answer.record["unhealthy"] == []


def test_saved_plan_is_applied_by_the_command(live_fleet: LiveFleet, saved: Path, kfleet: Kfleet) -> None:
    applied = kfleet("apply", "--repo", str(live_fleet.folder), "--plan", str(saved))
    assert applied.returncode == 0, applied
    assert live_fleet.nominal_quota() == "7"


def test_saved_plan_is_refused_after_drift_of_what_it_touches(live_fleet: LiveFleet, saved: Path) -> None:
    live_fleet.kubectl(
        "patch", f"clusterqueue/{live_fleet.name}", "--type=merge", "-p", '{"spec":{"stopPolicy":"Hold"}}'
    )
    assert f"worker1/ClusterQueue/{live_fleet.name}: has changed since the plan was made" in refusal_of(
        live_fleet, saved
    )


def secret(name: str, **texts: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": name}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": texts}


def test_saved_plan_knows_a_secret_by_its_version(live_fleet: LiveFleet, tmp_path: Path) -> None:
    """Nothing of its values is in the plan, nor anything made of them; and still a change is noticed."""
    name, path = live_fleet.name, tmp_path / "plan.json"
    documents, ref = team_documents(name), f"worker1/Secret/{name}/{name}"
    live_fleet.commit(*documents, secret(name, word="hunter2", user="kueue"))
    live_fleet.converge()
    live_fleet.commit(*documents, secret(name, word="swordfish", user="kueue"))
    planned = live_fleet.run("plan", "-o", "json", "--out", str(path))
    change = planned.changes[ref]
    live = live_fleet.api().get(f"/api/v1/namespaces/{name}/secrets/{name}")
    assert change["liveDigest"] == f"version:{live['metadata']['resourceVersion']}"
    assert {field["path"]: field["cause"] for field in change["fields"]} == {"data.word": "spec"}
    live_fleet.kubectl("patch", f"secret/{name}", "-n", name, "--type=merge", "-p", '{"stringData":{"user":"other"}}')
    assert f"{ref}: has changed since the plan was made" in refusal_of(live_fleet, path)
    causes = {field["path"]: field["cause"] for field in live_fleet.run("plan", "-o", "json").changes[ref]["fields"]}
    assert causes == {"data.word": "spec", "data.user": "drift"}


def test_saved_plan_is_refused_where_there_is_more_to_do_now(live_fleet: LiveFleet, saved: Path) -> None:
    live_fleet.kubectl("delete", "localqueue", "main", "-n", live_fleet.name)
    said = refusal_of(live_fleet, saved)
    assert (
        f"worker1/LocalQueue/{live_fleet.name}/main: the saved plan does not change it, the current plan does" in said
    )


def test_saved_plan_is_refused_after_a_new_commit(live_fleet: LiveFleet, saved: Path) -> None:
    before = json.loads(saved.read_text())["revision"]
    after = live_fleet.commit(*team_documents(live_fleet.name, {"cpu": "6"}))
    assert f"revision was '{before}' and is '{after}'" in refusal_of(live_fleet, saved)
    # Whoever means the older commit says so.
    assert live_fleet.apply("--plan", str(saved), "--revision", before).code == 0
    assert live_fleet.nominal_quota() == "7"


def test_saved_plan_is_refused_for_another_cluster(live_fleet: LiveFleet, saved: Path) -> None:
    record = json.loads(saved.read_text())
    record["clusters"][0]["uid"] = "of-another"
    saved.write_text(json.dumps(record))
    assert "worker1: is another cluster now, or is unreachable" in refusal_of(live_fleet, saved)


def test_saved_plan_of_uncommitted_files_needs_an_option(live_fleet: LiveFleet, tmp_path: Path) -> None:
    live_fleet.commit(*team_documents(live_fleet.name))
    live_fleet.converge()
    live_fleet.write(*team_documents(live_fleet.name, {"cpu": "5"}))
    path = tmp_path / "plan.json"
    assert live_fleet.run("plan", "--out", str(path)).code == 0
    assert json.loads(path.read_text())["revision"] == ""
    assert live_fleet.apply("--plan", str(path)).code == 3
    assert live_fleet.apply("--plan", str(path), "--working-tree").code == 0
    assert live_fleet.nominal_quota() == "5"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is not a plan: Expecting property name"),
        ("[]", "is not a plan of the format kfleet.dev/plan/v1"),
        ('{"format": "kfleet.dev/plan/v9"}', "is not a plan of the format kfleet.dev/plan/v1"),
        ('{"format": "kfleet.dev/plan/v1"}', "$: 'overlay' is a required property"),
    ],
)
def test_file_that_is_not_a_plan_is_reported(live_fleet: LiveFleet, tmp_path: Path, text: str, problem: str) -> None:
    live_fleet.commit(*team_documents(live_fleet.name))
    path = tmp_path / "plan.json"
    path.write_text(text)
    answer = live_fleet.apply("--plan", str(path))
    assert answer.code == 1
    assert f"error: {path}: " in answer.err and problem in answer.err


def test_plan_that_cannot_be_saved_is_said_so(live_fleet: LiveFleet, tmp_path: Path) -> None:
    live_fleet.commit(flavor(live_fleet.name))
    answer = live_fleet.run("plan", "--out", str(tmp_path / "nowhere" / "plan.json"))
    assert answer.code == 1 and "cannot write: No such file or directory" in answer.err
    answer = live_fleet.plan("--out", str(live_fleet.folder / "fleet" / "fleet.yaml" / "plan.json"))
    assert answer.code == 1 and "cannot write: Not a directory" in answer.err


def test_plan_of_no_object_says_what_objects_are_like(live_fleet: LiveFleet) -> None:
    live_fleet.commit(flavor(live_fleet.name))
    example = f"worker1/ResourceFlavor/{live_fleet.name}"
    told = f"notice: --only 'Flavor' matched no object; names look like {example}\n"
    assert told in live_fleet.plan("--only", "Flavor").err
    assert "notice" not in live_fleet.plan("--only", "*/ResourceFlavor/*").err


def test_apply_refuses_uncommitted_files(live_fleet: LiveFleet) -> None:
    live_fleet.commit(flavor(live_fleet.name))
    live_fleet.write(flavor(f"{live_fleet.name}-other"))
    answer = live_fleet.apply()
    assert answer.code == 3 and "changes that are not committed; commit them, or see --working-tree" in answer.err
    assert live_fleet.members() == {}
    assert live_fleet.apply("--working-tree").code == 0
    assert list(live_fleet.members()) == [f"resourceflavors//{live_fleet.name}-other"]


def test_apply_refuses_a_folder_that_is_not_a_repository(live_fleet: LiveFleet) -> None:
    live_fleet.write(flavor(live_fleet.name))
    answer = live_fleet.apply()
    assert answer.code == 3 and "is not in a git repository, so there is no commit to apply" in answer.err
    assert live_fleet.plan().actions == {f"worker1/ResourceFlavor/{live_fleet.name}": "create"}
    assert live_fleet.members() == {}


def test_apply_takes_the_revision_that_is_asked_for(live_fleet: LiveFleet) -> None:
    first = live_fleet.commit(flavor(live_fleet.name))
    live_fleet.commit(flavor(f"{live_fleet.name}-other"))
    assert live_fleet.apply("--revision", first).code == 0
    assert list(live_fleet.members()) == [f"resourceflavors//{live_fleet.name}"]


def test_exit_codes_of_plan_tell_changes_only_where_asked(live_fleet: LiveFleet) -> None:
    live_fleet.commit(flavor(live_fleet.name))
    assert [live_fleet.run("plan").code, live_fleet.run("plan", "--detailed-exitcode").code] == [0, 2]
    live_fleet.converge()
    assert live_fleet.run("plan", "--detailed-exitcode").code == 0


def test_record_is_as_its_schema_says(wide_live_fleet: LiveFleet) -> None:
    """Every action and some refusals and gaps, on real clusters."""
    name = wide_live_fleet.name
    wide_live_fleet.commit(*team_documents(name), flavor(f"{name}-old"))
    valid(wide_live_fleet.plan().record)
    wide_live_fleet.converge()
    wide_live_fleet.commit(*team_documents(name, {"cpu": "5"}), flavor(f"{name}-new"))
    valid(wide_live_fleet.plan().record)
    path = wide_live_fleet.folder / "fleet" / "fleet.yaml"
    path.write_text(path.read_text().replace("context: worker2", "context: nowhere"))
    wide_live_fleet.commit_all()
    with_gap = wide_live_fleet.plan("--confirm-deletes", "9").record
    valid(with_gap)
    assert with_gap["gaps"] and with_gap["refusals"]


def valid(record: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert list(Draft202012Validator(SCHEMA).iter_errors(record)) == []
