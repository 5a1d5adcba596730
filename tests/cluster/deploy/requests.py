"""What kfleet asked of API servers, in the words of RBAC."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from reconciler.plan.rbac import Right, RightScope

LOGGER = "reconciler.clients"
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "WATCH": "watch"}
# Everybody who is logged in may ask these.
FREE = {"selfsubjectrulesreviews"}


@dataclass(frozen=True, slots=True, order=True)
class Asked:
    """One verb on one kind; `namespace` is empty where all namespaces were meant, or none."""

    verb: str
    group: str
    plural: str
    namespace: str

    def is_allowed_by(self, right: Right, namespaces: Mapping[RightScope, str]) -> bool:
        is_there = right.scope is RightScope.CLUSTER or namespaces[right.scope] == self.namespace
        return is_there and (right.group, right.plural) == (self.group, self.plural) and self.verb in right.verbs


@dataclass(frozen=True, slots=True)
class Request:
    cluster: str
    asked: tuple[Asked, ...]
    status: int


def read_requests(lines: Iterable[Mapping[str, Any]]) -> list[Request]:
    """The requests of a log at its most talkative."""
    said = [line for line in lines if "method" in line and "path" in line]
    found = [Request(line["cluster"], tuple(_asked(line)), line["status"]) for line in said]
    return [request for request in found if request.asked]


def _asked(line: Mapping[str, Any]) -> Iterator[Asked]:
    method, path = line["method"], line["path"].partition("?")[0]
    parts = path.strip("/").split("/")
    rest, group = (parts[2:], "") if parts[0] == "api" else (parts[3:], parts[1] if len(parts) > 1 else "")
    if not rest:
        return
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural = "/".join((rest[0], *rest[2:]))
    if plural in FREE:
        return
    verb = VERBS.get(method) or ("get" if len(rest) > 1 else "list")
    yield Asked(verb, group, plural, namespace)
    if line["status"] == 201 and verb == "patch":
        yield Asked("create", group, plural, namespace)


class _GitOpsTracker(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.__dict__)


@contextmanager
def kept_requests() -> Iterator[list[dict[str, Any]]]:
    """Log lines of the commands that run in this process meanwhile."""
    home, logger = _GitOpsTracker(), logging.getLogger(LOGGER)
    before = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(home)
    try:
        yield home.lines
    finally:
        logger.removeHandler(home)
        logger.setLevel(before)
