"""Fields that somebody set by hand, that git then named, and that it names no more."""

from reconciler.ownership.fields import owners_at
from reconciler.ownership.hands import shared_fields, without_hands
from reconciler.plan import Action, Reason
from tests.unit.ownership.server import applied, merged
from tests.unit.plan.paper_clusters import QUEUE, PaperClusters, applied_clusters, parse, plan_of

NIGHT = "hub/ClusterQueue/night"
HELD = QUEUE.replace("  cohortName: science", "  cohortName: science\n  stopPolicy: Hold")
STOP = ("spec", "stopPolicy")


def paper_clusters_of(manager: str = "kubectl-patch") -> PaperClusters:
    """A hand stops a queue, and a commit says so too."""
    by_hand = applied_clusters(parse(QUEUE)).edited(NIGHT, {"spec": {"stopPolicy": "Hold"}}, manager)
    paper_clusters = applied_clusters(parse(HELD), by_hand)
    live = paper_clusters.objects[paper_clusters.find(NIGHT)]
    assert owners_at(live, STOP, but="") == tuple(sorted(("kfleet", manager)))
    return paper_clusters


def test_field_that_git_drops_goes_also_where_hands_hold_it_too() -> None:
    assert not plan_of(parse(HELD), paper_clusters_of()).writes
    (change,) = plan_of(parse(QUEUE), paper_clusters_of()).writes
    assert (change.action, change.reason, change.is_unshared) == (Action.UPDATE, Reason.CHANGED, True)
    assert [(field.path, field.old, field.new, field.owner) for field in change.fields] == [
        ("spec.stopPolicy", "Hold", None, "kubectl-patch")
    ]


def test_field_that_another_program_holds_too_stays_with_it() -> None:
    (change,) = plan_of(parse(QUEUE), paper_clusters_of("some-controller")).writes
    assert (change.reason, change.is_unshared, change.fields) == (Reason.UNRECORDED, False, ())


def test_hands_let_go_of_just_what_they_share() -> None:
    paper_clusters = paper_clusters_of().edited(NIGHT, {"metadata": {"labels": {"team": "a"}}}, "kubectl-patch")
    live = paper_clusters.objects[paper_clusters.find(NIGHT)]
    (change,) = plan_of(parse(QUEUE), paper_clusters).writes
    wanted = change.manifest or {}
    (shared,) = shared_fields(live, wanted, "kfleet")
    assert (shared.path, shared.value, shared.hands) == (STOP, "Hold", ("kubectl-patch",))
    released = merged(live, {"metadata": {"managedFields": without_hands(live, wanted, "kfleet")}})
    assert owners_at(released, STOP, but="") == ("kfleet",)
    assert owners_at(released, ("metadata", "labels", "team"), but="") == ("kubectl-patch",)
    after = applied(wanted, released).manifest
    assert after["spec"]["stopPolicy"] == "None" and after["metadata"]["labels"]["team"] == "a"
    assert without_hands(after, wanted, "kfleet") is None


def test_hands_keep_a_part_that_is_theirs_alone() -> None:
    ours, theirs = "withinClusterQueue", "reclaimWithinCohort"
    by_hand = applied_clusters(parse(QUEUE)).edited(NIGHT, {"spec": {"preemption": {ours: "Any", theirs: "Any"}}})
    said = QUEUE.replace("  cohortName: science", f"  cohortName: science\n  preemption: {{{ours}: Any}}")
    (change,) = plan_of(parse(QUEUE), applied_clusters(parse(said), by_hand)).writes
    assert [(field.path, field.new) for field in change.fields] == [(f"spec.preemption.{ours}", None)]
