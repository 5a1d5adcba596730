"""Saved plans are applied as they were read by a person, or not at all; and what `apply` takes at all."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from reconciler.spec.schema import schema_folder
from tests.cluster.engine.worlds import World
from tests.documents import Document, flavor, queue, tenant
from tests.support import Kfleet

SCHEMA = json.loads((schema_folder() / "plan.json").read_text())


def fleet_of(name: str, *, cpu: str = "9") -> tuple[Document, ...]:
    return flavor(name), queue(name, name, cpu=cpu), tenant(name, name)


@pytest.fixture
def saved(world: World, tmp_path: Path) -> Path:
    """A saved plan of a change: one queue gets another quota."""
    world.commit(*fleet_of(world.name))
    world.converge()
    world.commit(*fleet_of(world.name, cpu="7"))
    path = tmp_path / "plan.json"
    assert world.run("plan", "--out", str(path)).code == 0
    return path


def quota_of(world: World) -> str:
    (group,) = world.queue(world.name)["spec"]["resourceGroups"]
    return str(group["flavors"][0]["resources"][0]["nominalQuota"])


def refusal_of(world: World, saved: Path, *options: str) -> str:
    """What is said where a saved plan is refused; nothing is written then."""
    before = world.quiet_versions()
    answer = world.apply("--plan", str(saved), *options)
    assert answer.code == 3, answer
    assert world.versions() == before
    assert "the saved plan is stale, nothing was written" in answer.err
    return answer.err


def test_saved_plan_is_applied_once(world: World, saved: Path) -> None:
    applied = world.apply("--plan", str(saved))
    assert (applied.code, quota_of(world)) == (0, "7"), applied
    said = refusal_of(world, saved)
    assert f"worker1/ClusterQueue/{world.name}: was to be changed, and is not any more" in said


def test_apply_tells_machines_the_plan_and_what_became_of_it(world: World) -> None:
    world.commit(*fleet_of(world.name))
    answer = world.apply("-o", "json", "--wait", "20")
    assert answer.code == 0, answer
    Draft202012Validator(SCHEMA).validate(
        {name: value for name, value in answer.record.items() if name not in {"outcomes", "notWell"}}
    )
    written = {change["object"]: change for cluster in answer.record["outcomes"] for change in cluster["changes"]}
    assert answer.actions == {name: change["action"] for name, change in written.items()}
    assert all(change["done"] for change in written.values()) and answer.record["notWell"] == []


def test_saved_plan_is_applied_by_the_command(world: World, saved: Path, kfleet: Kfleet) -> None:
    applied = kfleet("apply", "--repo", str(world.folder), "--plan", str(saved))
    assert applied.returncode == 0, applied
    assert quota_of(world) == "7"


def test_saved_plan_is_refused_after_drift_of_what_it_touches(world: World, saved: Path) -> None:
    world.kubectl("patch", f"clusterqueue/{world.name}", "--type=merge", "-p", '{"spec":{"stopPolicy":"Hold"}}')
    assert f"worker1/ClusterQueue/{world.name}: has changed since the plan was made" in refusal_of(world, saved)


def test_saved_plan_is_refused_where_there_is_more_to_do_now(world: World, saved: Path) -> None:
    world.kubectl("delete", "localqueue", "main", "-n", world.name)
    said = refusal_of(world, saved)
    assert f"worker1/LocalQueue/{world.name}/main: was not to be changed, and is now" in said


def test_saved_plan_is_refused_after_a_new_commit(world: World, saved: Path) -> None:
    before = json.loads(saved.read_text())["revision"]
    after = world.commit(*fleet_of(world.name, cpu="6"))
    assert f"revision was '{before}' and is '{after}'" in refusal_of(world, saved)
    # Whoever means the older commit says so.
    assert world.apply("--plan", str(saved), "--revision", before).code == 0
    assert quota_of(world) == "7"


def test_saved_plan_is_refused_for_another_cluster(world: World, saved: Path) -> None:
    record = json.loads(saved.read_text())
    record["clusters"][0]["uid"] = "of-another"
    saved.write_text(json.dumps(record))
    assert "worker1: is another cluster, or cannot be reached" in refusal_of(world, saved)


def test_saved_plan_of_files_that_nobody_committed_needs_to_be_told(world: World, tmp_path: Path) -> None:
    world.commit(*fleet_of(world.name))
    world.converge()
    world.write(*fleet_of(world.name, cpu="5"))
    path = tmp_path / "plan.json"
    assert world.run("plan", "--out", str(path)).code == 0
    assert json.loads(path.read_text())["revision"] == ""
    assert world.apply("--plan", str(path)).code == 3
    assert world.apply("--plan", str(path), "--working-tree").code == 0
    assert quota_of(world) == "5"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is no plan: Expecting property name"),
        ("[]", "is no plan of the format kfleet.dev/plan/v1"),
        ('{"format": "kfleet.dev/plan/v9"}', "is no plan of the format kfleet.dev/plan/v1"),
        ('{"format": "kfleet.dev/plan/v1"}', "$: 'overlay' is a required property"),
    ],
)
def test_file_that_is_no_plan_is_said_so(world: World, tmp_path: Path, text: str, problem: str) -> None:
    world.commit(*fleet_of(world.name))
    path = tmp_path / "plan.json"
    path.write_text(text)
    answer = world.apply("--plan", str(path))
    assert answer.code == 1
    assert f"error: {path}: " in answer.err and problem in answer.err


def test_plan_that_cannot_be_saved_is_said_so(world: World, tmp_path: Path) -> None:
    world.commit(flavor(world.name))
    answer = world.run("plan", "--out", str(tmp_path / "nowhere" / "plan.json"))
    assert answer.code == 1 and "cannot write: No such file or directory" in answer.err
    answer = world.plan("--out", str(world.folder / "fleet" / "fleet.yaml" / "plan.json"))
    assert answer.code == 1 and "cannot write: Not a directory" in answer.err


def test_plan_of_no_object_says_what_objects_are_like(world: World) -> None:
    world.commit(flavor(world.name))
    told = f"notice: --only 'Flavor': no object is like that; an example of one: worker1/ResourceFlavor/{world.name}\n"
    assert told in world.plan("--only", "Flavor").err
    assert "notice" not in world.plan("--only", "*/ResourceFlavor/*").err


def test_apply_refuses_files_that_nobody_committed(world: World) -> None:
    world.commit(flavor(world.name))
    world.write(flavor(f"{world.name}-other"))
    answer = world.apply()
    assert answer.code == 3 and "changes that are not committed; commit them, or see --working-tree" in answer.err
    assert world.members() == {}
    assert world.apply("--working-tree").code == 0
    assert list(world.members()) == [f"resourceflavors//{world.name}-other"]


def test_apply_refuses_a_folder_that_is_no_repository(world: World) -> None:
    world.write(flavor(world.name))
    answer = world.apply()
    assert answer.code == 3 and "is no git repository, so there is no commit to apply" in answer.err
    assert world.plan().actions == {f"worker1/ResourceFlavor/{world.name}": "create"}
    assert world.members() == {}


def test_apply_takes_the_revision_that_it_is_told(world: World) -> None:
    first = world.commit(flavor(world.name))
    world.commit(flavor(f"{world.name}-other"))
    assert world.apply("--revision", first).code == 0
    assert list(world.members()) == [f"resourceflavors//{world.name}"]


def test_exit_codes_of_plan_tell_changes_only_where_asked(world: World) -> None:
    world.commit(flavor(world.name))
    assert [world.run("plan").code, world.run("plan", "--detailed-exitcode").code] == [0, 2]
    world.converge()
    assert world.run("plan", "--detailed-exitcode").code == 0


def test_record_is_as_its_schema_says(wide_world: World) -> None:
    """Every action and some refusals and gaps, on real clusters."""
    name = wide_world.name
    wide_world.commit(*fleet_of(name), flavor(f"{name}-old"))
    valid(wide_world.plan().record)
    wide_world.converge()
    wide_world.commit(*fleet_of(name, cpu="5"), flavor(f"{name}-new"))
    valid(wide_world.plan().record)
    path = wide_world.folder / "fleet" / "fleet.yaml"
    path.write_text(path.read_text().replace("context: worker2", "context: nowhere"))
    wide_world.commit_all()
    with_gap = wide_world.plan("--confirm-deletes", "9").record
    valid(with_gap)
    assert with_gap["gaps"] and with_gap["refusals"]


def valid(record: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert list(Draft202012Validator(SCHEMA).iter_errors(record)) == []
