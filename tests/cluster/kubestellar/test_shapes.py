"""Every release's shape of a policy against its definition, checked strictly by a real API server."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.apply.fleet import FIELD_MANAGER, place_jobs
from reconciler.apply.retry import RetryPolicy
from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError
from reconciler.kubestellar.copies import observe_shape
from reconciler.kubestellar.model import ANNOTATION, Verb
from reconciler.kubestellar.observe import observe_placements
from reconciler.kubestellar.plan import plan_placements
from reconciler.objects import ClusterName
from reconciler.render.compute import compute_desired
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.programs import SOURCES
from reconciler.snapshot.model import Observations
from reconciler.spec.files import FleetFiles
from reconciler.spec.parse import parse_fleet
from reconciler.spec.settings import CLUSTER_LABEL, shape_of_release
from tests import fast_yaml
from tests.builders import cluster_document, fleet_document, yaml_of
from tests.cluster.definitions import held_definitions
from tests.cluster.go_modules import definitions_in
from tests.cluster.kubestellar.downsynced import PLACED_ON_EAST
from tests.support import SEEDS, eventually
from tests.unit.kubestellar.queued_jobs import HUB, placement_spec

CRDS = Path(__file__).parent / "crds"
# KubeStellar's own definitions, of the release in the sandbox and of the newest one; CRDS has the shapes of others.
PUBLISHED = ("0.22.0", "0.30.0")
RELEASES = (*PUBLISHED, "0.23", "0.25", "0.26")
GROUP = "control.kubestellar.io"
MANAGER = yaml_of(fleet_document(), cluster_document(HUB, "manager"))


@pytest.fixture(scope="module")
def server(kubestellar: Sandbox) -> Iterator[ApiServer]:
    """A control plane with nothing in it."""
    name = ClusterName("shapes")
    kubestellar.add_cluster(name)
    yield kubestellar.api(name)
    kubestellar.remove_cluster(name)


@pytest.fixture
def installed(server: ApiServer, request: pytest.FixtureRequest) -> Iterator[ApiServer]:
    """The same with the definitions of one release."""
    with held_definitions(server, definitions_of(request.param)):
        yield server


def definitions_of(release: str) -> list[dict[str, Any]]:
    if release in PUBLISHED:
        module = f"github.com/kubestellar/kubestellar@v{release}"
        sums = SOURCES / "kubestellar" if release == PUBLISHED[0] else None
        return definitions_in(module, "pkg/crd/files/crds.yaml", sums)
    return list(fast_yaml.safe_load_all((CRDS / f"{release}.yaml").read_text()))


@pytest.mark.parametrize(("installed", "release"), [(one, one) for one in RELEASES], indirect=["installed"])
def test_objects_are_taken_strictly_by_the_release_that_is_installed(installed: ApiServer, release: str) -> None:
    spec = placement_spec("{version: '0.1'}")
    shape = observe_shape(spec, {HUB: installed})
    assert shape == shape_of_release(release)
    objects = [
        entry.manifest
        for entry in compute_desired(spec, Observations(policy_shape=shape)).objects
        if entry.ref.group == GROUP
    ]
    kinds = {manifest["kind"] for manifest in objects}
    assert kinds == {"BindingPolicy", "CustomTransform"} | ({"StatusCollector"} if release != "0.22.0" else set())
    for manifest in objects:
        kept = installed.apply(manifest)
        assert kept["spec"] == manifest["spec"]


@pytest.mark.parametrize("installed", ["0.30.0"], indirect=True)
def test_objects_of_kueue_ks_are_taken_as_they_are_written(installed: ApiServer) -> None:
    """They are of a release that had the flag for the whole policy; no queue of the fleet is of KubeStellar."""
    content = (SEEDS / "kueue-ks" / "02-placement.yaml").read_bytes()
    spec = parse_fleet(FleetFiles("test", "", {"fleet/a.yaml": MANAGER.encode(), "fleet/b.yaml": content}))
    shape = observe_shape(spec, {HUB: installed})
    desired = compute_desired(spec, Observations(policy_shape=shape))
    written = {entry.manifest["kind"]: entry.manifest for entry in desired.objects}
    kept = {kind: installed.apply(manifest)["spec"] for kind, manifest in written.items()}
    assert kept == {kind: manifest["spec"] for kind, manifest in written.items()}
    assert kept.keys() == {"BindingPolicy", "StatusCollector", "CustomTransform"}
    assert [clause["wantSingletonReportedState"] for clause in kept["BindingPolicy"]["downsync"]] == [True]


@pytest.mark.parametrize(("installed", "wrong"), [("0.25", "0.26"), ("0.30.0", "0.25")], indirect=["installed"])
def test_shape_of_another_release_is_refused(installed: ApiServer, wrong: str) -> None:
    desired = compute_desired(placement_spec(f"{{version: '{wrong}'}}"))
    policies = [entry.manifest for entry in desired.objects if entry.ref.kind == "BindingPolicy"]
    with pytest.raises(ClusterError, match="not declared in schema"):
        installed.apply(policies[0])


def test_manager_that_does_not_answer_is_a_gap_and_its_shape_is_not_known(server: ApiServer) -> None:
    foreign = ApiServer(HUB, ClusterLogin(server.access.server, server.access.ca, token=server.cluster))
    look = observe_placements(placement_spec(), {HUB: foreign})
    assert look is not None and [(gap.cluster, gap.what) for gap in look.gaps] == [(HUB, "jobs for KubeStellar")]
    assert observe_shape(placement_spec(), {HUB: foreign}) is None
    assert observe_placements(placement_spec(), {}) is None


def test_server_without_kueue_has_no_jobs_and_checks_to_be_activated(server: ApiServer) -> None:
    look = observe_placements(placement_spec(), {HUB: server})
    assert look is not None and (look.jobs, look.gaps, look.inactive) == ((), (), {"kubestellar-q": {}})


def test_jobs_of_the_last_queue_that_left_kubestellar_are_taken_back(server: ApiServer) -> None:
    """One that was placed by us, one by somebody else; their users took both out of their queue."""
    left = replace(placement_spec(), queues=())
    for name, labels, annotations, manager in (
        ("ours", PLACED_ON_EAST, {ANNOTATION: '{"cluster": "east"}'}, FIELD_MANAGER),
        ("theirs", {CLUSTER_LABEL: "east"}, {}, "me"),
    ):
        server.create(held_job(name))
        metadata = {"name": name, "namespace": "default", "labels": labels, "annotations": annotations}
        server.apply({**held_job(name), "metadata": metadata}, manager=manager)
    eventually(lambda: observe_placements(left, {HUB: server}) is None)
    with held_definitions(server, definitions_of("0.30.0")):
        steps = plan_placements(left, eventually(lambda: observe_placements(left, {HUB: server})))
        assert [(step.verb, step.ref.name) for step in steps] == [(Verb.WITHDRAW, "ours")]
        assert all(outcome.is_done for outcome in place_jobs(server, steps, RetryPolicy()))
        assert plan_placements(left, observe_placements(left, {HUB: server})) == ()


def held_job(name: str) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"suspend": True, "template": template},
    }


def test_shape_is_not_known_where_kubestellar_is_not_installed(server: ApiServer) -> None:
    assert observe_shape(placement_spec(), {HUB: server}) is None
