"""When a client certificate ends: the one field of X.509 that kfleet needs.

Decision: a reader of the few DER elements on the way to that field. A library for certificates would be one more
compiled dependency of the command, and nothing else of it would be used.
"""

from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_VERSION, _UTC_TIME = 0xA0, 0x17
_VALIDITY = 3  # after serial number, algorithm and issuer


class _Element(NamedTuple):
    tag: int
    content: bytes


def certificate_end(pem: str) -> datetime | None:
    """Return until when the first certificate of the text is valid; None if it cannot be read."""
    try:
        (certificate,) = _elements(b64decode(pem.partition(_BEGIN)[2].partition(_END)[0]))
        fields = [*_elements(next(_elements(certificate.content)).content)]
        validity = [field for field in fields if field.tag != _VERSION][_VALIDITY]
        _, end = _elements(validity.content)
        return _time(end)
    except (ValueError, LookupError, StopIteration):
        return None


def _elements(content: bytes) -> Iterator[_Element]:
    position = 0
    while position < len(content):
        tag, size = content[position], content[position + 1]
        position += 2
        if size & 0x80:  # the length is in so many bytes
            count = size & 0x7F
            size = int.from_bytes(content[position : position + count], "big")
            position += count
        if position + size > len(content):
            raise ValueError(size)
        yield _Element(tag, content[position : position + size])
        position += size


def _time(element: _Element) -> datetime:
    """Two digits of the year up to 2049, four from then on."""
    form = "%y%m%d%H%M%SZ" if element.tag == _UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(element.content.decode("ascii"), form).replace(tzinfo=UTC)
