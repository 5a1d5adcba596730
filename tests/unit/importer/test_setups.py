"""Many set-ups by hand beside each other: the first plan of the imported fleet adopts them, and the second is empty."""

from collections.abc import Iterator

import pytest

from reconciler.importer.compose import compose
from reconciler.importer.model import ImportedFleet, ImportRequest
from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.structure import with_defaults
from reconciler.objects import ClusterName, Manifest
from reconciler.plan.model import Action, Plan
from reconciler.spec.files import FleetFiles
from reconciler.spec.model import FleetSpec
from reconciler.spec.parse import parse_fleet
from tests.setups import BOTH, SETUPS, named
from tests.unit.importer.live_clusters import on_paper
from tests.unit.plan.paper_clusters import PaperClusters, applied_clusters, plan_of

MANAGERS = {"apply": "kubectl-client-side-apply", "create": "kubectl-create", "applied": "kubectl"}


def setups_of(cluster: str) -> Iterator[tuple[str, Manifest]]:
    """The objects as the API server of a cluster stores them, each with the field manager that wrote it."""
    for setup in SETUPS:
        if cluster in setup.get("clusters", BOTH):
            stored = with_defaults(to_canonical(named(setup["object"], "t")).manifest)
            yield MANAGERS[setup.get("how", "apply")], stored


def by_hand() -> PaperClusters:
    paper_clusters = PaperClusters()
    for cluster in BOTH:
        for manager, stored in setups_of(cluster):
            paper_clusters = paper_clusters.holding(stored, cluster=ClusterName(cluster), manager=manager)
    return paper_clusters


@pytest.fixture(scope="module")
def made() -> ImportedFleet:
    live = by_hand().objects
    clusters = {name: tuple(entry for ref, entry in live.items() if ref.cluster == name) for name in BOTH}
    return compose(on_paper(clusters), ImportRequest(fleet="research"))


def spec_of(made: ImportedFleet) -> FleetSpec:
    return parse_fleet(FleetFiles("test", "", {f"fleet/{name}": text.encode() for name, text in made.files.items()}))


def changed_specs(plan: Plan) -> list[str]:
    paths = [f"{change.ref}: {field.path}" for change in plan.changes for field in change.fields]
    return [path for path in paths if ": metadata." not in path]


def test_every_setup_is_imported(made: ImportedFleet) -> None:
    assert made.left == ()
    wanted = {ref for ref in by_hand().objects if ref.kind != "Namespace"}
    assert {found.ref for found in made.taken} == wanted and len(wanted) > 60


def test_first_plan_adopts_every_setup_and_changes_no_spec(made: ImportedFleet) -> None:
    planned = plan_of(spec_of(made), by_hand())
    assert planned.refusals == () and changed_specs(planned) == []
    assert {change.action for change in planned.changes} == {Action.UPDATE}
    assert len(planned.changes) >= len(made.taken)


def test_plan_after_the_first_apply_is_empty(made: ImportedFleet) -> None:
    spec = spec_of(made)
    planned = plan_of(spec, applied_clusters(spec, by_hand()))
    assert {change.action for change in planned.changes} <= {Action.KEEP}


def test_most_setups_have_a_shape_of_kfleet(made: ImportedFleet) -> None:
    """Otherwise the import would be a copy of YAML, and nothing would be simpler afterwards."""
    assert made.shaped >= len(made.taken) * 0.4, "\n".join(made.files.values())
