"""Three bytes for each field and its value: enough to tell later whether it was wanted so.

Decision: these are kept with an object instead of the whole wish, because a LIST of thousands of objects should not
double, and instead of the commit that the wish came from, because what was observed then is in no commit.
"""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from reconciler.ownership.values import is_quantity
from reconciler.quantity import parse

SIZE = 3
# An object with more fields than this keeps none of them: annotations of an object have 256 KiB together.
MOST = 4000

Path = tuple[str | int, ...]
Fingerprints = frozenset[bytes]


def fingerprints(value: Any, path: Path = (), sort: str = "") -> Fingerprints:
    """Those of all fields in a value at a path; of different `sort`s they are different."""
    return frozenset(_fingerprint(place, leaf, sort) for place, leaf in _leaves(value, path))


def as_text(found: Fingerprints) -> str:
    return b64encode(b"".join(sorted(found))).decode() if len(found) <= MOST else ""


def read_text(text: str) -> Fingerprints:
    """What somebody wrote there by hand is as good as nothing."""
    try:
        found = b64decode(text, validate=True)
    except ValueError:
        return frozenset()
    return frozenset(found[start : start + SIZE] for start in range(0, len(found), SIZE))


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping) and value:
        for name, below in value.items():
            yield from _leaves(below, (*path, name))
    elif isinstance(value, list | tuple) and value:
        for number, below in enumerate(value):
            yield from _leaves(below, (*path, number))
    elif value is not None:
        yield path, value


def _fingerprint(path: Path, value: Any, sort: str) -> bytes:
    said = orjson.dumps((sort, path, _worth(path, value)), default=str)
    return hashlib.blake2b(said, digest_size=SIZE).digest()


def _worth(path: Path, value: Any) -> Any:
    """Quantities by what they are worth, because a server writes them in its own way."""
    if not is_quantity(tuple(step for step in path if isinstance(step, str))):
        return value
    try:
        return str(parse(value).nanos)
    except ValueError:
        return value
