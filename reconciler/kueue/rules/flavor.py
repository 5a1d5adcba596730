"""KF150 to KF160: ResourceFlavors."""

from collections.abc import Iterator
from typing import Any

from reconciler.kueue.reading import as_map, as_text, at, indexed
from reconciler.kueue.rules.violations import Violation
from reconciler.kueue.syntax import problem_of_label_key, problem_of_label_value

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
Findings = Iterator[Violation]


def check_flavor(spec: Any) -> Findings:
    labels = as_map(at(spec, "nodeLabels"))
    if at(spec, "topologyName") is not None and not labels:
        yield Violation("KF150", "spec.nodeLabels", "is empty, a flavor with a topologyName needs at least one label")
    for key, value in labels.items():
        for problem in filter(None, (problem_of_label_key(as_text(key)), problem_of_label_value(as_text(value)))):
            yield Violation("KF151", "spec.nodeLabels", problem)
    yield from _check_taints(at(spec, "nodeTaints"))
    for path, toleration in indexed(at(spec, "tolerations"), "spec.tolerations"):
        yield from _check_toleration(as_map(toleration), path)


def _check_taints(taints: Any) -> Findings:
    seen = set()
    for path, taint in indexed(taints, "spec.nodeTaints"):
        key, effect = at(taint, "key"), at(taint, "effect")
        if isinstance(effect, str) and effect not in EFFECTS:
            yield Violation("KF152", f"{path}.effect", f"{effect!r} is not one of {', '.join(EFFECTS)}")
        if isinstance(key, str) and (problem := problem_of_label_key(key)):
            yield Violation("KF153", f"{path}.key", problem)
        if problem := problem_of_label_value(as_text(at(taint, "value"))):
            yield Violation("KF153", f"{path}.value", problem)
        if isinstance(key, str) and (key, str(effect)) in seen:
            yield Violation("KF154", path, f"{key}:{effect} stands in the list twice")
        seen.add((as_text(key), str(effect)))


def _check_toleration(toleration: Any, path: str) -> Findings:
    """The API server looks whether a field is there, not whether it is empty: `value: ""` is a value."""
    operator, effect = toleration.get("operator"), toleration.get("effect")
    if "key" not in toleration and operator != "Exists":
        yield Violation("KF155", f"{path}.operator", f"must be Exists where there is no key, it is {operator}")
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        yield Violation("KF156", f"{path}.effect", f"must be NoExecute where tolerationSeconds is set, it is {effect}")
    if isinstance(operator, str) and operator not in {"Equal", "Exists"}:
        yield Violation("KF157", f"{path}.operator", f"{operator!r} is not one of Equal, Exists")
    if operator == "Exists" and "value" in toleration:
        yield Violation("KF158", f"{path}.value", "must be left out where the operator is Exists")
    if isinstance(effect, str) and effect not in EFFECTS:
        yield Violation("KF159", f"{path}.effect", f"{effect!r} is not one of {', '.join(EFFECTS)}")
    key = as_text(toleration.get("key"))
    if key and (problem := problem_of_label_key(key)):
        yield Violation("KF160", f"{path}.key", problem)
