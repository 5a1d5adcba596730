"""Which workers keep a seat, which queues are held, and what a leaver waits for."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.kueue.configuration import KueueSettings
from reconciler.kueue.structure import with_defaults
from reconciler.multikueue.model import ConfigMembership, Links, RemovedCluster, SeenCredential, Token, WorkerRemovals
from reconciler.multikueue.observe import linked_workers
from reconciler.objects import ApiEndpoint, ClusterName, Manifest
from reconciler.render.compute import compute_desired
from reconciler.render.model import Desired
from reconciler.snapshot.model import Observations
from reconciler.spec.model import AccessSpec, FleetSpec
from reconciler.state.applyset import Address, remembered_cluster
from tests.builders import Document, cpu_group, native, queue, quota
from tests.unit.plan.paper_clusters import parse
from tests.unit.render.desired_objects import manifest_of

BORN = datetime(2026, 3, 1, tzinfo=UTC)
CONFIG = "multikueue-q"
NORTH = ClusterName("north")
CPU = "kind: Flavor\nmetadata: {name: cpu}\nspec: {capacity: {source: static, resources: {cpu: 100}}}\n"
HUB = "kind: Cluster\nmetadata: {name: hub}\nspec: {role: manager}\n"
WEST = "kind: Cluster\nmetadata: {name: west}\nspec: {role: worker}\n"
SENT = queue("q", quota("cpu", {"cpu": 1}), dispatch="multikueue")


def draining_fleet(*documents: Document | str, **drains: str) -> FleetSpec:
    """The workers east and west, and north where something is said of it."""
    workers = {"east": "false", "west": "false"} | drains
    clusters = (
        f"kind: Cluster\nmetadata: {{name: {n}}}\nspec: {{role: worker, drain: {d}}}" for n, d in workers.items()
    )
    return parse(HUB, *clusters, *(documents or (CPU, SENT)))


def membership(cluster: str, **more: Any) -> ConfigMembership:
    return ConfigMembership(CONFIG, ClusterName(cluster), **more)


def desired(
    spec: FleetSpec,
    *memberships: ConfigMembership,
    removed: tuple[RemovedCluster, ...] = (),
    links: Links | None = None,
) -> Desired:
    return compute_desired(spec, Observations(removals=WorkerRemovals(memberships, removed), links=links))


def links_to(worker: str, subject: str = "system:serviceaccount:kueue-system:multikueue-test") -> Links:
    """The manager logs in to a worker with a token that is soon over."""
    token = Token("a.b.c", subject, BORN, BORN + timedelta(hours=24), is_accepted=True)
    name = ClusterName(worker)
    credentials = {name: SeenCredential(token, ApiEndpoint("https://as-the-manager-sees-it", "CA"))}
    settings = KueueSettings(("batch/job",))
    return Links(BORN + timedelta(hours=20), "uid-of-hub", settings, {name: ApiEndpoint("https://ours")}, credentials)


def clusters_of(found: Desired) -> list[str]:
    names: list[str] = manifest_of(found, f"hub/MultiKueueConfig/{CONFIG}")["spec"]["clusters"]
    return names


def gone(spec: FleetSpec, *queues: Manifest, problem: str = "") -> RemovedCluster:
    cluster = remembered_cluster("north", Address("kueue-system", AccessSpec(context="north")), spec.fleet.document)
    return RemovedCluster(cluster, queues, problem)


def old_queue(reserving: int = 0, **metadata: Any) -> Manifest:
    spec = {"namespaceSelector": {}, "stopPolicy": "None"}
    return {**native("ClusterQueue", "old", spec, uid="1", **metadata), "status": {"reservingWorkloads": reserving}}


def test_drained_worker_stays_before_the_first_look() -> None:
    assert clusters_of(compute_desired(draining_fleet(north="true"))) == ["east", "west", "north"]


@pytest.mark.parametrize(
    ("seen", "staying", "why"),
    [
        ({"running": 2, "is_held": True}, ["north"], "2 of the manager's workloads still run there"),
        ({"running": 0}, ["north"], "its queues are being stopped, and the next run continues"),
        ({"running": None}, ["north"], "what runs there could not be observed on the manager"),
        (
            {"running": 0, "problem": "refused"},
            ["north"],
            "it cannot be observed, so it is not known what runs there (refused)",
        ),
        ({"running": 0, "is_held": True}, [], ""),
    ],
)
def test_drained_worker_stays_a_member_until_it_is_known_to_be_empty(
    seen: dict[str, Any], staying: list[str], why: str
) -> None:
    found = desired(draining_fleet(north="true"), membership("north", **seen))
    assert clusters_of(found) == ["east", "west", *staying]
    assert [entry.why.partition(";")[0] for entry in found.leaving] == ([why] if why else [])


def test_drained_worker_that_has_left_keeps_its_queues_and_loses_its_connection() -> None:
    found = desired(draining_fleet(north="true"))
    refs = {str(entry.ref) for entry in found.objects}
    assert "north/ClusterQueue/q" in refs
    assert "hub/MultiKueueCluster/north" not in refs
    assert not any(ref.startswith("north/ServiceAccount") for ref in refs)


def test_drained_worker_counts_on_the_manager_as_long_as_its_jobs_do() -> None:
    staying = desired(draining_fleet(north="true"), membership("north", running=1))
    notes = {str(entry.ref): entry.notes for entry in staying.objects}
    assert notes["hub/ClusterQueue/q"] == ("quota on the manager is the sum of east, west, north",)
    assert notes[f"hub/MultiKueueConfig/{CONFIG}"] == ("north cannot leave yet",)


def worker_queue(cpu: str = "1", **limits: str) -> Manifest:
    """The queue q of a worker, as it is there."""
    groups = [cpu_group(cpu, of="cpu", **limits)]
    return native("ClusterQueue", "q", {"namespaceSelector": {}, "resourceGroups": groups}, uid="1")


def offered(found: Desired) -> dict[str, str]:
    """The cpu of the queue q on the manager, with its limits."""
    (group,) = manifest_of(found, "hub/ClusterQueue/q")["spec"]["resourceGroups"]
    (flavor,) = group["flavors"]
    (cpu,) = flavor["resources"]
    return {name: value for name, value in cpu.items() if name != "name"}


def unseen(found: Desired) -> str:
    return next(entry.unseen for entry in found.objects if str(entry.ref) == "hub/ClusterQueue/q")


STANDALONE = "kind: Cluster\nmetadata: {name: north}\nspec: {role: standalone}\n"
NARROWER = queue("q", quota("cpu", {"cpu": 1}), dispatch="multikueue", clusters={"names": ["east", "west"]})


@pytest.mark.parametrize(
    "documents",
    [(CPU, SENT), (STANDALONE, CPU, SENT), (STANDALONE.replace("standalone", "worker"), CPU, NARROWER)],
    ids=["not in git", "standalone", "not of the queue"],
)
def test_worker_counts_on_the_manager_until_it_has_left(documents: tuple[Document | str, ...]) -> None:
    spec = draining_fleet(*documents)
    removed = () if len(documents) > 2 else (gone(spec, worker_queue("7")),)
    there = {"queues": (worker_queue("7"),)}
    for state in ({"running": 3, "is_held": True}, {"running": 0}):
        found = desired(spec, membership("north", **state, **there), removed=removed)
        assert offered(found) == {"nominalQuota": "9"}
        notes = {str(entry.ref): entry.notes for entry in found.objects}
        assert notes["hub/ClusterQueue/q"] == ("quota on the manager is the sum of east, west, north",)
    left = desired(spec, membership("north", running=0, is_held=True, **there), removed=removed)
    assert (clusters_of(left), offered(left)) == (["east", "west"], {"nominalQuota": "2"})


def test_limits_of_a_worker_that_leaves_count_like_those_of_any_other() -> None:
    limited = queue(
        "q",
        quota("cpu", {"cpu": 4}, borrowingLimit={"cpu": 2}, lendingLimit={"cpu": 1}),
        dispatch="multikueue",
        cohort="all",
    )
    spec = draining_fleet(CPU, limited)
    there = worker_queue("4", borrowingLimit="2", lendingLimit="1")
    found = desired(spec, membership("north", running=1, queues=(there,)))
    assert offered(found) == {"nominalQuota": "12", "borrowingLimit": "6", "lendingLimit": "3"}


@pytest.mark.parametrize("state", [{"running": 1, "problem": "refused"}, {"running": None}])
def test_what_a_worker_that_leaves_offers_must_be_seen_before_the_manager_offers_less(state: dict[str, Any]) -> None:
    found = desired(draining_fleet(), membership("north", **state))
    assert unseen(found) == "the quota of north, which is leaving, was not observed"
    assert unseen(desired(draining_fleet(), membership("north", running=1, queues=(worker_queue(),)))) == ""


def test_manager_offers_no_less_where_it_is_not_known_who_leaves() -> None:
    found = compute_desired(draining_fleet(), Observations(removals=WorkerRemovals(problem="timed out")))
    assert unseen(found) == "the members of the live config were not observed (timed out)"


@pytest.mark.parametrize(("drain", "policy"), [("true", "Hold"), ("evict", "HoldAndDrain")])
def test_drain_says_how_queues_are_stopped(drain: str, policy: str) -> None:
    native = "kind: ClusterQueue\nmetadata: {name: own, annotations: {kfleet.dev/clusters: north}}\nspec: {}\n"
    found = desired(draining_fleet(CPU, SENT, native, north=drain))
    for name in ("q", "own"):
        assert manifest_of(found, f"north/ClusterQueue/{name}")["spec"]["stopPolicy"] == policy


def test_last_drained_worker_that_is_a_member_stays_and_the_manager_waits() -> None:
    spec = draining_fleet(east="true", west="true")
    empty = {"running": 0, "is_held": True}
    both = desired(spec, membership("east", **empty), membership("west", **empty))
    assert clusters_of(both) == ["east"]
    assert manifest_of(both, "hub/ClusterQueue/q")["spec"]["stopPolicy"] == "Hold"
    assert clusters_of(desired(spec, membership("west", **empty))) == ["west"]


def test_membership_of_a_written_config_stays_also_when_its_worker_is_drained() -> None:
    config = "kind: MultiKueueConfig\nmetadata: {name: own}\nspec: {clusters: [east]}\n"
    found = desired(
        draining_fleet(config, east="true"),
        ConfigMembership("own", ClusterName("east"), running=3),
        ConfigMembership("own", NORTH, running=1),
    )
    assert manifest_of(found, "hub/MultiKueueConfig/own")["spec"]["clusters"] == ["east", "north"]
    assert [entry.cluster for entry in found.leaving] == ["north"]


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("None", "its queue old is in the spec and takes jobs: set drain: true on the Cluster, or stopPolicy: Hold"),
        ("Hold", "its queues are being stopped, and the next run continues"),
    ],
)
def test_queue_that_stays_wanted_on_a_worker_is_named_as_what_keeps_it_a_member(policy: str, why: str) -> None:
    config = "kind: MultiKueueConfig\nmetadata: {name: own}\nspec: {clusters: [west]}\n"
    head = "kind: ClusterQueue\nmetadata: {name: old, annotations: {kfleet.dev/clusters: east}}\n"
    native = f"{head}spec: {{namespaceSelector: {{}}, stopPolicy: {policy}}}\n"
    found = desired(
        draining_fleet(config, native), ConfigMembership("own", ClusterName("east"), running=0, queues=(old_queue(),))
    )
    assert [entry.why.partition("; it leaves")[0] for entry in found.leaving] == [why]


def test_worker_that_left_the_spec_holds_its_queues_as_they_are() -> None:
    spec = draining_fleet()
    marks = {"kfleet.dev/wanted": "abc", "kfleet.dev/drain-on-delete": "true", "team": "night"}
    queue_there = old_queue(annotations=marks, labels={"applyset.kubernetes.io/part-of": "x"})
    found = desired(spec, membership("north", running=1), removed=(gone(spec, queue_there),))
    held = manifest_of(found, "north/ClusterQueue/old")
    assert held == with_defaults({**held, "spec": {"namespaceSelector": {}, "stopPolicy": "HoldAndDrain"}})
    assert held["metadata"] == {
        "name": "old",
        "annotations": {"kfleet.dev/drain-on-delete": "true", "team": "night"},
    }
    (leaving,) = found.leaving
    assert (leaving.queues, leaving.is_whole) == (frozenset({"old"}), True)
    assert clusters_of(found) == ["east", "west", "north"]


def test_token_of_a_worker_that_left_the_spec_is_renewed_while_its_jobs_run() -> None:
    spec = draining_fleet()
    removed = (gone(spec, old_queue()),)
    found = desired(spec, membership("north", running=1), removed=removed, links=links_to("north"))
    secret = next(entry for entry in found.objects if str(entry.ref) == "hub/Secret/kueue-system/multikueue-north")
    assert secret.token and secret.token.reason.startswith("two thirds of the token's lifetime are over")
    assert secret.token.endpoint == ApiEndpoint("https://as-the-manager-sees-it", "CA")
    assert secret.token.lifetime == timedelta(hours=24)
    role = manifest_of(found, "north/ClusterRole/kfleet-test-multikueue")
    assert ["jobs"] in [rule["resources"] for rule in role["rules"]]


def test_login_of_a_worker_that_left_the_spec_is_not_touched_where_another_tool_has_made_it() -> None:
    spec = draining_fleet()
    removed = (gone(spec, old_queue()),)
    for links in (links_to("north", "system:serviceaccount:a:b"), links_to("east")):
        found = desired(spec, membership("north", running=1), removed=removed, links=links)
        assert [entry.ref.kind for entry in found.objects if entry.ref.name == "multikueue-north"] == []


def test_token_is_renewed_for_the_last_jobs_of_the_last_queue() -> None:
    found = desired(draining_fleet(CPU), membership("east", running=1, queues=(old_queue(),)), links=links_to("east"))
    secret = next(entry for entry in found.objects if entry.ref.kind == "Secret")
    assert secret.token and secret.token.reason and not secret.held


def test_login_is_looked_at_as_long_as_a_worker_is_a_member() -> None:
    narrower = queue("q", quota("cpu", {"cpu": 1}), dispatch="multikueue", clusters={"names": ["west"]})
    spec = draining_fleet(CPU, narrower)
    removals = WorkerRemovals((membership("east", running=1), membership("north", running=1)), (gone(spec),))
    assert [worker.name for worker in linked_workers(spec, removals)] == ["west", "east", "north"]
    assert [worker.name for worker in linked_workers(spec, None)] == ["west"]


def test_worker_that_left_the_spec_waits_for_jobs_that_were_submitted_there() -> None:
    spec = draining_fleet()
    found = desired(spec, removed=(gone(spec, old_queue(reserving=3)),))
    assert [entry.why for entry in found.leaving] == [
        "3 workloads still hold quota there; then the fleet's objects there are deleted"
    ]
    assert desired(spec, removed=(gone(spec, old_queue()),)).leaving == ()


@pytest.mark.parametrize(("running", "staying"), [(0, []), (1, ["north"]), (None, ["north"])])
def test_worker_that_left_the_spec_and_is_silent_goes_by_what_the_manager_knows(
    running: int | None, staying: list[str]
) -> None:
    spec = draining_fleet()
    found = desired(
        spec, membership("north", running=running, problem="refused"), removed=(gone(spec, problem="refused"),)
    )
    assert clusters_of(found) == ["east", "west", *staying]
    assert not [entry for entry in found.objects if entry.ref.cluster == "north"]


def test_worker_that_a_queue_no_longer_names_holds_that_queue() -> None:
    narrower = queue("q", quota("cpu", {"cpu": 1}), dispatch="multikueue", clusters={"names": ["west"]})
    found = desired(draining_fleet(CPU, narrower), membership("east", running=1, queues=(old_queue(),)))
    assert clusters_of(found) == ["west", "east"]
    assert manifest_of(found, "east/ClusterQueue/old")["spec"]["stopPolicy"] == "Hold"
    (leaving,) = found.leaving
    assert (leaving.queues, leaving.is_whole) == (frozenset({"old"}), False)


def test_nothing_changes_for_removed_workers_where_the_live_configs_were_not_seen() -> None:
    native = "kind: MultiKueueConfig\nmetadata: {name: own}\nspec: {clusters: [east]}\n"
    found = compute_desired(
        draining_fleet(CPU, SENT, native, north="true"), Observations(removals=WorkerRemovals(problem="timed out"))
    )
    why = "the members of the live config were not observed (timed out)"
    held = {str(entry.ref) for entry in found.objects if entry.held == why}
    assert {f"hub/MultiKueueConfig/{CONFIG}", "hub/MultiKueueConfig/own", "hub/MultiKueueCluster/north"} <= held
    # Whether north still has its login is not known either; of the others it is.
    assert {ref.partition("/")[0] for ref in held} == {"hub", "north"}
    assert "hub/MultiKueueCluster/east" not in held
    notes = {str(entry.ref): entry.notes for entry in found.objects}
    assert notes["hub/ClusterQueue/q"] == ("quota on the manager is the sum of east, west, north",)


@pytest.mark.parametrize(
    ("east", "west", "staying"),
    [
        ({"running": 1, "is_held": True}, {"running": 0, "is_held": True}, ["east", "west"]),
        ({"running": 0, "is_held": True, "is_busy": True}, {"running": 0, "is_held": True}, ["east", "west"]),
        ({"running": 0, "is_held": True}, {"running": 0, "is_held": True}, []),
    ],
)
def test_workers_of_a_config_that_is_not_wanted_leave_it_together(
    east: dict[str, Any], west: dict[str, Any], staying: list[str]
) -> None:
    found = desired(draining_fleet(CPU), membership("east", **east), membership("west", **west))
    assert [entry.cluster for entry in found.leaving] == staying
    why = "nothing runs there, but the manager still has jobs for other workers that leave with it"
    assert [entry.why.partition(";")[0] for entry in found.leaving[1:]] == ([why] if staying else [])


def sat(*clusters: str, config: str = CONFIG) -> frozenset[tuple[str, str]]:
    return frozenset((config, cluster) for cluster in clusters)


def test_newcomer_waits_for_membership_while_a_full_config_cannot_let_go_of_another() -> None:
    """Kueue takes 20 clusters; who sits there already is not sent away for one who comes."""
    many = {f"w{number:02}": "false" for number in range(18)}
    spec = draining_fleet(**many)
    others = ["west", *many]
    removals = WorkerRemovals((membership("north", running=1),), members=sat(*others, "north"))
    found = compute_desired(spec, Observations(removals=removals))
    assert clusters_of(found) == [*others, "north"]
    objects = {str(entry.ref): entry for entry in found.objects}
    assert objects[f"hub/MultiKueueConfig/{CONFIG}"].notes == (
        "north cannot leave yet",
        "east must wait until another cluster leaves: Kueue allows at most 20",
    )
    assert "hub/MultiKueueCluster/east" not in objects
    assert "east" not in objects["hub/ClusterQueue/q"].notes[0]
    assert len(clusters_of(desired(spec))) == 20


def test_newcomer_waits_for_membership_in_a_written_config_too() -> None:
    names = [f"w{number:02}" for number in range(20)]
    native = f"kind: MultiKueueConfig\nmetadata: {{name: own}}\nspec: {{clusters: [{', '.join(names)}]}}\n"
    removals = WorkerRemovals(
        (ConfigMembership("own", NORTH, running=1),), members=sat(*names[1:], "north", config="own")
    )
    found = compute_desired(draining_fleet(native), Observations(removals=removals))
    assert manifest_of(found, "hub/MultiKueueConfig/own")["spec"]["clusters"] == [*names[1:], "north"]


def test_worker_that_becomes_standalone_is_drained_until_the_manager_has_let_go_of_it() -> None:
    spec = parse(HUB, "kind: Cluster\nmetadata: {name: east}\nspec: {role: standalone}\n", WEST, CPU, SENT)
    for seen in (membership("east", running=2), membership("east", running=0, is_held=True)):
        assert manifest_of(desired(spec, seen), "east/ClusterQueue/q")["spec"]["stopPolicy"] == "Hold"
    assert manifest_of(desired(spec), "east/ClusterQueue/q")["spec"]["stopPolicy"] == "None"
    assert clusters_of(desired(spec, membership("east", running=2))) == ["west", "east"]
    assert clusters_of(desired(spec, membership("east", running=0, is_held=True))) == ["west"]
