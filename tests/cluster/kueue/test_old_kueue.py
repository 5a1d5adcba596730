"""Releases of Kueue that know no v1beta2: their kinds on a real API server, without their controller."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from reconciler.clients.kubernetes import ApiServer
from reconciler.kueue.conversion import CannotExpressError, to_version
from reconciler.kueue.kinds import KINDS, KueueVersion, kind_of, newest_served, parse_version
from reconciler.kueue.rules.kinds import check_object
from reconciler.objects import ClusterName, Manifest
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.programs import PROGRAMS
from tests.cluster.definitions import held_definitions
from tests.cluster.kueue.servers import held_namespaces, refusal_of_apply
from tests.unit.kueue.cases import GOOD
from tests.unit.kueue.rule_case import Case
from tests.unit.render.rendered_fleets import EXAMPLE_NAMESPACES, OVERLAYS, at_kueue, example_fleet, render

VERSIONS = ("0.14.0", "0.11.4")
CASES = [case for case in GOOD if not case.gates]


@dataclass(frozen=True, slots=True)
class OldServer:
    api: ApiServer
    version: str


@pytest.fixture(scope="module", params=VERSIONS)
def old(fleet: Sandbox, request: pytest.FixtureRequest) -> Iterator[OldServer]:
    version: str = request.param
    name = ClusterName(f"old-{version.replace('.', '-')}")
    fleet.add_cluster(name)
    api = fleet.api(name)
    definitions = PROGRAMS[f"kueue-crds-{version}"].manifests("config/components/crd/bases/*")
    with held_definitions(api, definitions):
        yield OldServer(api, version)
    fleet.remove_cluster(name)


def test_old_kueue_serves_the_versions_of_the_table(old: OldServer) -> None:
    for kind in KINDS:
        api_version = f"kueue.x-k8s.io/{newest_served(kind, parse_version(old.version))}"
        assert kind.name in {entry.kind for entry in old.api.kinds(api_version)}
    assert old.api.kinds("kueue.x-k8s.io/v1beta2") == ()


def test_old_kueue_takes_the_example_fleet(old: OldServer) -> None:
    # Credentials lie beside Kueue, whose controller is not here.
    with held_namespaces(old.api, (*EXAMPLE_NAMESPACES, "kueue-system")):
        for overlay in OVERLAYS:
            for manifests in render(at_kueue(example_fleet(overlay), old.version)).values():
                assert [refusal_of_apply(old.api, manifest) for manifest in manifests] == [""] * len(manifests)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}-{'-'.join(case.versions)}")
def test_old_kueue_and_rules_agree(old: OldServer, case: Case) -> None:
    version = parse_version(old.version)
    violations = check_object(case.manifest, version)
    try:
        problem = refusal_of_apply(old.api, written(case.manifest, version))
    except CannotExpressError as error:
        problem = str(error)
    assert bool(violations) == bool(problem), f"kfleet: {violations or 'accepts'}; server: {problem or 'accepts'}"


def written(manifest: Manifest, version: KueueVersion) -> Manifest:
    kind = kind_of(manifest)
    assert kind
    return to_version(manifest, newest_served(kind, version), version)
