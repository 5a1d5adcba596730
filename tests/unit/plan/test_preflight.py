"""Preflight as values: what was seen, and what it means."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from reconciler.kueue.configuration import KueueSettings
from reconciler.kueue.frameworks import worker_rules
from reconciler.multikueue.model import ClusterFacts, Links, ManagedClusters, Permission, SeenCredential, Token
from reconciler.multikueue.observe import native_workers
from reconciler.multikueue.preflight import PreflightFacts
from reconciler.objects import ApiEndpoint, ApiKind, Check, ClusterName, Manifest, PreflightIssue, Ref
from reconciler.plan.model import Plan
from reconciler.plan.preflight import run_preflight, unlisted_permissions
from reconciler.plan.rbac import with_answers
from reconciler.plan.record import plan_record
from reconciler.render.compute import compute_desired
from reconciler.report.text import plan_exit_code, plan_markdown, plan_text
from reconciler.snapshot.model import Observations
from reconciler.spec.model import KueueInstall
from reconciler.spec.schema import schema_folder
from reconciler.spec.settings import shape_of_release
from reconciler.state.applyset import SetName
from reconciler.state.model import ClusterView
from tests.builders import labelled_flavor, queue, quota, spec_of

NOW = datetime(2026, 3, 1, tzinfo=UTC)
GROUP = "kueue.x-k8s.io"
RBAC = "rbac.authorization.k8s.io"
EVERYTHING: tuple[Manifest, ...] = ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},)
SPEC = spec_of(labelled_flavor("cpu", {"cpu": 10}), queue("q", quota("cpu", {"cpu": 10}), dispatch="multikueue"))
HUB, EAST, WEST = (cluster.name for cluster in SPEC.clusters)
SETTINGS = KueueSettings(("batch/job",))
TOKEN = Token(
    "a.b.c", "system:serviceaccount:kueue-system:multikueue-test", NOW, NOW + timedelta(days=1), is_accepted=True
)
LINKS = Links(
    NOW,
    "uid-of-hub",
    SETTINGS,
    {name: ApiEndpoint(f"https://{name}") for name in (EAST, WEST)},
    {name: SeenCredential(TOKEN, rules=tuple(worker_rules(SETTINGS))) for name in (EAST, WEST)},
    facts={name: ClusterFacts("v0.19.0", EVERYTHING) for name in (HUB, EAST, WEST)},
)


def served(*versions: str) -> dict[tuple[str, str], tuple[ApiKind, ...]]:
    kinds = {"Workload": "workloads", "ClusterQueue": "clusterqueues"}
    ours = {
        (GROUP, kind): tuple(ApiKind(GROUP, version, kind, plural, is_namespaced=False) for version in versions)
        for kind, plural in kinds.items()
    }
    role = ApiKind(RBAC, "v1", "ClusterRole", "clusterroles", is_namespaced=False)
    return {**ours, ("batch", "Job"): (), (RBAC, "ClusterRole"): (role,)}


def view(name: ClusterName, live: Mapping[Ref, Manifest] | None = None, *versions: str) -> ClusterView:
    kinds = served(*(versions or ("v1beta2", "v1beta1")))
    return ClusterView(name, SetName("test", "kueue-system"), f"uid-of-{name}", kinds, live or {})


VIEWS = {name: view(name) for name in (HUB, EAST, WEST)}


def preflight_issues(links: Links | None = LINKS, **changed: ClusterView) -> list[tuple[str, str, str]]:
    views = {**VIEWS, **{ClusterName(name): one for name, one in changed.items()}}
    desired = compute_desired(SPEC, Observations(links=links))
    workers = tuple(cluster for cluster in SPEC.clusters if cluster.name != HUB)
    found = run_preflight(PreflightFacts(SPEC, desired, tuple(views.values()), links, workers))
    assert all(entry.remedy for entry in found)
    return [(entry.cluster, entry.check.value, entry.problem) for entry in found]


def with_credential(**changes: Any) -> Links:
    return replace(LINKS, credentials={**LINKS.credentials, EAST: replace(LINKS.credentials[EAST], **changes)})


def with_facts(name: ClusterName, facts: ClusterFacts) -> Links:
    return replace(LINKS, facts={**LINKS.facts, name: facts})


def test_preflight_issues_are_none_where_everything_is_there() -> None:
    assert preflight_issues() == []


def test_preflight_issues_are_none_where_nothing_was_seen() -> None:
    silent = {name: replace(one, uid="", served={}) for name, one in VIEWS.items()}
    assert preflight_issues(None, **silent) == []
    assert preflight_issues(replace(LINKS, settings=None, credentials={}, facts={})) == []


def test_cluster_without_kueue_is_reported() -> None:
    bare = replace(VIEWS[EAST], served={("batch", "Job"): ()})
    assert preflight_issues(east=bare) == [(EAST, "kueue", "Kueue is not installed: its kinds are not served")]


def test_remedy_is_the_command_where_git_names_a_release() -> None:
    wanted = tuple(
        replace(one, kueue=replace(one.kueue, install=KueueInstall("0.19.2"))) if one.name == EAST else one
        for one in SPEC.clusters
    )
    bare = replace(VIEWS[EAST], served={("batch", "Job"): ()})
    spec, views = replace(SPEC, clusters=wanted), {**VIEWS, EAST: bare}
    desired = compute_desired(spec, Observations(links=LINKS))
    (issue,) = run_preflight(PreflightFacts(spec, desired, tuple(views.values()), LINKS, wanted[1:]))
    assert issue.remedy == "kfleet kueue install east"


def test_manager_that_cannot_guard_the_labels_of_jobs_is_reported() -> None:
    spec = spec_of(labelled_flavor("cpu", {"cpu": 10}), queue("q", quota("cpu", {"cpu": 10}), dispatch="kubestellar"))
    kinds = (("control.kubestellar.io", kind) for kind in ("BindingPolicy", "CustomTransform"))
    hub = replace(VIEWS[HUB], served={**VIEWS[HUB].served, **dict.fromkeys(kinds, ())})
    old = Observations(policy_shape=replace(shape_of_release(""), has_guard=False))
    (found,) = run_preflight(PreflightFacts(spec, compute_desired(spec, old), (hub, VIEWS[EAST], VIEWS[WEST])))
    assert found.problem.startswith("it does not serve ValidatingAdmissionPolicy in version v1")
    assert found.remedy == "upgrade its Kubernetes to 1.30 or later"


def test_manager_without_kubestellar_is_reported_where_jobs_shall_be_downsynced() -> None:
    spec = spec_of(labelled_flavor("cpu", {"cpu": 10}), queue("q", quota("cpu", {"cpu": 10}), dispatch="kubestellar"))
    policy, transform = (("control.kubestellar.io", kind) for kind in ("BindingPolicy", "CustomTransform"))
    for kinds, problem in (
        ((), "KubeStellar is not installed"),
        ((policy,), "KubeStellar does not serve CustomTransform here"),
        ((policy, transform), ""),
    ):
        served = {**VIEWS[HUB].served, **dict.fromkeys(kinds, ())}
        views = (replace(VIEWS[HUB], served=served), VIEWS[EAST], VIEWS[WEST])
        found = run_preflight(PreflightFacts(spec, compute_desired(spec), views))
        told = [(entry.cluster, entry.check.value, entry.problem.partition(":")[0]) for entry in found]
        assert told == ([(HUB, "kubestellar", problem)] if problem else [])


@pytest.mark.parametrize(
    ("inventory", "told"),
    [
        (None, []),
        (ManagedClusters({"a": {"name": "east"}, "b": {"name": "west", "site": "x"}}), []),
        (
            ManagedClusters({"a": {"name": "east"}, "b": {"name": "east"}}),
            [
                (EAST, "a and b match the labels name=east: a job would run on each of them"),
                (WEST, "no ManagedCluster matches the labels name=west: no job would be downsynced to it"),
            ],
        ),
        (ManagedClusters(problem="no route"), [(HUB, "KubeStellar's inventory space could not be read: no route")]),
    ],
)
def test_cluster_that_kubestellar_would_not_find_or_find_twice_is_reported(
    inventory: ManagedClusters | None, told: list[tuple[str, str]]
) -> None:
    spec = spec_of(labelled_flavor("cpu", {"cpu": 10}), queue("q", quota("cpu", {"cpu": 10}), dispatch="kubestellar"))
    kinds = (("control.kubestellar.io", kind) for kind in ("BindingPolicy", "CustomTransform"))
    hub = replace(VIEWS[HUB], served={**VIEWS[HUB].served, **dict.fromkeys(kinds, ())})
    facts = PreflightFacts(spec, compute_desired(spec), (hub, VIEWS[EAST], VIEWS[WEST]), inventory=inventory)
    found = [(entry.cluster, entry.problem.rpartition("space, ")[2]) for entry in run_preflight(facts)]
    assert found == told


def test_worker_that_does_not_read_the_managers_workloads_is_reported() -> None:
    old = with_facts(EAST, ClusterFacts("v0.14.2", EVERYTHING))
    assert preflight_issues(old, east=view(EAST, None, "v1beta1")) == [
        (
            EAST,
            "version",
            "its Kueue v0.14.2 serves Workloads only as v1beta1, and Kueue v0.19.0 of hub writes v1beta2",
        )
    ]
    assert preflight_issues(old, east=view(EAST, None, "v1beta1"), hub=view(HUB, None, "v1beta1")) == []


def test_worker_that_does_not_read_the_managers_annotations_is_reported() -> None:
    old = with_facts(EAST, ClusterFacts("v0.16.2", EVERYTHING))
    (found,) = preflight_issues(old)
    assert found[:2] == (EAST, "version")
    assert "its Kueue 0.16.2 does not read the annotation by which Kueue 0.19 of hub links a job" in found[2]
    assert preflight_issues(replace(old, settings=replace(SETTINGS, has_identifier_annotations=False))) == []
    assert preflight_issues(with_facts(EAST, ClusterFacts("v0.18.0", EVERYTHING))) == []
    assert preflight_issues(with_facts(EAST, ClusterFacts("nightly", EVERYTHING))) == []


def test_kinds_of_jobs_that_a_worker_lacks_are_reported_once() -> None:
    settings = KueueSettings(("batch/job", "ray.io/rayjob", "jobset.x-k8s.io/jobset"))
    found = preflight_issues(replace(LINKS, settings=settings))
    assert [(name, check) for name, check, _ in found] == [(EAST, "frameworks"), (WEST, "frameworks")]
    assert "RayJob.ray.io; JobSet.jobset.x-k8s.io, which the manager's Kueue watches" in found[0][2]


def test_kinds_of_jobs_that_the_kueue_of_a_worker_leaves_alone_are_reported() -> None:
    """Every cluster serves pods, whatever its Kueue does with them. Deployments are not sent, their pods are."""
    every = {("", "Pod"): (), ("apps", "Deployment"): ()}
    views = {name: replace(VIEWS[name], served={**VIEWS[name].served, **every}) for name in (EAST, WEST)}
    links = replace(LINKS, settings=KueueSettings(("batch/job", "pod", "deployment", "ray.io/rayjob")))
    facts = {
        **LINKS.facts,
        EAST: ClusterFacts("v0.19.0", EVERYTHING, frameworks=("batch/job",)),
        WEST: ClusterFacts("v0.19.0", EVERYTHING, frameworks=("batch/job", "pod")),
    }
    found = [entry for entry in preflight_issues(replace(links, facts=facts), **views) if "does not manage" in entry[2]]
    problem = "its Kueue does not manage pod, and the manager's Kueue dispatches such jobs there"
    assert found == [(EAST, "frameworks", problem)]


def test_quota_without_a_writer_is_reported() -> None:
    """Kueue is asked to keep it, and has not been told that it may: kfleet would leave it alone for nobody."""
    spec = spec_of(
        labelled_flavor("cpu", {"cpu": 10}),
        queue("q", quota("cpu", {"cpu": 10}), dispatch="multikueue", quotaManagement="Automated"),
    )
    for running, told in ((SETTINGS, [(HUB, "kueue")]), (None, []), (replace(SETTINGS, has_quota_automation=True), [])):
        links = replace(LINKS, running=running, settings=running or SETTINGS)
        found = run_preflight(PreflightFacts(spec, compute_desired(spec), tuple(VIEWS.values()), links))
        assert [(entry.cluster, entry.check.value) for entry in found] == told


def test_worker_of_a_config_that_is_written_by_hand_is_checked_without_its_login() -> None:
    config = (
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: MultiKueueConfig\nmetadata: {name: mk}\nspec: {clusters: [east]}"
    )
    spec = spec_of(config)
    assert [worker.name for worker in native_workers(spec)] == [EAST, WEST]
    assert native_workers(SPEC) == ()
    links = replace(LINKS, settings=KueueSettings(("batch/job", "ray.io/rayjob")), credentials={EAST: SeenCredential()})
    facts = PreflightFacts(spec, compute_desired(spec), tuple(VIEWS.values()), links, native=native_workers(spec))
    assert [(entry.cluster, entry.check.value) for entry in run_preflight(facts)] == [
        (EAST, "frameworks"),
        (WEST, "frameworks"),
    ]


def test_hand_named_worker_that_the_manager_cannot_reach_is_reported_on_the_manager() -> None:
    """As in walkthroughs, where a worker's control plane has an access list; its Cluster is not known by the name."""
    config = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: MultiKueueConfig\nmetadata: {name: mk}\nspec: {clusters: [w1]}"
    spec = spec_of(config)
    condition = {"type": "Active", "status": "False", "reason": "ClientConnectionFailed", "message": "i/o timeout"}
    hub = view(HUB, {Ref(HUB, GROUP, "MultiKueueCluster", "", "w1"): {"status": {"conditions": [condition]}}})
    facts = PreflightFacts(spec, compute_desired(spec), (hub,), native=native_workers(spec))
    (issue,) = [one for one in run_preflight(facts) if one.check is Check.CONNECTION]
    assert issue.cluster == HUB
    assert issue.problem == "it cannot connect to the worker of MultiKueueCluster w1: i/o timeout"
    assert (
        issue.remedy
        == "on that worker, allow the nodes of hub in the access list of its control plane and in firewalls"
    )


def role_views() -> ClusterView:
    name = "kfleet-test-multikueue"
    live = {
        Ref(EAST, RBAC, "ClusterRole", "", name): {"rules": worker_rules(SETTINGS)},
        Ref(EAST, RBAC, "ClusterRoleBinding", "", name): {},
    }
    return view(EAST, live)


def test_token_that_may_too_little_is_reported_when_its_role_is_as_wanted() -> None:
    weak = with_credential(rules=())
    assert preflight_issues(weak) == []
    found = preflight_issues(weak, east=role_views())
    assert [(name, check) for name, check, _ in found] == [(EAST, "credential")]
    assert "watch jobs.batch" in found[0][2]


def test_origin_of_another_manager_is_reported_and_that_of_our_own_is_not() -> None:
    roles = {"kfleet-a": "multikueue@uid-of-hub", "kfleet-b": "multikueue@other", "kfleet-c": "lyon@other"}
    found = preflight_issues(with_facts(EAST, ClusterFacts("", EVERYTHING, roles)))
    assert found == [
        (EAST, "origin", "another manager dispatches jobs here with the same origin 'multikueue' (kfleet-b)"),
    ]


def failing(reason: str) -> ClusterView:
    condition = {"type": "Active", "status": "False", "reason": reason, "message": "i/o timeout"}
    ref = Ref(HUB, GROUP, "MultiKueueCluster", "", EAST)
    return view(HUB, {ref: {"status": {"conditions": [condition]}}})


def test_manager_that_cannot_connect_where_kfleet_can_is_reported() -> None:
    assert preflight_issues(hub=failing("ClientConnectionFailed")) == [
        (EAST, "connection", "kfleet can connect, and hub cannot: i/o timeout")
    ]
    assert preflight_issues(hub=failing("BadKubeConfig")) == []


def test_manager_that_cannot_connect_for_a_known_reason_is_not_told_twice() -> None:
    refused = with_credential(token=replace(TOKEN, is_accepted=False))
    assert preflight_issues(refused, hub=failing("ClientConnectionFailed")) == []
    lacking = replace(VIEWS[EAST], served=served("v1beta2") | {("x", "y"): ()})
    known = {key: kinds for key, kinds in lacking.served.items() if key != ("batch", "Job")}
    found = preflight_issues(hub=failing("ClientConnectionFailed"), east=replace(lacking, served=known))
    assert [check for _, check, _ in found] == ["frameworks"]


def test_rights_of_kfleet_are_reported_by_kind_and_verb() -> None:
    reading = ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]},)
    found = preflight_issues(with_facts(EAST, ClusterFacts("", reading)))
    assert [(name, check) for name, check, _ in found] == [(EAST, "rights"), (EAST, "rights")]
    assert "create, patch, delete clusterqueues.kueue.x-k8s.io" in found[0][2]
    assert "create serviceaccounts/token" in found[0][2]
    assert found[1][2].startswith(
        "kfleet may not grant the manager's account permissions that it lacks itself: create, "
    )


def test_right_to_escalate_is_as_good_as_the_rights_themselves() -> None:
    roles = {"apiGroups": [RBAC], "resources": ["clusterroles"], "verbs": ["*"]}
    own = {"apiGroups": ["", GROUP, RBAC], "resources": ["*"], "verbs": ["get", "list", "create", "patch", "delete"]}
    assert preflight_issues(with_facts(EAST, ClusterFacts("", (own, roles)))) == []
    assert [check for _, check, _ in preflight_issues(with_facts(EAST, ClusterFacts("", (own,))))] == ["rights"]


def test_rights_to_named_objects_count_for_kfleet() -> None:
    named = ({**EVERYTHING[0], "resourceNames": ["kfleet-test"]},)
    assert preflight_issues(with_facts(EAST, ClusterFacts("", named))) == []


def test_rights_that_a_server_cannot_list_are_in_doubt_and_told_only_when_it_denies_them() -> None:
    reading = ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]},)
    unsure = with_facts(EAST, ClusterFacts("", reading, has_all_rules=False))
    assert preflight_issues(unsure) == []
    desired, workers = compute_desired(SPEC, Observations(links=unsure)), SPEC.clusters[1:]
    doubts = unlisted_permissions(PreflightFacts(SPEC, desired, tuple(VIEWS.values()), unsure, workers))
    assert set(doubts) == {EAST}
    assert Permission("create", GROUP, "clusterqueues") in doubts[EAST]
    assert Permission("create", "", "serviceaccounts/token", "kueue-system") in doubts[EAST]
    assert Permission("escalate", RBAC, "clusterroles") in doubts[EAST]
    assert Permission("watch", "batch", "jobs") in doubts[EAST]
    assert not any(one.verb in {"get", "list"} for one in doubts[EAST])
    assert preflight_issues(with_answers(unsure, doubts)) == []
    denied = Permission("delete", GROUP, "clusterqueues")
    allowed = {EAST: [one for one in doubts[EAST] if one != denied]}
    assert preflight_issues(with_answers(unsure, allowed)) == [
        (EAST, "rights", "kfleet may not delete clusterqueues.kueue.x-k8s.io")
    ]


def given(credential: SeenCredential) -> list[str]:
    """What is said of a worker whose Secret the fleet did not make."""
    credentials = replace(SPEC.clusters[1].credentials, secret="own")  # noqa: S106  (the name of a Secret)
    clusters = (SPEC.clusters[0], replace(SPEC.clusters[1], credentials=credentials))
    spec = replace(SPEC, clusters=clusters)
    links = replace(LINKS, credentials={EAST: credential})
    desired = compute_desired(spec, Observations(links=links))
    found = run_preflight(PreflightFacts(spec, desired, tuple(VIEWS.values()), links, clusters[1:]))
    return [f"{entry.check}: {entry.problem}" for entry in found]


def test_secret_of_others_has_to_be_there_and_to_be_good() -> None:
    good = tuple(worker_rules(SETTINGS))
    assert given(SeenCredential(problem="none", is_missing=True)) == [
        "credential: the Secret own is not on the manager"
    ]
    assert given(SeenCredential(replace(TOKEN, is_accepted=False))) == [
        "credential: it does not accept the token in the Secret own"
    ]
    assert given(SeenCredential(TOKEN, rules=good[:2])) == [
        "credential: the manager's token may not create, delete, get, list, patch, watch jobs.batch"
    ]
    # A kubeconfig with a client certificate, which nobody but Kueue can judge.
    assert given(SeenCredential(problem="a certificate", has_certificate=True)) == []
    assert given(SeenCredential(problem="no token")) == [
        "credential: the Secret own has no kubeconfig with a token or a client certificate, and Kueue cannot log in"
    ]


@pytest.mark.parametrize("check", Check)
def test_preflight_issue_is_in_every_form_of_a_plan(check: Check) -> None:
    made = Plan("test", "", (), preflight_issues=(PreflightIssue(EAST, check, "is wrong", "mend it"),))
    assert plan_text(made).splitlines()[0] == f"preflight: east: {check}: is wrong; mend it"
    assert f"- **preflight** east: {check}: is wrong; mend it" in plan_markdown(made)
    record = plan_record(made)
    assert record["preflightIssues"] == [{"cluster": EAST, "check": check, "problem": "is wrong", "remedy": "mend it"}]
    schema = json.loads((schema_folder() / "plan.json").read_text())
    assert not list(Draft202012Validator(schema).iter_errors(record))
    assert plan_exit_code(made, is_detailed=True) == 0
