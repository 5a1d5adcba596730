"""Somebody else at a cluster, who may do little."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.clients.kubernetes import ApiServer

RBAC = "rbac.authorization.k8s.io/v1"


@contextmanager
def account(api: ApiServer, name: str, rules: list[dict[str, Any]]) -> Iterator[ApiServer]:
    """The cluster as an account sees it that may do this, and nothing else."""
    own = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}
    role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
    binding = {
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    for manifest in (own, role, binding):
        api.create(manifest)
    path = f"{api.path_of(own)}/token"
    token = api.post(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    visiting = ApiServer(api.cluster, ClusterLogin(api.access.server, api.access.ca, token=token["status"]["token"]))
    try:
        yield visiting
    finally:
        visiting.close()
        for manifest in (binding, role, own):
            api.delete(api.path_of(manifest))
