"""A quota as far as it can be told without looking at a cluster: a number, and a share of what is observed there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from typing import Any

from reconciler.effects.model import NO_EFFECTS, Effects
from reconciler.lint.model import Finding
from reconciler.objects import ClusterName, Manifest, Ref
from reconciler.plan.prune import RELEASED_KINDS
from reconciler.quantity import ZERO, Percent, Quantity, parse
from reconciler.spec.model import FleetSpec

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
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


class News(StrEnum):
    REMOVED = "removed"
    CHANGED = "changed"
    ADDED = "added"


class Limit(StrEnum):
    NOMINAL = "nominal"
    BORROWING = "borrowing limit"
    LENDING = "lending limit"


class Absent(StrEnum):
    """Why there is no amount: the flavor gives no such thing to the queue, or gives it without a limit."""

    NOTHING = "nothing"
    UNLIMITED = "no limit"


@dataclass(frozen=True, slots=True)
class RevisionName:
    """A commit, and in words how it was chosen; without a commit the files as they lie in a working tree."""

    commit: str
    words: str

    def __str__(self) -> str:
        return f"{self.commit[:12]} ({self.words})" if self.commit else self.words


@dataclass(frozen=True, slots=True)
class Side:
    """One revision as far as it could be computed: without a spec the findings say why it could not.

    `observed` are the objects with the quotas of an observed capacity, as far as it was observed.
    """

    revision: RevisionName
    spec: FleetSpec | None
    findings: tuple[Finding, ...]
    observed: Mapping[Ref, Manifest] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FieldDiff:
    """One field before and after; None where it is not there, masked in a Secret."""

    path: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class ObjectDiff:
    ref: Ref
    news: News
    fields: tuple[FieldDiff, ...] = ()

    @property
    def is_deleted(self) -> bool:
        """Whether it goes from its cluster: kfleet lets go of a namespace, and never deletes it."""
        return self.news is News.REMOVED and self.ref.kind not in RELEASED_KINDS


@dataclass(frozen=True, slots=True)
class ClusterDiff:
    """The objects of one cluster that differ; `news` where the cluster itself comes or goes."""

    name: ClusterName
    objects: tuple[ObjectDiff, ...]
    news: News | None = None

    def count(self, news: News) -> int:
        """A namespace that kfleet lets go of stays, so it is not counted as removed."""
        return sum(entry.news is news and (entry.is_deleted or news is not News.REMOVED) for entry in self.objects)


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """One number of a queue or a cohort, before and after."""

    cluster: ClusterName
    owner: str
    flavor: str
    resource: str
    limit: Limit
    before: QuotaAmount | Absent
    after: QuotaAmount | Absent

    def difference(self, show: Callable[[Quantity], str] = str) -> str:
        """How much more or less; empty where a limit is added or removed, because that has no number."""
        if self.limit is not Limit.NOMINAL and (isinstance(self.before, Absent) or isinstance(self.after, Absent)):
            return ""
        before = QuotaAmount() if isinstance(self.before, Absent) else self.before
        after = QuotaAmount() if isinstance(self.after, Absent) else self.after
        return before.difference(after, show)


@dataclass(frozen=True, slots=True)
class AccessChange:
    """A namespace that may submit to a queue on more or on fewer clusters than before.

    `tenant` is the team that the namespace belongs to; empty for a LocalQueue that is written as it is.
    """

    tenant: str
    namespace: str
    queue: str
    gained: tuple[ClusterName, ...]
    lost: tuple[ClusterName, ...]


@dataclass(frozen=True, slots=True)
class QueueNameChange:
    """A LocalQueue that a namespace loses, and the names that it has instead: what job manifests must name."""

    namespace: str
    old: str
    left: tuple[str, ...]
    clusters: tuple[ClusterName, ...]

    def __str__(self) -> str:
        where = ", ".join(self.clusters)
        return (
            f"{self.namespace}: jobs labelled {QUEUE_LABEL}: {self.old} find no queue on {where}; "
            f"there is {', '.join(self.left)} (to keep the name, set localQueue: {self.old} in the Tenant)"
        )


@dataclass(frozen=True, slots=True)
class RenamedDocument:
    """A document that goes while another one with the same content comes."""

    kind: str
    old: str
    new: str

    def __str__(self) -> str:
        return (
            f"{self.kind} {self.old} -> {self.new}, with the same content: on the clusters the old one is deleted when "
            "it is unused, and the new one starts empty"
        )


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A document of the fleet that changes what kfleet does, and no object that could be shown here."""

    document: str
    fields: tuple[FieldDiff, ...]


@dataclass(frozen=True, slots=True)
class LintNews:
    """What the change brings, how many findings it takes away, and how many of each kind the head has in all."""

    brought: tuple[Finding, ...] = ()
    gone: int = 0
    errors: int = 0
    warnings: int = 0


@dataclass(frozen=True, slots=True)
class FleetDiff:
    """`unread` are the findings of a side that cannot be read: then nothing is compared but what lint says.

    `effects` are those on the clusters of a snapshot that was `taken_at` a time; without one they are not known.
    """

    fleet: str
    base: RevisionName
    head: RevisionName
    lint: LintNews
    clusters: tuple[ClusterDiff, ...] = ()
    quotas: tuple[QuotaChange, ...] = ()
    access: tuple[AccessChange, ...] = ()
    settings: tuple[SettingChange, ...] = ()
    renames: tuple[RenamedDocument, ...] = ()
    queue_names: tuple[QueueNameChange, ...] = ()
    refusal: str = ""
    unread_base: tuple[Finding, ...] = ()
    unread_head: tuple[Finding, ...] = ()
    effects: Effects = NO_EFFECTS
    taken_at: datetime | None = None

    @property
    def is_compared(self) -> bool:
        return not (self.unread_base or self.unread_head)

    @property
    def is_empty(self) -> bool:
        """Whether the clusters stay as they are. News of lint alone change nothing on them."""
        has_objects = any(cluster.objects or cluster.news for cluster in self.clusters)
        return self.is_compared and not (has_objects or self.settings)

    def count(self, news: News) -> int:
        return sum(cluster.count(news) for cluster in self.clusters)
