"""A fleet that is reached as it is in a cluster: by accounts that have the shipped rights and no others."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.clients.kubernetes import ApiServer
from reconciler.objects import ClusterName
from reconciler.plan.rbac import ACCOUNT, NAMESPACE, account_objects
from reconciler.sandbox.fleet import Sandbox
from reconciler.spec.enums import Role
from tests import fast_yaml
from tests.builders import Document
from tests.cluster.live_fleet import LiveFleet

OWN = f"/api/v1/namespaces/{NAMESPACE}"


def give_account(sandbox: Sandbox, cluster: str, role: Role) -> None:
    api = sandbox.api(cluster)
    for manifest in account_objects(role):
        api.apply(manifest)


def take_account(sandbox: Sandbox, cluster: str, role: Role) -> None:
    """All but its namespace, which would take seconds to go and is wanted again by the next test."""
    api = sandbox.api(cluster)
    for manifest in reversed(account_objects(role)[1:]):
        if api.find(api.path_of(manifest)):
            api.delete(api.path_of(manifest))


def token_of(sandbox: Sandbox, cluster: str) -> str:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    answer = sandbox.api(cluster).post(f"{OWN}/serviceaccounts/{ACCOUNT}/token", request)
    return str(answer["status"]["token"])


def as_account(sandbox: Sandbox, cluster: str) -> ApiServer:
    own = sandbox.api(cluster).access
    return ApiServer(ClusterName(cluster), ClusterLogin(own.server, own.ca, token=token_of(sandbox, cluster)))


@dataclass
class AccountLiveFleet(LiveFleet):
    """The manager is reached with a token, its workers with Secrets there, as `kfleet bootstrap` makes them."""

    kubeconfig: Path = field(default_factory=Path)

    def log_in(self, manager: str) -> None:
        own = self.sandbox.api(self.contexts[manager]).access
        authority = self.folder.parent / f"{self.name}-ca.crt"
        authority.write_text(own.ca)
        self.kubeconfig = self.folder.parent / f"{self.name}-kubeconfig.yaml"
        content = {
            "current-context": "own",
            "contexts": [{"name": "own", "context": {"cluster": "own", "user": "own"}}],
            "clusters": [{"name": "own", "cluster": {"server": own.server, "certificate-authority": str(authority)}}],
            "users": [{"name": "own", "user": {"token": token_of(self.sandbox, self.contexts[manager])}}],
        }
        self.kubeconfig.write_text(fast_yaml.safe_dump(content))

    def cluster_documents(self) -> Iterator[Document]:
        for document in super().cluster_documents():
            name = document["metadata"]["name"]
            secret = {"secretRef": {"namespace": NAMESPACE, "name": f"kfleet-{name}"}}
            is_manager = document["spec"]["role"] == Role.MANAGER
            document["spec"]["access"] = {"kubeconfig": str(self.kubeconfig)} if is_manager else secret
            yield document
