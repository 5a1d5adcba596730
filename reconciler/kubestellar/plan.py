"""Decisions about jobs as steps of a plan, each with everything that has to be written for it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from reconciler.kubestellar.decide import decide_placements, end_of
from reconciler.kubestellar.model import (
    ANNOTATION,
    ENDED_ANNOTATION,
    RAN_ANNOTATION,
    ClusterNodes,
    Decision,
    End,
    JobPodSet,
    ObservedPlacements,
    Placed,
    PlacementStep,
    Progress,
    QueuedJob,
    Verb,
    Write,
    read_originals,
    write_end,
    write_memory,
)
from reconciler.kueue.kinds import CANONICAL, GROUP
from reconciler.kueue.reading import as_list, as_map, as_text, at
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.spec.model import FleetSpec
from reconciler.spec.places import downsynced_queues
from reconciler.spec.settings import CLUSTER_LABEL, IS_PLACED, PLACED_LABEL, DownsyncKind, check_of

_LONGEST_MESSAGE = 1024
# Of a Job's status, what only its own controller has a use for.
_OF_THE_WORKER = {"uncountedTerminatedPods", "active"}
_NOT_THE_SAME = "it is not the cluster it was"
_EVERY = "*"
_ITEM = "[name]"


def plan_placements(
    spec: FleetSpec, look: ObservedPlacements | None, foreign: frozenset[ClusterName] = frozenset()
) -> tuple[PlacementStep, ...]:
    """Only what has to be written: jobs that stay as they are, and waiting ones whose check says so, need no step.

    `foreign` are clusters that are not the ones they were: what they say is about other jobs and nodes.
    """
    manager = spec.manager
    if look is None or manager is None or spec.is_suspended(manager.name):
        return ()
    queues = {*(queue.name for queue in downsynced_queues(spec)), *(one.name for one in look.downsynced.closing)}
    checks = {name: check_of(name) for name in queues}
    steps = [_activate(manager.name, name, live, look.now) for name, live in look.inactive.items()]
    for decision in decide_placements(spec, _without(look, foreign) if foreign else look):
        step = _step(spec, look, decision, checks.get(decision.job.queue, ""))
        steps += [step] if step else []
    return tuple(steps)


def _without(look: ObservedPlacements, foreign: frozenset[ClusterName]) -> ObservedPlacements:
    unseen = ClusterNodes(problem=_NOT_THE_SAME)
    nodes = {name: unseen if name in foreign else seen for name, seen in look.nodes.items()}
    return replace(look, nodes=nodes, jobs=tuple(_unheard(job, foreign) for job in look.jobs))


def _unheard(job: QueuedJob, foreign: frozenset[ClusterName]) -> QueuedJob:
    if job.placed and job.placed.cluster in foreign:
        return replace(job, progress=Progress.UNKNOWN)
    if job.before and job.before.cluster in foreign:
        return replace(job, former=job.before.cluster, former_problem=f"it cannot be seen ({_NOT_THE_SAME})")
    return job


def _step(spec: FleetSpec, look: ObservedPlacements, decision: Decision, check: str) -> PlacementStep | None:
    job, verb = decision.job, decision.verb
    original, workload = look.originals.get(job.ref), look.workloads.get(job.ref)
    kind = spec.fleet.kubestellar.kind_of(job.ref.group, job.ref.kind)
    writes: tuple[Write, ...] = ()
    if verb is Verb.PLACE and kind and original:
        message = f"on {decision.cluster}: {decision.why}"
        writes = (_placed(kind, original, decision), *_noted(workload, check, message, look.now))
    elif verb is Verb.STAY and decision.placed and kind and original:
        writes = (_seen_running(kind, original, decision.placed),)
    elif verb in {Verb.WITHDRAW, Verb.MOVE} and kind and original:
        writes = (
            _withdrawn(kind, original, decision),
            *(_noted(workload, check, decision.why, look.now) if job.has_quota and not job.is_finished else ()),
        )
    elif verb is Verb.FINISH:
        writes = _ended(look, decision, kind, check)
    elif verb is Verb.WAIT and job.note != shortened(decision.why):
        writes = tuple(_noted(workload, check, decision.why, look.now))
    if not writes:
        return None
    return PlacementStep(job.ref, verb, decision.why, decision.cluster, writes)


def _ended(look: ObservedPlacements, decision: Decision, kind: DownsyncKind | None, check: str) -> tuple[Write, ...]:
    job, original = decision.job, look.originals.get(decision.job.ref)
    returned = tuple(_returned(kind, original, look.ends.get(job.ref))) if kind and original else ()
    if job.is_finished:
        return returned
    writes = tuple(_finished(look.workloads.get(job.ref), check, decision, look.now))
    if not (kind and original and writes):
        return writes
    # The note first: a process that stops in between finds it after its restart, and nothing runs again.
    return (_noted_end(kind, original, decision), *writes, *returned)


def shortened(message: str) -> str:
    """A message as a check can have it: Kueue makes an Event of it, and takes a percent sign for a format."""
    message = message.replace("%", " percent")
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[: _LONGEST_MESSAGE - 1]}…"


def _placed(kind: DownsyncKind, job: Manifest, decision: Decision) -> Write:
    """The cluster's label with all that the pods need to get to the nodes that Kueue meant: no copy leaves without."""
    kept = read_originals(job)
    originals: dict[str, Mapping[str, Any]] = {}
    patch: dict[str, Any] = {}
    for template in find_templates(kind, job):
        pods = pods_of(template, decision.job.pod_sets)
        before = {**_own_fields(template.pod), **kept.get(template.key, {})}
        fields = wanted_fields(before, pods) if pods else {}
        if fields:
            originals[template.key] = {name: before.get(name) for name in fields}
            patch = merged(patch, at_path((*template.path, "spec"), fields))
    if decision.placed is None:
        raise ValueError(f"{decision.job.ref}: a job is placed without a place")
    metadata = {
        "labels": _labels(decision.placed.cluster),
        "annotations": {ANNOTATION: write_memory(decision.placed, originals)},
    }
    return _write(kind, job, metadata, patch)


def _labels(cluster: ClusterName) -> dict[str, str]:
    return {CLUSTER_LABEL: cluster, PLACED_LABEL: IS_PLACED}


def _seen_running(kind: DownsyncKind, job: Manifest, placed: Placed) -> Write:
    """Everything as it is, and beside it that the job had its nodes: what ails it later is not their lack."""
    known = at(job, "metadata", "annotations", ANNOTATION) or write_memory(placed, {})
    metadata = {
        "labels": _labels(placed.cluster),
        "annotations": {ANNOTATION: known, RAN_ANNOTATION: placed.cluster},
    }
    return _write(kind, job, metadata, _template_fields(kind, job, is_original=False))


def _withdrawn(kind: DownsyncKind, job: Manifest, decision: Decision) -> Write:
    """Everything as it was: what is not said any more goes, what the user had said is said again.

    The pods of a finished job cannot change any more: there only the label goes. Where it was is remembered of a job
    that may be placed again.
    """
    is_over = decision.job.is_finished or decision.job.is_reported
    notes = {ANNOTATION: write_memory(decision.placed, {})} if decision.placed else {}
    notes |= _end_note(job, decision) if decision.job.is_finished else {}
    return _write(
        kind, job, {"annotations": notes} if notes else {}, _template_fields(kind, job, is_original=not is_over)
    )


def _noted_end(kind: DownsyncKind, job: Manifest, decision: Decision) -> Write:
    """Everything as it is, and beside it that the job has ended: it is out of placement for good."""
    own = as_map(at(job, "metadata", "annotations"))
    notes = {name: own[name] for name in (ANNOTATION, RAN_ANNOTATION) if name in own}
    metadata: dict[str, Any] = {"annotations": {**notes, **_end_note(job, decision)}}
    if decision.job.placed:
        metadata["labels"] = _labels(decision.job.placed.cluster)
    return _write(kind, job, metadata, _template_fields(kind, job, is_original=False))


def _end_note(job: Manifest, decision: Decision) -> dict[str, str]:
    known = decision.job.end or end_of(decision.job)
    end = known or End(Progress.COMPLETE, decision.cluster or ClusterName(""))
    return {ENDED_ANNOTATION: write_end(end, as_text(at(job, "metadata", "uid")))}


def _returned(kind: DownsyncKind, job: Manifest, status: Manifest | None) -> Iterator[Write]:
    """The end in the job itself, as KubeStellar would return it: its user sees it, and its time to live begins."""
    if not status:
        return
    own = job["metadata"]
    identity = {"name": own["name"], "namespace": own["namespace"], "uid": own["uid"]}
    told = {name: value for name, value in status.items() if name not in _OF_THE_WORKER}
    manifest = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": identity, "status": told}
    yield Write(f"{kind.path(own['namespace'], own['name'])}/status", manifest)


def _template_fields(kind: DownsyncKind, job: Manifest, *, is_original: bool) -> dict[str, Any]:
    """The fields of the pod templates that placement has written: as they were before, or as they are now."""
    kept = read_originals(job)
    patch: dict[str, Any] = {}
    for template in find_templates(kind, job):
        before = kept.get(template.key, {})
        now = {name: template.pod.get(name) for name in before}
        fields = {name: value for name, value in (before if is_original else now).items() if value}
        if fields:
            patch = merged(patch, at_path((*template.path, "spec"), fields))
    return patch


def _own_fields(pod: Manifest) -> dict[str, Any]:
    return {name: pod[name] for name in ("nodeSelector", "tolerations") if name in pod}


def _write(kind: DownsyncKind, job: Manifest, metadata: Mapping[str, Any], patch: Mapping[str, Any]) -> Write:
    # With its uid, so that a job which went away meanwhile is not made again.
    own = job["metadata"]
    identity = {"name": own["name"], "namespace": own["namespace"], "uid": own["uid"]}
    manifest = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {**identity, **metadata}, **patch}
    return Write(kind.path(own["namespace"], own["name"]), manifest)


def _noted(workload: Manifest | None, check: str, message: str, now: datetime) -> Iterator[Write]:
    """A queue that KubeStellar no longer serves has no check of kfleet."""
    if workload is not None and check:
        yield _workload_status(workload, {"admissionChecks": [_check_state(workload, check, message, now)]})


def _finished(workload: Manifest | None, check: str, decision: Decision, now: datetime) -> Iterator[Write]:
    """Say for the job's own controller what it said on the worker: then Kueue gives the quota back."""
    if workload is None:
        return
    end = end_of(decision.job)
    is_good = end is not None and end.progress is Progress.COMPLETE
    condition = {
        "type": "Finished",
        "status": "True",
        "reason": "Succeeded" if is_good else "Failed",
        "message": shortened(decision.why),
        "lastTransitionTime": _text(now),
        "observedGeneration": at(workload, "metadata", "generation") or 1,
    }
    # A Workload without quota names no queue, and so no check of ours.
    checks = {"admissionChecks": [_check_state(workload, check, decision.why, now)]} if check else {}
    yield _workload_status(workload, {"conditions": [condition], **checks})


def _check_state(workload: Manifest, check: str, message: str, now: datetime) -> dict[str, Any]:
    states = map(as_map, as_list(at(workload, "status", "admissionChecks")))
    known = next((one for one in states if one.get("name") == check), {})
    since = as_text(known.get("lastTransitionTime")) or _text(now)
    return {"name": check, "state": "Pending", "message": shortened(message), "lastTransitionTime": since}


def _workload_status(workload: Manifest, status: Mapping[str, Any]) -> Write:
    own, api_version = workload["metadata"], workload["apiVersion"]
    path = f"/apis/{api_version}/namespaces/{own['namespace']}/workloads/{own['name']}/status"
    identity = {"name": own["name"], "namespace": own["namespace"], "uid": own["uid"]}
    return Write(path, {"apiVersion": api_version, "kind": "Workload", "metadata": identity, "status": status})


def _activate(manager: ClusterName, name: str, live: Manifest, now: datetime) -> PlacementStep:
    """Kueue stops a queue whose check is not marked as served."""
    api_version = live.get("apiVersion") or f"{GROUP}/{CANONICAL}"
    condition = {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "kfleet places the jobs that wait for it",
        "lastTransitionTime": _text(now),
        "observedGeneration": at(live, "metadata", "generation") or 1,
    }
    manifest = {
        "apiVersion": api_version,
        "kind": "AdmissionCheck",
        "metadata": {"name": name},
        "status": {"conditions": [condition]},
    }
    write = Write(f"/apis/{api_version}/admissionchecks/{name}/status", manifest)
    why = "Kueue stops a queue whose check no controller serves"
    return PlacementStep(Ref(manager, GROUP, "AdmissionCheck", "", name), Verb.ACTIVATE, why, writes=(write,))


def _text(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class Template:
    """One pod template: its path with every name filled in, the last such name, and the spec of its pods."""

    path: tuple[str, ...]
    name: str
    pod: Manifest

    @property
    def key(self) -> str:
        return ".".join(self.path)


def find_templates(kind: DownsyncKind, job: Manifest) -> tuple[Template, ...]:
    return tuple(
        Template(path, _last_name(path, written), as_map(at(found, "spec")))
        for written in kind.templates
        for path, found in _walk(job, tuple(written.replace("[", ".[").split(".")), ())
    )


def pods_of(template: Template, pod_sets: Sequence[JobPodSet]) -> JobPodSet | None:
    """The pod set that Kueue made of a template: it has the name of the replica or of the item, in lower case."""
    named = next((one for one in pod_sets if one.name.lower() == template.name.lower()), None)
    return named or (pod_sets[0] if len(pod_sets) == 1 else None)


def wanted_fields(original: Mapping[str, Any], pods: JobPodSet) -> dict[str, Any]:
    """What a pod needs beside its own to get to the nodes of its flavor; what the user wrote stays as it is."""
    own = as_map(original.get("nodeSelector"))
    selector = {**pods.labels, **own}
    tolerations = [dict(as_map(one)) for one in as_list(original.get("tolerations"))]
    added = [one for one in map(dict, pods.tolerations) if one not in tolerations]
    found: dict[str, Any] = {}
    if selector != own:
        found["nodeSelector"] = selector
    if added:
        found["tolerations"] = [*tolerations, *added]
    return found


def at_path(path: Sequence[str], content: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest that says nothing but this content at this path."""
    found: Any = dict(content)
    for step in reversed(path):
        found = [{"name": step[1:-1], **found}] if step.startswith("[") else {step: found}
    return dict(found)


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Two manifests merged into one; items of lists are matched by name."""
    found = dict(first)
    for key, value in second.items():
        known = found.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            found[key] = merged(known, value)
        elif isinstance(known, list) and isinstance(value, list):
            found[key] = [*known, *value]
        else:
            found[key] = value
    return found


def _walk(value: Any, steps: tuple[str, ...], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not steps:
        yield path, value
        return
    step, rest = steps[0], steps[1:]
    if step == _ITEM:
        for item in map(as_map, as_list(value)):
            yield from _walk(item, rest, (*path, f"[{as_text(item.get('name'))}]"))
    elif step == _EVERY:
        for key, item in as_map(value).items():
            yield from _walk(item, rest, (*path, key))
    elif step in as_map(value):
        yield from _walk(as_map(value)[step], rest, (*path, step))


def _last_name(path: tuple[str, ...], written: str) -> str:
    steps = written.replace("[", ".[").split(".")
    names = [one.strip("[]") for one, step in zip(path, steps, strict=True) if step in (_EVERY, _ITEM)]
    return names[-1] if names else ""
