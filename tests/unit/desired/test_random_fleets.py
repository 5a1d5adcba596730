"""What holds for every valid fleet, whatever is in it."""

import yaml
from hypothesis import given, settings

from reconciler.pipeline.offline import Computed, compute
from tests.builders import Document
from tests.unit.desired.random_fleets import computed, files_of, fleets
from tests.unit.desired.rendered_fleets import render

NOTHING = "apiVersion: kfleet.dev/v1alpha1\nkind: Overlay\nmetadata: {name: none}\nspec: {}\n"
COMMON = settings(derandomize=True, database=None, report_multiple_bugs=False)
PURE = settings(COMMON, max_examples=100)


@PURE
@given(documents=fleets())
def test_random_fleet_has_no_error(documents: list[Document]) -> None:
    assert [str(finding) for finding in computed(documents).errors] == []


@PURE
@given(documents=fleets())
def test_random_fleet_is_rendered_the_same_again(documents: list[Document]) -> None:
    assert text_of(computed(documents)) == text_of(computed(documents))


@PURE
@given(documents=fleets())
def test_overlay_of_nothing_changes_nothing(documents: list[Document]) -> None:
    files = files_of(documents, **{"overlays/none/overlay.yaml": NOTHING})
    assert text_of(compute(files, "none")) == text_of(compute(files))


def text_of(fleet: Computed) -> str:
    """Everything that is rendered, to the letter: the order of fields counts too."""
    rendered = {str(cluster): list(manifests) for cluster, manifests in render(fleet.spec).items()}
    return str(yaml.dump(rendered, Dumper=yaml.CSafeDumper, sort_keys=False))
