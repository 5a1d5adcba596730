"""Flavors that a queue has to keep because workloads hold them."""

from typing import Any

import pytest

from reconciler.objects import ClusterName, Manifest, Ref, ref_of
from reconciler.render.compute import compute_desired
from reconciler.render.model import DesiredObject
from reconciler.render.running import drops_flavor, keep_used_flavors
from tests.builders import Document, cpu_group, flavor, native, open_queue, spec_of

EAST = ClusterName("east")
QUEUE = open_queue("q", "new", {"cpu": "8"}, clusters={"names": ["east"]})


def wanted(*documents: Document) -> list[DesiredObject]:
    return [*compute_desired(spec_of(*(documents or (flavor("new"), QUEUE)))).of_cluster(EAST)]


def workload(name: str, queue: str, conditions: list[Any] | None = None, **usage: str) -> Manifest:
    """What was admitted with some cpu of each flavor."""
    assignments = [
        {"name": flavor, "flavors": {"cpu": flavor}, "resourceUsage": {"cpu": amount}}
        for flavor, amount in usage.items()
    ]
    admission = {"clusterQueue": queue, "podSetAssignments": assignments}
    made = native("Workload", name, {})
    return {
        **made,
        "metadata": {"name": name, "namespace": "team1"},
        "status": {"admission": admission, "conditions": conditions or []},
    }


def seen(*manifests: Manifest) -> dict[Ref, Manifest]:
    return {ref_of(EAST, manifest): manifest for manifest in manifests}


OLD = native("ResourceFlavor", "old", {})


def quotas(*manifests: Manifest, objects: list[DesiredObject] | None = None) -> dict[str, Any]:
    (entry,) = keep_used_flavors(objects or wanted(), seen(*manifests), is_seen=True)
    (group,) = entry.manifest["spec"]["resourceGroups"]
    return {one["name"]: one["resources"][0] for one in group["flavors"]}


@pytest.mark.parametrize(
    ("workloads", "new"),
    [
        ([workload("a", "q", old="4")], "4"),
        ([workload("a", "q", old="4"), workload("b", "q", old="4")], "0"),
        ([workload("a", "q", old="12")], "0"),
        # What the new one holds stays its own, so that nobody can reclaim it.
        ([workload("a", "q", old="8"), workload("b", "q", new="3")], "3"),
        ([workload("a", "q", old="4"), workload("b", "other", old="4")], "4"),
    ],
)
def test_queue_keeps_a_flavor_in_use_with_nothing_and_the_new_one_gets_the_rest(
    workloads: list[Manifest], new: str
) -> None:
    found = quotas(OLD, *workloads)
    assert {name: one["nominalQuota"] for name, one in found.items()} == {"new": new, "old": "0"}


def test_queue_keeps_nothing_back_from_flavors_of_other_nodes() -> None:
    other = native("ResourceFlavor", "old", {"nodeLabels": {"class": "old"}})
    found = quotas(other, workload("a", "q", old="4"))
    assert {name: one["nominalQuota"] for name, one in found.items()} == {"new": "8", "old": "0"}


def queue_with(**quotas: str) -> list[DesiredObject]:
    entries = [{"flavor": name, "resources": {"cpu": cpu}} for name, cpu in quotas.items()]
    return wanted(*map(flavor, quotas), {**QUEUE, "spec": {**QUEUE["spec"], "quota": entries}})


@pytest.mark.parametrize(
    ("after", "kept"),
    [
        ({"other": "20"}, {"other": "20", "old": "0"}),
        ({"other": "20", "new": "8"}, {"other": "20", "new": "3", "old": "0"}),
        ({"other": "28"}, {"other": "23", "old": "0"}),
        ({"other": "10"}, {"other": "10", "old": "0"}),
    ],
)
def test_flavor_that_the_queue_has_already_loses_nothing_for_one_that_goes(
    after: dict[str, str], kept: dict[str, str]
) -> None:
    """On a manager of MultiKueue no flavor has labels, so each could be the new name of every other one."""
    (there,) = [one.manifest for one in queue_with(other="20", old="8") if one.ref.kind == "ClusterQueue"]
    held = (workload("a", "q", old="5"), workload("b", "q", other="2"))
    found = quotas(OLD, there, *held, objects=queue_with(**after))
    assert {name: one["nominalQuota"] for name, one in found.items()} == kept


def test_queue_of_a_cohort_borrows_nothing_for_a_flavor_that_goes_and_lends_no_more_than_it_has() -> None:
    entry = {"flavor": "new", "resources": {"cpu": "8"}, "lendingLimit": {"cpu": "6"}}
    objects = wanted(flavor("new"), {**QUEUE, "spec": {**QUEUE["spec"], "cohort": "all", "quota": [entry]}})
    found = quotas(OLD, workload("a", "q", old="4"), objects=objects)
    assert found["old"]["borrowingLimit"] == "0"
    assert (found["new"]["nominalQuota"], found["new"]["lendingLimit"]) == ("4", "4")


@pytest.mark.parametrize(
    "manifest",
    [
        workload("a", "q", [{"type": "Finished", "status": "True"}], old="4"),
        workload("a", "other", old="4"),
        workload("a", "q", new="4"),
    ],
)
def test_queue_keeps_no_flavor_that_nothing_of_it_holds(manifest: Manifest) -> None:
    assert not [*keep_used_flavors(wanted(), seen(OLD, manifest), is_seen=True)]


def test_queue_says_what_it_keeps_and_until_when() -> None:
    (entry,) = keep_used_flavors(wanted(), seen(OLD, workload("a", "q", old="5")), is_seen=True)
    assert entry.notes == (
        "flavor old stays with 0 until the 1 workloads that hold 5 cpu of it have ended",
        "flavor new gets 3 of 8 cpu until then: both flavors use the same nodes",
    )
    assert entry.by_spec is not None and entry.origin


def test_queue_that_loses_a_flavor_stays_as_it_is_while_workloads_cannot_be_seen() -> None:
    live = native("ClusterQueue", "q", {"resourceGroups": [cpu_group("8", of="old")]})
    (entry,) = keep_used_flavors(wanted(), seen(live), is_seen=False)
    assert entry.held == "it loses a flavor, and the workloads that may use it could not be observed"
    (queue,) = [one for one in wanted() if one.ref.kind == "ClusterQueue"]
    assert drops_flavor(queue, live) and not drops_flavor(queue, None)
