"""Which cluster answers, and what it says; what Kueue itself says to the same is asked elsewhere."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.admission.decide import RUNS_ALREADY, RUNS_UNSEEN, check
from reconciler.admission.fit import MOST_COPIES
from reconciler.admission.jobs import read_submission
from reconciler.admission.model import AdmissionIssue, AdmissionReason, Answer, Verdict
from reconciler.admission.state import ClusterState, FleetState
from reconciler.kueue.quota_tree import Usage
from reconciler.objects import ClusterName
from tests.builders import (
    CLUSTERS,
    Document,
    annotated,
    asking,
    cluster_document,
    deployment,
    flavor,
    job,
    job_set,
    local_queue,
    mini_cluster,
    native,
    observed_flavor,
    pod,
    pod_spec,
    queue,
    quota,
    resource_flavor,
    tenant,
)
from tests.unit.admission.answers import FLAVOR, QUEUE, SENT, TENANT, answer, checked, research_queue, state_of

EAST, WEST, PICKY = ClusterName("east"), ClusterName("west"), ClusterName("picky")
ONE = pod_spec(asking(cpu="1"))
TEN = pod_spec(asking(cpu="10"))


@pytest.fixture
def plain() -> FleetState:
    """A queue on both workers, which run their jobs themselves."""
    return state_of(FLAVOR, QUEUE, TENANT)


@pytest.fixture
def sent() -> FleetState:
    """A queue of the manager, which sends its jobs to both workers."""
    return state_of(FLAVOR, SENT, TENANT)


def reasons(found: Answer) -> list[AdmissionReason]:
    return [issue.reason for issue in found.issues]


def research_job(pod: Document, **spec: Any) -> Document:
    return job("a", pod, queue="research", **spec)


def labelled(manifest: Document) -> Document:
    manifest["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "research"}
    return manifest


def test_check_asks_every_cluster_that_has_the_queue(plain: FleetState) -> None:
    found = checked(research_job(ONE), plain)
    assert [(one.cluster, one.runs_on) for one in found.answers] == [(EAST, (EAST,)), (WEST, (WEST,))]
    assert found.verdict is Verdict.ADMITTED


def test_check_asks_the_cluster_that_is_named(plain: FleetState) -> None:
    assert [one.cluster for one in checked(research_job(ONE), plain, "west").answers] == [WEST]


def test_check_asks_the_manager_where_it_has_the_queue(sent: FleetState) -> None:
    found = answer(research_job(ONE), sent)
    assert (found.cluster, found.verdict, found.runs_on) == ("hub", Verdict.ADMITTED, (EAST, WEST))
    assert [one.assignments[0].flavors for one in found.workers] == [{"cpu": "cpu"}] * 2


def test_check_gives_a_document_the_best_of_its_answers(plain: FleetState) -> None:
    stopped = replace(plain, clusters={**plain.clusters, EAST: replace(plain.clusters[EAST], queues={})})
    found = checked(research_job(ONE), stopped)
    assert [one.verdict for one in found.answers] == [Verdict.NEVER, Verdict.ADMITTED]
    assert found.verdict is Verdict.ADMITTED


def test_job_that_fits_the_sum_of_the_workers_but_none_of_them_is_never_admitted(sent: FleetState) -> None:
    found = answer(research_job(TEN), sent)
    assert (found.verdict, reasons(found)) == (Verdict.NEVER, [AdmissionReason.NO_WORKER])
    assert [reasons(one) for one in found.workers] == [[AdmissionReason.TOO_LARGE]] * 2


def test_job_runs_on_the_workers_that_have_room_for_it(sent: FleetState) -> None:
    less = replace(sent, clusters={**sent.clusters, EAST: replace(sent.clusters[EAST], local_queues={})})
    found = answer(research_job(ONE), less)
    assert (found.verdict, found.runs_on) == (Verdict.ADMITTED, (WEST,))
    assert reasons(found.workers[0]) == [AdmissionReason.NO_LOCAL_QUEUE]


def test_worker_that_was_not_seen_is_not_guessed(sent: FleetState) -> None:
    seen = {name: state for name, state in sent.clusters.items() if name == "hub"}
    found = answer(research_job(ONE), replace(sent, clusters=seen, lost={EAST: "timed out", WEST: "timed out"}))
    assert (found.verdict, reasons(found)) == (Verdict.UNKNOWN, [AdmissionReason.NO_WORKER])
    assert found.workers[0].issues == (AdmissionIssue(Verdict.UNKNOWN, AdmissionReason.NOT_SEEN, "timed out"),)


def test_cluster_that_was_not_seen_is_unknown(plain: FleetState) -> None:
    nothing = replace(plain, clusters={}, lost={ClusterName("hub"): "timed out"})
    assert answer(research_job(ONE), nothing).verdict is Verdict.UNKNOWN


def test_mini_cluster_is_kept_off_a_queue_that_sends_its_jobs_away(sent: FleetState) -> None:
    manifest = mini_cluster("a", 1, containers=[asking(cpu="1")], jobLabels={"kueue.x-k8s.io/queue-name": "research"})
    found = answer(manifest, sent)
    assert (found.verdict, reasons(found)) == (Verdict.NEVER, [AdmissionReason.NOT_SENT])
    assert "ConfigMaps" in found.issues[0].problem
    assert answer(manifest, sent, "east").verdict is Verdict.ADMITTED


def test_job_that_another_controller_manages_is_not_sent(sent: FleetState) -> None:
    found = answer(research_job(ONE, managedBy="example.org/other"), sent)
    assert reasons(found) == [AdmissionReason.NOT_SENT]
    assert answer(research_job(ONE, managedBy="kueue.x-k8s.io/multikueue"), sent).verdict is Verdict.ADMITTED


def test_job_that_requests_nothing_that_the_queue_covers_is_not_sent(sent: FleetState, plain: FleetState) -> None:
    """Kueue would admit it on the manager, and it would hang there."""
    nothing = research_job(pod_spec(asking()))
    found = answer(nothing, sent)
    assert (found.verdict, found.issues[0].reason) == (Verdict.NEVER, AdmissionReason.NOT_SENT)
    assert "requests no resource that queue research covers" in found.issues[0].problem
    assert {one.verdict for one in checked(nothing, plain).answers} == {Verdict.ADMITTED}


def test_kind_without_an_adapter_is_not_sent(sent: FleetState) -> None:
    spark = replace_framework(sent, "sparkoperator.k8s.io/sparkapplication")
    manifest = research_job(ONE)
    (found,) = checked_as(manifest, spark, "sparkoperator.k8s.io/sparkapplication")
    assert reasons(found)[0] is AdmissionReason.NOT_SENT


def replace_framework(fleet: FleetState, framework: str) -> FleetState:
    clusters = {}
    for name, state in fleet.clusters.items():
        settings = replace(state.facts.settings, frameworks=(framework,))
        clusters[name] = replace(state, facts=replace(state.facts, settings=settings))
    return replace(fleet, clusters=clusters)


def checked_as(manifest: Document, fleet: FleetState, framework: str) -> tuple[Answer, ...]:
    submission = read_submission(manifest)
    assert submission is not None
    return check(replace(submission, framework=framework), fleet).answers


def test_kind_that_kueue_does_not_manage_is_not_queued(plain: FleetState) -> None:
    found = answer(research_job(ONE), replace_framework(plain, "pod"), "east")
    assert (found.verdict, reasons(found)) == (Verdict.NOT_QUEUED, [AdmissionReason.NO_INTEGRATION])
    assert "integrations.frameworks" in found.issues[0].remedy


def test_pods_of_kueues_own_namespace_are_left_alone(plain: FleetState) -> None:
    manifest = pod("a", ONE)
    manifest["metadata"]["namespace"] = "kueue-system"
    assert reasons(answer(manifest, plain, "east")) == [AdmissionReason.NO_INTEGRATION]


def selecting(version: str = "0.19.0") -> FleetState:
    """A worker `picky` whose Kueue manages the namespaces of team a; namespace jobs is of no team."""
    config = {"managedJobsNamespaceSelector": {"matchLabels": {"team": "a"}}}
    return state_of(
        FLAVOR,
        QUEUE,
        TENANT,
        cluster_document("picky", kueue={"version": version, "config": config}),
    )


@pytest.mark.parametrize(
    "manifest", [research_job(ONE), labelled(deployment("a", ONE, replicas=2))], ids=["Job", "Deployment"]
)
def test_job_in_a_namespace_that_kueue_leaves_out_is_held_back_for_ever(manifest: Document) -> None:
    found = answer(manifest, selecting(), "picky")
    assert found.issues == (
        AdmissionIssue(
            Verdict.NEVER,
            AdmissionReason.NOT_SELECTED,
            "Kueue suspends it and never admits it: managedJobsNamespaceSelector excludes jobs",
            "label the namespace, or use another",
        ),
    )
    assert found.notes == (RUNS_UNSEEN,)


def test_default_queue_holds_back_a_job_in_a_namespace_that_kueue_leaves_out() -> None:
    fleet = selecting()
    picky = fleet.clusters[PICKY]
    local = {("jobs", "default"): picky.local_queues["jobs", "research"]}
    found = answer(
        job("a", ONE, queue=""), replace(fleet, clusters={PICKY: replace(picky, local_queues=local)}), "picky"
    )
    assert (found.verdict, reasons(found), found.queue) == (Verdict.NEVER, [AdmissionReason.NOT_SELECTED], "default")


def test_what_kueue_never_sees_in_a_namespace_that_it_leaves_out_is_not_queued() -> None:
    unlabelled = answer(job("a", ONE, queue=""), selecting(), "picky")
    assert (unlabelled.verdict, reasons(unlabelled)) == (Verdict.NOT_QUEUED, [AdmissionReason.NO_LABEL])
    bare = answer(labelled(pod("a", ONE)), selecting(), "picky")
    assert (bare.verdict, reasons(bare)) == (Verdict.NOT_QUEUED, [AdmissionReason.NO_INTEGRATION])


def test_old_kueue_asks_its_namespace_selector_about_bare_pods_alone() -> None:
    old = selecting("0.14.0")
    assert answer(research_job(ONE), old, "picky").verdict is Verdict.ADMITTED
    assert answer(labelled(pod("a", ONE)), old, "picky").verdict is Verdict.NOT_QUEUED


def test_worker_that_leaves_the_namespace_out_does_not_take_a_job() -> None:
    sent = state_of(FLAVOR, SENT, TENANT)
    east = replace(sent.clusters[EAST], facts=selecting().clusters[PICKY].facts)
    found = answer(research_job(ONE), replace(sent, clusters={**sent.clusters, EAST: east}))
    assert (found.runs_on, reasons(found.workers[0])) == ((WEST,), [AdmissionReason.NOT_SELECTED])


def test_namespace_that_kueue_may_leave_out_is_unknown_offline() -> None:
    fleet = selecting()
    unheld = replace(fleet, clusters={PICKY: replace(fleet.clusters[PICKY], namespaces={})})
    found = answer(research_job(ONE), unheld, "picky")
    assert (found.verdict, reasons(found)) == (Verdict.UNKNOWN, [AdmissionReason.NOT_SEEN])


@pytest.mark.parametrize(
    ("version", "verdict"),
    [("0.19.0", Verdict.NOT_QUEUED), ("0.16.2", Verdict.NEVER)],
)
def test_job_in_kueues_own_namespace_is_seen_by_the_webhooks_of_an_old_kueue(version: str, verdict: Verdict) -> None:
    own = cluster_document("own", kueue={"version": version})
    manifest = research_job(ONE)
    manifest["metadata"]["namespace"] = "kueue-system"
    assert answer(manifest, state_of(FLAVOR, QUEUE, TENANT, own), "own").verdict is verdict
    stateful = deployment("a", ONE, replicas=1, kind="StatefulSet")
    stateful["metadata"]["namespace"] = "kueue-system"
    assert answer(stateful, state_of(FLAVOR, QUEUE, TENANT, own), "own").verdict is Verdict.NOT_QUEUED


def test_job_without_a_label_is_held_back_where_kueue_manages_all(plain: FleetState) -> None:
    state = plain.clusters[EAST]
    settings = replace(state.facts.settings, manages_unlabelled=True)
    managing = replace(plain, clusters={EAST: replace(state, facts=replace(state.facts, settings=settings))})
    found = answer(job("a", ONE, queue=""), managing, "east")
    assert (found.verdict, reasons(found)) == (Verdict.NEVER, [AdmissionReason.NO_LABEL])
    assert found.issues[0].remedy.endswith("namespace jobs has research")


def test_job_without_a_label_goes_to_the_default_queue() -> None:
    fleet = state_of(FLAVOR, QUEUE, tenant("jobs", "research", localQueue="default"))
    found = answer(job("a", ONE, queue=""), fleet, "east")
    assert (found.verdict, found.queue, found.cluster_queue) == (Verdict.ADMITTED, "default", "research")


def test_default_queue_is_unknown_to_an_old_kueue() -> None:
    old = cluster_document("old", kueue={"version": "0.11.4"})
    fleet = state_of(FLAVOR, QUEUE, tenant("jobs", "research", localQueue="default"), old)
    assert answer(job("a", ONE, queue=""), fleet, "old").verdict is Verdict.NOT_QUEUED


def test_misspelt_queue_gets_a_suggestion(plain: FleetState) -> None:
    found = answer(job("a", ONE, queue="reserach"), plain, "east")
    assert found.issues[0].problem == "there is no LocalQueue jobs/reserach; did you mean research?"


def test_admission_issues_of_a_queue_are_reported_at_once() -> None:
    manifest = research_job(TEN, labels={"kueue.x-k8s.io/priority-class": "high"})
    stopped = state_of(FLAVOR, research_queue(stopPolicy="Hold"), TENANT)
    found = answer(manifest, stopped, "east")
    assert reasons(found) == [AdmissionReason.STOPPED, AdmissionReason.NO_PRIORITY_CLASS, AdmissionReason.TOO_LARGE]
    assert found.verdict is Verdict.NEVER


def test_unseen_capacity_is_unknown_offline() -> None:
    seen = observed_flavor("cpu", "nodes", nodeLabels={"pool": "cpu"})
    found = answer(research_job(ONE), state_of(seen, QUEUE, TENANT), "east")
    assert (found.verdict, reasons(found)) == (Verdict.UNKNOWN, [AdmissionReason.NOT_SEEN])
    assert found.issues[0].remedy == "observe the clusters with --live"


def test_queue_that_is_made_of_pools_is_unknown_offline() -> None:
    master = (
        "apiVersion: vk.io/v1\nkind: MasterQueue\nmetadata: {name: pools}\nspec:\n  template: {cohort: c}\n  flavors:\n"
        "  - name: nats\n    natsFlavor: {natsConnector: 'nats://nats:4222', natsSubject: interlink.resources,"
        " virtualNode: vk, pools: [a]}\n"
    )
    found = answer(job("a", ONE, queue="pools"), state_of(local_queue("pools", "jobs", "pools"), master), "hub")
    assert (found.verdict, reasons(found)) == (Verdict.UNKNOWN, [AdmissionReason.NOT_SEEN])


@pytest.mark.parametrize(
    ("name", "cpu", "verdict"),
    [("pools", "4", Verdict.ADMITTED), ("guests", "2", Verdict.ADMITTED), ("guests", "3", Verdict.NEVER)],
)
def test_queue_of_local_flavors_is_known_offline(name: str, cpu: str, verdict: Verdict) -> None:
    master = (
        "apiVersion: vk.io/v1\nkind: MasterQueue\nmetadata: {name: pools}\nspec:\n  template: {cohort: c}\n"
        "  flavors:\n  - name: cpu\n    localFlavor: {}\n    nominalQuota: {cpu: 4}\n"
        "    canLendTo: [{queue: guests, lendingLimit: {cpu: 2}}]\n"
    )
    fleet = state_of(resource_flavor("cpu"), local_queue(name, "jobs", name), master)
    assert answer(job("a", pod_spec(asking(cpu=cpu)), queue=name), fleet, "hub").verdict is verdict


def test_namespace_whose_labels_are_unknown_is_unknown_offline() -> None:
    selecting = research_queue(namespaceSelector={"matchLabels": {"team": "a"}})
    local = annotated(local_queue("research", "jobs", "research"), {CLUSTERS: "east"})
    found = answer(research_job(ONE), state_of(FLAVOR, selecting, local), "east")
    assert (found.verdict, reasons(found)) == (Verdict.UNKNOWN, [AdmissionReason.NOT_SEEN])


def test_check_of_others_is_reported_as_a_note() -> None:
    asking_others = research_queue(admissionChecks=["budget"])
    budget = native("AdmissionCheck", "budget", {"controllerName": "example.org/b"}, "workers")
    found = answer(research_job(ONE), state_of(FLAVOR, TENANT, asking_others, budget), "east")
    assert (found.verdict, found.notes) == (
        Verdict.ADMITTED,
        ("example.org/b decides afterwards too (AdmissionCheck budget)",),
    )


def test_priority_class_of_pods_is_only_a_note_offline(plain: FleetState) -> None:
    found = answer(research_job(pod_spec(asking(cpu="1"), priorityClassName="high")), plain, "east")
    assert (found.verdict, found.notes) == (
        Verdict.ADMITTED,
        ("whether PriorityClass high exists is not known",),
    )


def test_deployment_says_how_many_of_its_replicas_fit(plain: FleetState) -> None:
    manifest = labelled(deployment("a", pod_spec(asking(cpu="3")), replicas=4))
    found = answer(manifest, plain, "east")
    assert found.issues[0].problem == (
        "2 of its 4 replicas fit at the same time: flavor cpu: cpu 9 is requested, but the queue can get 8"
    )


def test_deployment_of_any_size_whose_pods_ask_for_nothing_is_admitted(plain: FleetState) -> None:
    manifest = labelled(deployment("a", pod_spec(asking()), replicas=10**15))
    assert answer(manifest, plain, "east").verdict is Verdict.ADMITTED


def test_deployment_with_more_replicas_than_are_played_is_unknown(plain: FleetState) -> None:
    tiny = pod_spec(asking(memory="1"))
    played = labelled(deployment("a", tiny, replicas=MOST_COPIES))
    assert answer(played, plain, "east").verdict is Verdict.ADMITTED
    found = answer(labelled(deployment("a", tiny, replicas=10**15)), plain, "east")
    assert (found.verdict, reasons(found)) == (Verdict.UNKNOWN, [AdmissionReason.NOT_SEEN])
    assert found.issues[0].problem == (
        "10000 of its 1000000000000000 replicas fit at the same time; more are not simulated"
    )


def test_resources_that_kueue_does_not_count_need_no_quota() -> None:
    config = "{resources: {excludeResourcePrefixes: [example.org/]}}"
    cluster = f"kind: Cluster\nmetadata: {{name: own}}\nspec: {{role: worker, kueue: {{config: {config}}}}}\n"
    manifest = research_job(pod_spec({"name": "a", "resources": {"requests": {"cpu": "1", "example.org/disk": "4"}}}))
    fleet = state_of(FLAVOR, QUEUE, TENANT, cluster)
    assert answer(manifest, fleet, "own").verdict is Verdict.ADMITTED
    assert reasons(answer(manifest, fleet, "east")) == [AdmissionReason.NOT_COVERED]


def test_cohorts_that_are_their_own_ancestors_admit_nothing(plain: FleetState) -> None:
    state = replace(plain.clusters[EAST], tree=None, usage={})
    found = answer(research_job(ONE), replace(plain, clusters={EAST: state}), "east")
    assert (found.verdict, reasons(found)) == (Verdict.NEVER, [AdmissionReason.INACTIVE])


def test_what_is_not_played_is_reported_as_a_note(plain: FleetState) -> None:
    state = plain.clusters[EAST]
    settings = replace(state.facts.settings, transformed=frozenset({"cpu"}))
    fleet = replace(plain, clusters={EAST: replace(state, facts=replace(state.facts, settings=settings))})
    manifest = research_job(ONE)
    manifest["spec"]["template"]["metadata"] = {"annotations": {"kueue.x-k8s.io/podset-preferred-topology": "rack"}}
    found = answer(manifest, fleet, "east")
    assert found.notes == (
        "Kueue counts cpu in other units there, which is not simulated here",
        "whether its pods fit into the topology is not simulated here",
    )


def test_queue_that_sends_its_jobs_nowhere_admits_nothing(sent: FleetState) -> None:
    hub = sent.clusters[ClusterName("hub")]
    found = answer(research_job(ONE), replace(sent, clusters={hub.name: replace(hub, multikueue_configs={})}))
    assert [one.problem for one in found.issues] == ["the queue has no worker"]
    assert found.verdict is Verdict.NEVER


def test_priority_class_of_a_workload_is_needed_on_the_manager_alone() -> None:
    high = (
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\n"
        "metadata: {name: high, annotations: {kfleet.dev/clusters: hub}}\nvalue: 100\n"
    )
    manifest = research_job(ONE, labels={"kueue.x-k8s.io/priority-class": "high"})
    assert answer(manifest, state_of(FLAVOR, SENT, TENANT, high)).runs_on == (EAST, WEST)
    assert reasons(answer(manifest, state_of(FLAVOR, QUEUE, TENANT, high), "east")) == [
        AdmissionReason.NO_PRIORITY_CLASS
    ]


def test_priority_class_of_pods_is_needed_where_they_run(sent: FleetState) -> None:
    east = sent.clusters[EAST]
    bare = replace(east, facts=replace(east.facts, pod_priorities=frozenset()))
    found = answer(
        research_job(pod_spec(asking(cpu="1"), priorityClassName="high")),
        replace(sent, clusters={**sent.clusters, EAST: bare}),
    )
    assert (found.runs_on, reasons(found.workers[0])) == ((WEST,), [AdmissionReason.NO_PRIORITY_CLASS])


def test_worker_that_the_manager_cannot_reach_gets_no_job_now(sent: FleetState) -> None:
    hub = sent.clusters[ClusterName("hub")]
    lost = replace(sent, clusters={**sent.clusters, hub.name: with_connections(hub, EAST)})
    found = answer(research_job(ONE), lost)
    assert (found.verdict, found.runs_on) == (Verdict.ADMITTED, (WEST,))
    assert found.workers[0].issues == (
        AdmissionIssue(
            Verdict.WAITS,
            AdmissionReason.INACTIVE,
            "MultiKueueCluster east is inactive: connection refused",
            "kfleet status shows how to fix it",
        ),
    )
    nowhere = replace(sent, clusters={**sent.clusters, hub.name: with_connections(hub, EAST, WEST)})
    assert answer(research_job(ONE), nowhere).verdict is Verdict.WAITS


def with_connections(hub: ClusterState, *lost: ClusterName) -> ClusterState:
    """The manager, which cannot reach these workers."""
    condition = {
        "type": "Active",
        "status": "False",
        "reason": "ClientConnectionFailed",
        "message": "connection refused",
    }
    connections = {
        name: {**manifest, "status": {"conditions": [condition] if name in lost else []}}
        for name, manifest in hub.multikueue_clusters.items()
    }
    return replace(hub, multikueue_clusters=connections)


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("0.16.2", Verdict.NEVER),
        ("0.17.5", Verdict.NEVER),
        ("0.17.6", Verdict.ADMITTED),
        ("0.18.1", Verdict.NEVER),
        ("0.18.2", Verdict.ADMITTED),
        ("0.19.0", Verdict.ADMITTED),
    ],
)
def test_old_kueue_holds_a_flavor_against_the_labels_of_its_whole_group(version: str, verdict: Verdict) -> None:
    """https://github.com/kubernetes-sigs/kueue/issues/12446"""
    half = {"cpu": "50%", "memory": "50%"}
    bare = flavor("any", {"cpu": 16, "memory": "64Gi"})
    both = queue("research", quota("cpu", half), quota("any", half))
    old = cluster_document("old", kueue={"version": version})
    fleet = state_of(FLAVOR, bare, both, TENANT, old)
    assert answer(research_job({**ONE, "nodeSelector": {"pool": "gpu"}}), fleet, "old").verdict is verdict
    assert answer(research_job({**ONE, "nodeSelector": {"zone": "mars"}}), fleet, "old").verdict is Verdict.ADMITTED


def test_capacity_of_workers_that_was_not_observed_is_unknown_on_the_manager_too() -> None:
    seen = observed_flavor("cpu", "nodes", nodeLabels={"pool": "cpu"})
    found = answer(research_job(ONE), state_of(seen, research_queue(dispatch="multikueue"), TENANT))
    assert found.verdict is Verdict.UNKNOWN
    assert found.issues[0].problem.endswith("its capacity is the sum of workers that were not observed")
    assert found.remedies == (), "how much is missing of what was not observed is not known"


def test_job_that_a_worker_admits_in_part_starts_with_the_pods_that_this_worker_has_room_for(
    sent: FleetState,
) -> None:
    """The manager has the sum of both workers, and no worker has that."""
    manifest = research_job(ONE, parallelism=40, completions=40)
    manifest["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "1"}
    found = answer(manifest, sent)
    starts = [worker.assignments[0].count for worker in found.workers]
    assert found.assignments[0].count > max(starts)
    assert found.notes == tuple(
        f"on {worker.cluster} {count} of 40 pods would start (partial admission)"
        for worker, count in zip(found.workers, starts, strict=True)
    )


def test_kind_whose_integration_is_not_known_is_said_to_be_assumed(plain: FleetState) -> None:
    manifest = labelled(job_set("a", one=(1, 1, ONE)))
    (note,) = answer(manifest, plain, "east").notes
    assert note.startswith("that Kueue manages jobset.x-k8s.io/jobset there is assumed")


def test_job_that_runs_already_is_not_counted_against_itself(sent: FleetState) -> None:
    full = {name: replace(state, usage=used_up(state)) for name, state in sent.clusters.items()}
    busy = replace(sent, clusters=full)
    waiting = research_job(ONE)
    assert answer(waiting, busy).verdict is Verdict.WAITS
    running = research_job(ONE)
    running["metadata"]["uid"], running["status"] = "1", {"active": 1}
    found = answer(running, busy)
    assert found.verdict is Verdict.ADMITTED and RUNS_ALREADY in found.notes
    assert answer(research_job(TEN) | {"status": running["status"]}, busy).verdict is Verdict.NEVER


def used_up(state: ClusterState) -> Usage:
    """Every queue uses everything that it has."""
    assert state.tree is not None
    nodes = {
        node: {pair: quota.nominal for pair, quota in one.quotas.items()} for node, one in state.tree.nodes.items()
    }
    return {**state.usage, **nodes}
