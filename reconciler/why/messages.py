"""What Kueue's own messages on a Workload mean.

Kueue writes why it reserved no quota only as a text. The texts are those of Kueue 0.16 to 0.19. A text that is not
known here is shown as it is, so a new release of Kueue makes an answer longer, and never wrong.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.text import one_line

_POD_SETS = re.compile(r"couldn't assign flavors to pod set ")
_PREEMPTED_BY = re.compile(r"\(UID: (?P<uid>[^,)]+), JobUID: (?P<job>[^)]+)\) due to (?P<why>[^;]+)")
_NAME = r"[^\s,;]+"
_PAIR = rf"(?P<resource>{_NAME}) in flavor (?P<flavor>{_NAME})"


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
