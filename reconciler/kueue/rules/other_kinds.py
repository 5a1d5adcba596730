"""KF165 to KF171: the rules of kinds that have one or two of their own."""

from collections.abc import Iterator
from typing import Any

from reconciler.kueue.kinds import KueueVersion
from reconciler.kueue.reading import at, indexed
from reconciler.kueue.rules.groups import Family, check_groups, check_weight
from reconciler.kueue.rules.violations import Violation

HOSTNAME = "kubernetes.io/hostname"
Findings = Iterator[Violation]


def check_cohort(spec: Any, version: KueueVersion) -> Findings:
    family = Family("parentName", at(spec, "parentName") is not None, lends_at_most_nominal=False)
    yield from check_groups(at(spec, "resourceGroups"), family)
    yield from check_weight(at(spec, "fairSharing"), version)


def check_topology(spec: Any) -> Findings:
    levels = [(path, at(level, "nodeLabel")) for path, level in indexed(at(spec, "levels"), "spec.levels")]
    seen = set()
    for path, label in levels:
        if isinstance(label, str) and label in seen:
            yield Violation("KF165", f"{path}.nodeLabel", f"{label!r} is a level already")
        seen.add(str(label))
    for path, label in levels[:-1]:
        if label == HOSTNAME and levels[-1][1] != HOSTNAME:
            yield Violation("KF166", f"{path}.nodeLabel", f"{HOSTNAME} may only be the last level")


def check_multikueue_cluster(spec: Any) -> Findings:
    source = at(spec, "clusterSource")
    ways = [name for name in ("kubeConfig", "clusterProfileRef") if at(source, name) is not None]
    if source is not None and len(ways) != 1:
        problem = f"needs exactly one of kubeConfig and clusterProfileRef, it has {' and '.join(ways) or 'none'}"
        yield Violation("KF171", "spec.clusterSource", problem)
