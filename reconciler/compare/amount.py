"""A quota as far as it can be told without looking at a cluster: a number, and a share of what is observed there."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from reconciler.quantity import ZERO, Percent, Quantity, parse

OF_OBSERVED = "% of observed"
_AND = " + "
_MOST_DIGITS = 10
_BYTES = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


@dataclass(frozen=True, slots=True)
class QuotaAmount:
    """On a manager, which has the sum of its workers, the shares of several clusters are added up."""

    fixed: Quantity = ZERO
    share: Fraction = Fraction(0)

    def __str__(self) -> str:
        parts = [str(self.fixed)] if self.fixed.nanos or not self.share else []
        return _AND.join((*parts, *([_percent(self.share)] if self.share else [])))

    def difference(self, after: "QuotaAmount", show: Callable[[Quantity], str] = str) -> str:
        """`+4`, `-10% of observed`, or both."""
        fixed, share = after.fixed - self.fixed, after.share - self.share
        parts = [f"{_sign(fixed.nanos)}{show(Quantity(abs(fixed.nanos), fixed.notation))}"] if fixed.nanos else []
        return " ".join((*parts, *([f"{_sign(share)}{_percent(abs(share))}"] if share else [])))


def readable(amount: object) -> str:
    """An amount in as few digits as people compare."""
    if not isinstance(amount, QuotaAmount) or not amount.fixed.nanos:
        return str(amount)
    return str(amount).replace(str(amount.fixed), shortened(amount.fixed), 1)


def read_amount(text: str | float) -> QuotaAmount:
    """The amount that a text stands for; ValueError where that is none."""
    fixed, separator, share = str(text).rpartition(_AND)
    if not share.endswith(OF_OBSERVED):
        return QuotaAmount(parse(text))
    return QuotaAmount(parse(fixed) if separator else ZERO, Fraction(share.removesuffix(OF_OBSERVED)) / 100)


def shortened(quantity: Quantity) -> str:
    """`145.92` for `145920m`, and `2.66Ti` for a number of bytes that is about that."""
    text = str(quantity)
    if text.endswith("m") and text[:-1].isdigit():
        whole, thousandths = divmod(int(text[:-1]), 1000)
        return f"{whole}.{thousandths:03d}".rstrip("0")
    if not text.isdigit() or len(text) < _MOST_DIGITS:
        return text
    power = min((len(text) - 1) // 3, len(_BYTES))
    return f"{int(text) / 1024**power:.2f}{_BYTES[power - 1]}"


def _sign(number: int | Fraction) -> str:
    return "+" if number > 0 else "-"


def _percent(share: Fraction) -> str:
    return f"{Percent(share)} of observed"
