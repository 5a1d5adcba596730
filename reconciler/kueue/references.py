"""References between objects by name: a referenced object must not be deleted, whichever owner the referrer has."""

from collections.abc import Iterable, Iterator, Mapping

from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.kueue.workloads import flavors_of
from reconciler.objects import Manifest

Name = tuple[str, str]
# The Kueue kinds that may refer to an object of a kind: all of them must be observed before it may be deleted.
REFERRERS: Mapping[str, frozenset[str]] = {
    "ClusterQueue": frozenset({"LocalQueue"}),
    "ResourceFlavor": frozenset({"ClusterQueue", "Cohort", "Workload"}),
    "AdmissionCheck": frozenset({"ClusterQueue"}),
    "Cohort": frozenset({"ClusterQueue", "Cohort"}),
    "Topology": frozenset({"ResourceFlavor"}),
    "MultiKueueConfig": frozenset({"AdmissionCheck"}),
    "ProvisioningRequestConfig": frozenset({"AdmissionCheck"}),
    "MultiKueueCluster": frozenset({"MultiKueueConfig"}),
    "Secret": frozenset({"MultiKueueCluster"}),
}


def referrers(manifests: Iterable[Manifest]) -> Mapping[Name, tuple[str, ...]]:
    """Return the referrers of each kind and name, in any version of Kueue's API; for workloads, by their admission."""
    found: dict[Name, list[str]] = {}
    for manifest in manifests:
        for name in dict.fromkeys(_references(manifest)):
            found.setdefault(name, []).append(_shown(manifest))
    return {name: tuple(who) for name, who in found.items() if name[1]}


def _references(manifest: Manifest) -> Iterator[Name]:
    if manifest.get("kind") == "Workload":
        yield from (("ResourceFlavor", flavor) for flavor in flavors_of(manifest))
        return
    canonical = to_canonical(manifest).manifest
    yield from _of_quota(canonical)
    yield from _of_multikueue(canonical)


def _shown(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return "/".join(filter(None, (manifest.get("kind"), metadata.get("namespace"), metadata["name"])))


def _of_quota(manifest: Manifest) -> Iterator[Name]:
    for group in as_list(at(manifest, "spec", "resourceGroups")):
        yield from (("ResourceFlavor", as_text(at(flavor, "name"))) for flavor in as_list(at(group, "flavors")))
    for check in as_list(at(manifest, "spec", "admissionChecksStrategy", "admissionChecks")):
        yield "AdmissionCheck", as_text(at(check, "name"))
    for field in ("cohortName", "parentName"):
        yield "Cohort", as_text(at(manifest, "spec", field))
    if manifest.get("kind") == "ResourceFlavor":
        yield "Topology", as_text(at(manifest, "spec", "topologyName"))
    if manifest.get("kind") == "LocalQueue":
        yield "ClusterQueue", as_text(at(manifest, "spec", "clusterQueue"))


def _of_multikueue(manifest: Manifest) -> Iterator[Name]:
    """The manager loses workloads that run on a worker if one link of this chain is deleted."""
    if manifest.get("kind") == "AdmissionCheck":
        parameters = as_map(at(manifest, "spec", "parameters"))
        yield as_text(parameters.get("kind")), as_text(parameters.get("name"))
    if manifest.get("kind") == "MultiKueueConfig":
        yield from (("MultiKueueCluster", as_text(name)) for name in as_list(at(manifest, "spec", "clusters")))
    if manifest.get("kind") == "MultiKueueCluster":
        kubeconfig = as_map(at(manifest, "spec", "clusterSource", "kubeConfig"))
        if kubeconfig.get("locationType") != "Path":
            yield "Secret", as_text(kubeconfig.get("location"))
