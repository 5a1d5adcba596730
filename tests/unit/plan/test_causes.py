"""Each field of one object has its own cause, also where several things happened to it at once."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from reconciler.kueue.configuration import KueueSettings
from reconciler.multikueue.model import Links, SeenCredential
from reconciler.objects import ApiEndpoint, ClusterName, Manifest
from reconciler.plan.model import Cause, Plan
from reconciler.quantity import parse as quantity
from reconciler.snapshot.model import FlavorKey, Observations, Pool, PoolKey
from reconciler.state.tracking import WANTED
from tests.builders import flavor, open_queue
from tests.unit.plan.paper_clusters import HUB_AND_EAST, PaperClusters, applied_clusters, parse, plan_of

NIGHT = "hub/ClusterQueue/night"
NATIVE = """\
kind: ClusterQueue
metadata: {name: night, labels: {team: a}}
spec:
  cohortName: science
  namespaceSelector: {}
  queueingStrategy: StrictFIFO
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors:
    - name: cpu
      resources: [{name: cpu, nominalQuota: 9000m}, {name: memory, nominalQuota: 1Gi, borrowingLimit: 1Gi}]
---
kind: ResourceFlavor
metadata: {name: cpu}
spec: {}
"""
SHARES = """\
kind: Flavor
metadata: {name: cpu}
spec: {capacity: {source: nodes}}
---
kind: Queue
metadata: {name: night}
spec:
  cohort: science
  quota: [{flavor: cpu, resources: {cpu: 50%, memory: 50%, pods: "10"}}]
  namespaceSelector: {}
"""
MASTER = """\
apiVersion: vk.io/v1
kind: MasterQueue
metadata: {name: night}
spec:
  template: {cohort: science}
  flavors:
  - name: nats
    nominalQuota: {pods: 100}
    natsFlavor: {natsConnector: "nats:4222", natsSubject: s, virtualNode: vk, poolRegExp: ".*"}
"""
SENT = (
    *HUB_AND_EAST,
    flavor("cpu", {"cpu": "16"}),
    open_queue("night", "cpu", {"cpu": "50%"}, dispatch="multikueue"),
)
CPU, MEMORY, PODS = (
    f"spec.resourceGroups[0].flavors[cpu].resources[{name}].nominalQuota" for name in ("cpu", "memory", "pods")
)
LIMIT = MEMORY.replace("nominalQuota", "borrowingLimit")
COHORT, STRATEGY = "spec.cohortName", "spec.queueingStrategy"


def causes(plan: Plan) -> Mapping[str, Cause]:
    (change,) = (change for change in plan.writes if str(change.ref) == NIGHT)
    return {field.path: field.cause for field in change.fields}


def with_quotas(paper_clusters: PaperClusters, edits: Mapping[int, Manifest]) -> PaperClusters:
    """Somebody edits entries of the list of quotas by hand, which Kueue's server owns as one value."""
    group = paper_clusters.objects[paper_clusters.find(NIGHT)]["spec"]["resourceGroups"][0]
    flavor = group["flavors"][0]
    entries = [{**entry, **edits.get(number, {})} for number, entry in enumerate(flavor["resources"])]
    kept = [{name: value for name, value in entry.items() if value is not None} for entry in entries]
    return paper_clusters.edited(
        NIGHT, {"spec": {"resourceGroups": [{**group, "flavors": [{**flavor, "resources": kept}]}]}}
    )


def seen_nodes(cpu: str, memory: str = "8Gi") -> Observations:
    amounts = {"cpu": quantity(cpu), "memory": quantity(memory), "pods": quantity("100")}
    return Observations(capacities={FlavorKey(ClusterName("hub"), "cpu"): amounts}, pools=())


def seen_pools(**cpus: str) -> Observations:
    pools = (Pool(PoolKey("nats:4222", "s", name), {"cpu": quantity(cpu)}) for name, cpu in cpus.items())
    return Observations(pools=tuple(pools))


def test_drift_of_one_field_is_distinguished_from_a_new_value_for_another() -> None:
    paper_clusters = applied_clusters(parse(NATIVE)).edited(NIGHT, {"spec": {"queueingStrategy": "BestEffortFIFO"}})
    after = parse(NATIVE.replace("science", "art"))
    assert causes(plan_of(after, paper_clusters)) == {COHORT: Cause.SPEC, STRATEGY: Cause.DRIFT}


@pytest.mark.parametrize("edit", [{"nominalQuota": "5"}, {"nominalQuota": 5}, {"nominalQuota": None}])
def test_drift_is_found_inside_of_a_list_that_has_one_owner(edit: Manifest) -> None:
    paper_clusters = with_quotas(applied_clusters(parse(NATIVE)), {0: edit})
    after = parse(NATIVE.replace("nominalQuota: 1Gi", "nominalQuota: 2Gi"))
    assert causes(plan_of(after, paper_clusters)) == {CPU: Cause.DRIFT, MEMORY: Cause.SPEC}


def test_field_that_a_user_added_to_such_a_list_is_drift() -> None:
    paper_clusters = with_quotas(applied_clusters(parse(NATIVE)), {0: {"lendingLimit": "1"}})
    after = parse(NATIVE.replace("nominalQuota: 1Gi", "nominalQuota: 2Gi"))
    found = causes(plan_of(after, paper_clusters))
    assert found == {CPU.replace("nominalQuota", "lendingLimit"): Cause.DRIFT, MEMORY: Cause.SPEC}


@pytest.mark.parametrize("same", ["1Gi", 2**30, "1024Mi"])
def test_field_that_git_no_longer_names_is_a_change_of_git_however_a_user_wrote_it(same: str | int) -> None:
    paper_clusters = with_quotas(
        applied_clusters(parse(NATIVE)), {0: {"nominalQuota": "5"}, 1: {"borrowingLimit": same}}
    )
    after = parse(NATIVE.replace(", borrowingLimit: 1Gi", ""))
    assert causes(plan_of(after, paper_clusters)) == {CPU: Cause.DRIFT, LIMIT: Cause.SPEC}


def test_field_that_drifted_and_changed_in_git_is_a_change_of_git() -> None:
    """It would change also if nobody had touched it."""
    paper_clusters = applied_clusters(parse(NATIVE)).edited(NIGHT, {"spec": {"cohortName": "x"}})
    assert causes(plan_of(parse(NATIVE.replace("science", "art")), paper_clusters)) == {COHORT: Cause.SPEC}


def test_labels_have_their_own_causes() -> None:
    labels = {"metadata": {"labels": {"team": "b"}}}
    paper_clusters = applied_clusters(parse(NATIVE)).edited(NIGHT, labels)
    after = parse(NATIVE.replace("{team: a}", "{team: a, site: x}"))
    assert causes(plan_of(after, paper_clusters)) == {
        "metadata.labels.team": Cause.DRIFT,
        "metadata.labels.site": Cause.SPEC,
    }


def test_flavor_that_comes_first_is_a_change_of_git_in_all_places_that_it_moves() -> None:
    first = "    - {name: new, resources: [{name: cpu, nominalQuota: 1}, {name: memory, nominalQuota: 1Gi}]}\n"
    flavors = f"{NATIVE}---\nkind: ResourceFlavor\nmetadata: {{name: new}}\nspec: {{}}\n"
    after = parse(flavors.replace("    flavors:\n", f"    flavors:\n{first}"))
    found = causes(plan_of(after, applied_clusters(parse(NATIVE))))
    assert found
    assert set(found.values()) == {Cause.SPEC}


def test_observation_drift_and_git_are_distinguished_in_one_queue() -> None:
    paper_clusters = with_quotas(applied_clusters(parse(SHARES), seen=seen_nodes("16")), {1: {"nominalQuota": "1Gi"}})
    after = parse(SHARES.replace('pods: "10"', 'pods: "20"'))
    found = causes(plan_of(after, paper_clusters, seen=seen_nodes("12")))
    assert found == {CPU: Cause.OBSERVATION, MEMORY: Cause.DRIFT, PODS: Cause.SPEC}


def test_share_that_changes_in_git_is_not_an_observation_although_the_capacity_moved_too() -> None:
    paper_clusters = applied_clusters(parse(SHARES), seen=seen_nodes("16"))
    after = parse(SHARES.replace("cpu: 50%", "cpu: 75%"))
    found = causes(plan_of(after, paper_clusters, seen=seen_nodes("12", "4Gi")))
    assert found == {CPU: Cause.SPEC, MEMORY: Cause.OBSERVATION}


def test_capacity_of_a_pool_is_distinguished_from_a_change_of_its_master_queue() -> None:
    paper_clusters = applied_clusters(parse(MASTER), seen=seen_pools(cnaf="16"))
    moved = causes(plan_of(parse(MASTER), paper_clusters, seen=seen_pools(cnaf="12")))
    both = causes(plan_of(parse(MASTER.replace("science", "art")), paper_clusters, seen=seen_pools(cnaf="12")))
    pool_cpu = CPU.replace("flavors[cpu]", "flavors[night-nats-cnaf]")
    assert moved == {pool_cpu: Cause.OBSERVATION}
    assert both == {pool_cpu: Cause.OBSERVATION, COHORT: Cause.SPEC}


def test_pool_that_comes_is_an_observation() -> None:
    paper_clusters = applied_clusters(parse(MASTER), seen=seen_pools(cnaf="16"))
    found = causes(plan_of(parse(MASTER), paper_clusters, seen=seen_pools(cnaf="16", lyon="4")))
    assert found == {"spec.resourceGroups[0].flavors[night-nats-lyon]": Cause.OBSERVATION}


@pytest.mark.parametrize("text", ["0123456789abcdef", "0123456789abcdef.", "0123456789abcdef.%%%"])
def test_object_that_does_not_say_what_was_wanted_of_its_fields_has_one_cause(text: str) -> None:
    paper_clusters = applied_clusters(parse(NATIVE)).edited(NIGHT, {"spec": {"queueingStrategy": "BestEffortFIFO"}})
    bare = paper_clusters.patched(NIGHT, {"metadata": {"annotations": {WANTED: text}}})
    after = parse(NATIVE.replace("science", "art"))
    assert causes(plan_of(after, bare)) == {COHORT: Cause.SPEC, STRATEGY: Cause.SPEC}


def test_record_of_fields_is_written_with_the_next_change_and_not_before() -> None:
    """Who comes from a kfleet that kept no such record does not see a plan of everything."""
    spec = parse(NATIVE)
    paper_clusters = applied_clusters(spec)
    live = paper_clusters.objects[paper_clusters.find(NIGHT)]["metadata"]["annotations"][WANTED]
    old = paper_clusters.patched(NIGHT, {"metadata": {"annotations": {WANTED: live.partition(".")[0]}}})
    assert not plan_of(spec, old).writes
    (change,) = plan_of(spec, old.edited(NIGHT, {"spec": {"cohortName": "x"}})).writes
    assert [field.cause for field in change.fields] == [Cause.DRIFT]
    art = parse(NATIVE.replace("science", "art"))
    assert _record(plan_of(art, old)) == _record(plan_of(art, PaperClusters()))


def _record(plan: Plan) -> str:
    (manifest,) = (change.manifest for change in plan.writes if str(change.ref) == NIGHT)
    text: str = (manifest or {})["metadata"]["annotations"][WANTED]
    assert text.partition(".")[2]
    return text


def test_role_that_follows_the_managers_kueue_changes_by_observation() -> None:
    spec = parse(*SENT)
    one, other = (Observations(links=links_of(*names)) for names in (("batch/job",), ("batch/job", "pod")))
    paper_clusters = applied_clusters(spec, seen=one)
    (change,) = (
        change for change in plan_of(spec, paper_clusters, seen=other).writes if change.ref.kind == "ClusterRole"
    )
    assert {field.cause for field in change.fields} == {Cause.OBSERVATION}
    assert not [change for change in plan_of(spec, paper_clusters, seen=one).writes if change.ref.kind == "ClusterRole"]


def links_of(*frameworks: str) -> Links:
    east = ClusterName("east")
    gone = {east: SeenCredential(problem="the manager has no token yet")}
    return Links(
        datetime(2026, 3, 1, tzinfo=UTC), "uid", KueueSettings(frameworks), {east: ApiEndpoint("https://east")}, gone
    )
