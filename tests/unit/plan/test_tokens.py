"""Secrets whose token is not known yet, in a plan."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reconciler.multikueue.model import with_token
from reconciler.objects import ApiEndpoint, ClusterName, Gap, TokenRequestSpec
from reconciler.plan.make import Comparison, make_plan
from reconciler.plan.model import Action, Change, Plan, Reason, Refusal, Refused
from reconciler.plan.record import TO_BE_ISSUED, tokens_only
from reconciler.render.compute import compute_desired
from reconciler.render.model import DesiredObject
from reconciler.state.applyset import Inventory
from reconciler.state.model import Conflict, Prediction
from reconciler.state.tracking import add_tracking_metadata
from tests.unit.plan.paper_clusters import HUB, PaperClusters, applied_clusters, parse, plan_of, view_of
from tests.unit.state.server import applied

DOCUMENT = "kind: Secret\nmetadata: {name: east, namespace: kueue-system}\ntype: Opaque\n"
WISH = TokenRequestSpec(
    ClusterName("east"), "ns", "account", timedelta(hours=1), ApiEndpoint("https://east"), reason="too old"
)
SPEC = parse(DOCUMENT)


def entry(**changes: Any) -> DesiredObject:
    known = next(one for one in compute_desired(SPEC).objects if one.ref.kind == "Secret")
    made = replace(known, manifest=with_token(known.manifest, WISH, ""), token=WISH, notes=("why",))
    return replace(made, **changes)


def plan(wanted: DesiredObject, *, is_live: bool, conflicts: tuple[Conflict, ...] = ()) -> Plan:
    view = view_of(SPEC, SPEC.clusters[0], applied_clusters(SPEC) if is_live else PaperClusters())
    manifest = add_tracking_metadata(wanted.manifest, wanted, view.set_name)
    live = applied(with_token(manifest, WISH, "old"), None).manifest if is_live else None
    seen = replace(view, live={wanted.ref: live} if live else {})
    prediction = Prediction(wanted, manifest, live, conflicts=conflicts)
    return make_plan(SPEC, Comparison([seen], {HUB: [prediction]}))


def only_change(made: Plan) -> Change:
    assert made.refusals == ()
    (found,) = made.changes
    return found


def test_secret_whose_token_is_too_old_is_updated_with_what_apply_will_issue() -> None:
    change = only_change(plan(entry(), is_live=True))
    assert (change.action, change.token, change.notes) == (Action.UPDATE, WISH, ("why",))
    assert [(field.path, field.new, field.cause.value) for field in change.fields] == [
        ("data.kubeconfig", TO_BE_ISSUED, "observation")
    ]


def test_secret_that_is_missing_is_created_with_a_token() -> None:
    change = only_change(plan(entry(), is_live=False))
    assert (change.action, change.token) == (Action.CREATE, WISH)


def test_secret_without_a_token_is_never_taken_for_equal() -> None:
    view = view_of(SPEC, SPEC.clusters[0], PaperClusters())
    manifest = add_tracking_metadata(entry().manifest, entry(), view.set_name)
    live = applied(manifest, None).manifest
    prediction = Prediction(entry(), manifest, live)
    made = make_plan(SPEC, Comparison([replace(view, live={entry().ref: live})], {HUB: [prediction]}))
    assert only_change(made).action is Action.UPDATE


def test_secret_that_a_program_holds_is_refused_and_one_that_a_hand_changed_is_not() -> None:
    held = plan(entry(), is_live=True, conflicts=(Conflict("data.kubeconfig", "vault-operator"),))
    assert [refusal.reason for refusal in held.refusals] == [Refused.CONTESTED]
    edited = plan(entry(), is_live=True, conflicts=(Conflict("data.kubeconfig", "kubectl-edit"),))
    assert only_change(edited).is_forced


def test_object_whose_content_is_not_known_is_held_whether_it_is_there_or_not() -> None:
    for is_live in (True, False):
        change = only_change(plan(entry(held="not seen", token=None), is_live=is_live))
        assert (change.action, change.reason, change.notes[-1]) == (Action.HOLD, Reason.UNSEEN, "not seen")


def test_fleet_that_was_applied_with_unseen_credentials_has_nothing_to_write() -> None:
    spec = parse(
        "kind: Cluster\nmetadata: {name: hub}\nspec: {role: manager}\n",
        "kind: Cluster\nmetadata: {name: east}\nspec: {role: worker}\n",
        "kind: Flavor\nmetadata: {name: cpu}\nspec: {capacity: {source: static, resources: {cpu: 9}}}\n",
        "kind: Queue\nmetadata: {name: q}\nspec: {dispatch: multikueue, quota: [{flavor: cpu, resources: {cpu: 9}}]}\n",
    )
    assert plan_of(spec, applied_clusters(spec)).writes == ()


@pytest.mark.parametrize("is_live", [True, False])
@pytest.mark.parametrize("options", [WISH, replace(WISH, kept="a.b.c", reason="")])
def test_secret_is_held_while_its_worker_is_not_the_cluster_it_was(options: TokenRequestSpec, *, is_live: bool) -> None:
    """A second login to one cluster makes Kueue delete the jobs that run there under the other name."""
    east = "kind: Cluster\nmetadata: {name: east}\nspec: {role: worker}\n"
    spec = parse("kind: Cluster\nmetadata: {name: hub}\nspec: {role: manager}\n", east, DOCUMENT)
    paper_clusters = PaperClusters(inventories={WISH.worker: Inventory(cluster="west", tool="kfleet")})
    hub, moved = (view_of(spec, cluster, paper_clusters) for cluster in spec.clusters)
    wanted = entry(token=options)
    manifest = add_tracking_metadata(wanted.manifest, wanted, hub.set_name)
    live = applied(with_token(manifest, WISH, "old"), None).manifest if is_live else None
    seen = replace(hub, live={wanted.ref: live} if live else {})
    looks = Comparison([seen, moved], {HUB: [Prediction(wanted, manifest, live)], moved.name: []})
    made = make_plan(spec, looks)
    assert [(refusal.reason, refusal.cluster) for refusal in made.refusals] == [(Refused.MOVED, "east")]
    (change,) = made.changes
    assert (change.action, change.reason) == (Action.HOLD, Reason.MOVED)
    assert tokens_only(made).writes == ()


def test_tokens_alone_leave_everything_else_as_it_is() -> None:
    made = plan(entry(), is_live=True)
    other = only_change(made)._replace(ref=entry().ref._replace(kind="ConfigMap"), token=None)
    cluster = replace(made.clusters[0], changes=(*made.changes, other))
    idle = replace(made.clusters[0], name=ClusterName("idle"), changes=(other,))
    wide = replace(
        made,
        clusters=(cluster, idle),
        refusals=(
            Refusal(Refused.TOO_MANY, "11"),
            Refusal(Refused.INVALID, "no", HUB, other.ref),
            Refusal(Refused.MOVED, "uid", HUB),
            Refusal(Refused.FOREIGN, "set", HUB, entry().ref),
        ),
        gaps=(Gap(HUB, "a", "b"), Gap(ClusterName("idle"), "a", "b")),
    )
    found = tokens_only(wide, frozenset({ClusterName("east")}))
    assert [(one.name, one.is_complete, one.changes) for one in found.clusters] == [(HUB, False, made.changes)]
    assert [refusal.reason for refusal in found.refusals] == [Refused.MOVED, Refused.FOREIGN]
    assert found.gaps == (Gap(HUB, "a", "b"),)


def test_token_that_was_asked_for_and_cannot_be_issued_is_a_gap() -> None:
    gaps = (Gap(ClusterName("west"), "the cluster", "no context"), Gap(ClusterName("north"), "a", "b"))
    made = replace(plan(entry(), is_live=True), gaps=gaps)
    assert tokens_only(made, frozenset({ClusterName("east"), ClusterName("west")})).gaps == gaps[:1]
