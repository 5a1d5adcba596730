"""Whole numbers as Kueue counts quota: 64 bits, where the largest means unlimited and stays unlimited."""

from typing import Any

from reconciler.kueue.reading import quantity_at
from reconciler.quantity import unit_of

UNLIMITED = 2**63 - 1
LOWEST = -(2**63)


def amount_of(resource_name: str, value: Any) -> int:
    """A quantity in Kueue's units (milli for cpu), rounded up; what cannot be read counts as nothing."""
    quantity = quantity_at(value)
    if quantity is None:
        return 0
    return min(-(-quantity.nanos // unit_of(resource_name).nanos), UNLIMITED)


def add(left: int, right: int) -> int:
    if UNLIMITED in {left, right}:
        return UNLIMITED
    return max(LOWEST, min(left + right, UNLIMITED))


def subtract(left: int, right: int) -> int:
    """Unlimited minus a number stays unlimited; a number minus unlimited leaves nothing at all."""
    if left == UNLIMITED:
        return 0 if right == UNLIMITED else UNLIMITED
    if right == UNLIMITED:
        return LOWEST
    return max(LOWEST, min(left - right, UNLIMITED))
