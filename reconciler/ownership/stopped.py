"""Queues that kfleet has stopped in order to delete them.

Decision: it holds that field under a name of its own, because git does not ask for it. Where the queue stays after all,
kfleet lets go of that name, and the queue goes on as before.
"""

from reconciler.objects import Manifest
from reconciler.ownership.fields import has_applied

STOPPER = "kfleet-drain"
FIELD = "stopPolicy"


def is_stopped(live: Manifest) -> bool:
    return bool(live.get("kind") == "ClusterQueue" and has_applied(live, STOPPER))


def stopping(queue: Manifest, uid: str) -> Manifest:
    """What evicts everything from a queue; with its uid, so that a server refuses where another one has its name."""
    return {**queue, "metadata": {**queue["metadata"], "uid": uid}, "spec": {FIELD: "HoldAndDrain"}}


def letting_go(queue: Manifest) -> Manifest:
    """The same without a wish: what its manager held falls back to what everybody else says."""
    return {name: queue[name] for name in ("apiVersion", "kind")} | {"metadata": {"name": queue["metadata"]["name"]}}
