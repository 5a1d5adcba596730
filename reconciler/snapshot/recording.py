"""The answers of API servers to the requests of one run, as a value and as a JSON document.

Decision: a snapshot holds answers instead of the values that kfleet derives from them. So each stage runs on it
unchanged, also with another revision of the fleet, and a field that no stage reads today is there tomorrow.
"""

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from reconciler.objects import ClusterName, Manifest

KIND = "Snapshot"
FORMAT = 1
# The output of `kfleet observe -o json`: it holds the observed capacity and no answers.
CAPACITY_KIND = "Observations"
HOW = "make one with: kfleet snapshot --out FILE"
_PACKED = b"\x1f\x8b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request that only reads. `body` is the question of an access review, and `asker` the masked token for it."""

    path: str
    is_discovery: bool = False
    body: str = ""
    asker: str = ""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """The status and the body of a response; `problem` is why there was none."""

    status: int = 0
    body: Manifest | str = field(default="", repr=False)
    problem: str = ""


Answers = Mapping[Request, RecordedAnswer]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRecording:
    """The answers of one API server. `problem` is why the cluster could not be opened."""

    server: str = ""
    ca: str = field(default="", repr=False)
    problem: str = ""
    answers: Answers = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Everything that was observed at one time. `capacity` is the document of the observed capacity."""

    taken_at: datetime
    kfleet: str = ""
    fleet: str = ""
    clusters: Mapping[ClusterName, ClusterRecording] = field(default_factory=dict)
    capacity: Manifest | None = None


def recording_record(recording: Recording) -> dict[str, Any]:
    return {
        "kind": KIND,
        "format": FORMAT,
        "takenAt": recording.taken_at.isoformat(),
        "kfleet": recording.kfleet,
        "fleet": recording.fleet,
        "clusters": [_cluster_record(name, one) for name, one in recording.clusters.items()],
        "capacity": recording.capacity,
    }


def read_recording_record(record: object) -> Recording:
    """The Recording of a document; ValueError if it is another document."""
    if not isinstance(record, dict) or record.get("kind") not in (KIND, CAPACITY_KIND):
        raise ValueError(f"it has not the kind {KIND}; {HOW}")
    if record.get("format") != FORMAT:
        raise ValueError(f"it has the format {record.get('format')}, and this kfleet reads {FORMAT}; {HOW}")
    try:
        return _of_capacity(record) if record["kind"] == CAPACITY_KIND else _of_record(record)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it is damaged: {type(error).__name__} {error}") from error


def packed(recording: Recording, *, is_packed: bool) -> bytes:
    text = orjson.dumps(recording_record(recording), option=orjson.OPT_INDENT_2)
    return gzip.compress(text, mtime=0) if is_packed else text


def unpacked(content: bytes) -> Recording:
    """The Recording of a file, whether it is packed or not; ValueError if it is another file."""
    try:
        text = gzip.decompress(content) if content.startswith(_PACKED) else content
    except (OSError, EOFError) as error:
        raise ValueError(f"it is damaged: {error}") from error
    return read_recording_record(orjson.loads(text))


def _of_record(record: Mapping[str, Any]) -> Recording:
    return Recording(
        taken_at=_read_time(record["takenAt"]),
        kfleet=record["kfleet"],
        fleet=record["fleet"],
        clusters={ClusterName(one["name"]): _read_cluster(one) for one in record["clusters"]},
        capacity=record["capacity"],
    )


def _of_capacity(record: Mapping[str, Any]) -> Recording:
    return Recording(taken_at=_read_time(record["at"]), capacity=record)


def _read_time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError(f"the time {text!r} has no zone")
    return found


def _cluster_record(name: ClusterName, recorded: ClusterRecording) -> dict[str, Any]:
    about = {"server": recorded.server, "ca": recorded.ca, "problem": recorded.problem}
    answers = [dict(_answer_fields(*entry)) for entry in sorted(recorded.answers.items(), key=lambda one: str(one[0]))]
    return {"name": name, **{key: text for key, text in about.items() if text}, "answers": answers}


def _answer_fields(request: Request, answer: RecordedAnswer) -> Iterator[tuple[str, Any]]:
    yield "path", request.path
    if request.is_discovery:
        yield "discovery", True
    if request.body:
        yield "question", orjson.loads(request.body)
    if request.asker:
        yield "asker", request.asker
    if answer.problem:
        yield "problem", answer.problem
    else:
        yield from (("status", answer.status), ("body", answer.body))


def _read_cluster(record: Mapping[str, Any]) -> ClusterRecording:
    return ClusterRecording(
        server=record.get("server", ""),
        ca=record.get("ca", ""),
        problem=record.get("problem", ""),
        answers=dict(map(_read_answer, record["answers"])),
    )


def _read_answer(record: Mapping[str, Any]) -> tuple[Request, RecordedAnswer]:
    request = Request(
        path=record["path"],
        is_discovery=record.get("discovery", False),
        body=question_text(record["question"]) if "question" in record else "",
        asker=record.get("asker", ""),
    )
    if "problem" in record:
        return request, RecordedAnswer(problem=record["problem"])
    return request, RecordedAnswer(record["status"], record["body"])


def question_text(body: object) -> str:
    """The body of an access review, always in the same form."""
    return orjson.dumps(body, option=orjson.OPT_SORT_KEYS).decode()
