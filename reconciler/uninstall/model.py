"""How a fleet ends."""

from enum import StrEnum


class Ending(StrEnum):
    """What becomes of the objects of a fleet that ends."""

    RELEASE = "release"
    DELETE = "delete"
