"""What stands between kfleet and an API server may answer anything: that is a ClusterError, and no defect of ours."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import cycle, islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.clients.answers import LONGEST_PAGE, refusal
from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError, FieldCause
from reconciler.state.applyset import SetName
from reconciler.state.observe import probe
from tests.unit.paper_server import HUB, answering

PATH = "/api/v1/namespaces/a/secrets/b"
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b", "namespace": "a"}}
OF_A_GATEWAY = {"code": 14, "message": "no healthy upstream", "details": [{"@type": "google.rpc.ErrorInfo"}]}
# Parts of what API servers answer, so that many answers are right in almost everything.
KEYS = st.sampled_from(
    [
        "kind",
        "metadata",
        "items",
        "details",
        "causes",
        "name",
        "reason",
        "message",
        "groups",
        "versions",
        "groupVersion",
        "version",
        "resources",
        "resource",
        "responseKind",
        "scope",
        "namespaced",
        "continue",
        "annotations",
    ]
)
WORDS = st.sampled_from(
    [
        "Status",
        "NotFound",
        "Secret",
        "SecretList",
        "APIResourceList",
        "APIGroupList",
        "APIVersions",
        "APIGroupDiscoveryList",
        "b",
        "secrets",
        "v1",
        "kueue.x-k8s.io/v1beta2",
    ]
)
# A list may go on for ever.
MOST_ANSWERS = 20
LEAVES = st.none() | st.booleans() | st.integers(-1, 2) | WORDS
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=12
)
ANSWERS = st.tuples(st.sampled_from([200, 201, 204, 302, 401, 403, 404, 409, 422, 500, 502]), VALUES)
# Each request, with the names of what it has found.
REQUESTS: tuple[Callable[[ApiServer], list[Any]], ...] = (
    lambda port: names(port.find(PATH)),
    lambda port: names(port.find("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/b")),
    lambda port: names(*port.list("/api/v1/secrets")),
    lambda port: [None for _ in port.discover()],
    lambda port: [kind.plural for kind in port.kinds("kueue.x-k8s.io/v1beta2")],
    lambda port: names(port.apply(SECRET)),
    lambda port: names(port.create(SECRET)),
    lambda port: [port.patch(PATH, {})["metadata"]["name"]],
    lambda port: [gap.why for gap in probe(port, SetName("test", "kueue-system")).gaps],
)


def names(*found: Mapping[str, Any] | None) -> list[Any]:
    return [one["metadata"]["name"] for one in found if one is not None]


def behind(*answers: tuple[int, Any]) -> ApiServer:
    """A server behind a gateway that has these answers for whatever it is asked, one after the other."""
    sent = islice(cycle(answers), MOST_ANSWERS)
    return answering(lambda _path: next(sent, (502, None)))


@pytest.mark.parametrize("ask", REQUESTS)
@given(st.lists(ANSWERS, min_size=1, max_size=3))
def test_whatever_is_answered_is_an_answer_or_a_cluster_error(
    ask: Callable[[ApiServer], list[Any]], answers: list[tuple[int, Any]]
) -> None:
    found: list[Any] = []
    with suppress(ClusterError):
        found = ask(behind(*answers))
    assert all(one is None or (isinstance(one, str) and one) for one in found)


@pytest.mark.parametrize(
    "details", [OF_A_GATEWAY["details"], "no healthy upstream", 14, {"causes": "none"}, {"causes": [1]}]
)
def test_error_of_a_gateway_is_reported_in_its_words(details: Any) -> None:
    with pytest.raises(ClusterError) as raised:
        behind((503, OF_A_GATEWAY | {"details": details})).find(PATH)
    assert raised.value.problem == f"GET {PATH}: 503 no healthy upstream"
    assert (raised.value.status, raised.value.reason) == (503, "")


@pytest.mark.parametrize(
    "page", [{"kind": "APIGroupList"}, {"kind": "APIGroupList", "groups": [{}]}, {"kind": "APIVersions"}]
)
def test_part_of_a_list_of_groups_does_not_say_that_a_kind_is_not_served(page: Any) -> None:
    with pytest.raises(ClusterError, match="does not answer like an API server") as raised:
        behind((404, "404 page not found"), (200, page)).find("/apis/kueue.x-k8s.io/v1beta2/clusterqueues/b")
    assert raised.value.status != 404


QUEUE, LOST = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/b", {"kind": "Status", "reason": "NotFound", "code": 404}
GROUPS = {"kind": "APIGroupList", "groups": [{"versions": [{"groupVersion": "kueue.x-k8s.io/v1beta2"}]}]}
KINDS = {
    "kind": "APIResourceList",
    "resources": [{"name": "clusterqueues", "kind": "ClusterQueue", "namespaced": False}],
}


@pytest.mark.parametrize(
    "answers",
    [
        [(404, LOST | {"details": {"name": "b", "kind": "clusterqueues"}})],
        [(404, LOST), (200, {"kind": "APIGroupList", "groups": []})],
        [(404, LOST), (200, GROUPS), (200, KINDS | {"resources": []})],
    ],
    ids=["it names the object", "its group is not served", "its kind is not served"],
)
def test_404_says_that_an_object_is_not_there(answers: list[tuple[int, Any]]) -> None:
    assert behind(*answers).find(QUEUE) is None


@pytest.mark.parametrize(
    "answers",
    [
        [(404, LOST)],
        [(404, LOST | {"details": {"name": "", "kind": "clusterqueues"}})],
        [(404, LOST | {"details": {"name": "c", "kind": "clusterqueues"}})],
        [(404, LOST), (200, GROUPS), (200, KINDS)],
        [(404, LOST), (200, GROUPS), (404, LOST)],
    ],
)
def test_404_that_does_not_name_an_object_of_a_served_kind_says_nothing(answers: list[tuple[int, Any]]) -> None:
    with pytest.raises(ClusterError, match="does not answer like an API server") as raised:
        behind(*answers).find(QUEUE)
    assert raised.value.status != 404


def test_causes_of_an_api_server_are_read() -> None:
    cause = {"reason": "FieldManagerConflict", "field": ".spec.x", "message": 'conflict with "robot"'}
    body = {"kind": "Status", "reason": "Conflict", "message": "no", "details": {"causes": [cause, {"field": ".a"}]}}
    found = refusal(HUB, "PATCH x", 409, json.dumps(body).encode())
    assert found.causes == (FieldCause(**cause), FieldCause("", ".a", ""))
    assert found.causes[0].manager == "robot"


@pytest.mark.parametrize(
    ("body", "said"), [(b"", "no message"), (b"<html>\n <b>Bad</b>\n</html>", "<html> <b>Bad</b> </html>")]
)
def test_page_of_a_gateway_is_one_line(body: bytes, said: str) -> None:
    assert refusal(HUB, "GET x", 502, body).problem == f"GET x: 502 {said}"


def test_long_page_of_a_gateway_is_cut() -> None:
    problem = refusal(HUB, "GET x", 502, b"<p>sorry</p>" * 10_000).problem
    assert problem.startswith("GET x: 502 <p>sorry</p>") and problem.endswith("…") and len(problem) < LONGEST_PAGE + 20
