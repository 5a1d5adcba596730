"""KF150 to KF171: ResourceFlavors, Topologies and MultiKueueClusters."""

from collections.abc import Iterator
from typing import Any

from reconciler.kueue.kinds import KueueVersion
from reconciler.kueue.reading import as_map, as_text, at, indexed
from reconciler.kueue.rules.cluster_queue import Family, check_groups, check_weight
from reconciler.kueue.rules.registry import RuleViolation
from reconciler.kueue.syntax import problem_of_label_key, problem_of_label_value

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
Findings = Iterator[RuleViolation]
HOSTNAME = "kubernetes.io/hostname"


def check_flavor(spec: Any) -> Findings:
    labels = as_map(at(spec, "nodeLabels"))
    if at(spec, "topologyName") is not None and not labels:
        yield RuleViolation(
            "KF150", "spec.nodeLabels", "is empty, a flavor with a topologyName needs at least one label"
        )
    for key, value in labels.items():
        for problem in filter(None, (problem_of_label_key(as_text(key)), problem_of_label_value(as_text(value)))):
            yield RuleViolation("KF151", "spec.nodeLabels", problem)
    yield from _check_taints(at(spec, "nodeTaints"))
    for path, toleration in indexed(at(spec, "tolerations"), "spec.tolerations"):
        yield from _check_toleration(as_map(toleration), path)


def _check_taints(taints: Any) -> Findings:
    seen = set()
    for path, taint in indexed(taints, "spec.nodeTaints"):
        key, effect = at(taint, "key"), at(taint, "effect")
        if isinstance(effect, str) and effect not in EFFECTS:
            yield RuleViolation("KF152", f"{path}.effect", f"{effect!r} is not one of {', '.join(EFFECTS)}")
        if isinstance(key, str) and (problem := problem_of_label_key(key)):
            yield RuleViolation("KF153", f"{path}.key", problem)
        if problem := problem_of_label_value(as_text(at(taint, "value"))):
            yield RuleViolation("KF153", f"{path}.value", problem)
        if isinstance(key, str) and (key, str(effect)) in seen:
            yield RuleViolation("KF154", path, f"{key}:{effect} is in the list twice")
        seen.add((as_text(key), str(effect)))


def _check_toleration(toleration: Any, path: str) -> Findings:
    """The API server checks whether a field is present, not whether it is empty: `value: ""` is a value."""
    operator, effect = toleration.get("operator"), toleration.get("effect")
    if "key" not in toleration and operator != "Exists":
        yield RuleViolation("KF155", f"{path}.operator", f"must be Exists if there is no key, it is {operator}")
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        yield RuleViolation("KF156", f"{path}.effect", f"must be NoExecute if tolerationSeconds is set, it is {effect}")
    if isinstance(operator, str) and operator not in {"Equal", "Exists"}:
        yield RuleViolation("KF157", f"{path}.operator", f"{operator!r} is not one of Equal, Exists")
    if operator == "Exists" and "value" in toleration:
        yield RuleViolation("KF158", f"{path}.value", "must be omitted if the operator is Exists")
    if isinstance(effect, str) and effect not in EFFECTS:
        yield RuleViolation("KF159", f"{path}.effect", f"{effect!r} is not one of {', '.join(EFFECTS)}")
    key = as_text(toleration.get("key"))
    if key and (problem := problem_of_label_key(key)):
        yield RuleViolation("KF160", f"{path}.key", problem)


def check_cohort(spec: Any, version: KueueVersion) -> Findings:
    family = Family("parentName", at(spec, "parentName") is not None, lends_at_most_nominal=False)
    yield from check_groups(at(spec, "resourceGroups"), family)
    yield from check_weight(at(spec, "fairSharing"), version)


def check_topology(spec: Any) -> Findings:
    levels = [(path, at(level, "nodeLabel")) for path, level in indexed(at(spec, "levels"), "spec.levels")]
    seen = set()
    for path, label in levels:
        if isinstance(label, str) and label in seen:
            yield RuleViolation("KF165", f"{path}.nodeLabel", f"{label!r} is already a level")
        seen.add(str(label))
    for path, label in levels[:-1]:
        if label == HOSTNAME and levels[-1][1] != HOSTNAME:
            yield RuleViolation("KF166", f"{path}.nodeLabel", f"{HOSTNAME} may only be the last level")


def check_multikueue_cluster(spec: Any) -> Findings:
    source = at(spec, "clusterSource")
    ways = [name for name in ("kubeConfig", "clusterProfileRef") if at(source, name) is not None]
    if source is not None and len(ways) != 1:
        problem = f"needs exactly one of kubeConfig and clusterProfileRef, it has {' and '.join(ways) or 'none'}"
        yield RuleViolation("KF171", "spec.clusterSource", problem)
