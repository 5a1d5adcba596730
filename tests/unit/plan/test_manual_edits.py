"""Labels that a user set by hand, that git then named, and that it names no longer."""

from reconciler.plan.model import Action, Reason
from reconciler.state.managed_fields import owners_at
from reconciler.state.manual_edits import drop_manual_owners, shared_fields
from tests.unit.plan.paper_clusters import QUEUE, PaperClusters, applied_clusters, parse, plan_of
from tests.unit.state.server import applied, merged

NIGHT = "hub/ClusterQueue/night"
LABELLED = QUEUE.replace("{name: night}", "{name: night, labels: {site: north}}")
SITE = ("metadata", "labels", "site")


def paper_clusters_of(manager: str = "kubectl-label") -> PaperClusters:
    """A hand sets a label, and a commit says so too."""
    by_hand = applied_clusters(parse(QUEUE)).edited(NIGHT, {"metadata": {"labels": {"site": "north"}}}, manager)
    paper_clusters = applied_clusters(parse(LABELLED), by_hand)
    live = paper_clusters.objects[paper_clusters.find(NIGHT)]
    assert owners_at(live, SITE, but="") == tuple(sorted(("kfleet", manager)))
    return paper_clusters


def test_field_that_git_drops_goes_also_where_manual_edits_own_it_too() -> None:
    assert not plan_of(parse(LABELLED), paper_clusters_of()).writes
    (change,) = plan_of(parse(QUEUE), paper_clusters_of()).writes
    assert (change.action, change.reason, change.is_unshared) == (Action.UPDATE, Reason.CHANGED, True)
    assert [(field.path, field.old, field.new, field.owner) for field in change.fields] == [
        ("metadata.labels.site", "north", None, "kubectl-label")
    ]


def test_field_that_another_program_holds_too_stays_with_it() -> None:
    (change,) = plan_of(parse(QUEUE), paper_clusters_of("some-controller")).writes
    assert (change.reason, change.is_unshared, change.fields) == (Reason.UNRECORDED, False, ())


def test_manual_managers_lose_just_the_shared_fields() -> None:
    paper_clusters = paper_clusters_of().edited(NIGHT, {"metadata": {"labels": {"team": "a"}}}, "kubectl-label")
    live = paper_clusters.objects[paper_clusters.find(NIGHT)]
    (change,) = plan_of(parse(QUEUE), paper_clusters).writes
    wanted = change.manifest or {}
    (shared,) = shared_fields(live, wanted, "kfleet")
    assert (shared.path, shared.value, shared.managers) == (SITE, "north", ("kubectl-label",))
    released = merged(live, {"metadata": {"managedFields": drop_manual_owners(live, wanted, "kfleet")}})
    assert owners_at(released, SITE, but="") == ("kfleet",)
    assert owners_at(released, ("metadata", "labels", "team"), but="") == ("kubectl-label",)
    after = applied(wanted, released).manifest
    assert "site" not in after["metadata"]["labels"] and after["metadata"]["labels"]["team"] == "a"
    assert drop_manual_owners(after, wanted, "kfleet") is None
