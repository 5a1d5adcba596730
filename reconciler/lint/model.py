"""The nouns of lint: rules, and what they find."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from reconciler.errors import Place
from reconciler.objects import ClusterName
from reconciler.spec.document import Document, FieldPath

NO_CLUSTER = ClusterName("")


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule with a fleet that breaks it and one that keeps it.

    `can_be_silenced` is false where the fleet cannot be rendered or applied with the mistake in it.
    """

    id: str
    severity: Severity
    title: str
    why: str
    bad: str
    good: str
    can_be_silenced: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that a document breaks, ready to be shown; `document` is its name, wherever in the files it stands."""

    rule: str
    severity: Severity
    place: Place
    field: str
    problem: str
    hint: str = ""
    document: str = ""

    def __str__(self) -> str:
        where = ": ".join(part for part in (str(self.place), self.field) if part)
        return f"{where}: {self.problem}" + (f" ({self.hint})" if self.hint else "") + f" [{self.rule}]"


@dataclass(frozen=True, slots=True)
class Remark:
    """What a rule says about a document on one cluster; the same remark on several clusters is one finding.

    `subject` is the object that the document makes, as `Kind/name`, where the document is not that object itself.
    `path` leads to a field of the document; `field` is set where it is one of the subject instead. `wrong` is a name
    that nobody has, and `known` are those that could be meant.
    """

    rule: str
    document: Document
    path: FieldPath
    problem: str
    hint: str = ""
    cluster: ClusterName = NO_CLUSTER
    subject: str = ""
    field: str = ""
    wrong: str = ""
    known: Collection[str] = ()
