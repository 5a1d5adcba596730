"""Everything that kfleet does to a fleet in its life, done with the shipped rights alone."""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reconciler import cli
from reconciler.clients.kubernetes import ApiServer
from reconciler.objects import Manifest
from reconciler.spec.enums import Role
from tests import fast_yaml
from tests.builders import Document, flavor, native
from tests.cluster.apply.test_example import placed
from tests.cluster.controller.controllers import Controller
from tests.cluster.deploy.account_live_fleet import AccountLiveFleet
from tests.cluster.deploy.requests import Request, kept_requests, read_requests
from tests.cluster.live_fleet import KUEUE_ROOT, SYSTEM
from tests.support import ROOT, eventually

CONFIG = f"/api/v1/namespaces/{SYSTEM}/configmaps/kueue-manager-config"
DASHBOARD = f"/api/v1/namespaces/{SYSTEM}/configmaps/kfleet-science-dashboard-queues"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/kueue-controller-manager"
LEVELS = {"levels": [{"nodeLabel": "example.org/rack"}]}
PROVISIONING = {"provisioningClassName": "queued.example.org"}


@dataclass
class Lifecycle:
    live_fleet: AccountLiveFleet
    requests: list[Request] = field(default_factory=list)

    def roles(self) -> dict[str, Role]:
        return {name: Role.MANAGER if name == "hub" else Role.WORKER for name in self.live_fleet.contexts}

    def of(self, role: Role) -> list[Request]:
        """Requests of kfleet to clusters of a role; those of the test itself bear the names of the sandbox."""
        return [request for request in self.requests if self.roles().get(request.cluster) is role]


def go_through(lifecycle: Lifecycle) -> None:
    """From the first login to the last delete."""
    _bootstrap(lifecycle.live_fleet)
    _lay_out(lifecycle.live_fleet)
    with kept_requests() as lines:
        lifecycle.live_fleet.converge()
        assert lifecycle.live_fleet.api("hub").find(DASHBOARD)
        with _renamed_kueue(lifecycle.live_fleet):
            assert lifecycle.live_fleet.plan().code == 0
    lifecycle.requests += read_requests(lines)
    lifecycle.requests += read_requests(_follow(lifecycle.live_fleet))
    with kept_requests() as lines:
        _drain(lifecycle.live_fleet)
        _empty(lifecycle.live_fleet)
    lifecycle.requests += read_requests(lines)


def _bootstrap(live_fleet: AccountLiveFleet) -> None:
    """The logins of the workers, made by an administrator."""
    kubeconfig = str(live_fleet.sandbox.state.kubeconfig)
    for name, context in live_fleet.contexts.items():
        if name != "hub":
            wanted = ["--context", context, "--manager-context", "manager", "--kubeconfig", kubeconfig]
            assert cli.execute(["bootstrap", "worker", name, "--apply", *wanted]) == 0
    live_fleet.log_in("hub")


def _lay_out(live_fleet: AccountLiveFleet) -> None:
    """The fleet of this repository, and beside it every other kind that kfleet knows."""
    for folder in ("fleet", "overlays"):
        shutil.copytree(ROOT / folder, live_fleet.folder / folder)
    change_documents(live_fleet, "clusters.yaml", lambda entry: _completed(placed(live_fleet, entry)))
    change_documents(live_fleet, "fleet.yaml", _generous)
    _write(live_fleet, "more.yaml", *_more())
    live_fleet.commit_all()


def change_documents(live_fleet: AccountLiveFleet, name: str, change: Any) -> None:
    path = live_fleet.folder / "fleet" / name
    changed = [change(entry) for entry in fast_yaml.safe_load_all(path.read_text())]
    path.write_text(fast_yaml.safe_dump_all([entry for entry in changed if entry]))


def _completed(document: Document) -> Document:
    """A cluster that publishes what it has, one whose Kueue gets another Configuration, one that has it already."""
    more_by_name: dict[str, Document] = {
        "cnaf-cpu": {"publishMetrics": True},
        "lyon-gpu": {"kueue": {"config": {"clientConnection": {"qps": 150}}}},
        "hub": {"kueue": {"config": {"integrations": {"frameworks": ["batch/job"]}}}},
    }
    more = more_by_name.get(document["metadata"]["name"], {})
    return {**document, "spec": {**document["spec"], **more}}


def _generous(document: Document) -> Document:
    policy = {**document["spec"]["policy"], "prune": {"maxDeletes": 100, "maxPercent": 100}}
    more = {"policy": policy, "masterQueues": {"fromCluster": True}, "monitoring": {"alerts": "configMap"}}
    return {**document, "spec": {**document["spec"], **more}}


def _more() -> Iterator[Document]:
    for clusters in ("manager", "workers"):
        yield native("Topology", f"racks-{clusters}", LEVELS, clusters)
        yield native("ProvisioningRequestConfig", f"later-{clusters}", PROVISIONING, clusters)
        check = {"controllerName": "kueue.x-k8s.io/provisioning-request", "parameters": _parameters(clusters)}
        yield native("AdmissionCheck", f"later-{clusters}", check, clusters)
        yield {**native("WorkloadPriorityClass", f"late-{clusters}", None, clusters), "value": 1}
        yield native("ResourceFlavor", f"spare-{clusters}", {}, clusters)
    yield _flavor_of("seen", "cnaf-cpu", {"source": "nodes", "subtractOther": True})
    yield _flavor_of("told", "cnaf-cpu", {"source": "clusterMetrics"})
    yield _flavor_of("told-here", "cnaf-gpu", {"source": "clusterMetrics"})


def _flavor_of(name: str, cluster: str, capacity: Document) -> Document:
    labels = {"example.org/class": name}
    return flavor(name, clusters={"names": [cluster]}, nodeLabels=labels, capacity=capacity)


def _parameters(clusters: str) -> Document:
    return {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": f"later-{clusters}"}


def _write(live_fleet: AccountLiveFleet, name: str, *documents: Document) -> Path:
    path = live_fleet.folder / "fleet" / name
    path.write_text(fast_yaml.safe_dump_all(documents))
    return path


@contextmanager
def _renamed_kueue(live_fleet: AccountLiveFleet) -> Iterator[None]:
    """Installations have their own names for the ConfigMap of Kueue's Configuration, and for its Deployment."""
    api = live_fleet.api("hub")
    before = [api.get(CONFIG), api.get(DEPLOYMENT)]
    after = [_named(entry, "kueue-elsewhere") for entry in before]
    _exchange(api, before, after)
    yield
    _exchange(api, after, [_named(entry, entry["metadata"]["name"]) for entry in before])


def _exchange(api: ApiServer, old: Iterable[Manifest], new: Iterable[Manifest]) -> None:
    for entry in old:
        api.delete(api.path_of(entry))
    for entry in new:
        api.create(entry)


def _named(manifest: Manifest, name: str) -> Manifest:
    """A copy under another name, which also mounts what has it."""
    text = json.dumps({key: value for key, value in manifest.items() if key != "status"})
    config_map = json.dumps("kueue-manager-config")
    is_other = name != manifest["metadata"]["name"]
    copy = json.loads(text.replace(config_map, json.dumps(name)) if is_other else text)
    return {**copy, "metadata": {"name": name, "namespace": SYSTEM, "labels": copy["metadata"].get("labels") or {}}}


def _follow(live_fleet: AccountLiveFleet) -> list[dict[str, Any]]:
    """`kfleet run` for a while, with a commit that it must refuse."""
    controller = Controller(live_fleet.folder, ("-v",))
    try:
        eventually(lambda: controller.get("/readyz")[0] == 200, 60)
        eventually(lambda: controller.metric("kfleet_leader") == 1, 60)
        path = _write(live_fleet, "broken.yaml", {"apiVersion": "kfleet.dev/v1alpha1", "kind": "Queue"})
        live_fleet.commit_all()
        eventually(lambda: _events(live_fleet), 60)
        path.unlink()
        live_fleet.commit_all()
        assert controller.stop() == 0
    finally:
        controller.kill()
    return controller.lines


def _events(live_fleet: AccountLiveFleet) -> list[str]:
    found = live_fleet.api("hub").list(f"/api/v1/namespaces/{SYSTEM}/events")
    return [entry["reason"] for entry in found if entry["involvedObject"]["name"] == live_fleet.lease]


def _drain(live_fleet: AccountLiveFleet) -> None:
    """A worker is emptied, and then leaves."""

    def drained(document: Document) -> Document:
        is_leaving = document["metadata"]["name"] == "lyon-gpu"
        return {**document, "spec": {**document["spec"], "drain": True}} if is_leaving else document

    change_documents(live_fleet, "clusters.yaml", drained)
    live_fleet.commit_all()
    apply_until(live_fleet, lambda: "lyon-gpu" not in _memberships(live_fleet))
    change_documents(
        live_fleet, "clusters.yaml", lambda entry: entry if entry["metadata"]["name"] != "lyon-gpu" else None
    )
    change_documents(live_fleet, "flavors.yaml", lambda entry: entry if entry["metadata"]["name"] != "h100" else None)
    change_documents(live_fleet, "queues.yaml", _without_h100)
    live_fleet.commit_all()
    apply_until(live_fleet, lambda: live_fleet.api("lyon-gpu").find(live_fleet.set_name.path) is None)


def apply_until(live_fleet: AccountLiveFleet, is_done: Callable[[], bool]) -> None:
    """Again and again, as a CronJob would: what is emptied goes step by step."""

    def applied() -> bool:
        answer = live_fleet.apply()
        # 4 while something that left git is still in use.
        assert answer.code in {0, 4}, answer
        return is_done()

    eventually(applied, 120)


def _memberships(live_fleet: AccountLiveFleet) -> list[str]:
    config = live_fleet.api("hub").get(f"{KUEUE_ROOT}/multikueueconfigs/multikueue-gpu")
    return list(config["spec"]["clusters"])


def _without_h100(document: Document) -> Document:
    quota = [entry for entry in document["spec"]["quota"] if entry["flavor"] != "h100"]
    return {**document, "spec": {**document["spec"], "quota": quota}}


def _empty(live_fleet: AccountLiveFleet) -> None:
    """Everything goes but the flavors."""
    change_documents(live_fleet, "fleet.yaml", _without_monitoring)
    for name in ("queues.yaml", "tenants.yaml", "more.yaml"):
        (live_fleet.folder / "fleet" / name).unlink()
    live_fleet.commit_all()

    apply_until(
        live_fleet, lambda: not any(_has_queues(live_fleet, cluster) for cluster in ("hub", "cnaf-gpu", "cnaf-cpu"))
    )
    assert live_fleet.api("hub").find(DASHBOARD) is None


def _without_monitoring(document: Document) -> Document:
    return {**document, "spec": {key: value for key, value in document["spec"].items() if key != "monitoring"}}


def _has_queues(live_fleet: AccountLiveFleet, cluster: str) -> bool:
    return any(name.startswith("clusterqueues/") for name in live_fleet.members(cluster))
