"""What people change by hand on the clusters of a walk: kfleet puts it right, and no job is lost by it."""

from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError
from tests.soak.record import KUEUE
from tests.soak.walk import Walk
from tests.soak.wanted import MANAGER, SENT

BY_HAND = "?fieldManager=kubectl-edit"


def edit_by_hand(walk: Walk) -> None:
    """On the manager nothing is stopped: Kueue would then take back what is only reserved."""
    cluster, queue = walk.chance.choice((MANAGER, *walk.wanted.workers)), walk.chance.choice(SENT)
    edits = (add_label, raise_quota, delete_local_queue)
    edit = walk.chance.choice(edits if cluster == MANAGER else (stop_queue, stop_local_queue, *edits))
    try:
        edit(walk.api(cluster), f"{walk.fleet}-{queue}")
    except ClusterError as error:
        walk.say(f"edit by hand on {cluster}: {error}")
        return
    walk.say(f"edit by hand on {cluster}: {edit.__name__} of {queue}")


def add_label(api: ApiServer, queue: str) -> None:
    api.patch(f"{KUEUE}/clusterqueues/{queue}{BY_HAND}", {"metadata": {"labels": {"edited": "yes"}}})


def stop_queue(api: ApiServer, queue: str) -> None:
    api.patch(f"{KUEUE}/clusterqueues/{queue}{BY_HAND}", {"spec": {"stopPolicy": "Hold"}})


def stop_local_queue(api: ApiServer, queue: str) -> None:
    api.patch(f"{KUEUE}/namespaces/{queue}/localqueues/main{BY_HAND}", {"spec": {"stopPolicy": "Hold"}})


def raise_quota(api: ApiServer, queue: str) -> None:
    groups = api.get(f"{KUEUE}/clusterqueues/{queue}")["spec"]["resourceGroups"]
    groups[0]["flavors"][0]["resources"][0]["nominalQuota"] = "77"
    api.patch(f"{KUEUE}/clusterqueues/{queue}{BY_HAND}", {"spec": {"resourceGroups": groups}})


def delete_local_queue(api: ApiServer, queue: str) -> None:
    api.delete(f"{KUEUE}/namespaces/{queue}/localqueues/main")
