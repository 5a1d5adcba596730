"""Kubernetes quantities, exact: what the API server reads, computed with whole numbers and printed as it prints them.

A quantity is a count of nano units, which is the finest step that Kubernetes knows. Equality and order are by value,
so that `9`, `"9"` and `9000m` are one quantity; how it was written is kept beside it and decides how it is printed.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

NANO = 10**9
LARGEST_BINARY = (2**63 - 1) * NANO
LARGEST_EXPONENT = 100

_WRITTEN = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*(?:[-+]?[0-9]+)?)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]+)", re.ASCII)
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)%", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_SIZES = ("memory", "ephemeral-storage")
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {0: ""} | {exponent: suffix for suffix, exponent in _BINARY.items()}


class Notation(StrEnum):
    """How a quantity was written, which is how it is printed again where that loses nothing."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    nanos: int
    notation: Notation = field(default=Notation.DECIMAL, compare=False)
    written: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.written or _canonical(self.nanos, self.notation)

    def __add__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.nanos + other.nanos, self._notation_beside(other))

    def __sub__(self, other: "Quantity") -> "Quantity":
        return Quantity(self.nanos - other.nanos, self._notation_beside(other))

    def _notation_beside(self, other: "Quantity") -> Notation:
        return self.notation if self.nanos else other.notation


@dataclass(frozen=True, slots=True, order=True)
class Percent:
    """A share of a capacity: 60% is the fraction 3/5."""

    fraction: Fraction

    def __str__(self) -> str:
        hundredths = self.fraction * 100
        whole, rest = divmod(hundredths.numerator * NANO // hundredths.denominator, NANO)
        return f"{whole}.{rest:09d}".rstrip("0").rstrip(".") + "%"


Amount = Quantity | Percent
ZERO = Quantity(0)
NO_PERCENT = Percent(Fraction(0))


def parse(value: str | float) -> Quantity:
    """Read a quantity as apimachinery does; ValueError says what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is not a quantity")  # noqa: TRY004 - one error type for every text that is not a quantity
    text = str(value).strip()
    match = _WRITTEN.fullmatch(text)
    sign, whole, part, suffix = match.groups(default="") if match else ("", "", "", "")
    if not whole and not part:
        raise ValueError(f"{text!r} is not a quantity: write it like 4, 500m, 1.5 or 64Gi")
    base, exponent, notation = _read_suffix(text, suffix)
    digits = int((whole + part) or "0")
    magnitude = _in_nanos(digits, len(part), base, exponent)
    if notation is Notation.BINARY:
        magnitude = min(magnitude, LARGEST_BINARY)
    nanos = -magnitude if sign == "-" else magnitude
    is_kept = nanos and _is_printed_as_written(whole.lstrip("0") or "0", part, notation, exponent)
    return Quantity(nanos, notation, text if is_kept else "")


def parse_percent(text: str) -> Percent:
    match = _PERCENT.fullmatch(text)
    fraction = Fraction(match[1]) / 100 if match else Fraction(-1)
    if not 0 <= fraction <= 1:
        raise ValueError(f"{text!r} is not a percentage: write it like 60% or 12.5%, from 0% to 100%")
    return Percent(fraction)


def parse_amount(value: str | float) -> Amount:
    """A fixed quantity, or a share of a capacity."""
    return parse_percent(value) if isinstance(value, str) and value.endswith("%") else parse(value)


def unit_of(resource_name: str) -> Quantity:
    """The smallest step in which Kueue counts: milli for cpu, one for everything else."""
    return Quantity(NANO // 1000 if resource_name == "cpu" else NANO)


def short_text(resource_name: str, amount: Quantity) -> str:
    """`182Gi`, `45.6`, `500m`: three digits are enough for a person; -o json has the exact amount."""
    whole = amount.nanos / NANO
    if resource_name in _SIZES or amount.notation is Notation.BINARY:
        return _short_size(whole)
    if 0 < abs(whole) < 1:
        return str(Quantity(amount.nanos))
    return f"{whole:.1f}".removesuffix(".0")


def _short_size(value: float) -> str:
    step = 0
    while abs(value) >= 1024 and step < len(_BINARY):
        value, step = value / 1024, step + 1
    return f"{value:.1f}".removesuffix(".0") + _BINARY_SUFFIX[step * 10]


def scale(quantity: Quantity, factor: Fraction, unit: Quantity) -> Quantity:
    """Multiply and round down to whole units."""
    units = quantity.nanos * factor.numerator // (factor.denominator * unit.nanos)
    return Quantity(units * unit.nanos, quantity.notation)


def total(quantities: Iterable[Quantity]) -> Quantity:
    return sum(quantities, ZERO)


def split(whole: Quantity, shares: Mapping[str, Fraction], unit: Quantity) -> dict[str, Quantity]:
    """Divide by largest remainder: whole units, and together never more than the shares of the whole.

    Ties go to the name that sorts first, so that the order of the shares does not matter.
    """
    if any(share < 0 for share in shares.values()) or sum(shares.values()) > 1:
        raise ValueError("shares must not be negative and must not add up to more than 100%")
    units = whole.nanos // unit.nanos
    exact = {name: units * share for name, share in shares.items()}
    parts = {name: int(value) for name, value in exact.items()}
    left = int(sum(exact.values(), Fraction(0))) - sum(parts.values())
    by_remainder = sorted(shares, key=lambda name: (parts[name] - exact[name], name))
    winners = set(by_remainder[:left])
    return {name: Quantity((parts[name] + (name in winners)) * unit.nanos, whole.notation) for name in shares}


def _read_suffix(text: str, suffix: str) -> tuple[int, int, Notation]:
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], Notation.DECIMAL
    if suffix in _BINARY:
        return 2, _BINARY[suffix], Notation.BINARY
    match = _EXPONENT.fullmatch(suffix)
    if match is None:
        allowed = ", ".join([*filter(None, _DECIMAL), *_BINARY])
        raise ValueError(f"{text!r} is not a quantity: unknown suffix {suffix!r}, allowed are {allowed} and e3")
    if len(match[1]) > 4 or abs(int(match[1])) > LARGEST_EXPONENT:
        raise ValueError(f"{text!r} is not a quantity: the exponent is out of range")
    return 10, int(match[1]), Notation.EXPONENT


def _in_nanos(digits: int, places: int, base: int, exponent: int) -> int:
    # What is finer than a nano rounds up: who asks for a little gets a little.
    above: int = digits * NANO * base ** max(exponent, 0)
    below: int = 10**places * base ** max(-exponent, 0)
    return -(-above // below)


def _is_printed_as_written(whole: str, part: str, notation: Notation, exponent: int) -> bool:
    # Go keeps the text it read where its quick reader takes it for canonical. `1.500` and `+5` come back as they are,
    # and the API server stores them so.
    if notation is Notation.BINARY:
        has_room = not part and 14 - len(whole) - exponent * 3 // 10 >= 0
        return has_room and int(whole) % 8 != 0
    shifted, places = whole + part, exponent - len(part)
    has_room = len(shifted) <= 18 and places >= -9
    return has_room and places % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"


def _canonical(nanos: int, notation: Notation) -> str:
    if nanos == 0:
        return "0"
    if notation is Notation.BINARY and abs(nanos) >= 1024 * NANO and nanos % NANO == 0:
        number, exponent = _without_factors(nanos // NANO, 1024, largest=6)
        return f"{number}{_BINARY_SUFFIX[exponent * 10]}"
    number, tens = _without_factors(nanos, 10, largest=2 * LARGEST_EXPONENT)
    exponent = tens - 9
    number, exponent = number * 10 ** (exponent % 3), exponent - exponent % 3
    if notation is Notation.EXPONENT or exponent not in _DECIMAL_SUFFIX:
        return f"{number}e{exponent}" if exponent else f"{number}"
    return f"{number}{_DECIMAL_SUFFIX[exponent]}"


def _without_factors(number: int, base: int, *, largest: int) -> tuple[int, int]:
    times = 0
    while times < largest and number % base == 0:
        number, times = number // base, times + 1
    return number, times
