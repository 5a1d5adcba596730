"""What an operator is told of a cycle: once when it begins, however its numbers and words change."""

from dataclasses import replace

from reconciler.health import Ailment
from reconciler.objects import Check, ClusterName, Gap, Obstacle, Ref
from reconciler.plan import Plan
from reconciler.run.notices import Notice, find_notices, in_short

HUB, EAST = ClusterName("hub"), ClusterName("east")
PLAN = Plan("test", "abc", (), ())
OVERCOMMIT = "{}: cohort a: flavor a100-{}: {} cpu are in use, the quota is {}: nothing is evicted"


def notices(
    plan: Plan = PLAN, *conditions: str, ailments: tuple[Ailment, ...] = (), problem: str = ""
) -> frozenset[Notice]:
    return find_notices(plan, conditions, ailments, problem)


def test_condition_whose_numbers_change_is_no_news() -> None:
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


def test_gap_is_told_once_whatever_the_server_answers() -> None:
    before = notices(replace(PLAN, gaps=(Gap(EAST, "the cluster", "no answer within 5 s"),)))
    after = notices(replace(PLAN, gaps=(Gap(EAST, "the cluster", "connection refused"),)))
    assert [one.message for one in before] == ["east: the cluster: no answer within 5 s"]
    assert after == before


def test_newer_commit_that_is_not_followed_either_is_news() -> None:
    problems = ("1111aaaa1111 is not signed", "2222bbbb2222 is not signed")
    first, second = (notices(problem=problem) for problem in problems)
    assert second - first


def test_of_a_thousand_ailments_some_are_told_and_the_rest_counted() -> None:
    refs = (Ref(HUB, "kueue.x-k8s.io", "ClusterQueue", "", f"q{number:04}") for number in range(1000))
    found = notices(PLAN, "a pool is silent", ailments=tuple(Ailment(ref, "", "not looked at yet") for ref in refs))
    told = [*in_short(found)]
    assert [one.reason for one in told] == ["Capacity", *["Unhealthy"] * 11]
    assert told[-1].message == "and 990 more like these; kfleet status shows all of them"
    assert len({*told}) == 12


def test_obstacles_and_ailments_are_told() -> None:
    ref = Ref(HUB, "kueue.x-k8s.io", "MultiKueueCluster", "", "east")
    ailment = Ailment(ref, "ClientConnectionFailed", "dial tcp: port 4711", "No connection (port 4711).", "Look there.")
    obstacle = Obstacle(EAST, Check.RIGHTS, "kfleet may not create", "allow it")
    found = notices(replace(PLAN, obstacles=(obstacle, replace(obstacle, remedy="give more"))), ailments=(ailment,))
    assert sorted((one.reason, one.message) for one in found) == [
        ("Obstacle", "east: rights: kfleet may not create; allow it"),
        ("Obstacle", "east: rights: kfleet may not create; give more"),
        ("Unhealthy", str(ailment)),
    ]
    later = replace(ailment, message="dial tcp: port 4712", meaning="No connection (port 4712).")
    assert notices(ailments=(later,)) == notices(ailments=(ailment,))
    missing = Ailment(ref, "MissingOnWorker", "", "It is not on west.")
    assert notices(ailments=(replace(missing, meaning="It is not on east."),)) - notices(ailments=(missing,))
