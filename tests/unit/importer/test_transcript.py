"""The first minutes that a page shows are what the commands print, for three clusters as the page describes them."""

from dataclasses import replace
from datetime import timedelta

from reconciler.doctor.examine import examine
from reconciler.doctor.model import facts_of
from reconciler.doctor.text import doctor_text
from reconciler.importer.collect import find_roles
from reconciler.importer.compose import compose
from reconciler.importer.model import ImportRequest, ObservedContexts
from reconciler.importer.text import import_text
from reconciler.multikueue.model import SeenCredential, Token
from reconciler.objects import ApiEndpoint, ClusterName
from tests.builders import cluster_queue, cpu_group, local_queue, native, resource_flavor
from tests.support import ROOT
from tests.unit.doctor.test_examine import active, node
from tests.unit.importer.live_clusters import NOW, namespace, on_paper

PAGE = (ROOT / "docs" / "getting-started.md").read_text()


def transcript(command: str) -> str:
    return PAGE.partition(f"$ {command}\n")[2].partition("```")[0].rstrip("\n")


def three_clusters() -> ObservedContexts:
    """MultiKueue by hand: a hub, and two workers of which one has an older Kueue and a LocalQueue to nowhere."""
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all"}
    check = native("AdmissionCheck", "mk", {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters})
    checks = {"admissionChecks": [{"name": "mk"}]}
    links = [
        active(native("MultiKueueCluster", name, {"clusterSource": {"kubeConfig": {"location": f"{name}-login"}}}))
        for name in ("east", "west")
    ]
    team = (active(local_queue("main", "astro", "batch")), namespace("astro"))
    batch = active(cluster_queue("batch", cpu_group("64", of="cpu")))
    hub = (
        resource_flavor("cpu"),
        *links,
        native("MultiKueueConfig", "all", {"clusters": ["east", "west"]}),
        active(check, "Active"),
        active(cluster_queue("batch", cpu_group("128", of="cpu"), admissionChecksStrategy=checks)),
        *team,
    )
    worker = (resource_flavor("cpu"), batch, *team, node("n1", cpu="64"))
    lost = active(local_queue("night", "astro", "bach"), "ClusterQueueDoesNotExist", is_true=False)
    seen = on_paper({"hub": hub, "east": worker, "west": (*worker, lost)})
    clusters = dict(seen.objects.clusters)
    clusters[ClusterName("west")] = replace(clusters[ClusterName("west")], kueue="v0.16.2")
    token = Token(
        "secret", "system:serviceaccount:kueue-system:multikueue", expires=NOW + timedelta(hours=71, minutes=50)
    )
    logins = {
        (ClusterName("hub"), name): SeenCredential(token, ApiEndpoint(f"https://{name}:6443"))
        for name in ("east", "west")
    }
    return replace(seen, objects=replace(seen.objects, clusters=clusters), credentials=logins)


def test_page_shows_what_doctor_prints() -> None:
    seen = three_clusters()
    assert doctor_text(examine(facts_of(seen, find_roles(seen)))) == transcript("kfleet doctor")


def test_page_shows_what_import_prints() -> None:
    seen = three_clusters()
    made = compose(seen, ImportRequest(fleet="fleet"))
    files = "\n".join(f"wrote fleet/{name}" for name in made.files)
    command = "kfleet import --context hub --context east --context west"
    assert f"{import_text(seen, made)}\n{files}" == transcript(command)
