"""Random canonical manifests, made from the same structure that the checks read."""

from typing import Any

from hypothesis import strategies as st

from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import KueueVersion
from reconciler.kueue.structure import SchemaNode, structure_of

NAMES = st.sampled_from(["a", "b-1", "c.example.com", "gpu"])
QUANTITIES = st.sampled_from(["0", "1", "500m", "64Gi", "1500m", "1e3", "9"])
COVERED = st.lists(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), min_size=1, unique=True)
SHAPED = {"labelKey": st.sampled_from(["rack", "example.com/zone"]), "time": st.just("2026-01-31T12:00:00Z")}
LABELS = st.sampled_from(["a", "b"])
SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "any": st.just([{"name": "a"}]),
    "boolean": st.booleans(),
    "integer": st.integers(-100, 100),
    "map": st.dictionaries(LABELS, LABELS, max_size=2),
    "quantity": QUANTITIES,
}


@st.composite
def resource_groups(draw: st.DrawFn) -> list[dict[str, Any]]:
    covered = draw(COVERED)
    flavors = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    return [
        {
            "coveredResources": covered,
            "flavors": [
                {"name": name, "resources": [{"name": one, **draw(quotas())} for one in covered]} for name in flavors
            ],
        }
    ]


@st.composite
def quotas(draw: st.DrawFn) -> dict[str, Any]:
    limits = draw(st.dictionaries(st.sampled_from(["borrowingLimit", "lendingLimit"]), QUANTITIES))
    return {"nominalQuota": draw(QUANTITIES), **limits}


def values(node: SchemaNode, name: str = "") -> st.SearchStrategy[Any]:
    if name == "resourceGroups":
        return resource_groups()
    if node.type == "object":
        required = {key: values(child, key) for key, child in node.fields.items() if key in node.required}
        optional = {key: values(child, key) for key, child in node.fields.items() if key not in node.required}
        return st.fixed_dictionaries(required, optional=optional)
    if node.type == "list":
        items = values(node.items or SchemaNode("string"), name)
        return st.lists(items, min_size=node.smallest or 0, max_size=2, unique_by=repr)
    if node.type == "string":
        return st.sampled_from(node.choices) if node.choices else SHAPED.get(node.shape, LABELS)
    return SIMPLE[node.type]


@st.composite
def manifests(draw: st.DrawFn, kind: str, version: KueueVersion) -> dict[str, Any]:
    """An object of one kind, with every field that this Kueue knows; not every one keeps every rule."""
    node = structure_of(kind, version)
    body = {key: values(child, key) for key, child in node.fields.items() if child.type != "any"}
    drawn = {key: draw(strategy) for key, strategy in body.items()}
    manifest = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "case"}, **drawn}
    return dict(to_canonical(manifest).manifest)
