from copy import deepcopy
from dataclasses import replace

from reconciler.render.compute import compute_desired
from reconciler.state.applyset import MEMBER_LABEL, SetName
from reconciler.state.dry_run import compare
from reconciler.state.model import Prediction
from reconciler.state.tracking import (
    WANTED,
    add_tracking_metadata,
    is_same_origin,
    is_tracking_field,
    wanted_hash,
    with_record,
)
from tests.unit.plan.paper_clusters import QUEUE, parse
from tests.unit.state.server import applied, merged

NAME = SetName("test", "kueue-system")


def test_tracking_metadata_adds_to_labels_and_annotations_and_changes_nothing_else() -> None:
    (flavor, _) = compute_desired(parse(QUEUE)).objects
    marked = {**flavor.manifest, "metadata": {"name": "cpu", "labels": {"a": "b"}, "annotations": {"c": "d"}}}
    before = deepcopy(marked)
    annotate_for_argocd = add_tracking_metadata(marked, flavor, NAME)
    assert annotate_for_argocd["metadata"]["labels"] == {"a": "b", MEMBER_LABEL: NAME.id}
    assert annotate_for_argocd["metadata"]["annotations"] == {"c": "d", WANTED: wanted_hash(flavor)}
    assert annotate_for_argocd["spec"] == marked["spec"]
    assert marked == before


def test_wanted_hash_is_of_what_git_says() -> None:
    (_, one) = compute_desired(parse(QUEUE)).objects
    (_, same) = compute_desired(parse(QUEUE.replace('nominalQuota: "9"', "nominalQuota: 9000m"))).objects
    (_, other) = compute_desired(parse(QUEUE.replace('nominalQuota: "9"', "nominalQuota: 10"))).objects
    assert wanted_hash(one) == wanted_hash(same)
    assert wanted_hash(one) != wanted_hash(other)


def test_tracking_metadata_is_the_book_keeping_only() -> None:
    assert is_tracking_field(("metadata", "labels", MEMBER_LABEL))
    assert is_tracking_field(("metadata", "annotations", WANTED))
    assert not is_tracking_field(("metadata", "labels", "team"))
    assert not is_tracking_field(("metadata", "labels"))


def test_origin_of_an_object_is_the_same_when_an_observation_has_nothing_more_to_say_of_it() -> None:
    """A worker that has left: until then its queue was held, and now it is what git alone says."""
    (_, queue) = compute_desired(parse(QUEUE)).objects
    origin = wanted_hash(queue)
    held = replace(queue, manifest={**queue.manifest, "spec": {}}, by_spec=queue.manifest, origin=origin)
    assert is_same_origin(queue, wanted_hash(held)) and is_same_origin(held, wanted_hash(queue))
    (_, other) = compute_desired(parse(QUEUE.replace("science", "art"))).objects
    assert not is_same_origin(other, wanted_hash(held)) and not is_same_origin(other, wanted_hash(queue))
    assert not is_same_origin(queue, "")


def test_record_of_another_version_is_written_anew() -> None:
    (_, queue) = compute_desired(parse(QUEUE)).objects
    annotate_for_argocd = add_tracking_metadata(queue.manifest, queue, NAME)
    live = applied(with_record(annotate_for_argocd, queue, None)).manifest
    known = live["metadata"]["annotations"][WANTED]
    old = merged(live, {"metadata": {"annotations": {WANTED: f"{known.partition('.')[0]}.AAAA"}}})
    entries = [{**entry, "apiVersion": "kueue.x-k8s.io/v1beta1"} for entry in live["metadata"]["managedFields"]]
    older = {**old, "metadata": {**old["metadata"], "managedFields": entries}}
    kept, written = (compare(Prediction(queue, annotate_for_argocd), one) for one in (old, older))
    assert kept.is_settled and kept.wanted["metadata"]["annotations"][WANTED].endswith(".AAAA")
    assert not written.is_settled and written.wanted["metadata"]["annotations"][WANTED] == known


def test_record_says_nothing_of_the_fields_of_a_secret() -> None:
    document = "kind: Secret\nmetadata: {name: east, namespace: kueue-system}\nstringData: {token: hush}\n"
    (entry,) = (one for one in compute_desired(parse(document)).objects if one.ref.kind == "Secret")
    recorded = with_record(add_tracking_metadata(entry.manifest, entry, NAME), entry, None)["metadata"]["annotations"][
        WANTED
    ]
    assert recorded == f"{wanted_hash(entry)}."
