"""Random fleets that are valid, as YAML that a user could have written."""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from reconciler.pipeline.load import Revision, load_files
from reconciler.spec.files import FleetFiles
from tests.builders import Document, document

# Legal, but short, long, or something else to YAML: a date, a number, a boolean, nothing.
NAMES = ("0", "1e3", "2026-01-31", "a--b", "gpu", "null", "on", "x", "true", "a" * 50)
DOTTED = (*NAMES, "0.10", "a.b-c.d", "1.2.3.4", f"{'a' * 63}.{'b' * 63}")
NAMESPACES = ("default", "0", "team-a", "null", "n" * 63)
RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "pods", "Odd_name.v1", "example.com/Odd_name.v1")
# In the order of their values: a limit is taken from the left of its quota.
QUANTITIES = ("0", "1m", 0.5, "1", 7, "1e3", "1.5k", "64Ki", "3M", "512Mi", "1.5Gi", "2T", "1Ei")
SHARES = ("0%", "0.000000001%", "1%", "8.333333333%", "12.5%", "20%")
HEADROOM = ("0%", "5%", "33.333333333%", "100%")
LABELS = {"site": ("cnaf", "lyon", ""), "Example.com_x": ("Yes", "1.0"), "example.org/pool": ("a", "b")}
TAINTS = (
    {"key": "gpu", "effect": "NoSchedule"},
    {"key": "gpu", "value": "yes", "effect": "NoExecute"},
    {"key": "example.com/spot", "value": "", "effect": "PreferNoSchedule"},
)
TOLERATIONS = (
    {"operator": "Exists"},
    {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "gpu", "value": "yes"},
    {"key": "gpu", "operator": "Equal", "value": "", "effect": "NoExecute", "tolerationSeconds": 0},
)
PREEMPTION: tuple[Document, ...] = (
    {},
    {"withinClusterQueue": "LowerOrNewerEqualPriority"},
    {"reclaimWithinCohort": "LowerPriority", "borrowWithinCohort": {"policy": "Never"}},
    {"reclaimWithinCohort": "Any", "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": -5}},
)
TRY_NEXT = {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"}
FUNGIBILITY: tuple[Document, ...] = (
    {},
    {"whenCanBorrow": "MayStopSearch"},
    {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "MayStopSearch"},
    {**TRY_NEXT, "preference": "PreemptionOverBorrowing"},
)
SELECTORS: tuple[Document, ...] = (
    {},
    {"matchLabels": {"team": ""}},
    {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b", ""]}]},
)
WEIGHTS: tuple[Any, ...] = ("0", 1, "2.5", "100m", 1.5, "1k")


def files_of(documents: Sequence[Document], **others: str) -> FleetFiles:
    """The documents as a file; written as JSON, which is YAML where every text is in quotes."""
    text = "\n---\n".join(json.dumps(document) for document in documents)
    contents = {"fleet/all.yaml": text, **others}
    return FleetFiles("test", "", {path: content.encode() for path, content in contents.items()})


def computed(documents: Sequence[Document]) -> Revision:
    return load_files(files_of(documents))


@st.composite
def fleets(draw: st.DrawFn) -> list[Document]:
    """One manager, up to four workers, and everything that a fleet can say about their queues."""
    clusters = draw(_clusters())
    workers = [cluster["metadata"]["name"] for cluster in clusters[1:]]
    flavors = draw(_flavors(workers))
    queues = draw(_queues(workers, [flavor["metadata"]["name"] for flavor in flavors]))
    tenants = draw(_tenants([queue["metadata"]["name"] for queue in queues]))
    return [document("Fleet", "test", {}), *clusters, *flavors, *queues, *tenants]


@st.composite
def _clusters(draw: st.DrawFn) -> list[Document]:
    names = draw(st.lists(st.sampled_from(DOTTED), min_size=2, max_size=5, unique=True))
    documents: list[Document] = []
    for name in names:
        role = "worker" if documents else "manager"
        spec = {"role": role} | draw(_some({"drain": st.sampled_from([False, True, "evict"])}))
        documents.append(document("Cluster", name, spec, labels=draw(_labels())))
    return documents


@st.composite
def _flavors(draw: st.DrawFn, workers: list[str]) -> list[Document]:
    """The first is everywhere, so that each queue can have a flavor on each of its clusters."""
    documents: list[Document] = []
    for name in draw(st.lists(st.sampled_from(DOTTED), min_size=1, max_size=4, unique=True)):
        capacity = {"source": "static", "resources": dict.fromkeys(RESOURCES, draw(st.sampled_from(QUANTITIES)))}
        spec = draw(
            _some(
                {
                    "nodeLabels": _labels(),
                    "nodeTaints": st.lists(st.sampled_from(TAINTS), unique_by=repr),
                    "tolerations": st.lists(st.sampled_from(TOLERATIONS), max_size=8),
                    "clusters": _names(workers) if documents else st.just({"names": workers}),
                }
            )
        )
        capacity |= draw(_some({"headroom": st.sampled_from(HEADROOM)}))
        documents.append(document("Flavor", name, spec | {"capacity": capacity}))
    return documents


@st.composite
def _queues(draw: st.DrawFn, workers: list[str], flavors: list[str]) -> list[Document]:
    documents: list[Document] = []
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)):
        cohort = draw(st.sampled_from(("", "science", "0.10")))
        others = draw(st.lists(st.sampled_from(flavors[1:]), unique=True)) if flavors[1:] else []
        quota = [draw(_quota_entry(flavor, has_limits=bool(cohort))) for flavor in (flavors[0], *others)]
        spec = draw(_some(_QUEUE_FIELDS | {"clusters": _names(workers)})) | ({"cohort": cohort} if cohort else {})
        if spec.get("dispatch") == "multikueue" and draw(st.booleans()):
            spec["managerQuota"] = [{"flavor": flavors[-1], "resources": {"cpu": "5", "memory": "1.5Gi"}}]
        documents.append(document("Queue", name, spec | {"quota": quota}))
    return documents


@st.composite
def _quota_entry(draw: st.DrawFn, flavor: str, *, has_limits: bool) -> Document:
    """Shares are small enough for all queues together; a lending limit is at most the quota."""
    entry: Document = {"flavor": flavor, "resources": {}}
    for name in draw(st.lists(st.sampled_from(RESOURCES), min_size=1, unique=True)):
        kinds = draw(st.sampled_from((SHARES, QUANTITIES)))
        position = draw(st.integers(0, len(kinds) - 1))
        entry["resources"][name] = kinds[position]
        if has_limits and draw(st.booleans()):
            entry.setdefault("lendingLimit", {})[name] = kinds[draw(st.integers(0, position))]
        if has_limits and draw(st.booleans()):
            entry.setdefault("borrowingLimit", {})[name] = draw(st.sampled_from((*SHARES, *QUANTITIES)))
    return entry


@st.composite
def _tenants(draw: st.DrawFn, queues: list[str]) -> list[Document]:
    documents: list[Document] = []
    for name in draw(st.lists(st.sampled_from(DOTTED), max_size=3, unique=True)):
        spec = draw(
            _some(
                {
                    "fairSharing": _weights(),
                    "stopPolicy": st.sampled_from(("None", "Hold")),
                    "namespaceLabels": st.just({"team": "a"}),
                }
            )
        )
        spec["namespaces"] = draw(st.lists(st.sampled_from(NAMESPACES), min_size=1, unique=True))
        spec |= {"queue": draw(st.sampled_from(queues)), "localQueue": name}
        documents.append(document("Tenant", name, spec))
    return documents


def _names(names: list[str]) -> st.SearchStrategy[Document]:
    return st.builds(lambda chosen: {"names": chosen}, st.lists(st.sampled_from(names), min_size=1, unique=True))


def _labels() -> st.SearchStrategy[dict[str, str]]:
    return _some({key: st.sampled_from(values) for key, values in LABELS.items()})


def _weights() -> st.SearchStrategy[Document]:
    return _some({"weight": st.sampled_from(WEIGHTS)})


def _some(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Document]:
    """Any of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


_QUEUE_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "dispatch": st.sampled_from(("multikueue", "none")),
    "preemption": st.sampled_from(PREEMPTION),
    "flavorFungibility": st.sampled_from(FUNGIBILITY),
    "queueingStrategy": st.sampled_from(("StrictFIFO", "BestEffortFIFO")),
    "stopPolicy": st.sampled_from(("None", "Hold", "HoldAndDrain")),
    "namespaceSelector": st.sampled_from(SELECTORS),
    "fairSharing": _weights(),
    "admissionScope": st.just({"admissionMode": "UsageBasedAdmissionFairSharing"}),
}
