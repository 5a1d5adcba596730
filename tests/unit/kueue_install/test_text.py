"""What `kfleet kueue` prints and writes."""

import pytest

from reconciler.kueue_install.decide import make_step
from reconciler.kueue_install.model import (
    Harmony,
    InstallCommand,
    InstallPlan,
    Permissions,
    SeenKueue,
    StepOutcome,
    StepState,
)
from reconciler.kueue_install.text import (
    is_in_order,
    outcome_lines,
    plan_lines,
    plan_record,
    status_lines,
    status_of,
    status_record,
    unseen,
)
from reconciler.objects import ClusterName, Gap
from reconciler.spec.model import Cluster
from reconciler.text import unpainted
from tests.builders import cluster_document
from tests.unit.kueue_install.on_paper import chart, cluster, fleet, record, seen

ONE = ClusterName("one")


def planned(live: SeenKueue, mode: InstallCommand = InstallCommand.UPGRADE, *, is_named: bool = True) -> InstallPlan:
    step = make_step(cluster(), live, chart(), mode, Permissions(), is_named=is_named)
    return InstallPlan(mode, (step,))


def lines(plan: InstallPlan) -> list[str]:
    return list(plan_lines(plan, unpainted))


def test_plan_numbers_the_clusters_and_says_from_where_to_where() -> None:
    expected = " 1. one  standalone  upgrade 0.16.2 -> 0.19.2  (Helm release kueue-system/kueue, revision 3)"
    assert lines(planned(seen())) == [expected]
    assert lines(planned(seen(""), InstallCommand.INSTALL)) == [
        " 1. one  standalone  install 0.19.2  (Helm release kueue-system/kueue)"
    ]
    assert lines(planned(seen("v0.19.2"))) == [
        " 1. one  standalone  0.19.2, nothing to do but to check that it is healthy"
    ]


def test_plan_shows_refusals_with_their_remedy_skips_with_their_reason_and_gaps() -> None:
    refused = planned(seen("v0.19.3"))
    assert refused.is_refused and lines(refused)[1:] == [
        "      refused: Kueue 0.19.3 is newer than the 0.19.2 of git",
        "        change git, or allow it with --allow-downgrade",
    ]
    skipped = planned(seen(), InstallCommand.INSTALL, is_named=False)
    assert not skipped.has_work and lines(skipped)[1] == (
        "      Kueue 0.16.2 is installed there already: kfleet kueue upgrade one"
    )
    gap = InstallPlan(InstallCommand.UPGRADE, (), (Gap(ONE, "the cluster", "no answer in time"),))
    assert lines(gap) == ["gap: one: the cluster: no answer in time"]


def test_failure_says_where_the_run_stands_and_how_to_repeat_it() -> None:
    outcomes = (
        StepOutcome(ONE, StepState.FAILED, "not healthy after 5 s: the CRD x is missing"),
        StepOutcome(ClusterName("two"), StepState.NOT_STARTED),
    )
    assert list(outcome_lines(outcomes, unpainted)) == [
        "one: failed: not healthy after 5 s: the CRD x is missing",
        "two: not started",
        "mend that and repeat the command: what is done is not done again",
    ]
    done = StepOutcome(ONE, StepState.DONE, seconds=12.3)
    assert list(outcome_lines((done,), unpainted)) == ["one: done, healthy after 12 s"]


def test_record_has_every_step_with_its_outcome() -> None:
    found = plan_record(planned(seen("v0.19.3")), (StepOutcome(ONE, StepState.FAILED, "broken", 1.26),))
    (step,) = found["steps"]
    assert step["refusals"][0]["remedy"] == "change git, or allow it with --allow-downgrade"
    assert {name: step[name] for name in ("cluster", "action", "from", "to", "state", "problem", "seconds")} == {
        "cluster": "one",
        "action": "downgrade",
        "from": "0.19.3",
        "to": "0.19.2",
        "state": "failed",
        "problem": "broken",
        "seconds": 1.3,
    }


WITHOUT = fleet(cluster_document("one", "standalone")).clusters[0]


@pytest.mark.parametrize(
    ("of", "live", "harmony"),
    [
        (cluster(), seen("v0.19.2"), Harmony.SAME),
        (cluster(), seen("v0.16.2"), Harmony.OLDER),
        (cluster(), seen("v0.19.3"), Harmony.NEWER),
        (cluster(), seen(""), Harmony.MISSING),
        (cluster(), seen("", record=record("0.19.2")), Harmony.UNFINISHED),
        (cluster(), seen("v0.19.2", record=record("0.19.2", "failed")), Harmony.UNFINISHED),
        (cluster(), seen("v0.19.2", record=None), Harmony.FOREIGN),
        (cluster(), seen("v0.19.2", record=record("0.19.2", values={"a": 1})), Harmony.VALUES),
        (cluster(), seen("latest", record=None), Harmony.UNKNOWN),
        (WITHOUT, seen("v0.19.2"), Harmony.UNMANAGED),
        (WITHOUT, seen(""), Harmony.SAME),
    ],
)
def test_status_compares_what_runs_with_git(of: Cluster, live: SeenKueue, harmony: Harmony) -> None:
    assert status_of(of, live).harmony is harmony


def test_status_is_a_table_with_what_is_unhealthy_and_what_was_not_seen() -> None:
    statuses = (status_of(cluster(), seen(), ("the CRD x is missing",)), unseen(cluster(), "no answer in time"))
    assert list(status_lines(statuses, unpainted)) == [
        "CLUSTER  ROLE        GIT     RUNNING  HELM RELEASE                   STATE           HEALTH",
        "one      standalone  0.19.2  0.16.2   0.16.2 (deployed, revision 3)  older than git  unhealthy",
        "one      standalone  0.19.2  unknown  -                              unknown         unknown",
        "unhealthy: one: the CRD x is missing",
        "gap: one: no answer in time",
    ]
    first, second = status_record(statuses)["clusters"]
    assert first["helm"] == {"chart": "0.16.2", "status": "deployed", "revision": 3}
    assert (first["state"], first["unhealthy"]) == ("older than git", ["the CRD x is missing"])
    assert (second["helm"], second["gap"]) == (None, "no answer in time")


def test_account_that_may_not_read_secrets_sees_the_release_and_that_something_is_unknown() -> None:
    status = status_of(cluster(), seen("v0.19.2", record=None, unread="forbidden"))
    assert (status.harmony, status.running, status.why) == (Harmony.SAME, "0.19.2", "forbidden")
    assert status_of(cluster(), seen("v0.19.2"), why="forbidden").why == "forbidden"


def test_only_a_healthy_cluster_that_git_describes_or_leaves_alone_is_in_order() -> None:
    assert is_in_order(status_of(cluster(), seen("v0.19.2")))
    assert is_in_order(status_of(WITHOUT, seen("v0.19.2")))
    assert not is_in_order(status_of(cluster(), seen()))
    assert not is_in_order(status_of(cluster(), seen("v0.19.2"), ("broken",)))
