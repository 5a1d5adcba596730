"""What objects refer to by name: none of it may go while they stay."""

from collections.abc import Iterable, Iterator

from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import Manifest

Name = tuple[str, str]


def references(manifests: Iterable[Manifest]) -> frozenset[Name]:
    """Kinds and names that canonical manifests of Kueue refer to."""
    found = (name for manifest in manifests for name in (*_of_quota(manifest), *_of_multikueue(manifest)))
    return frozenset((kind, name) for kind, name in found if name)


def _of_quota(manifest: Manifest) -> Iterator[Name]:
    for group in as_list(at(manifest, "spec", "resourceGroups")):
        yield from (("ResourceFlavor", as_text(at(flavor, "name"))) for flavor in as_list(at(group, "flavors")))
    for check in as_list(at(manifest, "spec", "admissionChecksStrategy", "admissionChecks")):
        yield "AdmissionCheck", as_text(at(check, "name"))
    for field in ("cohortName", "parentName"):
        yield "Cohort", as_text(at(manifest, "spec", field))
    if manifest.get("kind") == "ResourceFlavor":
        yield "Topology", as_text(at(manifest, "spec", "topologyName"))


def _of_multikueue(manifest: Manifest) -> Iterator[Name]:
    """Workloads that run on a worker are lost to the manager when one link of this chain goes."""
    if manifest.get("kind") == "AdmissionCheck":
        parameters = as_map(at(manifest, "spec", "parameters"))
        yield as_text(parameters.get("kind")), as_text(parameters.get("name"))
    if manifest.get("kind") == "MultiKueueConfig":
        yield from (("MultiKueueCluster", as_text(name)) for name in as_list(at(manifest, "spec", "clusters")))
    if manifest.get("kind") == "MultiKueueCluster":
        kubeconfig = as_map(at(manifest, "spec", "clusterSource", "kubeConfig"))
        if kubeconfig.get("locationType") != "Path":
            yield "Secret", as_text(kubeconfig.get("location"))
