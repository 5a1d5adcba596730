"""Small fleets as text, for tests."""

from reconciler.errors import SpecError
from reconciler.spec.files import FleetFiles
from reconciler.spec.model import FleetSpec
from reconciler.spec.parse import parse_fleet

FLEET = "apiVersion: kfleet.dev/v1alpha1\nkind: Fleet\nmetadata: {name: test}\n"
HUB = "apiVersion: kfleet.dev/v1alpha1\nkind: Cluster\nmetadata: {name: hub}\nspec: {role: manager}\n"
EAST = (
    "apiVersion: kfleet.dev/v1alpha1\nkind: Cluster\nmetadata: {name: east, labels: {site: cnaf}}\n"
    "spec: {role: worker}\n"
)
WEST = (
    "apiVersion: kfleet.dev/v1alpha1\nkind: Cluster\nmetadata: {name: west, labels: {site: lyon}}\n"
    "spec: {role: worker}\n"
)
QUEUE = """\
apiVersion: kfleet.dev/v1alpha1
kind: Queue
metadata:
  name: research
spec:
  cohort: science
  quota:
  - flavor: a100
    resources:
      cpu: 60%
      nvidia.com/gpu: "32"
"""


def files(**contents: str | bytes) -> FleetFiles:
    """Files by path, where `__` stands for a slash: fleet__queues is fleet/queues.yaml."""
    return FleetFiles(
        origin="test",
        revision="",
        files={
            f"{name.replace('__', '/')}.yaml": content.encode() if isinstance(content, str) else content
            for name, content in contents.items()
        },
    )


def parsed(*documents: str, overlay: str = "", **others: str | bytes) -> FleetSpec:
    """A fleet of a Fleet document and these."""
    text = "---\n".join((FLEET, *documents))
    return parse_fleet(files(fleet__all=text, **others), overlay)


def problems(given: FleetFiles, overlay: str = "") -> list[str]:
    """Every problem that the files have, as text."""
    found: list[str] = []
    try:
        parse_fleet(given, overlay)
    except* SpecError as group:
        found.extend(str(error) for error in group.exceptions)
    return found


def problems_of(*documents: str, overlay: str = "", **others: str | bytes) -> list[str]:
    """Every problem of a fleet that has a Fleet document and, each in its file, these: doc0.yaml, doc1.yaml."""
    numbered = {f"fleet__doc{index}": document for index, document in enumerate(documents)}
    return problems(files(fleet__fleet=FLEET, **numbered, **others), overlay)
