"""What an entry of managedFields owns, in the words of the API version in which the object was read.

An entry keeps the version in which its manager wrote. Older versions of Kueue called some fields otherwise, and treated
some lists as one value that have keys now.
"""

import json
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

from reconciler.kueue.kinds import CANONICAL, GROUP
from reconciler.kueue.upgrade import OLD_VERSIONS
from reconciler.objects import Manifest

Tree = Mapping[str, Any]
Steps = tuple[str, ...]

# Where the fields of an older spec are now; one without a path is nowhere.
_MOVED: Mapping[str, Mapping[str, Steps]] = {
    "AdmissionCheck": {"f:retryDelayMinutes": ()},
    "ClusterQueue": {
        "f:cohort": ("f:cohortName",),
        "f:admissionChecks": ("f:admissionChecksStrategy", "f:admissionChecks"),
    },
    "Cohort": {"f:parent": ("f:parentName",)},
    "MultiKueueCluster": {name: ("f:clusterSource", name) for name in ("f:kubeConfig", "f:clusterProfileRef")},
}
# Lists that were one value, and the key of their items now.
_KEYED: Mapping[str, tuple[Steps, str]] = {
    "ClusterQueue": (("f:admissionChecksStrategy", "f:admissionChecks"), "name"),
    "ProvisioningRequestConfig": (("f:podSetUpdates", "f:nodeSelector"), "key"),
}


def as_read(entry: Tree, live: Manifest) -> Tree:
    """The entry in the version of the live object; as it is where nobody knows how, or nothing has to be done."""
    group, _, version = str(entry.get("apiVersion")).rpartition("/")
    is_old = group == GROUP and version in OLD_VERSIONS and live["apiVersion"] == f"{GROUP}/{CANONICAL}"
    if not is_old:
        return entry
    tree = dict(entry.get("fieldsV1") or {})
    if "f:spec" in tree:
        tree["f:spec"] = _spec_as_read(tree["f:spec"], live)
    return {**entry, "apiVersion": live["apiVersion"], "fieldsV1": tree}


def joined(trees: Iterable[Tree]) -> Tree:
    """What all of them own together."""
    return reduce(_joined, trees, {})


def _joined(one: Tree, other: Tree) -> Tree:
    return {key: _joined(one.get(key) or {}, other.get(key) or {}) for key in sorted(one.keys() | other.keys())}


def _spec_as_read(spec: Tree, live: Manifest) -> Tree:
    moved = _MOVED.get(live["kind"], {})
    found = joined(_nested(moved.get(key, (key,)), below) for key, below in spec.items())
    keyed = _KEYED.get(live["kind"])
    return _with_items(found, live.get("spec"), *keyed) if keyed else found


def _nested(steps: Steps, below: Tree) -> Tree:
    for step in reversed(steps):
        below = {step: below}
    return below if steps else {}


def _with_items(tree: Tree, live: Any, steps: Steps, key: str) -> Tree:
    """Who owns a list as one value owns all items that it has."""
    step, *rest = steps
    if step not in tree:
        return tree
    value = live.get(step.removeprefix("f:")) if isinstance(live, Mapping) else None
    if rest:
        return {**tree, step: _with_items(tree[step], value, tuple(rest), key)}
    items = value if isinstance(value, list) else []
    return {**tree, step: {f"k:{_json({key: item.get(key)})}": _item(item) for item in items}}


def _item(item: Manifest) -> Tree:
    return {".": {}, **{f"f:{name}": _leaf(value) for name, value in item.items()}}


def _leaf(value: Any) -> Tree:
    """A list in an item of these is a set."""
    return {f"v:{_json(one)}": {} for one in value} if isinstance(value, list) else {}


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
