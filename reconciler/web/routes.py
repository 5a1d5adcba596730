"""What each address of the page answers, apart from data: the five views, static files, headers."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

STATIC = Path(__file__).parent / "static"
VIEWS = ("fleet", "queues", "jobs", "plan", "capacity")
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
EVENTS = "text/event-stream"
# Nothing inline, nothing from elsewhere, and no other page may frame this one.
SAFETY: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
)
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class PageAnswer:
    status: int
    body: bytes = b""
    kind: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)


def is_loopback(address: str) -> bool:
    """Whether ADDRESS:PORT is reachable from this machine only."""
    host = address.rpartition(":")[0]
    return host in _LOOPBACK_NAMES or (host.startswith("127.") and host.replace(".", "").isdecimal())


def is_local_name(host: str) -> bool:
    """Whether a Host header names this machine. Another name there is a page that rebinds its name to 127.0.0.1."""
    name = host.lower()
    return any(name == known or name.startswith(f"{known}:") for known in _LOOPBACK_NAMES)


def page_answer(target: str, known_tag: str = "") -> PageAnswer | None:
    """The answer for everything that is the same for all readers; None for another address."""
    path = urlsplit(target).path
    if path == "/":
        return PageAnswer(302, headers={"Location": "fleet"})
    if path.removeprefix("/") in VIEWS:
        return _file("index.html", known_tag)
    if path.startswith("/static/"):
        return _file(path.removeprefix("/static/"), known_tag)
    return None


def _file(name: str, known_tag: str) -> PageAnswer:
    if name not in _names():
        return PageAnswer(404, b"no such file\n")
    body = (STATIC / name).read_bytes()
    tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    kind = KINDS[Path(name).suffix]
    return PageAnswer(304, b"", kind, headers) if known_tag == tag else PageAnswer(200, body, kind, headers)


def _names() -> set[str]:
    """A name is one of these or does not exist, so that no path leads out of the folder."""
    return {path.name for path in STATIC.iterdir() if path.suffix in KINDS}
