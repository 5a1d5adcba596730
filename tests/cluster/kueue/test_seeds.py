"""The systems that kfleet takes over: their own files, applied to real clusters as kfleet writes them."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest

from reconciler.clients.kubernetes import ApiServer
from reconciler.kueue.kinds import CANONICAL, GROUP, kind_of
from reconciler.objects import Manifest, group_of
from reconciler.sandbox.fleet import Sandbox
from tests import fast_yaml
from tests.builders import definition
from tests.cluster.definitions import held_definitions
from tests.cluster.kueue.servers import CLUSTER_BY_KUEUE, held_namespaces, remove_all
from tests.support import SEEDS
from tests.unit.render.rendered_fleets import ONLY, at_kueue, one_cluster_fleet, render, seed

NAMESPACES = ("team1", "team2")
JOB = "kueue-nats/03-job.yaml"
FILES = sorted(path.relative_to(SEEDS).as_posix() for path in SEEDS.rglob("*.yaml"))
# A Job without a name and queues that depend on what pools say cannot be applied as they are.
APPLIED = [name for name in FILES if name not in {JOB, "kueue-nats/01-master-queue.yaml"}]
OTHER_KINDS = (
    definition("flux-framework.org/v1alpha2", "MiniCluster", "miniclusters", is_namespaced=True),
    definition("control.kubestellar.io/v1alpha1", "BindingPolicy", "bindingpolicies"),
    definition("control.kubestellar.io/v1alpha1", "CustomTransform", "customtransforms"),
    definition("control.kubestellar.io/v1alpha1", "StatusCollector", "statuscollectors"),
    definition("galaxy.kubestellar.io/v1alpha1", "ClusterMetrics", "clustermetrics"),
)


@pytest.fixture(scope="module")
def apis(fleet: Sandbox) -> Iterator[Mapping[str, ApiServer]]:
    """Servers by the version of their Kueue, with the namespaces and the kinds that the seeds need."""
    found = {version: fleet.api(cluster) for version, cluster in CLUSTER_BY_KUEUE.items()}
    with ExitStack() as stack:
        for api in found.values():
            stack.enter_context(held_definitions(api, OTHER_KINDS))
            stack.enter_context(held_namespaces(api, NAMESPACES))
        yield found


@pytest.mark.parametrize("version", CLUSTER_BY_KUEUE)
@pytest.mark.parametrize("name", APPLIED)
def test_seed_is_applied_in_the_current_version(apis: Mapping[str, ApiServer], name: str, version: str) -> None:
    api = apis[version]
    manifests = rendered(name, version)
    assert manifests and all(is_current(manifest) for manifest in manifests)
    try:
        for manifest in manifests:
            api.apply(manifest)
        # A second apply that changes nothing shows that nothing of the first was lost.
        assert [has_changed(api, manifest) for manifest in manifests] == [False] * len(manifests)
    finally:
        remove_all(api, [manifest for manifest in manifests if manifest["kind"] != "Namespace"])


@pytest.mark.parametrize("version", CLUSTER_BY_KUEUE)
@pytest.mark.parametrize("name", APPLIED)
def test_seed_means_what_kueue_itself_reads_in_it(apis: Mapping[str, ApiServer], name: str, version: str) -> None:
    api = apis[version]
    written = [plain(manifest) for manifest in documents(name) if is_served(api, manifest)]
    translated = [manifest for manifest in rendered(name, version) if kind_of(manifest)]
    expected = specs_of(api, written, translated)
    found = specs_of(api, translated, translated)
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize("version", CLUSTER_BY_KUEUE)
def test_seed_job_with_a_name_is_applied(apis: Mapping[str, ApiServer], version: str, unique: str) -> None:
    api = apis[version]
    content = (SEEDS / JOB).read_bytes().replace(b"generateName: sample-job-1", f"name: {unique}".encode())
    (manifest,) = render(at_kueue(one_cluster_fleet(content), version))[ONLY]
    api.apply(manifest)
    job = api.get(api.path_of(manifest))
    assert job["spec"]["suspend"] and job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gr1"
    api.delete(f"{api.path_of(manifest)}?propagationPolicy=Background")


def rendered(name: str, version: str) -> list[Manifest]:
    return list(render(at_kueue(seed(name), version))[ONLY])


def documents(name: str) -> list[Manifest]:
    return list(fast_yaml.safe_load_all((SEEDS / name).read_text()))


def plain(manifest: Manifest) -> Manifest:
    """Without what a server wrote, as kubectl needs it too."""
    metadata = {key: manifest["metadata"][key] for key in ("name", "namespace") if key in manifest["metadata"]}
    return {key: value for key, value in manifest.items() if key != "status"} | {"metadata": metadata}


def is_current(manifest: Manifest) -> bool:
    return group_of(manifest) != GROUP or manifest["apiVersion"] == f"{GROUP}/{CANONICAL}"


def is_served(api: ApiServer, manifest: Manifest) -> bool:
    kinds = {entry.kind for entry in api.kinds(manifest["apiVersion"])}
    return kind_of(manifest) is not None and manifest["kind"] in kinds


def has_changed(api: ApiServer, manifest: Manifest) -> bool:
    return kept_of(api.apply(manifest, is_dry_run=True)) != kept_of(api.get(api.path_of(manifest)))


def kept_of(found: Manifest) -> Manifest:
    """An object without what controllers write beside us all the time."""
    written = {"managedFields", "resourceVersion", "finalizers"}
    metadata = {key: value for key, value in found["metadata"].items() if key not in written}
    return {**found, "metadata": metadata, "status": None}


def specs_of(api: ApiServer, manifests: list[Manifest], current: list[Manifest]) -> dict[str, object]:
    """What the server keeps of each object, in the current version; the objects are gone afterwards."""
    try:
        for manifest in manifests:
            api.apply(manifest, manager="somebody")
        kept = (api.find(api.path_of(manifest)) for manifest in current)
        return {f"{entry['kind']}/{entry['metadata']['name']}": entry.get("spec") for entry in kept if entry}
    finally:
        remove_all(api, current)
