"""Which of the served versions of a kind is used."""

from itertools import permutations

import pytest

from reconciler.kueue.kinds import GROUP
from reconciler.objects import ApiKind
from reconciler.state.observe import by_kind


def served(*versions: str, group: str = GROUP) -> tuple[str, ...]:
    """The versions of a kind in the order in which kfleet uses them, of a server that lists them in this order."""
    kinds = [ApiKind(group, version, "ClusterQueue", "clusterqueues", is_namespaced=False) for version in versions]
    (ordered,) = by_kind(kinds).values()
    return tuple(kind.version for kind in ordered)


@pytest.mark.parametrize("unknown", ["v1", "v2", "v1beta3", "v2alpha1"])
def test_version_of_kueue_that_kfleet_does_not_know_is_never_preferred_to_one_that_it_knows(unknown: str) -> None:
    for known in (
        ("v1beta2", "v1beta1", "v1alpha1"),
        ("v1beta2", "v1beta1"),
        ("v1beta2",),
        ("v1beta1",),
        ("v1alpha1",),
    ):
        for listed in permutations((unknown, *known)):
            assert served(*listed) == (*known, unknown)


def test_version_of_kueue_that_kfleet_does_not_know_is_used_where_there_is_no_other() -> None:
    """So that what is there is seen, and one message says that it cannot be written."""
    assert served("v1") == ("v1",)
    assert served("v2", "v1") == ("v2", "v1")


def test_other_groups_are_used_in_the_order_of_the_server() -> None:
    assert served("v1alpha1", "v1", group="example.org") == ("v1alpha1", "v1")
