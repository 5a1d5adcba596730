"""The nouns of lint: rules and their findings."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from reconciler.errors import SourceLocation
from reconciler.objects import ClusterName
from reconciler.spec.document import Document, FieldPath

NO_CLUSTER = ClusterName("")


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. Its examples are in the YAML file beside the module with its check: see `examples.py`.

    `can_be_silenced` is false if the fleet cannot be rendered or applied with the problem.
    """

    id: str
    severity: Severity
    title: str
    why: str
    can_be_silenced: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """A violated rule, ready to be printed; `document` is the name of the document, independent of its file."""

    rule: str
    severity: Severity
    place: SourceLocation
    field: str
    problem: str
    hint: str = ""
    document: str = ""

    def __str__(self) -> str:
        where = ": ".join(part for part in (str(self.place), self.field) if part)
        return f"{where}: {self.problem}" + (f" ({self.hint})" if self.hint else "") + f" [{self.rule}]"


@dataclass(frozen=True, slots=True)
class Remark:
    """The result of a rule for a document on one cluster; equal remarks on several clusters become one finding.

    `subject` is the object that the document generates, as `Kind/name`, if the document is not that object itself.
    `path` is a field of the document; `field` is set instead if it is a field of the subject. `wrong` is a name
    that does not exist, and `known` are the names that could be meant.
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
