"""What an operator is told of a cycle: once when it begins, however its numbers and words change."""

from dataclasses import replace

from reconciler.capacity.model import Condition
from reconciler.controller.notices import A_WHILE, MOST_OF_A_BUS, Notice, Told, find_notices, in_short
from reconciler.objects import Check, ClusterName, Gap, PreflightIssue, Ref
from reconciler.plan.model import Plan
from reconciler.report.health import HealthIssue

HUB, EAST = ClusterName("hub"), ClusterName("east")
PLAN = Plan("test", "abc", (), ())
OVERCOMMIT = "{}: cohort a: flavor a100-{}: {} cpu are in use, the quota is {}: nothing is evicted"


def notices(
    plan: Plan = PLAN, *conditions: str, health_issues: tuple[HealthIssue, ...] = (), problem: str = ""
) -> frozenset[Notice]:
    return find_notices(plan, tuple(map(Condition, conditions)), health_issues, problem)


def test_condition_whose_numbers_change_is_not_news() -> None:
    before = notices(PLAN, OVERCOMMIT.format("worker-1", 1, "12", "9"), "nats: 1 messages were ignored: too long")
    after = notices(
        PLAN, OVERCOMMIT.format("worker-1", 1, "1500m", "1.5Gi"), "nats: 203 messages were ignored: too long"
    )
    assert len(before) == 2
    assert after - before == frozenset()


def test_condition_about_something_else_is_news() -> None:
    before = notices(PLAN, OVERCOMMIT.format("worker-1", 1, "12", "9"))
    for cluster, flavor in (("worker-2", 1), ("worker-1", 2)):
        assert notices(PLAN, OVERCOMMIT.format(cluster, flavor, "12", "9")) - before


def test_gap_is_reported_once_whatever_the_server_answers() -> None:
    before = notices(replace(PLAN, gaps=(Gap(EAST, "the cluster", "no answer within 5 s"),)))
    after = notices(replace(PLAN, gaps=(Gap(EAST, "the cluster", "connection refused"),)))
    assert [one.message for one in before] == ["east: the cluster: no answer within 5 s"]
    assert after == before


def test_newer_commit_that_is_not_followed_either_is_news() -> None:
    problems = ("1111aaaa1111 is not signed", "2222bbbb2222 is not signed")
    first, second = (notices(problem=problem) for problem in problems)
    assert second - first


def test_of_a_thousand_health_issues_some_are_reported_and_the_rest_counted() -> None:
    refs = (Ref(HUB, "kueue.x-k8s.io", "ClusterQueue", "", f"q{number:04}") for number in range(1000))
    found = notices(
        PLAN, "a pool is silent", health_issues=tuple(HealthIssue(ref, "", "not looked at yet") for ref in refs)
    )
    told = [*in_short(found)]
    assert [one.reason for one in told] == ["Capacity", *["Unhealthy"] * 11]
    assert told[-1].message == "and 990 more like these; kfleet status shows all of them"
    assert len({*told}) == 12


def test_preflight_issues_and_health_issues_are_reported() -> None:
    ref = Ref(HUB, "kueue.x-k8s.io", "MultiKueueCluster", "", "east")
    health_issue = HealthIssue(
        ref, "ClientConnectionFailed", "dial tcp: port 4711", "No connection (port 4711).", "Look there."
    )
    preflight_issue = PreflightIssue(EAST, Check.RIGHTS, "kfleet may not create", "allow it")
    found = notices(
        replace(PLAN, preflight_issues=(preflight_issue, replace(preflight_issue, remedy="give more"))),
        health_issues=(health_issue,),
    )
    assert sorted((one.reason, one.message) for one in found) == [
        ("PreflightIssue", "east: rights: kfleet may not create; allow it"),
        ("PreflightIssue", "east: rights: kfleet may not create; give more"),
        ("Unhealthy", str(health_issue)),
    ]
    later = replace(health_issue, message="dial tcp: port 4712", meaning="No connection (port 4712).")
    assert notices(health_issues=(later,)) == notices(health_issues=(health_issue,))
    missing = HealthIssue(ref, "MissingOnWorker", "", "It is not on west.")
    assert notices(health_issues=(replace(missing, meaning="It is not on east."),)) - notices(health_issues=(missing,))


def of_pool(subject: str, message: str) -> frozenset[Notice]:
    condition = Condition(f"nats: {subject}: the message {message}", f"nats: {subject}", "nats")
    return find_notices(PLAN, (condition,), (), "")


def test_pool_whose_bad_message_changes_its_words_is_not_news() -> None:
    assert of_pool("pools.a", "says 'kaput-abc'") == of_pool("pools.a", "says 'kaput-abd'")
    assert of_pool("pools.a", "is not JSON") != of_pool("pools.b", "is not JSON")


def test_pools_of_a_bus_are_reported_a_few_times_in_a_while_however_they_come_and_go() -> None:
    now = 0.0
    told, other = Told(lambda: now), notices(PLAN, "another condition")
    found = [told.news(of_pool(f"pools.{number}", "is not JSON") | other) for number in range(100)]
    assert [len(one) for one in found] == [2] + [1] * (MOST_OF_A_BUS - 1) + [0] * (100 - MOST_OF_A_BUS)
    assert len(told.news(notices(PLAN, "news of the fleet itself"))) == 1
    now = A_WHILE.total_seconds()
    assert len(told.news(of_pool("pools.0", "is not JSON"))) == 1
