"""Objects whose kind is not served yet, on values: whether the server is asked about them, or they wait."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.objects import Manifest, Ref, ref_of
from reconciler.render.compute import compute_desired
from reconciler.state.dry_run import _Asked, _must_wait
from reconciler.state.model import ClusterView, Prediction
from tests.builders import definition
from tests.unit.plan.paper_clusters import HUB, applied_clusters, parse, view_of

WIDGET: Manifest = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "a"}}
WIDGETS = definition("example.org/v1", "Widget", "widgets")
GADGETS = definition("example.org/v1", "Gadget", "gadgets")
COMING = frozenset({ref_of(HUB, WIDGETS)})
FLEET = "kind: ResourceFlavor\nmetadata: {name: cpu}\n"


def view(*live: Manifest) -> ClusterView:
    spec = parse(FLEET)
    return replace(
        view_of(spec, spec.clusters[0], applied_clusters(spec)), live={ref_of(HUB, entry): entry for entry in live}
    )


def asked(seen: ClusterView, coming: frozenset[Ref] = frozenset()) -> bool:
    spec = parse(FLEET)
    (some, *_) = compute_desired(spec).objects
    nobody: Any = None
    prediction = Prediction(replace(some, ref=ref_of(HUB, WIDGET), manifest=WIDGET), WIDGET)
    return not _must_wait(prediction, _Asked(nobody, seen, coming))


@pytest.mark.parametrize(
    ("live", "coming", "is_asked"),
    [
        ((), frozenset(), True),
        ((), COMING, False),
        # Its definition came with the last apply, and its server has not taken notice of it yet.
        ((WIDGETS,), frozenset(), False),
        ((GADGETS,), frozenset(), True),
    ],
)
def test_object_waits_for_a_kind_that_the_fleet_defines(
    live: tuple[Manifest, ...],
    coming: frozenset[Ref],
    is_asked: bool,  # noqa: FBT001
) -> None:
    assert asked(view(*live), coming) is is_asked
