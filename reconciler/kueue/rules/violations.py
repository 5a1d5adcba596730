"""What a rule says about a manifest."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """One mistake: where it is, what is wrong with it, and what would be right (where that can be said)."""

    rule: str
    field: str
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}" + (f" ({self.hint})" if self.hint else "")
