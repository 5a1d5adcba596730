"""A fleet whose manager sends jobs to two workers, and its credentials as tests look at them."""

from base64 import b64decode
from typing import Any

import yaml

from reconciler.edges.kubernetes import Access, ApiServer
from reconciler.objects import ClusterName
from tests.cluster.engine.worlds import KUEUE_ROOT, SYSTEM, World
from tests.documents import flavor, sent_queue, tenant
from tests.support import eventually

WORKERS = ("worker1", "worker2")


def commit_sent(world: World, **credentials: Any) -> None:
    """A queue that both workers serve; `credentials` are of the first."""
    name = world.name
    world.write(flavor(f"{name}-cpu"), sent_queue(f"{name}-q", f"{name}-cpu"), tenant(name, f"{name}-q"))
    if credentials:
        change_first(world, credentials=credentials)
    world.commit_all()


def connected(world: World, worker: str) -> bool:
    """Whether the manager's Kueue says that it is connected to a worker, by what is written there now."""
    cluster = world.api("manager").get(f"{KUEUE_ROOT}/multikueueclusters/{world.name}-{worker}")
    conditions = (cluster.get("status") or {}).get("conditions") or ()
    return any(entry["type"] == "Active" and entry["status"] == "True" for entry in conditions)


def connect_all(world: World) -> None:
    for worker in WORKERS:
        eventually(lambda name=worker: connected(world, name))


def secret_path(world: World, worker: str = "worker1") -> str:
    return f"/api/v1/namespaces/{SYSTEM}/secrets/multikueue-{world.name}-{worker}"


def account_path(world: World) -> str:
    return f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/multikueue-{world.name}"


def kubeconfig(world: World, worker: str = "worker1") -> dict[str, Any]:
    secret = world.api("manager").get(secret_path(world, worker))
    found: dict[str, Any] = yaml.safe_load(b64decode(secret["data"]["kubeconfig"]))
    return found


def token(world: World, worker: str = "worker1") -> str:
    found: str = kubeconfig(world, worker)["users"][0]["user"]["token"]
    return found


def server(world: World, worker: str = "worker1") -> str:
    found: str = kubeconfig(world, worker)["clusters"][0]["cluster"]["server"]
    return found


def as_manager(world: World, worker: str = "worker1") -> ApiServer:
    """The worker, as the manager's Kueue sees it."""
    own = world.api(worker).access
    return ApiServer(ClusterName(worker), Access(own.server, own.ca, token=token(world, worker)))


def use_access(world: World, name: str, *, server: str = "", user: dict[str, str] | None = None) -> None:
    """Let the fleet reach its first worker in another way: at another address, or as somebody else."""
    content = yaml.safe_load(world.sandbox.state.kubeconfig.read_text())
    own = next(entry["context"] for entry in content["contexts"] if entry["name"] == "worker1")
    cluster = next(entry["cluster"] for entry in content["clusters"] if entry["name"] == own["cluster"])
    known = next(entry["user"] for entry in content["users"] if entry["name"] == own["user"])
    content["clusters"].append({"name": name, "cluster": {**cluster, "server": server or cluster["server"]}})
    content["users"].append({"name": name, "user": user or known})
    content["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
    kubeconfig = world.folder.parent / f"{name}.yaml"
    kubeconfig.write_text(yaml.safe_dump(content))
    change_first(world, access={"context": name, "kubeconfig": str(kubeconfig)})
    world.commit_all()


def change_first(world: World, **fields: Any) -> None:
    """Change the document of the first worker."""
    path = world.folder / "fleet" / "fleet.yaml"
    documents = [*yaml.safe_load_all(path.read_text())]
    first = next(entry for entry in documents if entry["metadata"]["name"] == f"{world.name}-worker1")
    first["spec"] |= fields
    path.write_text(yaml.safe_dump_all(documents))
