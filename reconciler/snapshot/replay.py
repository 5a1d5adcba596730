"""Responses of a run become answers of a snapshot, and those answer requests, also ones that the run did not make."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlencode

import orjson

from reconciler.objects import Manifest
from reconciler.snapshot.masking import masked_body
from reconciler.snapshot.recording import Answers, RecordedAnswer, Request

OK, NOT_FOUND = 200, 404
SELECTOR = "labelSelector"
_ROOT = re.compile(r"/(api/(?P<core>[^/]+)|apis/(?P<group>[^/]+/[^/]+))(?P<rest>/.*)?")
_ONE_LABEL = re.compile(r"(?P<no>!?)(?P<key>[^\s=!,()]+)\s*((?P<sign>==?|!=)\s*(?P<value>[^\s=!,()]*))?")
LIMIT, CONTINUE = "limit", "continue"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectPath:
    """A path of the Kubernetes API: a group version, a collection or an object."""

    version: str
    plural: str = ""
    namespace: str = ""
    name: str = ""


def parse_path(path: str) -> ObjectPath | None:
    found = _ROOT.fullmatch(path)
    if found is None:
        return None
    version = found["core"] or found["group"]
    parts = [unquote(part) for part in (found["rest"] or "").split("/") if part]
    namespace = parts.pop(0) and parts.pop(0) if len(parts) > 2 and parts[0] == "namespaces" else ""
    if len(parts) > 2:
        return None
    plural, name = (*parts, "", "")[:2]
    return ObjectPath(version=version, plural=plural, namespace=namespace, name=name)


class Replay:
    """The recorded answers of one API server."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def answer(self, asked: Request) -> RecordedAnswer | None:
        """The answer to a request; None if the recorded answers do not settle it."""
        request = plain_request(asked)
        if found := self._answers.get(request):
            return found
        bare, _, query = request.path.partition("?")
        if request.body or request.is_discovery:
            return None
        if bare == "/apis" and self._served is not None:
            return _group_list(self._served)
        place = parse_path(bare)
        return None if place is None else self._derived(place, dict(parse_qsl(query)))

    def _derived(self, place: ObjectPath, query: Mapping[str, str]) -> RecordedAnswer | None:
        if not place.plural:
            return self._resource_list(place.version)
        if self._is_not_served(place):
            return _not_found(place)
        if query.keys() - {SELECTOR}:
            return None
        return self._object(place) if place.name else self._list(place, query.get(SELECTOR, ""))

    def _is_not_served(self, place: ObjectPath) -> bool:
        """Whether discovery lacks the kind. A version without kinds belongs to an extension that did not respond."""
        kinds = self._served.get(place.version) if self._served is not None else {}
        return kinds is None or (bool(kinds) and place.plural not in kinds)

    def _list(self, place: ObjectPath, selector: str) -> RecordedAnswer | None:
        whole = self._complete.get((place.version, place.plural, ""))
        whole = whole or self._complete.get((place.version, place.plural, place.namespace))
        labels = read_selector(selector)
        if whole is None or labels is None:
            return None
        items = [one for one in _items(whole) if _is_in(one, place.namespace) and is_selected(one, labels)]
        return RecordedAnswer(OK, {**_mapping(whole), "items": items})

    def _object(self, place: ObjectPath) -> RecordedAnswer | None:
        found = self._objects.get(place)
        if found is not None:
            return RecordedAnswer(OK, found)
        is_listed = any((place.version, place.plural, where) in self._complete for where in ("", place.namespace))
        return _not_found(place) if is_listed else None

    def _resource_list(self, version: str) -> RecordedAnswer | None:
        if self._served is None:
            return None
        kinds = self._served.get(version)
        if kinds is None:
            return _not_found(ObjectPath(version=version))
        resources = [{"name": plural, "kind": kind, "namespaced": is_in} for plural, (kind, is_in) in kinds.items()]
        body = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}
        return RecordedAnswer(OK, body)

    @cached_property
    def _lists(self) -> tuple[tuple[ObjectPath, str, RecordedAnswer], ...]:
        """All recorded lists, with their place and selector."""
        found = []
        for request, answer in self._answers.items():
            bare, _, query = request.path.partition("?")
            place, asked = parse_path(bare), dict(parse_qsl(query))
            is_list = answer.status == OK and isinstance(_mapping(answer).get("items"), list)
            if place and place.plural and not place.name and is_list and not asked.keys() - {SELECTOR}:
                found.append((place, asked.get(SELECTOR, ""), answer))
        return tuple(found)

    @cached_property
    def _complete(self) -> Mapping[tuple[str, str, str], RecordedAnswer]:
        """The lists without a selector, by version, plural and namespace."""
        return {
            (one.version, one.plural, one.namespace): answer for one, selector, answer in self._lists if not selector
        }

    @cached_property
    def _objects(self) -> Mapping[ObjectPath, Manifest]:
        """The objects of all lists, as a GET returns them."""
        found: dict[ObjectPath, Manifest] = {}
        for place, _, answer in self._lists:
            kind = str(_mapping(answer).get("kind", "")).removesuffix("List")
            for item in _items(answer):
                metadata = item["metadata"]
                where = replace(place, namespace=metadata.get("namespace", ""), name=metadata["name"])
                found[where] = {"apiVersion": place.version, "kind": kind, **item}
        return found

    @cached_property
    def _served(self) -> Mapping[str, Mapping[str, tuple[str, bool]]] | None:
        """The kinds by group version and plural, if both documents of aggregated discovery were recorded."""
        documents = [self._answers.get(Request(path=path, is_discovery=True)) for path in ("/api", "/apis")]
        if not all(one and _mapping(one).get("kind") == "APIGroupDiscoveryList" for one in documents):
            return None
        return dict(entry for one in documents if one for entry in _served_kinds(_items(one)))


def _served_kinds(groups: Iterable[Manifest]) -> Iterator[tuple[str, Mapping[str, tuple[str, bool]]]]:
    for group in groups:
        name = group["metadata"].get("name", "")
        for version in group["versions"]:
            kinds = {
                one["resource"]: (str(one["responseKind"]["kind"]), one["scope"] == "Namespaced")
                for one in version["resources"]
            }
            yield f"{name}/{version['version']}" if name else version["version"], kinds


def _group_list(served: Iterable[str]) -> RecordedAnswer:
    named: dict[str, list[Manifest]] = {}
    for version in served:
        if "/" in version:
            named.setdefault(version.partition("/")[0], []).append({"groupVersion": version})
    groups = [{"name": name, "versions": versions} for name, versions in named.items()]
    return RecordedAnswer(OK, {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})


def _not_found(place: ObjectPath) -> RecordedAnswer:
    """The Status of an API server about an object, a kind or a group version that it does not have."""
    group = place.version.partition("/")[0] if "/" in place.version else ""
    what = f"{place.plural}.{group}" if group else place.plural
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'{what} "{place.name}" not found'
        if place.name
        else "the server could not find the requested resource",
        "reason": "NotFound",
        "details": {"name": place.name, "group": group, "kind": place.plural} if place.name else {},
        "code": NOT_FOUND,
    }
    return RecordedAnswer(NOT_FOUND, status)


@dataclass(frozen=True, slots=True)
class LabelRule:
    """One part of a label selector; `value` is None if the label only has to exist."""

    key: str
    value: str | None
    is_denied: bool = False


def read_selector(text: str) -> tuple[LabelRule, ...] | None:
    """The rules of a selector; None for one with a set of values, which kfleet does not use."""
    rules = []
    for part in filter(None, text.split(",")):
        found = _ONE_LABEL.fullmatch(part.strip())
        if found is None:
            return None
        rules.append(LabelRule(found["key"], found["value"], is_denied=bool(found["no"]) or found["sign"] == "!="))
    return tuple(rules)


def is_selected(manifest: Manifest, rules: Iterable[LabelRule]) -> bool:
    labels = manifest["metadata"].get("labels") or {}
    return all(_matches(labels, rule) != rule.is_denied for rule in rules)


def _matches(labels: Mapping[str, str], rule: LabelRule) -> bool:
    return rule.key in labels if rule.value is None else labels.get(rule.key) == rule.value


def _is_in(manifest: Manifest, namespace: str) -> bool:
    return not namespace or manifest["metadata"].get("namespace") == namespace


def _mapping(answer: RecordedAnswer) -> Mapping[str, Any]:
    return answer.body if isinstance(answer.body, dict) else {}


def _items(answer: RecordedAnswer) -> list[Manifest]:
    items: list[Manifest] = _mapping(answer)["items"]
    return items


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
