"""Why a workload that has no quota waits: its queue, its place there, and what Kueue's messages mean.

Kueue writes why it reserved no quota only as a text. The texts are those of Kueue 0.16 to 0.19. A text that is not
known here is shown as it is, so a new release of Kueue makes an answer longer, and never wrong.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reconciler.admission.nodes import is_selected
from reconciler.kueue.health import explain
from reconciler.kueue.reading import as_text, at
from reconciler.kueue.workloads import HELD, has_condition
from reconciler.objects import Manifest
from reconciler.text import one_line, suggest
from reconciler.why.index import ClusterIndex, address_of, condition_of, message_of, title_of
from reconciler.why.model import State, StoryReason
from reconciler.why.remedies import shortage

STRICT = "StrictFIFO"
NOT_TRIED = "Kueue has not tried it yet"
# What Kueue writes before its scheduler has looked at a workload.
NOT_EVALUATED = "PendingEvaluation"
_POD_SETS = re.compile(r"couldn't assign flavors to pod set ")
_PREEMPTED_BY = re.compile(r"\(UID: (?P<uid>[^,)]+), JobUID: (?P<job>[^)]+)\) due to (?P<why>[^;]+)")
_NAME = r"[^\s,;]+"
_PAIR = rf"(?P<resource>{_NAME}) in flavor (?P<flavor>{_NAME})"


def waiting_reason(index: ClusterIndex, workload: Manifest, others: Iterable[ClusterIndex] = ()) -> StoryReason:
    """Return why a pending workload has no quota. `others` are the clusters where its preemptor may be."""
    reason = blocked_reason(index, workload) or _in_line(index, workload)
    preempted = preempted_text(workload, (index, *others))
    return StoryReason(reason.state, f"{preempted}; {reason.text}") if preempted else reason


def blocked_reason(index: ClusterIndex, workload: Manifest) -> StoryReason | None:
    """Return what is wrong with the queue itself; None if it admits workloads of this namespace."""
    namespace, name = address_of(workload)[0], as_text(at(workload, "spec", "queueName"))
    local = index.local_queue_of(workload)
    if local is None:
        return _no_local_queue(index, namespace, name)
    queue_name = as_text(at(local, "spec", "clusterQueue"))
    queue = index.state.queues.get(queue_name)
    if queue is None:
        where = f"LocalQueue {namespace}/{name} on {index.name} refers to ClusterQueue {queue_name}"
        return StoryReason(State.NEVER, f"{where}, which does not exist{suggest(queue_name, index.state.queues)}")
    for what, manifest in ((f"LocalQueue {namespace}/{name}", local), (f"ClusterQueue {queue_name}", queue)):
        if at(manifest, "spec", "stopPolicy") in HELD:
            return StoryReason(State.WAITS, f"{what} is stopped ({at(manifest, 'spec', 'stopPolicy')}) on {index.name}")
    if inactive := inactive_text("ClusterQueue", queue):
        return StoryReason(State.WAITS, f"{inactive} on {index.name}")
    return _selection(index, queue, queue_name, namespace)


def _no_local_queue(index: ClusterIndex, namespace: str, name: str) -> StoryReason:
    if not name:
        return StoryReason(State.NEVER, f"it names no LocalQueue on {index.name}")
    known = sorted(other for space, other in index.state.local_queues if space == namespace)
    elsewhere = sorted(space for space, other in index.state.local_queues if other == name)
    hint = suggest(name, known)
    if not hint and elsewhere:
        hint = f"; namespace {elsewhere[0]} has a LocalQueue of this name"
    elif not hint and known:
        hint = f"; namespace {namespace} has {', '.join(known[:3])}"
    return StoryReason(State.NEVER, f"there is no LocalQueue {namespace}/{name} on {index.name}{hint}")


def inactive_text(kind: str, manifest: Manifest | None) -> str:
    """Return why an object with an `Active` condition does not work; empty if it does, or if nothing is known."""
    active = condition_of(manifest, "Active")
    if active.get("status") != "False":
        return ""
    known = explain(kind, as_text(active.get("reason")))
    said = one_line(as_text(active.get("message")))
    meaning = f" {known.meaning}" if known else ""
    return f"{kind} {at(manifest, 'metadata', 'name')} is inactive ({active.get('reason')}: {said}){meaning}".rstrip(
        "."
    )


def _selection(index: ClusterIndex, queue: Manifest, name: str, namespace: str) -> StoryReason | None:
    if is_selected(at(queue, "spec", "namespaceSelector"), namespace, index.state) is False:
        return StoryReason(State.NEVER, f"ClusterQueue {name} on {index.name} does not select namespace {namespace}")
    return None


def _in_line(index: ClusterIndex, workload: Manifest) -> StoryReason:
    place = index.places.get(address_of(workload))
    if place is None:
        return _without_place(index, workload)
    where = f"place {place.position} of queue {place.queue} on {index.name}"
    strategy = at(index.state.queues.get(place.queue), "spec", "queueingStrategy")
    if strategy == STRICT and place.position > 1:
        head = index.lines[place.queue][0]
        ahead = f"{title_of(index.job_of(head), head)} is ahead of it in a {STRICT} queue"
        return StoryReason(State.WAITS, f"{where}; {ahead} and waits itself: {scheduler_reason(index, head).text}")
    said = scheduler_reason(index, workload)
    return StoryReason(said.state, f"{where}; {said.text}")


def _without_place(index: ClusterIndex, workload: Manifest) -> StoryReason:
    said = scheduler_reason(index, workload)
    where = f"queue {index.queue_of(workload)} on {index.name} orders by past usage (admission fair sharing)"
    return StoryReason(said.state, f"{said.text}; {where}")


def scheduler_reason(index: ClusterIndex, workload: Manifest) -> StoryReason:
    """Return what Kueue's scheduler said, in words; if it said nothing, what is missing by arithmetic."""
    if backoff := _backoff(workload):
        return StoryReason(State.WAITS, backoff)
    reserved = condition_of(workload, "QuotaReserved")
    message = as_text(reserved.get("message"))
    if not message or reserved.get("reason") == NOT_EVALUATED:
        return shortage(index, workload) or StoryReason(State.WAITS, NOT_TRIED)
    meaning = read_message(message)
    return StoryReason(State.NEVER if meaning.is_final else State.WAITS, meaning.text)


def _backoff(workload: Manifest) -> str:
    """After some evictions, Kueue waits before it queues a workload again."""
    requeued = condition_of(workload, "Requeued")
    until = as_text(at(workload, "status", "requeueState", "requeueAt"))
    if requeued.get("status") != "False" or not until:
        return ""
    return f"Kueue queues it again at {until} ({requeued.get('reason')}: {one_line(as_text(requeued.get('message')))})"


def preempted_text(workload: Manifest, indexes: Iterable[ClusterIndex]) -> str:
    """Return who preempted a workload and why; empty if it was not preempted, or has been admitted again."""
    evicted = condition_of(workload, "Evicted")
    if evicted.get("status") != "True":
        return ""
    if evicted.get("reason") != "Preempted" and not has_condition(workload, "Preempted"):
        return f"evicted ({evicted.get('reason')}: {one_line(as_text(evicted.get('message')))})"
    preemptor = read_preemptor(message_of(workload, "Preempted") or as_text(evicted.get("message")))
    if preemptor is None:
        return f"preempted ({one_line(as_text(evicted.get('message')))})"
    return f"preempted by {preemptor_name(preemptor.uid, preemptor.job_uid, indexes)} ({preemptor.why})"


def preemptor_name(uid: str, job_uid: str, indexes: Iterable[ClusterIndex]) -> str:
    for index in indexes:
        if found := index.workloads_by_uid.get(uid):
            queue = index.queue_of(found)
            return title_of(index.job_of(found), found) + (f" of queue {queue}" if queue else "")
        if job := index.jobs_by_uid.get(job_uid):
            return title_of(job, None)
    return f"a workload that no longer exists (UID {uid})"


@dataclass(frozen=True, slots=True)
class MessageMeaning:
    """One reason of a message. A `is_final` one does not go away when other jobs end."""

    text: str
    is_final: bool = False
    resource: str = ""
    flavor: str = ""
    amount: str = ""


@dataclass(frozen=True, slots=True)
class Meaning:
    """A message in words; `is_final` if the job can never be admitted as things are."""

    text: str
    is_final: bool
    findings: tuple[MessageMeaning, ...]


@dataclass(frozen=True, slots=True)
class Preemptor:
    """The workload for which another one was preempted: the UIDs of it and its job, and Kueue's reason."""

    uid: str
    job_uid: str
    why: str


@dataclass(frozen=True, slots=True)
class _Pattern:
    regex: re.Pattern[str]
    text: str
    is_final: bool = False


_PATTERNS = (
    _Pattern(
        re.compile(rf"insufficient unused quota for {_PAIR}, (?P<amount>{_NAME}) more needed"),
        "{resource}: {amount} more needed in flavor {flavor}",
    ),
    _Pattern(
        re.compile(
            rf"insufficient quota for {_PAIR}, previously considered podsets "
            rf"requests \((?P<before>[^)]*)\) \+ current podset request \((?P<amount>[^)]*)\) > maximum capacity "
            rf"\((?P<most>[^)]*)\)"
        ),
        "{resource}: {amount} requested, but the queue can never get more than {most} in flavor {flavor}",
        is_final=True,
    ),
    _Pattern(
        re.compile(
            rf"insufficient quota for {_PAIR}, request > maximum capacity "
            rf"\((?P<amount>\S+) > (?P<most>[^)]+)\)"
        ),
        "{resource}: {amount} requested, but the queue can never get more than {most} in flavor {flavor}",
        is_final=True,
    ),
    _Pattern(
        re.compile(rf"untolerated taint (?P<taint>\{{.*?\}}) in flavor (?P<flavor>{_NAME})"),
        "the pods do not tolerate the taint {taint} of flavor {flavor}",
        is_final=True,
    ),
    _Pattern(
        re.compile(rf"flavor (?P<flavor>{_NAME}) doesn't match node affinity"),
        "the node selector or affinity of the pods excludes flavor {flavor}",
        is_final=True,
    ),
    _Pattern(
        re.compile(rf"resource (?P<resource>{_NAME}) unavailable in ClusterQueue"),
        "the queue has no quota for {resource}",
        is_final=True,
    ),
    _Pattern(
        re.compile(rf"flavor (?P<flavor>{_NAME}) not found"),
        "the ResourceFlavor {flavor} does not exist",
        is_final=True,
    ),
)


_OTHERS = (
    (re.compile(r"Pending the preemption of (?P<count>\d+) workload"), "waits until {count} preempted workloads end"),
    (
        re.compile(r"no longer fits after processing another"),
        "another workload took the quota first; Kueue tries again",
    ),
    (re.compile(r"waiting for all admitted workloads"), "waits until the pods of all admitted workloads are ready"),
)


def read_message(message: str) -> Meaning:
    """Return the meaning of the message of a `QuotaReserved` condition that is false."""
    parts = [part for part in _POD_SETS.split(message) if part.strip()]
    found = [tuple(_findings(part)) for part in parts]
    findings = tuple(dict.fromkeys(finding for part in found for finding in part))
    is_final = any(part and all(finding.is_final for finding in part) for part in found)
    others = [text.format(**match.groupdict()) for regex, text in _OTHERS if (match := regex.search(message))]
    said = [finding.text for finding in findings if finding.is_final or not is_final or len(findings) == 1]
    text = "; ".join((*(said or (finding.text for finding in findings)), *others)) or one_line(message)
    return Meaning(text, is_final and not others, findings)


def _findings(part: str) -> Iterator[MessageMeaning]:
    """Return what is said, in the order of the message."""
    hits = [(match.start(), pattern, match) for pattern in _PATTERNS for match in pattern.regex.finditer(part)]
    for _, pattern, match in sorted(hits, key=lambda hit: hit[0]):
        named = match.groupdict()
        yield MessageMeaning(
            text=pattern.text.format(**named),
            is_final=pattern.is_final,
            resource=named.get("resource") or "",
            flavor=named.get("flavor") or "",
            amount=named.get("amount") or "",
        )


def read_preemptor(message: str) -> Preemptor | None:
    """Return the preemptor that the message of an eviction names."""
    found = _PREEMPTED_BY.search(message)
    return Preemptor(found["uid"], found["job"], found["why"].strip()) if found else None
