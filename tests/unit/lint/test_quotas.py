"""Quotas and cohorts: where the rules about them must keep quiet, and the less obvious ways to break them."""

from typing import Any

from tests.builders import (
    CLUSTERS,
    Document,
    annotated,
    cluster_document,
    cluster_queue,
    cohort,
    cpu_group,
    fleet_document,
    native,
    observed_flavor,
    quota,
)
from tests.unit.lint.lint_findings import find, rules_of, science_queue

COHORT = native("Cohort", "science", None, "workers")
WEST = cluster_document("west")
OBSERVED = observed_flavor("cpu", "nodes", nodeLabels={"pool": "cpu"})
RECLAIM: Document = {"preemption": {"reclaimWithinCohort": "Any"}}


def native_night(
    nominal: int, *, of: str = "cpu", clusters: str = "workers", limits: Document | None = None, **spec: Any
) -> Document:
    """A queue in Kueue's own words."""
    own = cluster_queue("night", cpu_group(nominal, of=of, **(limits or {})), **{"cohortName": "science", **spec})
    return annotated(own, {CLUSTERS: clusters})


def test_lending_is_not_checked_before_the_capacity_is_seen() -> None:
    below = science_queue({"cpu": "50%"}, {"lendingLimit": {"cpu": 5}}, **RECLAIM)
    assert rules_of(OBSERVED, below, COHORT) == set()
    above = science_queue({"cpu": "50%"}, {"lendingLimit": {"cpu": "60%"}}, **RECLAIM)
    assert rules_of(OBSERVED, above, COHORT) == {"KF024"}


def test_lending_is_compared_as_written_and_as_numbers() -> None:
    fixed = find(science_queue({"cpu": 5}, {"lendingLimit": {"cpu": "5001m"}}, **RECLAIM), COHORT)
    assert [finding.problem for finding in fixed] == [
        "5001m is more than the quota of 5: a queue cannot lend more than it has"
    ]
    mixed = find(science_queue({"cpu": 50}, {"lendingLimit": {"cpu": "51%"}}, **RECLAIM), COHORT)
    assert [(finding.rule, finding.field) for finding in mixed] == [("KF024", "spec.quota[0].lendingLimit.cpu")]


def test_borrowing_is_not_checked_where_the_limit_binds_on_another_cluster() -> None:
    limited = science_queue({"cpu": 5}, {"borrowingLimit": {"cpu": 8}})
    assert rules_of(limited, COHORT) == {"KF027"}
    assert rules_of(limited, COHORT, WEST, native_night(20, clusters="west")) == set()


def test_borrowing_tells_what_the_cohort_lends_at_most() -> None:
    lender = native_night(20, limits={"lendingLimit": "2500m"}, **RECLAIM)
    (finding,) = find(science_queue({"cpu": 5}, {"borrowingLimit": {"cpu": 8}}), COHORT, lender)
    assert finding.problem.endswith(
        "the limit of 8 cpu of flavor cpu never takes effect: the cohort lends at most 2500m"
    )


def test_capacity_counts_native_queues_and_headroom() -> None:
    assert rules_of(COHORT, native_night(50)) == set()
    (finding,) = find(COHORT, native_night(51))
    assert finding.problem == "the queues get 101 cpu of flavor cpu, but its capacity is 100 (on east)"
    fleet = fleet_document("example", policy={"capacity": {"headroom": "10%"}})
    (finding,) = find(fleet, science_queue({"cpu": 95}), COHORT)
    assert (
        finding.problem
        == "the queues get 95 cpu of flavor cpu, but its capacity is 90 less a headroom of 10% (on east)"
    )


def test_borrowing_is_not_checked_before_the_capacity_is_seen() -> None:
    limited = science_queue({"cpu": "50%"}, {"borrowingLimit": {"cpu": 8}})
    assert rules_of(OBSERVED, limited, COHORT) == set()


def test_borrowing_of_the_managers_sum_is_not_checked() -> None:
    """The lender is on the worker only; what the manager's books say follows from the workers."""
    limited = science_queue({"cpu": 5}, {"borrowingLimit": {"cpu": 8}}, dispatch="multikueue")
    assert rules_of(limited, COHORT, native_night(20)) == set()


def test_borrowing_of_a_native_queue_on_the_manager_is_checked() -> None:
    on_manager = native_night(5, clusters="manager", limits={"borrowingLimit": 8})
    (finding,) = find(on_manager, native("ResourceFlavor", "cpu"), native("Cohort", "science"))
    assert finding.rule == "KF027"
    assert finding.field == "spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit"


def test_cohort_of_one_native_queue_may_be_mistyped() -> None:
    (finding,) = find(native_night(5, cohortName="sience"), COHORT)
    assert (finding.rule, finding.field) == ("KF032", "spec.cohortName")
    assert finding.problem.endswith("and no document declares it; did you mean science?")


def test_cohort_is_declared_by_a_cohort_of_its_name_alone() -> None:
    topology = native("Topology", "science", {"levels": [{"nodeLabel": "rack"}]})
    assert rules_of(science_queue({"cpu": 5}), topology) == {"KF032"}


def test_cohort_of_pools_has_members() -> None:
    master = "apiVersion: vk.io/v1\nkind: MasterQueue\nmetadata: {name: pools}\nspec: {template: {cohort: science}}\n"
    assert rules_of(science_queue({"cpu": 5}), master) == set()


def test_cohort_of_two_queues_needs_no_document() -> None:
    assert rules_of(science_queue({"cpu": 5}), native_night(5)) == set()


def test_parent_cohort_is_not_suggested_to_be_its_child() -> None:
    (finding,) = find("kind: Cohort\nmetadata: {name: science}\nspec: {parentName: sciences}\n")
    assert finding.problem == "there is no Cohort 'sciences' in the fleet (on hub)"


def test_flavor_of_a_pool_is_made_when_the_pool_speaks() -> None:
    master = """\
apiVersion: vk.io/v1
kind: MasterQueue
metadata: {name: pools}
spec:
  template: {cohort: science}
  flavors:
  - name: nats
    natsFlavor: {natsConnector: "nats://nats", natsSubject: s, virtualNode: vk, poolTimeout: 65, pools: [cnaf]}
"""
    assert rules_of(master, native_night(5, of="pools-nats-cnaf")) == set()
    assert rules_of(master, native_night(5, of="pools-other-cnaf")) == {"KF033"}


def test_cohort_quota_that_one_cluster_uses_is_not_a_mistake() -> None:
    shared = annotated(cohort("science", cpu_group(5, of="cpu")), {CLUSTERS: "workers"})
    assert rules_of(WEST, shared, science_queue({"cpu": 5}, clusters={"names": ["east"]})) == set()


def test_manager_quota_is_limited_as_quota_is() -> None:
    manager = [quota("any", {"cpu": 5}, lendingLimit={"cpu": 6})]
    sent = science_queue({"cpu": 5}, dispatch="multikueue", managerQuota=manager, **RECLAIM)
    (finding,) = find(sent, COHORT)
    assert (finding.rule, finding.field) == ("KF024", "spec.managerQuota[0].lendingLimit.cpu")


def test_sum_of_infinite_quotas_is_not_told_a_second_time() -> None:
    infinite = science_queue({"cpu": 1000000000}, dispatch="multikueue")
    found = [finding.problem for finding in find(OBSERVED, infinite, COHORT)]
    assert len(found) == 1 and found[0].startswith(
        "east/ClusterQueue/research: 1G cpu of flavor cpu is more than any cluster has"
    )


def test_memory_is_infinite_where_no_machine_has_so_much() -> None:
    for amount in ("4Ti", "100Pi"):
        assert rules_of(OBSERVED, science_queue({"memory": amount}), COHORT) == set()
    for amount in ("128Pi", "1000000000Gi", "1Ei"):
        assert rules_of(OBSERVED, science_queue({"memory": amount}), COHORT) == {"KF026"}


def test_share_of_an_unknown_resource_suggests_the_one_that_is_meant() -> None:
    text = "kind: Queue\nmetadata: {name: research}\nspec: {quota: [{flavor: cpu, resources: {memry: 50%}}]}\n"
    (found,) = (one for one in find(text) if one.rule == "KF029")
    assert found.problem.endswith("has no memry; did you mean memory?")
    assert found.hint == "its capacity has cpu, memory; add memry there if it is another resource"


def test_amount_of_an_unknown_resource_suggests_the_one_that_is_meant() -> None:
    (found,) = (one for one in find(science_queue({"cqu": "5"}), COHORT) if one.rule == "KF022")
    assert found.problem == "the queues get 5 cqu of flavor cpu, but its capacity is 0 (on east); did you mean cpu?"
