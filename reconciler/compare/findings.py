"""What lint says of the head and did not say of the base."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable

from reconciler.compare.model import LintNews
from reconciler.lint import Finding, Severity

_Key = Callable[[Finding], Hashable]


def lint_news(base: Iterable[Finding], head: Iterable[Finding]) -> LintNews:
    """A finding is the same where its rule, its document and its field are, or its words: lines and lists may move."""
    listed = tuple(head)
    gone, brought = tuple(base), listed
    for key in (_by_words, _by_field):
        gone, brought = _unmatched(gone, brought, key), _unmatched(brought, gone, key)
    errors = sum(finding.severity is Severity.ERROR for finding in listed)
    return LintNews(brought, len(gone), errors, len(listed) - errors)


def _unmatched(findings: tuple[Finding, ...], others: tuple[Finding, ...], key: _Key) -> tuple[Finding, ...]:
    """The findings without a partner among the others, each of which is the partner of one."""
    partners = Counter(map(key, others))
    left: list[Finding] = []
    for finding in findings:
        if partners[key(finding)]:
            partners[key(finding)] -= 1
        else:
            left.append(finding)
    return tuple(left)


def _by_words(finding: Finding) -> Hashable:
    return finding.rule, finding.document or finding.place.path, finding.problem


def _by_field(finding: Finding) -> Hashable:
    return finding.rule, finding.document or finding.place.path, finding.field
