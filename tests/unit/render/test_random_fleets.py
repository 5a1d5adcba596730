"""What holds for every valid fleet, whatever is in it."""

import yaml
from hypothesis import given, settings

from reconciler.pipeline.load import Revision, load_files
from tests.builders import Document
from tests.unit.render.random_fleets import computed, files_of, fleets
from tests.unit.render.rendered_fleets import render

NOTHING = "apiVersion: kfleet.dev/v1alpha1\nkind: Overlay\nmetadata: {name: none}\nspec: {}\n"
COMMON = settings(derandomize=True, database=None, report_multiple_bugs=False)
PURE = settings(COMMON, max_examples=100)


@PURE
@given(documents=fleets())
def test_random_fleet_has_no_error_and_is_rendered_the_same_with_an_overlay_of_nothing(
    documents: list[Document],
) -> None:
    """One test, because to draw a fleet takes as long as to render it."""
    first = computed(documents)
    assert [str(finding) for finding in first.errors] == []
    rendered = text_of(first)
    files = files_of(documents, **{"overlays/none/overlay.yaml": NOTHING})
    assert text_of(load_files(files)) == rendered
    assert text_of(load_files(files, "none")) == rendered


def text_of(fleet: Revision) -> str:
    """Everything that is rendered, to the letter: the order of fields counts too."""
    rendered = {str(cluster): list(manifests) for cluster, manifests in render(fleet.spec).items()}
    return str(yaml.dump(rendered, Dumper=yaml.CSafeDumper, sort_keys=False))
