"""What of an observed cluster goes into its twin."""

from dataclasses import replace

import orjson
import pytest

from reconciler.kueue.kinds import GROUP
from reconciler.objects import ClusterName
from reconciler.simulate import twin
from reconciler.simulate.restore import (
    CHECK_CONTROLLER,
    check_notes,
    parked_workloads,
    put_aside,
    restored_namespaces,
    restored_nodes,
    restored_objects,
    waiting_workloads,
    why_unknown,
)
from tests.builders import cpu_group, namespace_object, native, resource_flavor
from tests.unit.view.live_objects import (
    ADMITTED,
    condition,
    live_queue,
    live_workload,
    local_queue_of,
    lost_cluster,
    multikueue_check,
    seen_cluster,
)

NAMESPACE = namespace_object("team", labels={"site": "east", "kubernetes.io/metadata.name": "team"})


def test_workload_keeps_what_decides_about_its_order_and_its_quota() -> None:
    running = live_workload("one", *ADMITTED, job="train", held={"cpu": "2"}, created=7, maximumExecutionTimeSeconds=9)
    running["status"] |= {"clusterName": "west", "nominatedClusterNames": ["west"]}
    running["metadata"] |= {"resourceVersion": "12"}
    (found,) = restored_objects(seen_cluster("east", running))
    assert (found["metadata"]["uid"], found["metadata"]["creationTimestamp"]) == ("one", "2026-11-18T15:07:00Z")
    assert found["status"] == {"conditions": [*ADMITTED], "admission": running["status"]["admission"]}
    # Neither an owner that is not in the twin, nor a limit on its time that has passed since.
    assert not {"ownerReferences", "resourceVersion"} & found["metadata"].keys()
    assert found["spec"] == {"queueName": "main"}


def test_waiting_workload_forgets_only_what_it_said_about_quota() -> None:
    waiting = live_workload(
        "one", condition("QuotaReserved", "False", "Pending", "3 more needed"), condition("Evicted")
    )
    (found,) = waiting_workloads(seen_cluster("east", waiting))
    assert [one["type"] for one in found["status"]["conditions"]] == ["Evicted"]


def test_workloads_that_kueue_has_tried_are_parked_unless_their_queue_is_strict() -> None:
    tried = condition("QuotaReserved", "False", "Pending", "3 more needed")
    workloads = [
        live_workload("tried", tried),
        live_workload("equal"),
        live_workload("new", created=9, priority=1),
        live_workload("first", created=9, priority=5),
        live_workload("inactive", tried, active=False),
        live_workload("delayed", tried, status={"requeueState": {"requeueAt": "2026-11-18T18:00:00Z"}}),
        live_workload("runs", *ADMITTED, held={"cpu": "1"}),
    ]
    loose = seen_cluster("east", live_queue("a", cpu_group("8")), local_queue_of("a"), *workloads)
    assert [one["metadata"]["name"] for one in parked_workloads(loose)] == ["tried", "equal"]
    assert [one["metadata"]["name"] for one in waiting_workloads(loose)] == ["first", "new", "delayed", "inactive"]
    assert [one["metadata"]["name"] for one in restored_objects(loose) if one["kind"] == "Workload"] == ["runs"]
    strict = live_queue("a", cpu_group("8"), queueingStrategy="StrictFIFO")
    seen = seen_cluster("east", strict, local_queue_of("a"), *workloads)
    assert not [*parked_workloads(seen)] and len([*waiting_workloads(seen)]) == 6


def test_workload_that_is_put_aside_keeps_the_count_of_its_requeues() -> None:
    found = put_aside(live_workload("one", status={"requeueState": {"count": 2}}))
    assert found["status"]["requeueState"] == {"count": 2, "requeueAt": "2100-01-01T00:00:00Z"}


def test_ended_and_going_workloads_stay_out() -> None:
    going = live_workload("going", *ADMITTED)
    going["metadata"] |= {"deletionTimestamp": "2026-11-18T15:00:00Z"}
    assert [*restored_objects(seen_cluster("east", going, live_workload("ended", condition("Finished"))))] == []


def test_queues_come_without_status_and_checks_belong_to_the_stand_in() -> None:
    cluster = seen_cluster("east", live_queue("a", cpu_group("8"), "2"), multikueue_check(), local_queue_of("a"))
    found = {one["kind"]: one for one in restored_objects(cluster)}
    assert "status" not in found["ClusterQueue"] and found["ClusterQueue"]["spec"]["resourceGroups"]
    assert found["AdmissionCheck"]["spec"] == {"controllerName": CHECK_CONTROLLER}
    assert found["AdmissionCheck"]["status"]["conditions"][0]["status"] == "True"
    assert found["LocalQueue"]["spec"] == {"clusterQueue": "a"}


def test_checks_that_are_ready_at_once_are_said() -> None:
    budget = native("AdmissionCheck", "budget", {"controllerName": "example.org/budget"})
    sent, other = check_notes(seen_cluster("east", multikueue_check(), budget))
    assert sent.startswith("each cluster is played alone: MultiKueue")
    assert other == "admission checks are ready at once: budget"
    assert [*check_notes(seen_cluster("east"))] == []


def test_object_of_an_older_version_is_converted() -> None:
    old = native("ClusterQueue", "a", {"cohort": "all"}, uid="u1") | {"apiVersion": f"{GROUP}/v1beta1"}
    (found,) = restored_objects(seen_cluster("east", old))
    assert (found["apiVersion"], found["spec"]) == (f"{GROUP}/v1beta2", {"cohortName": "all"})
    assert found["metadata"]["uid"] == "u1"


def test_namespaces_of_users_keep_their_labels() -> None:
    system = [namespace_object(name) for name in ("kube-system", "default", "kueue-system")]
    (found,) = restored_namespaces(seen_cluster("east", NAMESPACE, *system))
    assert found["metadata"] == {"name": "team", "labels": {"site": "east"}}


def test_nodes_are_needed_only_beside_a_topology() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u", "labels": {"rack": "1"}}}
    assert restored_nodes(seen_cluster("east", node, resource_flavor("plain"))) == ()
    (found,) = restored_nodes(seen_cluster("east", node, resource_flavor("near", topologyName="racks")))
    assert found["metadata"] == {"name": "n", "labels": {"rack": "1"}}


def test_cluster_that_was_not_observed_completely_is_unknown() -> None:
    assert why_unknown(lost_cluster("east")) == "the cluster was not observed"
    assert why_unknown(seen_cluster("east")) == "Namespace could not be listed"
    assert why_unknown(seen_cluster("east", NAMESPACE)) == ""


def test_topology_whose_nodes_were_left_out_of_the_snapshot_is_unknown() -> None:
    whole = seen_cluster("east", NAMESPACE, resource_flavor("near", topologyName="racks"))
    assert why_unknown(whole) == ""
    lists = {kind: found for kind, found in whole.objects.items() if kind != ("", "Node")}
    assert why_unknown(replace(whole, objects=lists)) == "Node could not be listed"


@pytest.mark.parametrize(
    ("manifest", "key"),
    [
        (live_workload("one"), "/twin1/kueue.x-k8s.io/workloads/team/one"),
        (native("Cohort", "all"), "/twin1/kueue.x-k8s.io/cohorts/all"),
    ],
)
def test_key_of_an_object_is_the_one_that_an_api_server_reads(manifest: dict[str, object], key: str) -> None:
    assert twin.key_of(ClusterName("twin1"), manifest) == key


def test_batches_stay_below_the_limits_of_etcd() -> None:
    small, large = orjson.dumps("x"), b"x" * (twin.MOST_BYTES - 1)
    assert [len(batch) for batch in twin._batches([small] * 250)] == [100, 100, 50]
    assert [len(batch) for batch in twin._batches([small, large, small, small])] == [1, 1, 2]
    assert [len(batch) for batch in twin._batches([small] * 3, 1)] == [1, 1, 1]
