"""After an apply there is nothing left to do, whatever servers, webhooks and conversions rewrote."""

from collections import Counter
from datetime import timedelta

import pytest

from reconciler.apply import objects
from reconciler.apply.fleet import apply_plan
from reconciler.apply.retry import RetryPolicy
from reconciler.objects import ApiKind
from reconciler.render.model import WAVES
from tests.builders import Document, flavor, main_tenant, native, open_queue, sent_queue, team_documents
from tests.cluster.apply.recording import Log, record
from tests.cluster.faults.proxy import Deed, Fault, proxied
from tests.cluster.live_fleet import KUEUE_ROOT, LiveFleet, MakeLiveFleet
from tests.cluster.multikueue.credentials import connect_all
from tests.cluster.stages import apply_fleet, observe_fleet, plan_fleet
from tests.support import Kfleet, eventually, seen_at_a_terminal

PLURAL_WAVES = {f"{kind.lower()}s": number for number, kinds in enumerate(WAVES) for kind in kinds}


def wide_fleet(name: str) -> tuple[Document, ...]:
    return flavor(name), sent_queue(name, name, cohort=name), main_tenant(name, name)


def small_fleet(name: str) -> tuple[Document, ...]:
    return team_documents(name, cohort=name)


def test_terminal_shows_how_many_changes_of_each_cluster_were_tried(wide_live_fleet: LiveFleet) -> None:
    wide_live_fleet.commit(*wide_fleet(wide_live_fleet.name))
    planned = Counter(name.partition("/")[0] for name in wide_live_fleet.plan().actions)
    assert planned.keys() == set(wide_live_fleet.contexts)
    shown = seen_at_a_terminal("apply", "--repo", str(wide_live_fleet.folder))
    for cluster, changes in planned.items():
        assert f"{cluster}\x1b[0m {changes} of {changes} changes" in shown, shown


def test_apply_of_a_new_fleet_leaves_an_empty_plan(wide_live_fleet: LiveFleet) -> None:
    name = wide_live_fleet.name
    wide_live_fleet.commit(*wide_fleet(name))
    planned = wide_live_fleet.plan()
    assert planned.code == 2
    assert set(planned.actions.values()) == {"create"}
    assert {entry.partition("/")[0] for entry in planned.actions} == set(wide_live_fleet.contexts)
    wide_live_fleet.converge()
    for cluster in wide_live_fleet.contexts:
        assert wide_live_fleet.queue(name, cluster)["spec"]["cohortName"] == name
        assert wide_live_fleet.finds("localqueues", "main", cluster, namespace=name)
    assert wide_live_fleet.finds("multikueueclusters", f"{name}-worker2", "manager")


def test_apply_as_a_command_says_what_it_did(live_fleet: LiveFleet, kfleet: Kfleet) -> None:
    live_fleet.commit(*small_fleet(live_fleet.name))
    place = ("--repo", str(live_fleet.folder))
    planned = kfleet("plan", *place, "--detailed-exitcode")
    applied = kfleet("apply", *place)
    again = kfleet("plan", *place, "--detailed-exitcode")
    assert (planned.returncode, applied.returncode, again.returncode) == (2, 0, 0), (planned, applied, again)
    assert f"+ ClusterQueue/{live_fleet.name}  (not in the cluster)" in planned.stdout
    assert "worker1: 5 of 5 changes done" in applied.stdout
    assert ": no changes" in again.stdout


def test_second_apply_writes_nothing(wide_live_fleet: LiveFleet) -> None:
    wide_live_fleet.commit(*wide_fleet(wide_live_fleet.name))
    wide_live_fleet.converge()
    connect_all(wide_live_fleet)
    before = wide_live_fleet.quiet_versions()
    assert len(before) > 10
    assert wide_live_fleet.apply().code == 0
    assert wide_live_fleet.versions() == before


def test_apply_without_a_change_sends_no_write(live_fleet: LiveFleet) -> None:
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": live_fleet.name, "namespace": "kueue-system"},
    }
    live_fleet.commit(*small_fleet(live_fleet.name), {**settings, "data": {"a": "b"}})
    live_fleet.converge()
    assert requests_of_apply(live_fleet).of("PATCH", "PUT", "POST", "DELETE") == []


def test_plan_without_a_change_asks_once_per_kind(wide_live_fleet: LiveFleet) -> None:
    wide_live_fleet.commit(*wide_fleet(wide_live_fleet.name))
    wide_live_fleet.converge()
    connections, _ = record(wide_live_fleet.computed().spec)
    computed = observe_fleet(wide_live_fleet.computed(), connections)
    connections.close()
    connections, log = record(computed.spec)
    assert plan_fleet(computed, connections).writes == ()
    connections.close()
    assert log.of("PATCH", "PUT", "POST", "DELETE") == []
    lists = [(request.cluster, request.plural) for request in log.requests if request.is_list]
    assert len(lists) == len(set(lists)), "a kind was listed twice"
    expected = {(entry.ref.cluster, f"{entry.ref.kind.lower()}s") for entry in computed.desired.objects}
    assert set(lists) == expected
    # Who each cluster is, what it serves and its inventory were asked for when the fleet was observed.
    assert len(log.requests) == len(lists)


def test_first_apply_writes_workers_first_and_each_cluster_in_waves(wide_live_fleet: LiveFleet) -> None:
    wide_live_fleet.commit(*wide_fleet(wide_live_fleet.name))
    log = requests_of_apply(wide_live_fleet)
    kept = ("/configmaps/", "/namespaces/kueue-system")  # the inventory, and proof of the addresses in it
    patches = [one for one in log.of("PATCH") if not any(path in one.path for path in kept)]
    manager = f"{wide_live_fleet.name}-manager"
    order = [request.cluster == manager for request in patches]
    assert order == sorted(order) and True in order and False in order
    for cluster in wide_live_fleet.contexts:
        waves = [PLURAL_WAVES[request.plural] for request in patches if request.cluster == cluster]
        assert waves == sorted(waves)


def test_removal_starts_at_the_manager_and_goes_backwards_in_waves(wide_live_fleet: LiveFleet) -> None:
    name = wide_live_fleet.name
    kept = flavor(f"{name}-kept")
    wide_live_fleet.commit(*wide_fleet(name), kept)
    wide_live_fleet.converge()
    wide_live_fleet.commit(kept, policy={"prune": {"maxDeletes": 50, "maxPercent": 100}})
    log = requests_of_apply(wide_live_fleet)
    manager = f"{name}-manager"
    order = [request.cluster != manager for request in log.of("DELETE")]
    assert order == sorted(order) and True in order and False in order
    for cluster in wide_live_fleet.contexts:
        waves = [PLURAL_WAVES[request.plural] for request in log.of("DELETE") if request.cluster == cluster]
        assert waves == sorted(waves, reverse=True) and len(waves) > 2
    assert wide_live_fleet.plan().actions == {}


def test_inventory_is_written_before_the_objects_and_names_them(live_fleet: LiveFleet) -> None:
    live_fleet.commit(*small_fleet(live_fleet.name))
    log = requests_of_apply(live_fleet)
    assert log.of("PATCH")[0].path == live_fleet.set_name.path
    annotations = live_fleet.api().get(live_fleet.set_name.path)["metadata"]["annotations"]
    kinds = annotations["applyset.kubernetes.io/contains-group-kinds"].split(",")
    queues = [f"{kind}.kueue.x-k8s.io" for kind in ("ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor")]
    assert kinds == sorted([*queues, "Namespace"])
    assert annotations["applyset.kubernetes.io/additional-namespaces"] == live_fleet.name


def test_object_of_a_namespace_that_comes_with_the_plan_is_compared_without_the_server(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    live_fleet.commit(*small_fleet(name))
    changes = live_fleet.plan().changes
    assert changes[f"worker1/LocalQueue/{name}/main"]["static"]
    assert not changes[f"worker1/ClusterQueue/{name}"]["static"]
    shown = live_fleet.run("plan").out
    assert f"+ LocalQueue/{name}/main  (not in the cluster, without a dry run)" in shown


def test_object_of_a_kind_that_comes_with_the_plan_is_applied(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    definition = widget_definition(name)
    live_fleet.commit(definition, widget(name))
    assert live_fleet.plan().changes["worker1/Widget/a"]["static"]
    live_fleet.converge()
    # Let go of, never deleted: that would delete every object of the kind.
    live_fleet.commit(flavor(name))
    assert live_fleet.plan().actions[f"worker1/CustomResourceDefinition/widgets.{name}.example.org"] == "update"
    live_fleet.converge()
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{name}.example.org"
    found = live_fleet.api().get(path)
    assert found["spec"]["names"]["kind"] == "Widget"
    assert "applyset.kubernetes.io/part-of" not in found["metadata"].get("labels", {})
    live_fleet.api().delete(path)


def test_object_of_a_version_that_its_new_kind_does_not_serve_is_reported(
    live_fleet: LiveFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "SERVED_WITHIN", timedelta(seconds=2))
    group = f"{live_fleet.name}.example.org"
    live_fleet.commit(widget_definition(live_fleet.name), widget(live_fleet.name, version="v2"))
    answer = live_fleet.apply()
    assert answer.code == 4
    assert (
        f"worker1/Widget/a: create: {group}/v2 Widget is still not served 2 s after its definition was created"
        in answer.out
    )
    eventually(lambda: kinds_now(live_fleet, f"{group}/v1"))


@pytest.mark.parametrize("cluster", ["worker1", "worker2"])
def test_plan_is_empty_after_kueue_restarted_and_after_a_read_of_an_older_version(
    make_live_fleet: MakeLiveFleet, unique: str, cluster: str
) -> None:
    live_fleet = make_live_fleet(unique, {cluster: cluster})
    quota = [{"flavor": unique, "resources": {"cpu": "0.5", "memory": "1024Mi", "nvidia.com/gpu": "9"}}]
    live_fleet.commit(flavor(unique), open_queue(unique, unique, quota=quota), main_tenant(unique, unique))
    live_fleet.converge()
    live_fleet.sandbox.stop(f"{cluster}/kueue")
    live_fleet.sandbox.restart(f"{cluster}/kueue")
    old = live_fleet.api(cluster).get(f"/apis/kueue.x-k8s.io/v1beta1/clusterqueues/{unique}")
    assert old["apiVersion"].endswith("v1beta1")
    assert live_fleet.plan().code == 0


def test_plan_is_empty_after_a_user_wrote_a_quota_as_a_number(live_fleet: LiveFleet) -> None:
    name = live_fleet.name
    live_fleet.commit(*small_fleet(name))
    live_fleet.converge()
    live_fleet.edit(f"clusterqueues.kueue.x-k8s.io/{name}", 'nominalQuota: "9"', "nominalQuota: 9")
    (group,) = live_fleet.queue(name)["spec"]["resourceGroups"]
    assert group["flavors"][0]["resources"][0]["nominalQuota"] == 9
    planned = live_fleet.plan()
    assert (planned.code, planned.actions) == (0, {})


def test_look_reads_on_where_a_list_has_several_pages(live_fleet: LiveFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.clients.kubernetes.PAGE", 2)
    live_fleet.commit(*(flavor(f"{live_fleet.name}-{number}") for number in range(7)))
    live_fleet.converge()
    assert len(live_fleet.members()) == 7
    # Those that are left are found on a later page too.
    live_fleet.commit(flavor(f"{live_fleet.name}-0"), policy={"prune": {"maxDeletes": 10, "maxPercent": 100}})
    live_fleet.converge()
    assert list(live_fleet.members()) == [f"resourceflavors//{live_fleet.name}-0"]


def test_cohorts_are_written_in_an_order_without_a_cycle(live_fleet: LiveFleet) -> None:
    one, other = f"{live_fleet.name}-a", f"{live_fleet.name}-b"
    live_fleet.commit(native("Cohort", one, {"parentName": other}), native("Cohort", other, {}))
    live_fleet.converge()
    # Turned round: the one must let go before the other may hang below it.
    live_fleet.commit(native("Cohort", one, {}), native("Cohort", other, {"parentName": one}))
    log = requests_of_apply(live_fleet)
    written = [request.path.rpartition("/")[2] for request in log.of("PATCH") if request.plural == "cohorts"]
    assert written == [one, other]
    assert live_fleet.plan().code == 0
    assert live_fleet.api().get(f"{KUEUE_ROOT}/cohorts/{other}")["spec"]["parentName"] == one


def test_cohort_that_could_not_be_written_keeps_those_after_it_from_closing_a_cycle(live_fleet: LiveFleet) -> None:
    one, other = f"{live_fleet.name}-a", f"{live_fleet.name}-b"
    live_fleet.commit(native("Cohort", one, {"parentName": other}), native("Cohort", other, {}))
    live_fleet.converge()
    live_fleet.commit(native("Cohort", one, {}), native("Cohort", other, {"parentName": one}))
    with proxied(live_fleet.sandbox, "worker1") as proxy:
        proxy.inject(Fault(Deed.ANSWER, f"/cohorts/{one}", "PATCH", status=422, reason="Invalid"))
        port = live_fleet.through(proxy)
        (outcome,) = apply_plan(live_fleet.planned(), {port.cluster: port}, None, RetryPolicy())
        port.close()
    failed, left = outcome.outcomes
    assert (failed.ref.name, left.ref.name) == (one, other)
    assert left.problem == f"not tried, because worker1/Cohort/{one} was not written"
    assert not live_fleet.api().get(f"{KUEUE_ROOT}/cohorts/{other}").get("spec", {}).get("parentName")
    live_fleet.converge()
    assert live_fleet.api().get(f"{KUEUE_ROOT}/cohorts/{other}")["spec"]["parentName"] == one


def widget_definition(name: str) -> Document:
    group = f"{name}.example.org"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "scope": "Cluster",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def widget(name: str, *, version: str = "v1") -> Document:
    return {
        "apiVersion": f"{name}.example.org/{version}",
        "kind": "Widget",
        "metadata": {"name": "a"},
        "spec": {"size": 1},
    }


def kinds_now(live_fleet: LiveFleet, api_version: str) -> tuple[ApiKind, ...]:
    live_fleet.api().forget_kinds()
    return tuple(live_fleet.api().kinds(api_version))


def requests_of_apply(live_fleet: LiveFleet) -> Log:
    """What an apply asks after its plan is made."""
    computed = live_fleet.computed()
    connections, log = record(computed.spec)
    try:
        plan = plan_fleet(computed, connections)
        log.requests.clear()
        outcomes = apply_fleet(computed, connections, plan, RetryPolicy())
    finally:
        connections.close()
    assert not plan.refusals and all(outcome.is_done for outcome in outcomes), (plan.refusals, outcomes)
    return log
