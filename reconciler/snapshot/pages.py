"""The responses of a run become the answers of a snapshot: pages of a list are joined, values are masked."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode

import orjson

from reconciler.objects import Manifest
from reconciler.snapshot.masking import masked_body
from reconciler.snapshot.recording import Answers, RecordedAnswer, Request

LIMIT, CONTINUE = "limit", "continue"


def plain_request(request: Request) -> Request:
    """The request without the size of its pages."""
    path, _, query = request.path.partition("?")
    rest = urlencode([(name, value) for name, value in parse_qsl(query) if name != LIMIT])
    return replace(request, path=f"{path}?{rest}" if rest else path)


def masked_answers(responses: Mapping[Request, tuple[int, bytes] | str]) -> Answers:
    """The answers to all requests; a response is a status and a body, or why there was none."""
    known = {plain_request(request): _decoded(response) for request, response in responses.items()}
    found: dict[Request, RecordedAnswer] = {}
    for request, answer in known.items():
        if not _query(request).get(CONTINUE) and (whole := _joined(request, answer, known)) is not None:
            found[request] = replace(whole, body=masked_body(request.path, whole.body))
    return found


def _decoded(response: tuple[int, bytes] | str) -> RecordedAnswer:
    if isinstance(response, str):
        return RecordedAnswer(problem=response)
    status, data = response
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError:
        body = None
    return RecordedAnswer(status, body if isinstance(body, dict) else data.decode(errors="replace"))


def _joined(request: Request, first: RecordedAnswer, known: Mapping[Request, RecordedAnswer]) -> RecordedAnswer | None:
    """All pages as one list; None if a page was never requested, and the answer of a page that failed."""
    items: list[Any] = []
    for page in _pages(request, first, known):
        if page is None or not isinstance(page.body, dict) or not _is_list(page):
            return page
        items += page.body["items"]
    content = cast("dict[str, Any]", first.body)
    metadata = {name: value for name, value in content["metadata"].items() if name == "resourceVersion"}
    return replace(first, body={**content, "metadata": metadata, "items": items})


def _pages(
    request: Request, page: RecordedAnswer | None, known: Mapping[Request, RecordedAnswer]
) -> Iterator[RecordedAnswer | None]:
    while True:
        yield page
        if page is None or not _is_list(page) or not (token := _continue_of(page)):
            return
        path, _, _ = request.path.partition("?")
        query = {**_query(request), CONTINUE: token}
        page = known.get(replace(request, path=f"{path}?{urlencode(query)}"))


def _is_list(answer: RecordedAnswer) -> bool:
    body = answer.body
    return (
        answer.status == 200
        and isinstance(body, dict)
        and isinstance(body.get("items"), list)
        and isinstance(body.get("metadata"), dict)
        and str(body.get("kind", "")).endswith("List")
    )


def _continue_of(page: RecordedAnswer) -> str:
    body: Manifest = page.body if isinstance(page.body, dict) else {}
    return str((body.get("metadata") or {}).get(CONTINUE) or "")


def _query(request: Request) -> dict[str, str]:
    return dict(parse_qsl(request.path.partition("?")[2]))
