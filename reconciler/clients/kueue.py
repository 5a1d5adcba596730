"""Lists objects of Kueue in the newest served version that kfleet knows.

Decision: a kind that is served only in a version which kfleet does not know is an error. Otherwise the queues and
workloads of a newer Kueue would count as absent, and their jobs as ended.
"""

from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError
from reconciler.kueue.kinds import GROUP, KIND_BY_NAME
from reconciler.kueue.reading import as_list, as_text, at
from reconciler.objects import Manifest

VERSIONS = ("v1beta2", "v1beta1")
# Served for kinds that kfleet does not list: not a newer Kueue.
_OLDER = ("v1alpha1",)
NOT_FOUND = 404


def list_kueue(client: ClusterClient, kind: str, selector: str = "") -> tuple[Manifest, ...]:
    """All objects of a kind, each with its type; none if Kueue is not installed or does not have the kind."""
    plural = KIND_BY_NAME[kind].plural
    for version in VERSIONS:
        api_version = f"{GROUP}/{version}"
        try:
            found = client.list(f"/apis/{api_version}/{plural}", selector)
            return tuple({**entry, "apiVersion": api_version, "kind": kind} for entry in found)
        except ClusterError as error:
            if error.status != NOT_FOUND:
                raise
    _refuse_unknown(client, kind, plural)
    return ()


def _refuse_unknown(client: ClusterClient, kind: str, plural: str) -> None:
    for version in _served_versions(client):
        if version in {*VERSIONS, *_OLDER}:
            continue
        kinds = as_list(at(client.find(f"/apis/{GROUP}/{version}"), "resources"))
        if any(at(one, "name") == plural for one in kinds):
            problem = f"{kind} is served only in {GROUP}/{version}, which this kfleet does not know"
            raise ClusterError(client.cluster, f"{problem}: use a newer kfleet")


def _served_versions(client: ClusterClient) -> tuple[str, ...]:
    """The served versions, from the list of all groups: without Kueue, its group has no page of its own."""
    groups = as_list(at(client.get("/apis"), "groups"))
    own = next((group for group in groups if at(group, "name") == GROUP), None)
    return tuple(as_text(at(one, "version")) for one in as_list(at(own, "versions")))
