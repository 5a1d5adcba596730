"""Quotas and cohorts: where the rules about them must keep quiet, and the less obvious ways to break them."""

from tests.unit.lint.fleets import find, rules_of

COHORT = "kind: Cohort\nmetadata: {name: science, annotations: {kfleet.dev/clusters: workers}}\n"
WEST = "kind: Cluster\nmetadata: {name: west}\nspec: {role: worker}\n---\n"
OBSERVED = "kind: Flavor\nmetadata: {name: cpu}\nspec: {nodeLabels: {pool: cpu}, capacity: {source: nodes}}\n---\n"
NATIVE_QUEUE = """\
kind: ClusterQueue
metadata: {{name: night, annotations: {{kfleet.dev/clusters: workers}}}}
spec:
  namespaceSelector: {{}}
  cohortName: science
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{{name: cpu, resources: [{{name: cpu, nominalQuota: {nominal}{limit}}}]}}]
"""


def queue(quota: str, rest: str = "") -> str:
    return (
        f"kind: Queue\nmetadata: {{name: research}}\nspec:\n  cohort: science\n  quota: [{quota}]\n{rest}---\n{COHORT}"
    )


def test_lending_is_not_judged_before_the_capacity_is_seen() -> None:
    reclaim = "  preemption: {reclaimWithinCohort: Any}\n"
    assert rules_of(OBSERVED + queue("{flavor: cpu, resources: {cpu: 50%}, lendingLimit: {cpu: 5}}", reclaim)) == set()
    above = queue("{flavor: cpu, resources: {cpu: 50%}, lendingLimit: {cpu: 60%}}", reclaim)
    assert rules_of(OBSERVED + above) == {"KF024"}


def test_lending_is_compared_as_written_and_as_numbers() -> None:
    reclaim = "  preemption: {reclaimWithinCohort: Any}\n"
    fixed = find(queue("{flavor: cpu, resources: {cpu: 5}, lendingLimit: {cpu: 5001m}}", reclaim))
    assert [finding.problem for finding in fixed] == [
        "5001m is more than the quota of 5: a queue cannot lend more than it has"
    ]
    mixed = find(queue("{flavor: cpu, resources: {cpu: 50}, lendingLimit: {cpu: 51%}}", reclaim))
    assert [(finding.rule, finding.field) for finding in mixed] == [("KF024", "spec.quota[0].lendingLimit.cpu")]


def test_borrowing_is_not_judged_where_the_limit_binds_on_another_cluster() -> None:
    limited = "{flavor: cpu, resources: {cpu: 5}, borrowingLimit: {cpu: 8}}"
    assert rules_of(queue(limited)) == {"KF027"}
    elsewhere = NATIVE_QUEUE.format(nominal=20, limit="").replace("workers", "west")
    assert rules_of(queue(limited) + "---\n" + WEST + elsewhere) == set()


def test_borrowing_tells_what_the_cohort_lends_at_most() -> None:
    lender = NATIVE_QUEUE.format(nominal=20, limit=", lendingLimit: 2500m").replace(
        "  cohortName", "  preemption: {reclaimWithinCohort: Any}\n  cohortName"
    )
    (finding,) = find(queue("{flavor: cpu, resources: {cpu: 5}, borrowingLimit: {cpu: 8}}") + "---\n" + lender)
    assert finding.problem.endswith("the limit of 8 cpu of flavor cpu never binds: the cohort lends at most 2500m")


def test_capacity_counts_native_queues_and_headroom() -> None:
    assert rules_of(COHORT + "---\n" + NATIVE_QUEUE.format(nominal=50, limit="")) == set()
    (finding,) = find(COHORT + "---\n" + NATIVE_QUEUE.format(nominal=51, limit=""))
    assert finding.problem == "the queues get 101 cpu of flavor cpu, its capacity is 100 (on east)"
    fleet = "kind: Fleet\nmetadata: {name: example}\nspec: {policy: {capacity: {headroom: 10%}}}\n---\n"
    (finding,) = find(fleet + queue("{flavor: cpu, resources: {cpu: 95}}"))
    assert finding.problem == "the queues get 95 cpu of flavor cpu, its capacity is 90 less a headroom of 10% (on east)"


def test_borrowing_is_not_judged_before_the_capacity_is_seen() -> None:
    limited = queue("{flavor: cpu, resources: {cpu: 50%}, borrowingLimit: {cpu: 8}}")
    assert rules_of(OBSERVED + limited) == set()


def test_borrowing_of_the_managers_sum_is_not_judged() -> None:
    """The lender is on the worker only; what the manager's books say follows from the workers."""
    limited = queue("{flavor: cpu, resources: {cpu: 5}, borrowingLimit: {cpu: 8}}", "  dispatch: multikueue\n")
    assert rules_of(limited + "---\n" + NATIVE_QUEUE.format(nominal=20, limit="")) == set()


def test_borrowing_of_a_native_queue_on_the_manager_is_judged() -> None:
    on_manager = NATIVE_QUEUE.format(nominal=5, limit=", borrowingLimit: 8").replace("workers", "manager")
    flavor = "kind: ResourceFlavor\nmetadata: {name: cpu}\n"
    cohort = "kind: Cohort\nmetadata: {name: science}\n"
    (finding,) = find(f"{on_manager}---\n{flavor}---\n{cohort}")
    assert finding.rule == "KF027"
    assert finding.field == "spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit"


def test_cohort_of_one_native_queue_may_be_mistyped() -> None:
    (finding,) = find(NATIVE_QUEUE.format(nominal=5, limit="").replace("science", "sience") + "---\n" + COHORT)
    assert (finding.rule, finding.field) == ("KF032", "spec.cohortName")
    assert finding.problem.endswith("and no document declares it; did you mean science?")


def test_cohort_is_declared_by_a_cohort_of_its_name_alone() -> None:
    topology = "kind: Topology\nmetadata: {name: science}\nspec: {levels: [{nodeLabel: rack}]}\n"
    queue_alone = queue("{flavor: cpu, resources: {cpu: 5}}").removesuffix(COHORT)
    assert rules_of(queue_alone + topology) == {"KF032"}


def test_cohort_of_pools_has_members() -> None:
    master = "apiVersion: vk.io/v1\nkind: MasterQueue\nmetadata: {name: pools}\nspec: {template: {cohort: science}}\n"
    queue_alone = queue("{flavor: cpu, resources: {cpu: 5}}").removesuffix(COHORT)
    assert rules_of(queue_alone + master) == set()


def test_cohort_of_two_queues_needs_no_document() -> None:
    native = NATIVE_QUEUE.format(nominal=5, limit="")
    queue_alone = queue("{flavor: cpu, resources: {cpu: 5}}").removesuffix(COHORT)
    assert rules_of(queue_alone + native) == set()


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
---
"""
    of_pool = NATIVE_QUEUE.format(nominal=5, limit="").replace(
        "name: cpu, resources", "name: pools-nats-cnaf, resources"
    )
    assert rules_of(master + of_pool) == set()
    assert rules_of(master + of_pool.replace("pools-nats", "pools-other")) == {"KF033"}


def test_cohort_quota_that_one_cluster_uses_is_no_mistake() -> None:
    quota = "{name: cpu, resources: [{name: cpu, nominalQuota: 5}]}"
    cohort = f"{COHORT}spec: {{resourceGroups: [{{coveredResources: [cpu], flavors: [{quota}]}}]}}\n---\n"
    one = queue("{flavor: cpu, resources: {cpu: 5}}", "  clusters: {names: [east]}\n").removesuffix(COHORT)
    assert rules_of(WEST + cohort + one.removesuffix("---\n")) == set()


def test_manager_quota_is_limited_as_quota_is() -> None:
    rest = "  preemption: {reclaimWithinCohort: Any}\n  dispatch: multikueue\n  managerQuota:\n"
    rest += "  - {flavor: any, resources: {cpu: 5}, lendingLimit: {cpu: 6}}\n"
    (finding,) = find(queue("{flavor: cpu, resources: {cpu: 5}}", rest))
    assert (finding.rule, finding.field) == ("KF024", "spec.managerQuota[0].lendingLimit.cpu")


def test_sum_of_infinite_quotas_is_not_told_a_second_time() -> None:
    infinite = queue("{flavor: cpu, resources: {cpu: 1000000000}}", "  dispatch: multikueue\n")
    found = [finding.problem for finding in find(OBSERVED + infinite)]
    assert len(found) == 1 and found[0].startswith("east/ClusterQueue/research: 1G cpu of flavor cpu is no amount")


def test_memory_is_infinite_where_no_machine_has_so_much() -> None:
    for amount in ("4Ti", "100Pi"):
        assert rules_of(OBSERVED + queue(f"{{flavor: cpu, resources: {{memory: {amount}}}}}")) == set()
    for amount in ("128Pi", "1000000000Gi", "1Ei"):
        assert rules_of(OBSERVED + queue(f"{{flavor: cpu, resources: {{memory: {amount}}}}}")) == {"KF026"}
