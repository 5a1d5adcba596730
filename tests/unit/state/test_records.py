"""What stands on live objects is what earlier versions of kfleet wrote there, to the letter."""

import pytest

from reconciler.objects import ClusterName, Manifest
from reconciler.render.compute import compute_desired
from reconciler.spec.model import AccessSpec
from reconciler.state.applyset import Address, Inventory, SetName, parent_manifest, read_parent
from reconciler.state.tracking import (
    add_tracking_metadata,
    as_text,
    fingerprints,
    read_text,
    recorded_fields,
    recorded_name,
    with_record,
)
from reconciler.state.values import content
from tests.unit.plan.paper_clusters import QUEUE, parse

NAME = SetName("research", "kueue-system")


def test_parent_is_a_config_map_with_the_uids_and_addresses_of_the_fleet() -> None:
    inventory = Inventory(
        kinds=frozenset({"Cohort.kueue.x-k8s.io"}),
        fleet={"west": "uid-2", "east": "uid-1"},
        addresses={"east": Address("kueue-system", AccessSpec(context="e"))},
    )
    parent = parent_manifest(NAME, inventory, ClusterName("hub"), "uid-0")
    assert (parent["apiVersion"], parent["kind"]) == ("v1", "ConfigMap")
    assert parent["metadata"]["annotations"] == {
        "applyset.kubernetes.io/tooling": "kfleet/v1",
        "applyset.kubernetes.io/contains-group-kinds": "Cohort.kueue.x-k8s.io",
        "applyset.kubernetes.io/additional-namespaces": "",
        "kfleet.dev/cluster": "hub",
        "kfleet.dev/cluster-uid": "uid-0",
    }
    assert parent["data"] == {
        "east": '{"uid":"uid-1","namespace":"kueue-system","context":"e"}',
        "west": '{"uid":"uid-2"}',
    }
    read = read_parent(parent)
    assert read is not None and (read.fleet, read.addresses) == (inventory.fleet, inventory.addresses)


def test_parent_with_a_broken_uid_is_read_without_it() -> None:
    records = {"east": '{"uid":"uid-1"}', "west": "{", "north": '{"uid":3}', "south": "[]"}
    parent = {"metadata": {}, "data": records}
    read = read_parent(parent)
    assert read is not None and read.fleet == {"east": "uid-1"}


def test_object_says_under_known_names_whose_it_is_and_what_was_wanted() -> None:
    (flavor, _) = compute_desired(parse(QUEUE)).objects
    written = with_record(add_tracking_metadata(flavor.manifest, flavor, NAME), flavor, None)["metadata"]
    assert written["labels"] == {"applyset.kubernetes.io/part-of": NAME.id}
    assert list(written["annotations"]) == ["kfleet.dev/wanted"]


def test_record_is_of_the_fields_that_git_names_and_not_of_the_tracking_metadata() -> None:
    (_, queue) = compute_desired(parse(QUEUE)).objects
    written = with_record(add_tracking_metadata(queue.manifest, queue, NAME), queue, None)
    assert recorded_fields(written) == fingerprints(content(queue.manifest))


@pytest.mark.parametrize("live", [{}, {"metadata": {}}, {"metadata": {"annotations": {"team": "a"}}}])
def test_object_of_another_tool_has_no_record(live: Manifest) -> None:
    assert (recorded_name(live), recorded_fields(live)) == ("", frozenset())


def test_fingerprints_are_those_that_are_on_live_objects_already() -> None:
    """Others would make a change of git of everything that drifted before kfleet was upgraded."""
    found = fingerprints({"spec": {"cohortName": "science", "nominalQuota": "9000m"}})
    assert as_text(found) == "zoA07jk2"
    assert read_text("zoA07jk2") == found
