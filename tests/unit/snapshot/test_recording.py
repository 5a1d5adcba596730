"""A snapshot as a document: what is written is what is read, and another file is refused."""

import gzip
from datetime import UTC, datetime

import orjson
import pytest
from jsonschema import Draft202012Validator

from reconciler.objects import ClusterName
from reconciler.snapshot.recording import (
    ClusterRecording,
    RecordedAnswer,
    Recording,
    Request,
    packed,
    question_text,
    unpacked,
)
from reconciler.spec.schema import schema_folder
from tests.unit.snapshot.answers import JOBS, listed, named

REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
QUESTION = question_text({"spec": {"namespace": "a"}, "kind": "SelfSubjectRulesReview"})
RECORDING = Recording(
    taken_at=datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC),
    kfleet="0.1.0",
    fleet="test",
    clusters={
        ClusterName("hub"): ClusterRecording(
            server="https://hub:6443",
            ca="-----",
            answers={
                Request(path=JOBS): listed("Job", named("a", "team")),
                Request(path="/apis", is_discovery=True): RecordedAnswer(200, {"kind": "APIGroupDiscoveryList"}),
                Request(path="/apis/nowhere/v1"): RecordedAnswer(404, "404 page not found"),
                Request(path="/version"): RecordedAnswer(problem="GET /version: no answer in time"),
                Request(path=REVIEW, body=QUESTION): RecordedAnswer(201, {"status": {"resourceRules": []}}),
                Request(path=REVIEW, body=QUESTION, asker="masked"): RecordedAnswer(401, {"kind": "Status"}),
            },
        ),
        ClusterName("far"): ClusterRecording(problem="no context 'far'"),
    },
    capacity={"kind": "Observations", "format": 1},
)


@pytest.mark.parametrize("is_packed", [False, True])
def test_recording_is_read_as_it_was_written(is_packed: bool) -> None:  # noqa: FBT001  (a parameter of the test)
    content = packed(RECORDING, is_packed=is_packed)
    assert content.startswith(b"\x1f\x8b") is is_packed
    assert unpacked(content) == RECORDING


def test_file_is_the_same_for_the_same_recording() -> None:
    assert packed(unpacked(packed(RECORDING, is_packed=True)), is_packed=True) == packed(RECORDING, is_packed=True)


def test_observed_capacity_alone_is_a_snapshot_without_clusters() -> None:
    record = {"kind": "Observations", "format": 1, "at": "2026-05-04T03:02:01+00:00", "sources": []}
    assert unpacked(orjson.dumps(record)) == Recording(taken_at=RECORDING.taken_at, capacity=record)


def test_file_is_as_its_schema_says() -> None:
    validator = Draft202012Validator(orjson.loads((schema_folder() / "snapshot.json").read_bytes()))
    record = orjson.loads(packed(RECORDING, is_packed=False))
    assert list(validator.iter_errors(record)) == []
    record["clusters"][0]["answers"][0].pop("status", None)
    assert list(validator.iter_errors({**record, "clusters": record["clusters"], "format": 2}))


WHOLE = orjson.loads(packed(RECORDING, is_packed=False))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "zero-length"),
        (b'{"kind": "Snap', "unexpected end of data"),
        (b"[]", "has not the kind Snapshot; make one with: kfleet snapshot"),
        (b'{"kind": "Plan", "format": 1}', "has not the kind Snapshot"),
        (orjson.dumps({**WHOLE, "format": 7}), "has the format 7, and this kfleet reads 1"),
        (orjson.dumps({**WHOLE, "clusters": [{}]}), "is damaged: KeyError 'name'"),
        (orjson.dumps({**WHOLE, "takenAt": "2026-05-04T03:02:01"}), "has no zone"),
        (orjson.dumps({**WHOLE, "takenAt": 3}), "is damaged: TypeError"),
        (gzip.compress(b"{}", mtime=0)[:-4], "is damaged: "),
    ],
)
def test_other_files_are_refused(content: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        unpacked(content)
