"""Plain YAML scalars, read as Kubernetes reads them (YAML 1.1, without base 60 and without timestamps)."""

import math
import re
from collections.abc import Mapping

Scalar = str | int | float | bool | None

_TRUE = ("y", "yes", "true", "on")
_FALSE = ("n", "no", "false", "off")
_NUMBER_START = frozenset("+-.0123456789")
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|[1-9][0-9]*|0)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOT_IN_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_BASES = {"x": 16, "b": 2, "o": 8}


def _spellings(words: tuple[str, ...], value: Scalar) -> Mapping[str, Scalar]:
    return {text: value for word in words for text in (word, word.capitalize(), word.upper())}


_WORDS: Mapping[str, Scalar] = {
    **_spellings(_TRUE, value=True),
    **_spellings(_FALSE, value=False),
    **_spellings(("null",), value=None),
    "": None,
    "~": None,
}


def resolve(text: str) -> Scalar:
    """The value of a scalar without quotes; ValueError for what JSON cannot hold."""
    if text in _WORDS:
        return _WORDS[text]
    return _number(text) if text[0] in _NUMBER_START else text


def _number(text: str) -> Scalar:
    if _NOT_IN_JSON.fullmatch(text):
        raise ValueError(f"{text} is no number that JSON can hold")
    plain = text.replace("_", "") if text[0] != "." else text
    if _INTEGER.fullmatch(plain):
        whole = _integer(plain)
        if -(2**63) <= whole < 2**64:
            return whole
    if _FLOAT.fullmatch(plain):
        value = float(plain)
        return text if math.isinf(value) else value
    return text


def _integer(plain: str) -> int:
    digits = plain.lstrip("+-")
    if len(digits) > 80:
        return 2**64
    base = 10
    if digits[0] == "0" and len(digits) > 1:
        base = _BASES.get(digits[1].lower(), 8)
        digits = digits[2:] if base != 8 or digits[1] in "oO" else digits
    return -int(digits, base) if plain[0] == "-" else int(digits, base)
