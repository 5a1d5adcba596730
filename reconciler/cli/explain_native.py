"""`kfleet explain cohort`: native kinds of Kueue, which are written as they are, and where they go."""

from collections.abc import Mapping
from typing import Any

from reconciler.cli.explain_text import INDENT, wrapped
from reconciler.kueue.kinds import CANONICAL, GROUP, KINDS, Kind

_FOLLOWING = "Without the annotation it goes to every cluster with a queue that uses it."
_ELSEWHERE = "Without the annotation it goes to the manager, or to the only cluster."
_TEXTS = {
    "Cohort": "spec.cohort of a Queue creates a Cohort without limits where no document declares it. Write one for a "
    f"parent, for quota of its own, for limits or for fair sharing. {_FOLLOWING}",
    "WorkloadPriorityClass": f"The priorities that jobs name. There is no kind of kfleet for them. {_FOLLOWING}",
    "ResourceFlavor": "A Flavor creates it, together with the quota that follows the capacity of its nodes. "
    f"{_FOLLOWING}",
    "ClusterQueue": f"A Queue creates it on each of its clusters. A Tenant may also use a native one. {_ELSEWHERE}",
    "LocalQueue": f"A Tenant creates it in each of its namespaces. {_ELSEWHERE}",
    "AdmissionCheck": f"dispatch of a Queue creates those of MultiKueue and KubeStellar. {_ELSEWHERE}",
    "MultiKueueConfig": f"dispatch: multikueue of a Queue creates it. {_ELSEWHERE}",
    "MultiKueueCluster": f"dispatch: multikueue of a Queue creates one per worker, with its credentials. {_ELSEWHERE}",
    "Workload": "Kueue creates it for each job; it does not belong into a fleet. See kfleet why.",
}
_PLACE = "The annotation kfleet.dev/clusters selects its clusters: manager, workers, all, names or labels."


def find_native(word: str) -> Kind | None:
    """Return the native kind of Kueue that a word names."""
    return next((kind for kind in KINDS if word.lower() in (kind.name.lower(), kind.plural)), None)


def native_text(kind: Kind, width: int) -> str:
    lines = [f"KIND      {kind.name} ({GROUP}/{CANONICAL}), a native object of Kueue", "", "DESCRIPTION"]
    return "\n".join([*lines, *(line for text in _sentences(kind) for line in wrapped(text, width, INDENT))])


def native_json(kind: Kind) -> Mapping[str, Any]:
    return {"kind": kind.name, "native": True, "description": " ".join(_sentences(kind))}


def _sentences(kind: Kind) -> tuple[str, ...]:
    own = _TEXTS.get(kind.name, _ELSEWHERE)
    fields = "Its fields are those of Kueue: see kubectl explain, and docs/documents.md."
    return (own, fields) if kind.name == "Workload" else (own, _PLACE, fields)
