"""A manifest for one rule of Kueue, and small ones to build them from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.builders import Document, cluster_queue, cohort, native, resource_flavor

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


def case_object(kind: str, spec: Any = None, **metadata: Any) -> Document:
    """An object of a case; `spec=None` leaves the spec out."""
    where = {"namespace": "default"} if kind == "LocalQueue" else {}
    return native(kind, **{"name": "case", "spec": spec, **where, **metadata})


def case_queue(*groups: Any, **spec: Any) -> Document:
    return cluster_queue("case", *groups, **spec)


def case_cohort(*groups: Any, **spec: Any) -> Document:
    return cohort("case", *groups, **spec)


def case_flavor(**spec: Any) -> Document:
    return resource_flavor("case", **spec)


def by_version(cases: Iterable[Case]) -> list[object]:
    """Every case with each of its releases, as parameters of a test."""
    return [pytest.param(case, version, id=f"{case.name}-{version}") for case in cases for version in case.versions]
