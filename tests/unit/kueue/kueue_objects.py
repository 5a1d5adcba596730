"""Small manifests to build cases from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BOTH = ("0.16.2", "0.19.0")
NEW = ("0.19.0",)
OLD = ("0.16.2",)


@dataclass(frozen=True, slots=True)
class Case:
    """A manifest for one rule.

    `refused_by` says who refuses it first: `schema` (CRD, in strict field validation), `cel`, `webhook` (for a value of
    the wrong type already in its decoder), or `request` (the object has no address, or its metadata is refused). It is
    empty for a manifest that must be accepted. `versions` are the releases of Kueue for which that holds, `gates` the
    feature gates that must be on for it.
    """

    rule: str
    manifest: Mapping[str, Any]
    why: str
    refused_by: str = ""
    versions: tuple[str, ...] = BOTH
    gates: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return f"{self.rule}-{self.manifest['kind']}-{self.why}".replace(" ", "-")


def obj(kind: str, spec: Any = None, **metadata: Any) -> dict[str, Any]:
    """An object of the canonical version; `spec=None` leaves the spec out."""
    manifest = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": "case", **({"namespace": "default"} if kind == "LocalQueue" else {}), **metadata},
    }
    return manifest if spec is None else {**manifest, "spec": spec}


def queue(*groups: Any, **spec: Any) -> dict[str, Any]:
    return obj("ClusterQueue", {"namespaceSelector": {}, "resourceGroups": list(groups), **spec})


def cohort(*groups: Any, **spec: Any) -> dict[str, Any]:
    return obj("Cohort", {"resourceGroups": list(groups), **spec})


def flavor(**spec: Any) -> dict[str, Any]:
    return obj("ResourceFlavor", spec)


def group(covered: list[Any], *flavors: Any) -> dict[str, Any]:
    return {"coveredResources": covered, "flavors": list(flavors)}


def quotas(name: Any, *resources: Any) -> dict[str, Any]:
    return {"name": name, "resources": list(resources)}


def quota(name: Any, nominal: Any = "1", **limits: Any) -> dict[str, Any]:
    return {"name": name, "nominalQuota": nominal, **limits}


def cpu(nominal: Any = "1", *, of: str = "default", **limits: Any) -> dict[str, Any]:
    """A group of one flavor that gives one resource."""
    return group(["cpu"], quotas(of, quota("cpu", nominal, **limits)))
