"""What the doctor says about clusters on paper: one fault each, and nothing about healthy ones."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.doctor.examine import examine
from reconciler.doctor.model import Diagnostic, DoctorReport, Urgency, facts_of
from reconciler.doctor.text import doctor_markdown, doctor_record, doctor_text
from reconciler.importer.collect import find_roles
from reconciler.importer.model import ObservedContexts, StoredVersions
from reconciler.kueue.kinds import parse_version
from reconciler.multikueue.model import SeenCredential, Token
from reconciler.objects import ApiEndpoint, ClusterName, Gap, Manifest
from tests.builders import cluster_queue, cpu_group, local_queue, native, resource_flavor, workload
from tests.builders.fleet import Document
from tests.unit.importer.live_clusters import CONFIGURATION, HOME, NOW, namespace, on_paper

CPU = resource_flavor("cpu", nodeLabels={"class": "cpu"})


def active(manifest: Document, reason: str = "Ready", *, is_true: bool = True, message: str = "") -> Document:
    condition = {"type": "Active", "status": str(is_true), "reason": reason, "message": message}
    return {**manifest, "status": {"conditions": [condition]}}


def queue(nominal: str = "8", **spec: Any) -> Document:
    return active(cluster_queue("batch", cpu_group(nominal, of="cpu"), **spec))


def node(name: str, cpu: str = "8", **labels: str) -> Document:
    status = {"allocatable": {"cpu": cpu}, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


TEAM = active(local_queue("main", "team-a", "batch"))
NODE = node("n1", **{"class": "cpu"})
HEALTHY = (CPU, queue(), TEAM, namespace("team-a"), NODE)


def examined(*objects: Manifest, target: str = "", **settings: Any) -> DoctorReport:
    seen = replace(on_paper({HOME: objects}), **settings)
    return report_of(seen, target)


def report_of(seen: ObservedContexts, target: str = "") -> DoctorReport:
    return examine(facts_of(seen, find_roles(seen), parse_version(target) if target else None))


def found(report: DoctorReport, code: str) -> Diagnostic:
    (one,) = [one for one in report.diagnostics if one.code == code]
    return one


def test_healthy_cluster_has_no_diagnostic() -> None:
    report = examined(*HEALTHY)
    assert report.diagnostics == () and report.gaps == ()
    assert doctor_text(report) == "home (Kueue 0.19.0): nothing to say"


def test_inactive_queue_says_why_and_what_to_do_and_its_local_queue_says_nothing() -> None:
    broken = active(cluster_queue("batch", cpu_group("8", of="gone")), "FlavorNotFound", is_true=False, message="gone")
    report = examined(broken, active(TEAM, "ClusterQueueIsInactive", is_true=False), namespace("team-a"), NODE)
    one = found(report, "queue-inactive")
    assert (one.severity, one.where) == (Urgency.ERROR, "home/ClusterQueue/batch")
    assert "FlavorNotFound" in one.message and "Create the flavor" in one.remedy
    assert [other.code for other in report.diagnostics] == ["queue-inactive"]


def test_queue_that_was_stopped_on_purpose_is_a_warning() -> None:
    stopped = active(cluster_queue("batch", cpu_group("8", of="cpu")), "Stopped", is_true=False)
    assert found(examined(CPU, stopped, NODE), "queue-inactive").severity is Urgency.WARNING


def test_queue_that_no_controller_has_looked_at_is_reported() -> None:
    report = examined(CPU, cluster_queue("batch", cpu_group("8", of="cpu")), NODE)
    assert found(report, "not-processed").subject == "ClusterQueue/batch"


def test_local_queue_to_nowhere_names_a_queue_that_could_be_meant() -> None:
    lost = active(local_queue("main", "team-a", "bach"), "ClusterQueueDoesNotExist", is_true=False)
    report = examined(CPU, queue(), lost, namespace("team-a"), NODE)
    one = found(report, "lost-local-queue")
    assert one.severity is Urgency.ERROR and "did you mean batch" in one.message
    assert not [other for other in report.diagnostics if other.code == "KF009"]


def test_nothing_is_said_about_local_queues_where_queues_could_not_be_listed() -> None:
    report = examined(TEAM, namespace("team-a"))
    assert not [one for one in report.diagnostics if one.code == "lost-local-queue"]


def test_flavor_that_matches_no_node_is_reported() -> None:
    report = examined(CPU, queue(), TEAM, namespace("team-a"), node("n1", **{"class": "gpu"}))
    assert "matches no node (class=cpu)" in found(report, "flavor-without-nodes").message


def test_flavor_whose_nodes_are_all_cordoned_is_reported() -> None:
    report = examined(CPU, queue(), {**NODE, "spec": {"unschedulable": True}})
    assert "cordoned" in found(report, "flavor-without-nodes").message


def test_nothing_is_said_about_flavors_where_nodes_could_not_be_listed() -> None:
    report = examined(CPU, queue(), TEAM, namespace("team-a"))
    assert not [one for one in report.diagnostics if "node" in one.code or "flavor" in one.code]


def test_nodes_of_two_flavors_are_counted_twice() -> None:
    two = active(cluster_queue("other", cpu_group("4", of="any")))
    report = examined(CPU, resource_flavor("any"), queue("4"), two, NODE)
    one = found(report, "nodes-counted-twice")
    assert "1 node (n1)" in one.message and "ResourceFlavor/" in one.message


@pytest.mark.parametrize(
    ("quota", "code", "severity"),
    [("80", "quota-above-nodes", Urgency.WARNING), ("1", "quota-below-nodes", Urgency.ADVICE), ("9", "", None)],
)
def test_quota_is_compared_with_what_nodes_offer(quota: str, code: str, severity: Urgency | None) -> None:
    report = examined(CPU, queue(quota), TEAM, namespace("team-a"), NODE)
    about = {one.code: one.severity for one in report.diagnostics if one.code.startswith("quota")}
    assert about == ({code: severity} if severity else {})


def test_borrowing_limit_without_a_cohort_is_reported_once() -> None:
    limited = active(cluster_queue("batch", cpu_group("8", of="cpu", borrowingLimit="4")))
    report = examined(CPU, limited, TEAM, namespace("team-a"), NODE)
    assert "cpu in cpu" in found(report, "limit-without-cohort").message
    assert not [one for one in report.diagnostics if one.code == "KF126"]


def test_jobs_that_can_never_be_admitted_are_one_diagnostic_per_reason() -> None:
    jobs = [workload(name, "team-a", cpu="100") for name in ("w1", "w2", "w3", "w4")]
    one = found(examined(*HEALTHY, *jobs), "job-never-admitted")
    assert one.message.startswith("4 jobs can never be admitted (team-a/w1, team-a/w2, team-a/w3 and 1 more): ")
    assert one.subject == "ClusterQueue/batch" and one.severity is Urgency.ERROR


def test_rules_of_validate_hold_for_what_is_on_the_clusters() -> None:
    sharing = native("Cohort", "science", {"parentName": "science"})
    report = examined(CPU, queue(cohortName="science"), sharing, NODE)
    assert found(report, "KF030").subject == "Cohort/science"


def test_stored_version_that_the_next_release_does_not_serve_is_a_risk_and_for_its_target_an_error() -> None:
    stored = {HOME: {"ClusterQueue": StoredVersions(("v1beta1", "v1beta2"), ("v1beta2", "v1beta1"))}}
    assert found(examined(*HEALTHY, stored=stored), "stored-versions").severity is Urgency.WARNING
    one = found(examined(*HEALTHY, stored=stored, target="0.20"), "stored-versions")
    assert one.severity is Urgency.ERROR and one.subject.endswith("/clusterqueues.kueue.x-k8s.io")
    assert examined(*HEALTHY, stored=stored, target="0.19").diagnostics == ()


def test_configuration_and_feature_gates_that_a_release_refuses_are_reported() -> None:
    text = CONFIGURATION + "featureGates: {LendingLimit: true, HierarchicalCohorts: false}\nnoSuchField: 1\n"
    seen = on_paper({HOME: HEALTHY})
    home = replace(seen.objects.clusters[ClusterName(HOME)], configuration=text)
    seen = replace(seen, objects=replace(seen.objects, clusters={ClusterName(HOME): home}))
    said = [one.message for one in report_of(seen, "0.19").diagnostics]
    assert len(said) == 3 and all(message.startswith("Kueue 0.19 does not start: ") for message in said)
    assert any("noSuchField" in message for message in said) and any("locked to true" in message for message in said)


def fleet(credential: SeenCredential, worker: Mapping[str, Any] | None = None) -> ObservedContexts:
    """A manager with one worker, which it reaches at its address."""
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all"}
    check = native("AdmissionCheck", "mk", {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters})
    checks = {"admissionChecks": [{"name": "mk"}]}
    kubeconfig = {"kubeConfig": {"locationType": "Secret", "location": "login"}}
    hub = (
        active(native("MultiKueueCluster", "w-1", {"clusterSource": kubeconfig})),
        native("MultiKueueConfig", "all", {"clusters": ["w-1"]}),
        active(check, "Active"),
        resource_flavor("cpu"),
        queue(admissionChecksStrategy=checks),
        TEAM,
        namespace("team-a"),
    )
    seen = on_paper({"hub": hub, "east": (CPU, queue(), TEAM, namespace("team-a"), NODE)})
    seen = replace(seen, credentials={(ClusterName("hub"), "w-1"): credential})
    clusters = dict(seen.objects.clusters)
    clusters[ClusterName("east")] = replace(clusters[ClusterName("east")], **(worker or {}))
    return replace(seen, objects=replace(seen.objects, clusters=clusters))


EAST = ApiEndpoint("https://east:6443")


def login(days: float | None) -> SeenCredential:
    expires = None if days is None else NOW + timedelta(days=days)
    return SeenCredential(Token("secret-token", "system:serviceaccount:x:y", expires=expires), EAST)


def test_healthy_manager_and_worker_have_no_diagnostic() -> None:
    assert report_of(fleet(login(30))).diagnostics == ()


@pytest.mark.parametrize(
    ("days", "severity", "words"),
    [
        (-2, Urgency.ERROR, "ended"),
        (1, Urgency.WARNING, "ends in 24 hours"),
        (None, Urgency.ADVICE, "never expires"),
    ],
)
def test_token_that_ends_soon_is_reported_without_the_token(days: float | None, severity: Urgency, words: str) -> None:
    report = report_of(fleet(login(days)))
    one = found(report, "token")
    assert one.severity is severity and words in one.message
    assert "secret-token" not in f"{doctor_text(report)}{doctor_record(report)}{doctor_markdown(report)}{report}"


def test_token_that_says_nothing_of_itself_is_not_called_endless() -> None:
    assert report_of(fleet(SeenCredential(Token("opaque"), EAST))).diagnostics == ()


@pytest.mark.parametrize(
    ("days", "severity", "words"),
    [
        (-2, Urgency.ERROR, "its client certificate ended 1 day ago"),
        (1, Urgency.WARNING, "its client certificate ends in 24 hours"),
        (30, None, ""),
        (None, None, ""),
    ],
)
def test_client_certificate_that_ends_soon_is_reported(days: int | None, severity: Urgency | None, words: str) -> None:
    end = None if days is None else NOW + timedelta(days=days)
    seen = SeenCredential(problem="a certificate", endpoint=EAST, has_certificate=True, certificate_end=end)
    found = [(one.severity, one.message.partition(":")[0]) for one in report_of(fleet(seen)).diagnostics]
    assert found == ([(severity, words)] if severity else [])


def test_missing_secret_of_a_worker_is_an_error() -> None:
    missing = SeenCredential(problem="none", is_missing=True, endpoint=EAST)
    assert found(report_of(fleet(missing)), "token").message == "its Secret does not exist"


def test_worker_with_an_older_kueue_and_without_a_kind_is_reported() -> None:
    seen = replace(fleet(login(30), {"kueue": "v0.16.2"}), served={ClusterName("east"): frozenset({("batch", "Job")})})
    report = report_of(seen)
    assert found(report, "worker-release").severity is Urgency.ERROR
    assert "RayJob.ray.io" in found(report, "worker-lacks-kinds").message


@pytest.mark.parametrize(
    ("kueue", "severity", "words"),
    [
        ("v0.14.4", Urgency.ERROR, "Kueue 0.14.4 does not serve v1beta2"),
        ("v0.17.1", Urgency.ERROR, "every job takes quota twice there"),
        ("v0.18.0", Urgency.ADVICE, "runs Kueue 0.18, and its manager hub runs 0.19"),
    ],
)
def test_worker_whose_release_does_not_go_with_its_manager_is_reported(
    kueue: str, severity: Urgency, words: str
) -> None:
    one = found(report_of(fleet(login(30), {"kueue": kueue})), "worker-release")
    assert (one.where, one.severity) == ("east", severity) and words in one.message


def test_worker_that_does_not_manage_a_framework_of_its_manager_is_reported() -> None:
    text = CONFIGURATION.replace(", ray.io/rayjob", "")
    served = frozenset({("batch", "Job"), ("ray.io", "RayJob")})
    seen = replace(fleet(login(30), {"configuration": text}), served={ClusterName("east"): served})
    one = found(report_of(seen), "worker-lacks-frameworks")
    assert one.where == "east" and "does not manage ray.io/rayjob" in one.message


def two_managers() -> ObservedContexts:
    """Both reach the same worker, by two names."""
    one = fleet(login(30))
    hub = one.objects.clusters[ClusterName("hub")]
    clusters = {**one.objects.clusters, ClusterName("hub2"): replace(hub, name=ClusterName("hub2"))}
    credentials = {**one.credentials, (ClusterName("hub2"), "w-1"): login(30)}
    contexts = {name: str(name) for name in clusters}
    objects = replace(one.objects, clusters=clusters)
    return replace(one, objects=objects, contexts=contexts, credentials=credentials)


def test_two_managers_with_the_same_origin_on_a_worker_are_an_error() -> None:
    one = found(report_of(two_managers()), "same-origin")
    assert one.where == "east" and "hub and hub2 dispatch jobs here with the same origin 'multikueue'" in one.message


def test_two_managers_with_origins_of_their_own_share_a_worker() -> None:
    seen = two_managers()
    clusters = dict(seen.objects.clusters)
    text = CONFIGURATION + "multiKueue: {origin: second}\n"
    clusters[ClusterName("hub2")] = replace(clusters[ClusterName("hub2")], configuration=text)
    report = report_of(replace(seen, objects=replace(seen.objects, clusters=clusters)))
    assert not [one for one in report.diagnostics if one.code == "same-origin"]


def test_local_queue_that_a_worker_lacks_is_reported() -> None:
    queues = {("kueue.x-k8s.io", "ClusterQueue"): (queue(),), ("kueue.x-k8s.io", "LocalQueue"): ()}
    report = report_of(fleet(login(30), {"objects": queues}))
    assert found(report, "local-queue-missing-on-worker").where == "east/LocalQueue/team-a/main"


def test_job_without_a_covered_resource_is_sent_nowhere() -> None:
    seen = fleet(login(30))
    stuck = workload("w1", "team-a", cpu="0")
    conditions = [{"type": name, "status": "True"} for name in ("QuotaReserved", "Admitted")]
    stuck["status"] = {"conditions": conditions, "admission": {"clusterQueue": "batch", "podSetAssignments": []}}
    hub = seen.objects.clusters[ClusterName("hub")]
    objects = {**hub.objects, ("kueue.x-k8s.io", "Workload"): (stuck,)}
    clusters = {**seen.objects.clusters, ClusterName("hub"): replace(hub, objects=objects)}
    report = report_of(replace(seen, objects=replace(seen.objects, clusters=clusters)))
    assert found(report, "job-never-sent").subject == "Workload/team-a/w1"


def test_report_is_ranked_and_the_same_in_every_form() -> None:
    lost = local_queue("x", "team-a", "nowhere")
    gap = Gap(ClusterName(HOME), "Secret", "forbidden | @everyone")
    report = examined(CPU, queue("1"), lost, namespace("team-a"), NODE, beside=(gap,))
    assert [one.severity for one in report.diagnostics] == sorted(
        (one.severity for one in report.diagnostics), key=list(Urgency).index
    )
    record = json.loads(json.dumps(doctor_record(report)))
    assert [one["code"] for one in record["diagnostics"]] == [one.code for one in report.diagnostics]
    assert record["gaps"][0]["what"] == "Secret" and "not seen: home: Secret" in doctor_text(report)
    assert "@everyone" not in doctor_markdown(report)


def test_two_fleets_of_one_kubeconfig_are_examined_together() -> None:
    one = fleet(login(-2))
    other = {
        ClusterName(f"{name}-2"): replace(cluster, name=ClusterName(f"{name}-2"))
        for name, cluster in (one.objects.clusters.items())
    }
    both = replace(one.objects, clusters={**one.objects.clusters, **other})
    contexts = {name: str(name) for name in both.clusters}
    servers = {**one.servers, ClusterName("east-2"): ApiEndpoint("https://east-2:6443")}
    report = report_of(replace(one, objects=both, contexts=contexts, servers=servers))
    assert found(report, "token").cluster == "hub" and set(report.clusters) == {"hub", "east", "hub-2", "east-2"}


def test_cluster_whose_kueue_cannot_be_read_is_a_gap() -> None:
    seen = on_paper({HOME: HEALTHY}, kueue="")
    home = replace(seen.objects.clusters[ClusterName(HOME)], configuration="")
    report = report_of(replace(seen, objects=replace(seen.objects, clusters={ClusterName(HOME): home})))
    assert [gap.what for gap in report.gaps] == ["the release of Kueue", "the Configuration of Kueue"]
    assert report.diagnostics == ()


def test_same_trouble_of_many_objects_is_one_line_of_the_text() -> None:
    queues = [cluster_queue(f"q{number}", cpu_group("1", of="cpu")) for number in range(5)]
    report = examined(CPU, *queues, NODE)
    assert len([one for one in report.diagnostics if one.code == "not-processed"]) == 5
    (line,) = [line for line in doctor_text(report).splitlines() if "[not-processed]" in line]
    assert line.startswith("warning: home/ClusterQueue/q0, home/ClusterQueue/q1, home/ClusterQueue/q2 and 2 more: ")
