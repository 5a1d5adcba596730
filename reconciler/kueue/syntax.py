"""The text formats that Kubernetes accepts: names, label keys, label values.

Lengths are checked before patterns, so that a hostile text never reaches the regular expression.
"""

import re
from dataclasses import dataclass

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_WORD = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
LONGEST_PATTERN_TEXT = 4096


@dataclass(frozen=True, slots=True)
class Shape:
    pattern: str
    words: str


SHAPES = {
    "subdomain": Shape(_SUBDOMAIN, "lower-case letters, digits, '-' and '.', with a letter or digit at both ends"),
    "label": Shape(_LABEL, "lower-case letters, digits and '-', with a letter or digit at both ends"),
    "labelKey": Shape(rf"({_SUBDOMAIN}/)?{_WORD}", "a label key like 'example.com/zone'"),
    "kind": Shape(r"[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?", "letters, digits and '-', starting with a letter"),
    "duration": Shape(r"0|([0-9]+(\.[0-9]*)?(ns|us|ms|s|m|h))+", "numbers with units, like '90s', '5m' or '1h30m'"),
    "time": Shape(_TIME, "a time like '2026-01-31T12:00:00Z'"),
}


def has_shape(text: str, shape: str) -> bool:
    return len(text) <= LONGEST_PATTERN_TEXT and re.fullmatch(SHAPES[shape].pattern, text) is not None


def problem_of_name(text: str) -> str:
    """Return why a text is not an object name; empty if it is."""
    if not text:
        return "is empty"
    if len(text) > 253:
        return f"has {len(text)} characters, at most 253 are allowed"
    return "" if has_shape(text, "subdomain") else f"{text!r} does not consist of {SHAPES['subdomain'].words}"


def problem_of_namespace(text: str) -> str:
    if not text:
        return "is empty"
    if len(text) > 63:
        return f"has {len(text)} characters, at most 63 are allowed"
    return "" if has_shape(text, "label") else f"{text!r} does not consist of {SHAPES['label'].words}"


def problem_of_label_key(text: str) -> str:
    """Return why a text is not a label key (the syntax of resource names and taint keys too); empty if it is."""
    prefix, slash, name = text.rpartition("/")
    if slash and problem_of_name(prefix):
        return f"{text!r}: the part before '/' must be a DNS name of at most 253 characters"
    if not name or len(name) > 63 or re.fullmatch(_WORD, name) is None:
        return f"{text!r}: {name!r} must be 1 to 63 letters, digits, '-', '_', '.', with a letter or digit at both ends"
    return ""


def problem_of_label_value(text: str) -> str:
    if len(text) > 63:
        return f"{text!r} has {len(text)} characters, at most 63 are allowed"
    if text and re.fullmatch(_WORD, text) is None:
        return f"{text!r} must be letters, digits, '-', '_', '.', with a letter or digit at both ends"
    return ""
