"""KF015, KF017, KF019 and KF035 to KF039: MiniClusters of the Flux operator."""

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.flux.render import CURRENT, is_mini_cluster, is_old, lost_in, to_current
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.lint.model import Remark, Rule, Severity, View
from reconciler.spec.files import Document

FLUX_IN_IMAGE = "its image contained Flux, which an init container provides now: see flux.container.disable"
RULES = (
    Rule(
        "KF017",
        Severity.ERROR,
        "MiniCluster is made where it runs",
        "MultiKueue sends the Job of a MiniCluster alone, and its pods miss their ConfigMaps and their Service",
    ),
    Rule(
        "KF019",
        Severity.WARNING,
        "MiniCluster asks in its containers",
        "pod.resources becomes the overhead of the pods, and the API server refuses pods whose overhead is "
        "not that of their RuntimeClass",
    ),
    Rule(
        "KF035",
        Severity.WARNING,
        "MiniCluster names its queue",
        "kfleet adds the only LocalQueue of the namespace, which a second one would make ambiguous",
    ),
    Rule(
        "KF036",
        Severity.ERROR,
        "MiniCluster can be admitted",
        "all members start together, so that the queue must have room for size times the pod, on nodes that fit it",
    ),
    Rule(
        "KF037",
        Severity.WARNING,
        "MiniCluster is of v1alpha2",
        "the operator serves no other version; kfleet translates v1alpha1, but people read what is written",
    ),
    Rule(
        "KF038",
        Severity.ERROR,
        "nothing of a v1alpha1 MiniCluster is lost",
        "users, the web server and volumes that the operator made have no place in v1alpha2",
        can_be_silenced=False,
    ),
    Rule(
        "KF039",
        Severity.ERROR,
        "Flux operator takes the MiniCluster",
        "what it does not take it leaves lying without a Job, and says so in its own log alone",
    ),
)


def check_mini_clusters(view: View) -> Iterator[Remark]:
    for entry in view.spec.objects:
        if is_mini_cluster(entry.manifest):
            yield from _check_version(entry.document)
            yield from _check_content(entry.document, as_map(entry.current.get("spec")))
    made = [entry for entry in view.desired.objects if is_mini_cluster(entry.manifest)]
    if made:
        from reconciler.flux.queues import check_queues  # noqa: PLC0415  (loads the whole of `check`)

        yield from check_queues(view, made)


def _check_version(document: Document) -> Iterator[Remark]:
    if not is_old(document.value):
        return
    notes = "; ".join(to_current(document.value).notes)
    problem = "v1alpha1 is converted: current Flux operators do not serve it" + (f": {notes}" if notes else "")
    yield Remark("KF037", document, ("apiVersion",), problem, f"write it as {CURRENT}; {FLUX_IN_IMAGE}")
    for lost in lost_in(document.value):
        yield Remark("KF038", document, lost.path, lost.problem)


def _check_content(document: Document, content: Mapping[str, Any]) -> Iterator[Remark]:
    containers = [as_map(one) for one in as_list(content.get("containers"))]
    if not containers:
        yield Remark("KF039", document, ("spec",), "containers is empty: there is nothing to run")
    runners = [number for number, one in enumerate(containers) if one.get("runFlux") is True]
    if len(containers) > 1 and len(runners) != 1:
        problem = f"{len(runners)} of {len(containers)} containers set runFlux: the operator requires exactly one"
        yield Remark("KF039", document, ("spec", "containers"), problem, "set runFlux: true on the one that runs Flux")
    for number, one in enumerate(containers):
        if len(containers) > 1 and not (one.get("runFlux") is True or as_text(one.get("name"))):
            yield Remark("KF039", document, ("spec", "containers", number), "a container besides Flux needs a name")
    yield from _check_sizes(document, content)
    if at(content, "pod", "resources"):
        problem = "pod.resources becomes the overhead of each pod, which only a RuntimeClass may set: no pod starts"
        hint = "request it in containers[].resources"
        yield Remark("KF019", document, ("spec", "pod", "resources"), problem, hint)


def _check_sizes(document: Document, content: Mapping[str, Any]) -> Iterator[Remark]:
    size = content.get("size", 1)
    if not isinstance(size, int):
        return
    bounds = {name: content[name] for name in ("minSize", "maxSize") if isinstance(content.get(name), int)}
    if size < 1:
        yield Remark("KF039", document, ("spec", "size"), f"size is {size}: a MiniCluster has at least one member")
    if bounds.get("maxSize", 0) and bounds["maxSize"] < size:
        problem = f"maxSize {bounds['maxSize']} is less than size {size}"
        yield Remark("KF039", document, ("spec", "maxSize"), problem)
    if bounds.get("minSize", 0) > size:
        yield Remark("KF039", document, ("spec", "minSize"), f"minSize {bounds['minSize']} is more than size {size}")
    if content.get("deadlineSeconds") == 0:
        yield Remark("KF039", document, ("spec", "deadlineSeconds"), "with a deadline of 0 the Job never starts")
