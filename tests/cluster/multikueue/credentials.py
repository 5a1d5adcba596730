"""A fleet whose manager sends jobs to two workers, and its credentials as tests look at them."""

from base64 import b64decode
from functools import partial
from typing import Any

from reconciler.clients.kubeconfig import ClusterLogin
from reconciler.clients.kubernetes import ApiServer
from reconciler.objects import ClusterName
from tests import fast_yaml
from tests.builders import flavor, main_tenant, sent_queue
from tests.cluster.live_fleet import KUEUE_ROOT, SYSTEM, LiveFleet
from tests.support import eventually

WORKERS = ("worker1", "worker2")


def commit_sent(live_fleet: LiveFleet, **credentials: Any) -> None:
    """A queue that both workers serve; `credentials` are of the first."""
    name = live_fleet.name
    live_fleet.write(flavor(f"{name}-cpu"), sent_queue(f"{name}-q", f"{name}-cpu"), main_tenant(name, f"{name}-q"))
    if credentials:
        change_first(live_fleet, credentials=credentials)
    live_fleet.commit_all()


def connected(live_fleet: LiveFleet, worker: str) -> bool:
    """Whether the manager's Kueue says that it is connected to a worker, by what is written there now."""
    cluster = live_fleet.api("manager").get(f"{KUEUE_ROOT}/multikueueclusters/{live_fleet.name}-{worker}")
    conditions = (cluster.get("status") or {}).get("conditions") or ()
    return any(entry["type"] == "Active" and entry["status"] == "True" for entry in conditions)


def connect_all(live_fleet: LiveFleet) -> None:
    for worker in WORKERS:
        eventually(partial(connected, live_fleet, worker))


def secret_path(live_fleet: LiveFleet, worker: str = "worker1") -> str:
    return f"/api/v1/namespaces/{SYSTEM}/secrets/multikueue-{live_fleet.name}-{worker}"


def account_path(live_fleet: LiveFleet) -> str:
    return f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/multikueue-{live_fleet.name}"


def kubeconfig(live_fleet: LiveFleet, worker: str = "worker1") -> dict[str, Any]:
    secret = live_fleet.api("manager").get(secret_path(live_fleet, worker))
    found: dict[str, Any] = fast_yaml.safe_load(b64decode(secret["data"]["kubeconfig"]))
    return found


def token(live_fleet: LiveFleet, worker: str = "worker1") -> str:
    found: str = kubeconfig(live_fleet, worker)["users"][0]["user"]["token"]
    return found


def server(live_fleet: LiveFleet, worker: str = "worker1") -> str:
    found: str = kubeconfig(live_fleet, worker)["clusters"][0]["cluster"]["server"]
    return found


def as_manager(live_fleet: LiveFleet, worker: str = "worker1") -> ApiServer:
    """The worker, as the manager's Kueue sees it."""
    own = live_fleet.api(worker).access
    return ApiServer(ClusterName(worker), ClusterLogin(own.server, own.ca, token=token(live_fleet, worker)))


def use_access(live_fleet: LiveFleet, name: str, *, server: str = "", user: dict[str, str] | None = None) -> None:
    """Let the fleet reach its first worker in another way: at another address, or as another user."""
    content = fast_yaml.safe_load(live_fleet.sandbox.state.kubeconfig.read_text())
    own = next(entry["context"] for entry in content["contexts"] if entry["name"] == "worker1")
    cluster = next(entry["cluster"] for entry in content["clusters"] if entry["name"] == own["cluster"])
    known = next(entry["user"] for entry in content["users"] if entry["name"] == own["user"])
    content["clusters"].append({"name": name, "cluster": {**cluster, "server": server or cluster["server"]}})
    content["users"].append({"name": name, "user": user or known})
    content["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
    kubeconfig = live_fleet.folder.parent / f"{name}.yaml"
    kubeconfig.write_text(fast_yaml.safe_dump(content))
    change_first(live_fleet, access={"context": name, "kubeconfig": str(kubeconfig)})
    live_fleet.commit_all()


def change_first(live_fleet: LiveFleet, **fields: Any) -> None:
    """Change the document of the first worker."""
    path = live_fleet.folder / "fleet" / "fleet.yaml"
    documents = [*fast_yaml.safe_load_all(path.read_text())]
    first = next(entry for entry in documents if entry["metadata"]["name"] == f"{live_fleet.name}-worker1")
    first["spec"] |= fields
    path.write_text(fast_yaml.safe_dump_all(documents))
