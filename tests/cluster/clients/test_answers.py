"""What a real API server says of things that are not there, and of what it serves."""

import pytest

from reconciler.clients import kubernetes
from reconciler.errors import ClusterError
from reconciler.sandbox.fleet import Sandbox


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
