"""What a real API server says of things that are not there, and of what it serves."""

import json

import pytest

from reconciler.clients import kubernetes
from reconciler.clients.kubernetes import ApiServer
from reconciler.clients.protocols import list_kueue
from reconciler.errors import ClusterError
from reconciler.objects import ClusterName
from reconciler.sandbox.fleet import Sandbox
from tests.cluster.faults.proxy import Deed, Fault, proxied


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/nowhere",
        "/api/v1/namespaces/nowhere/configmaps/x",
        "/api/v1/nothings/x",
        "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/nowhere",
        "/apis/kueue.x-k8s.io/v1beta2/nothings/x",
        "/apis/kueue.x-k8s.io/v9/clusterqueues/x",
        "/apis/nowhere.example.org/v1/things/x",
        "/apis/nowhere.example.org/v1",
    ],
)
def test_object_or_kind_that_is_not_there_is_not_found(fleet: Sandbox, path: str) -> None:
    assert fleet.api("manager").find(path) is None


def test_list_of_a_kind_that_is_not_served_says_so(fleet: Sandbox) -> None:
    for path in ("/apis/nowhere.example.org/v1/things", "/apis/kueue.x-k8s.io/v1beta2/nothings"):
        with pytest.raises(ClusterError) as raised:
            list(fleet.api("manager").list(path))
        assert raised.value.status == 404
    assert fleet.api("manager").kinds("nowhere.example.org/v1") == ()


@pytest.mark.parametrize(
    "form", ["application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", "application/json"]
)
def test_older_forms_of_discovery_name_the_same_kinds(
    fleet: Sandbox, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = fleet.api("manager")
    newest = set(api.discover())
    monkeypatch.setattr(kubernetes, "DISCOVERY", form)
    if "v2beta1" in form:
        # A server of today knows it no longer, and says so: that is an error, not an empty list.
        with pytest.raises(ClusterError, match="406"):
            api.discover()
        return
    assert set(api.discover()) == newest


@pytest.mark.parametrize("kinds", [("workloads", "queues"), ("queues",)])
def test_kind_of_kueue_that_only_an_unknown_version_serves_is_not_an_empty_list(
    fleet: Sandbox, kinds: tuple[str, ...]
) -> None:
    """As with a Kueue after v1beta2: what is not listed must not count as what is not there."""
    group = "kueue.x-k8s.io"
    versions = [{"groupVersion": f"{group}/v1", "version": "v1"}]
    newer = {"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": group, "versions": versions}]}
    served = {
        "kind": "APIResourceList",
        "groupVersion": f"{group}/v1",
        "resources": [{"name": name, "kind": name, "namespaced": True} for name in kinds],
    }
    gone = {"kind": "Status", "reason": "NotFound", "message": "the server could not find the requested resource"}
    with proxied(fleet, "manager") as proxy:
        proxy.inject(
            Fault(Deed.ANSWER, f"{group}/v1beta[12]/workloads", "GET", status=404, page=json.dumps(gone), times=2),
            Fault(Deed.ANSWER, "/apis$", "GET", status=200, page=json.dumps(newer), times=3),
            Fault(Deed.ANSWER, f"/apis/{group}/v1$", "GET", status=200, page=json.dumps(served)),
        )
        api = ApiServer(ClusterName("manager"), proxy.access)
        if "workloads" not in kinds:
            assert list_kueue(api, "Workload") == ()
            return
        with pytest.raises(ClusterError, match=f"Workload is served only in {group}/v1, which this kfleet does not"):
            list_kueue(api, "Workload")
