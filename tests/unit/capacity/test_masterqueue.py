"""What a MasterQueue becomes, by the pools that are known."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.capacity.message import flavor_name
from reconciler.errors import SpecError
from reconciler.kueue.kinds import NEWEST
from reconciler.kueue.rules.kinds import check_object
from reconciler.kueue.structure import problem_of_name
from reconciler.render.compute import compute_desired, compute_observed
from reconciler.render.model import Desired, offline_api, written
from reconciler.snapshot.model import Freshness, Observations, Pool, PoolKey
from tests.builders import cluster_document, fleet_document, spec_of
from tests.unit.capacity.ledgers import amounts
from tests.unit.render.desired_objects import manifest_of, quotas_of

MASTER = """apiVersion: vk.io/v1
kind: MasterQueue
metadata: {name: main}
spec:
  template: {cohort: pools}
  flavors:
  - name: nats
    nominalQuota: {cpu: 10, pods: 100}
    canLendTo: [{queue: group1, lendingLimit: {pods: 30}}]
    natsFlavor: {natsConnector: "nats://u:p@nats:4222", natsSubject: s, virtualNode: vk, poolRegExp: ".*"}
"""
QUEUE, BRANCH = "hub/ClusterQueue/main", "hub/ClusterQueue/group1"


def pool(name: str, freshness: Freshness = Freshness.FRESH, **more: Any) -> Pool:
    place = PoolKey("nats:4222", more.pop("subject", "s"), name)
    return Pool(place, more.pop("amounts", amounts(cpu=16, memory="64Gi", pods=50)), freshness=freshness, **more)


def desired_with(*pools: Pool, master: str = MASTER) -> Desired:
    return compute_desired(spec_of(master), Observations(pools=pools))


def test_pool_gives_the_smaller_of_what_it_says_and_what_is_allowed() -> None:
    quotas = quotas_of(desired_with(pool("cnaf")), QUEUE)
    assert quotas == {"main-nats-cnaf": {"cpu": "10", "memory": "64Gi", "pods": "50", "nvidia.com/gpu": "0"}}


def test_branch_borrows_as_much_of_each_pool_and_what_is_not_limited_without_a_limit() -> None:
    desired = desired_with(pool("cnaf"), pool("lyon"))
    spec = manifest_of(desired, BRANCH)["spec"]
    assert spec["cohortName"] == "pools"
    (group,) = spec["resourceGroups"]
    assert [flavor["name"] for flavor in group["flavors"]] == ["main-nats-cnaf", "main-nats-lyon"]
    for flavor in group["flavors"]:
        limits = {one["name"]: one.get("borrowingLimit") for one in flavor["resources"]}
        assert limits == {"cpu": None, "memory": None, "pods": "30", "nvidia.com/gpu": None}
        assert {one["nominalQuota"] for one in flavor["resources"]} == {"0"}


def test_pool_may_bring_any_resource() -> None:
    desired = desired_with(pool("cnaf", amounts=amounts(cpu=1, **{"amd.com/gpu": 4})), pool("lyon"))
    assert quotas_of(desired, QUEUE)["main-nats-cnaf"]["amd.com/gpu"] == "4"
    assert quotas_of(desired, QUEUE)["main-nats-lyon"]["amd.com/gpu"] == "0"


def test_silent_pool_keeps_its_flavor_and_gives_nothing() -> None:
    desired = desired_with(pool("cnaf", Freshness.STALE, amounts=amounts(cpu=0, memory=0, pods=0)))
    assert set(quotas_of(desired, QUEUE)["main-nats-cnaf"].values()) == {"0"}
    assert manifest_of(desired, QUEUE)["spec"]["stopPolicy"] == "None"
    assert manifest_of(desired, "hub/ResourceFlavor/main-nats-cnaf")


def test_only_the_flavor_of_a_silent_pool_says_that_it_is_silent() -> None:
    desired = desired_with(pool("cnaf", Freshness.STALE, amounts=amounts(cpu=0)), pool("lyon"))
    notes = {entry.ref.name: entry.notes for entry in desired.objects if entry.ref.kind == "ResourceFlavor"}
    assert sorted(notes.values()) == [(), ("the pool is silent",)]
    assert all(("cnaf" in name) == bool(note) for name, note in notes.items())


def test_queues_without_a_pool_are_on_hold_and_have_no_flavor() -> None:
    desired = desired_with()
    for name in (QUEUE, BRANCH):
        spec = manifest_of(desired, name)["spec"]
        assert spec["stopPolicy"] == "Hold" and "resourceGroups" not in spec
    assert desired.gaps == ()


def test_pools_that_were_not_listened_to_are_a_gap() -> None:
    gaps = compute_desired(spec_of(MASTER)).gaps
    assert [str(gap) for gap in gaps] == ["hub: MasterQueue main: its pools: not observed"]


def test_pool_of_another_bus_or_subject_or_name_is_none_of_ours() -> None:
    other = pool("cnaf", subject="t")
    elsewhere = Pool(PoolKey("other:4222", "s", "cnaf"), amounts(cpu=1))
    assert quotas_of(desired_with(other, elsewhere), QUEUE) == {}
    named = MASTER.replace('poolRegExp: ".*"', "pools: [lyon]")
    assert quotas_of(desired_with(pool("cnaf"), master=named), QUEUE) == {}


def test_pattern_is_searched_and_not_anchored() -> None:
    pattern = MASTER.replace('".*"', "podman-.*")
    assert list(quotas_of(desired_with(pool("x-podman-y"), pool("slurm"), master=pattern), QUEUE)) == [
        "main-nats-x-podman-y"
    ]


def test_local_flavor_has_the_quota_that_is_written() -> None:
    local = "  - {name: here, localFlavor: {}, nominalQuota: {cpu: 3}, canLendTo: [{queue: group1}]}\n"
    desired = desired_with(master=MASTER + local)
    assert quotas_of(desired, QUEUE)["here"]["cpu"] == "3"
    assert manifest_of(desired, QUEUE)["spec"]["stopPolicy"] == "None"
    assert "hub/ResourceFlavor/here" not in {str(entry.ref) for entry in desired.objects}


@pytest.mark.parametrize(("said", "meant"), [("Stop", "Hold"), ("StopAndHold", "HoldAndDrain"), ("None", "None")])
def test_stop_policy_is_said_in_the_words_of_kueue(said: str, meant: str) -> None:
    stopped = MASTER.replace("{cohort: pools}", f'{{cohort: pools, stopPolicy: "{said}"}}')
    assert manifest_of(desired_with(pool("cnaf"), master=stopped), QUEUE)["spec"]["stopPolicy"] == meant


@pytest.mark.parametrize(("first", "second"), [(30, 7), (7, 30)])
def test_two_limits_for_the_same_branch_are_the_smaller_one(first: int, second: int) -> None:
    both = f"{{pods: {first}}}}}, {{queue: group1, lendingLimit: {{pods: {second}}}}}]"
    twice = MASTER.replace("{pods: 30}}]", both)
    (group,) = manifest_of(desired_with(pool("cnaf"), master=twice), BRANCH)["spec"]["resourceGroups"]
    assert [one.get("borrowingLimit") for one in group["flavors"][0]["resources"]] == [None, None, "7", None]


def test_names_that_meet_are_reported_and_the_first_one_stays() -> None:
    more = "  - {name: nats-a, natsFlavor: {natsConnector: nats, natsSubject: s, virtualNode: vk, pools: [b]}}\n"
    desired = desired_with(pool("a-b"), pool("b"), master=MASTER.replace("nats://u:p@nats:4222", "nats") + more)
    names = [entry.ref.name for entry in desired.objects if entry.ref.kind == "ResourceFlavor"]
    assert names == ["main-nats-a-b", "main-nats-b"]
    assert [gap.what for gap in desired.gaps] == ["MasterQueue main: pool b"]


def test_pool_that_jobs_cannot_be_sent_to_is_reported() -> None:
    named = MASTER.replace('poolRegExp: ".*"', f"pools: [a b, {'x' * 64}, cnaf]")
    desired = desired_with(pool("a b"), pool("x" * 64), pool("cnaf"), master=named)
    assert list(quotas_of(desired, QUEUE)) == ["main-nats-cnaf"]
    assert [gap.what for gap in desired.gaps] == ["MasterQueue main: pool a b", f"MasterQueue main: pool {'x' * 64}"]


def test_queue_takes_the_pools_that_it_has_room_for_in_the_order_in_which_they_came() -> None:
    """The second entry of the MasterQueue has the pool that was known first."""
    there = "natsConnector: nats://u:p@nats:4222, natsSubject: t"
    entry = f"  - {{name: more, natsFlavor: {{{there}, virtualNode: vk, pools: [a]}}}}"
    pools = [pool("a", subject="t"), *(pool(f"p{number}") for number in range(66))]
    desired = desired_with(*pools, master=f"{MASTER}{entry}\n")
    names = [f"main-nats-p{number}" for number in range(63)]
    assert list(quotas_of(desired, QUEUE)) == [*names, "main-more-a"]
    assert list(quotas_of(desired, BRANCH)) == names
    flavors = {entry.ref.name for entry in desired.objects if entry.ref.kind == "ResourceFlavor"}
    assert flavors == {*names, "main-more-a"}
    (gap,) = desired.gaps
    assert gap.what == "MasterQueue main: some pools"
    assert "cannot hold all of them: p63, p64, p65; narrow pools or poolRegExp" in gap.why
    assert all(check_object(entry.manifest, NEWEST) == () for entry in desired.objects)


def test_older_kueue_has_room_for_fewer_pools() -> None:
    spec = spec_of(MASTER)
    older = tuple(replace(cluster, kueue=replace(cluster.kueue, version="0.12.0")) for cluster in spec.clusters)
    pools = tuple(pool(f"p{number}") for number in range(17))
    desired = compute_desired(replace(spec, clusters=older), Observations(pools=pools))
    assert len(quotas_of(desired, QUEUE)) == 16
    assert [gap.what for gap in desired.gaps] == ["MasterQueue main: some pools"]


def test_resource_that_a_queue_has_no_room_for_is_left_out_and_the_pools_stay() -> None:
    odd = amounts(cpu=1, **{f"example.org/r{number}": 1 for number in range(10)})
    pools = [pool(f"p{number}") for number in range(63)]
    desired = desired_with(*pools, pool("odd", amounts=odd))
    quotas = quotas_of(desired, QUEUE)
    assert list(quotas) == [*(f"main-nats-p{number}" for number in range(63)), "main-nats-odd"]
    assert list(quotas["main-nats-odd"])[4:] == [f"example.org/r{number}" for number in range(4)]
    (gap,) = desired.gaps
    assert gap.what == "MasterQueue main: some resources of its pools"
    assert ": example.org/r4, " in gap.why and "example.org/r8 and 1 more;" in gap.why
    assert all(check_object(entry.manifest, NEWEST) == () for entry in desired.objects)


@given(st.lists(st.tuples(st.integers(0, 90), st.sets(st.integers(0, 40), max_size=32)), max_size=80))
def test_queue_of_any_pools_is_one_that_kueue_takes(said: list[tuple[int, set[int]]]) -> None:
    pools = {name: amounts(**{f"example.org/r{one}": 1 for one in names}) for name, names in said}
    desired = desired_with(*(pool(f"p{name}", amounts=brought) for name, brought in pools.items()))
    for entry in desired.objects:
        assert check_object(entry.manifest, NEWEST) == (), entry.ref


def test_queue_that_the_spec_alone_makes_too_large_cannot_be_written() -> None:
    local = "".join(f"  - {{name: here-{number}, localFlavor: {{}}}}\n" for number in range(65))
    desired = desired_with(master=MASTER + local)
    queue = next(entry for entry in desired.objects if str(entry.ref) == QUEUE)
    with pytest.raises(SpecError, match="narrow pools or poolRegExp"):
        written(queue, offline_api(spec_of(MASTER).clusters[0]))


def test_what_observations_decide_is_distinguished_from_what_the_spec_does() -> None:
    def origin(desired: Desired, ref: str = QUEUE) -> str:
        return next(entry.origin for entry in desired.objects if str(entry.ref) == ref)

    small, large = (Observations(pools=(pool("cnaf", amounts=amounts(cpu=cpu)),)) for cpu in (1, 2))
    one, two = (compute_observed(spec_of(MASTER), seen) for seen in (small, large))
    other = compute_observed(spec_of(MASTER.replace("cpu: 10", "cpu: 11")), small)
    assert origin(one) == origin(two) != origin(other)
    assert origin(compute_observed(spec_of(MASTER), Observations())) == ""


def test_name_with_a_dot_never_meets_one_that_kfleet_made() -> None:
    made = flavor_name("main", "nats", "CNAF")
    assert made.startswith("main-nats-cnaf.")
    assert flavor_name("main", "nats", made.removeprefix("main-nats-")) != made


pool_names = st.text(st.characters(exclude_characters=". *>\t\n\r", codec="utf-8"), min_size=1, max_size=70)


@given(st.lists(pool_names, max_size=6, unique=True))
def test_every_flavor_and_queue_of_any_pools_is_one_that_kueue_takes(names: list[str]) -> None:
    desired = desired_with(*(pool(name) for name in names))
    for entry in desired.objects:
        assert check_object(entry.manifest, NEWEST) == (), entry.ref


@given(pool_names, pool_names)
def test_names_of_flavors_are_names_and_different(one: str, other: str) -> None:
    first, second = flavor_name("main", "nats", one), flavor_name("main", "nats", other)
    assert not problem_of_name(first)
    assert (first == second) == (one == other)
    if re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", one):
        assert first == f"main-nats-{one}"


def test_label_that_the_policy_does_not_name_is_not_on_the_flavor_of_a_pool() -> None:
    """Also where the pool said it long ago, before the policy."""
    said = replace(pool("cnaf"), labels={"site": "cnaf", "other": "1"})
    fleet = fleet_document(policy={"capacity": {"poolLabels": ["site"]}})
    spec = spec_of(MASTER, base=(fleet, cluster_document("hub", "standalone")))
    desired = compute_desired(spec, Observations(pools=(said,)))
    assert manifest_of(desired, "hub/ResourceFlavor/main-nats-cnaf")["metadata"]["labels"] == {"site": "cnaf"}


def test_pool_keeps_a_taint_of_our_key_with_another_effect() -> None:
    """As kueue-nats does; only the very taint that every pool gets is not doubled."""
    own = {"key": "virtual-node.interlink/no-schedule", "value": "true", "effect": "NoSchedule"}
    stronger = {**own, "effect": "NoExecute"}
    desired = desired_with(pool("cnaf", taints=({**own, "value": "other"}, stronger)))
    taints = manifest_of(desired, "hub/ResourceFlavor/main-nats-cnaf")["spec"]["nodeTaints"]
    assert taints == [own, stronger]


def test_origin_of_a_queue_says_nothing_of_a_password() -> None:
    origins = set()
    for word in ("p", "hunter2"):
        spec = spec_of(MASTER.replace("u:p@", f"u:{word}@"))
        desired = compute_observed(spec, Observations(pools=(pool("cnaf"),)))
        origins.add(next(entry.origin for entry in desired.objects if str(entry.ref) == QUEUE))
    assert len(origins) == 1
