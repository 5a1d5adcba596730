from copy import deepcopy

from reconciler.ownership.applyset import MEMBER_LABEL, SetName
from reconciler.ownership.dress import WANTED, dress, is_dress, wanted_hash
from tests.plan.worlds import QUEUE, desired_of, parse

NAME = SetName("test", "kueue-system")


def test_dress_adds_to_labels_and_annotations_and_changes_nothing_else() -> None:
    (flavor, _) = desired_of(parse(QUEUE)).objects
    marked = {**flavor.manifest, "metadata": {"name": "cpu", "labels": {"a": "b"}, "annotations": {"c": "d"}}}
    before = deepcopy(marked)
    dressed = dress(marked, flavor, NAME)
    assert dressed["metadata"]["labels"] == {"a": "b", MEMBER_LABEL: NAME.id}
    assert dressed["metadata"]["annotations"] == {"c": "d", WANTED: wanted_hash(flavor)}
    assert dressed["spec"] == marked["spec"]
    assert marked == before


def test_wanted_hash_is_of_what_git_says() -> None:
    (_, one) = desired_of(parse(QUEUE)).objects
    (_, same) = desired_of(parse(QUEUE.replace('nominalQuota: "9"', "nominalQuota: 9000m"))).objects
    (_, other) = desired_of(parse(QUEUE.replace('nominalQuota: "9"', "nominalQuota: 10"))).objects
    assert wanted_hash(one) == wanted_hash(same)
    assert wanted_hash(one) != wanted_hash(other)


def test_is_dress_names_the_book_keeping_only() -> None:
    assert is_dress(("metadata", "labels", MEMBER_LABEL))
    assert is_dress(("metadata", "annotations", WANTED))
    assert not is_dress(("metadata", "labels", "team"))
    assert not is_dress(("metadata", "labels"))
