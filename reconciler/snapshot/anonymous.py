"""A snapshot that others may read, for example as an artifact of pull requests.

Decision: jobs and workloads keep what decides about their admission, and lose what people wrote: names, labels and
messages. A name becomes one made of the uid, so that it cannot be found by trying names. What no plan and no effect
needs is left out: pods, nodes, addresses and certificates of servers. Names of namespaces and of objects in git stay.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reconciler.objects import Manifest
from reconciler.snapshot.masking import JOB_KINDS, MASKED_DATA
from reconciler.snapshot.recording import Answers, ClusterRecording, RecordedAnswer, Recording, Request
from reconciler.snapshot.replay import parse_path
from reconciler.state.values import SECRET_KINDS

DROPPED_KINDS = frozenset({"Pod", "ReplicaSet", "Node", "Event"})
# Labels of Kueue whose values are names of jobs.
_NAMES = {f"kueue.x-k8s.io/{name}" for name in ("pod-group-name", "prebuilt-workload-name", "elastic-job")}
_LEFT_OUT = {
    "labels", "selector", "generateName", "podAffinity", "podAntiAffinity", "topologySpreadConstraints",
}  # fmt: skip
_OWN_MARKS = ("kueue.x-k8s.io/", "kfleet.dev/", "kubestellar.io/", "control.kubestellar.io/")
_KEPT_METADATA = ("namespace", "uid", "creationTimestamp", "deletionTimestamp", "resourceVersion", "generation")
_UID_LENGTH = 13
_IMAGE = re.compile(r"(?P<path>[^:@]*/)?(?P<name>[^/:@]+)(?P<tag>:[^@]*)?")
_TEXTS = ("message", "podSetUpdates")


def anonymous(recording: Recording) -> Recording:
    clusters = {name: _cluster(one) for name, one in recording.clusters.items()}
    return replace(recording, clusters=clusters, capacity=_capacity(recording.capacity))


def _capacity(record: Manifest | None) -> Manifest | None:
    """The amounts without texts, which name nodes."""
    return record and {**record, "conditions": [], "leftOut": []}


def _cluster(recorded: ClusterRecording) -> ClusterRecording:
    answers = {request: _answer(request, one) for request, one in recorded.answers.items() if _is_kept(request, one)}
    return replace(recorded, server="", ca="", answers=_without_askers(answers))


def _without_askers(answers: Answers) -> Answers:
    """Without the reviews of access by token, which are only for preflight."""
    return {request: answer for request, answer in answers.items() if not request.asker}


def _is_kept(request: Request, answer: RecordedAnswer) -> bool:
    """Whether the answer is about a list, or about an object that is named in git."""
    place, kind = parse_path(request.path.partition("?")[0]), _kind(answer)
    if kind.removesuffix("List") in DROPPED_KINDS or (place and place.plural in ("pods", "nodes", "events")):
        return False
    return not (place and place.name and kind in JOB_KINDS)


def _answer(request: Request, answer: RecordedAnswer) -> RecordedAnswer:
    body, kind = answer.body, _kind(answer)
    if not isinstance(body, Mapping) or request.is_discovery:
        return answer
    if isinstance(body.get("items"), list):
        of = "Secret" if "/secrets" in request.path else kind.removesuffix("List")
        return replace(answer, body={**body, "items": [anonymous_object(of, one) for one in body["items"]]})
    return replace(answer, body=anonymous_object(kind, body))


def anonymous_object(kind: str, manifest: Manifest) -> Manifest:
    if kind in JOB_KINDS:
        return _job(manifest)
    if kind in SECRET_KINDS:
        return {**manifest, **({"data": dict.fromkeys(manifest["data"], MASKED_DATA)} if "data" in manifest else {})}
    if kind == "Deployment":
        return {**manifest, "spec": _without_registry(manifest.get("spec"))}
    return manifest


def _job(job: Manifest) -> Manifest:
    metadata = job.get("metadata") or {}
    shown = {name: job[name] for name in ("apiVersion", "kind", "spec") if name in job}
    shown["metadata"] = {
        "name": _name_of(metadata),
        **{name: metadata[name] for name in _KEPT_METADATA if name in metadata},
        **{name: _own(metadata[name]) for name in ("labels", "annotations") if metadata.get(name)},
    }
    owners = [{**owner, "name": _name_of(owner)} for owner in metadata.get("ownerReferences") or ()]
    if owners:
        shown["metadata"]["ownerReferences"] = owners
    if "status" in job:
        shown["status"] = _without_texts(job["status"])
    return {**shown, "spec": _without_names(shown.get("spec"))}


def _name_of(named: Mapping[str, Any]) -> str:
    return f"job-{str(named.get('uid') or '')[:_UID_LENGTH]}"


def _own(marks: Mapping[str, Any]) -> Manifest:
    return {name: value for name, value in marks.items() if name.startswith(_OWN_MARKS) and name not in _NAMES}


def _without_names(value: Any) -> Any:
    """A spec without the labels of its pod templates, and without names of containers."""
    if isinstance(value, list):
        return [_without_names(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    found = {key: _without_names(one) for key, one in value.items() if key not in _LEFT_OUT}
    for name in ("containers", "initContainers"):
        if isinstance(found.get(name), list):
            found[name] = [{**one, "name": f"{name[:-1]}-{at}"} for at, one in enumerate(found[name])]
    return found


def _without_texts(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_texts(one) for one in value]
    if isinstance(value, Mapping):
        return {key: "" if key in _TEXTS else _without_texts(one) for key, one in value.items()}
    return value


def _without_registry(value: Any) -> Any:
    """The tag of an image says which Kueue runs; its registry is not needed."""
    if isinstance(value, list):
        return [_without_registry(one) for one in value]
    if isinstance(value, Mapping):
        return {key: _tagged(one) if key == "image" else _without_registry(one) for key, one in value.items()}
    return value


def _tagged(image: Any) -> str:
    found = _IMAGE.match(str(image))
    return f"{found['name']}{found['tag'] or ''}" if found else ""


def _kind(answer: RecordedAnswer) -> str:
    return str(answer.body.get("kind") or "") if isinstance(answer.body, Mapping) else ""
