"""What a change brings to lint, and what it takes away."""

from reconciler.diff.make import compare_sides, lint_news
from reconciler.errors import SourceLocation
from reconciler.lint.model import Finding, Severity
from tests.builders import labelled_flavor, queue, quota, tenant, yaml_of
from tests.unit.diff.sides import BEFORE, compare, side

CPU = labelled_flavor("cpu", {"cpu": 100})
NIGHT = queue("night", quota("cpu", {"cpu": 10}), cohort="science")
LOST = tenant("lost", "nowhere")


def test_finding_of_the_base_is_not_news() -> None:
    lint = compare((CPU, NIGHT, LOST), (CPU, NIGHT, LOST)).lint
    assert (lint.brought, lint.gone) == ((), 0)
    assert lint.errors == 1


def test_finding_whose_line_and_file_moved_is_not_news() -> None:
    base = side(CPU, NIGHT, LOST, revision=BEFORE)
    head = side(LOST, "# a line\n# and another\n" + yaml_of(CPU), NIGHT, path="fleet/moved.yaml")
    assert {one.place for one in base.findings}.isdisjoint(one.place for one in head.findings)
    assert compare_sides(base, head).lint.brought == ()


def test_finding_whose_words_changed_is_not_news() -> None:
    lint = compare((CPU, NIGHT, LOST), (CPU, NIGHT, tenant("lost", "elsewhere"))).lint
    assert (lint.brought, lint.gone) == ((), 0)


def test_finding_whose_entry_moved_in_its_list_is_not_news() -> None:
    one = queue("night", quota("none", {"cpu": 1}), quota("cpu", {"cpu": 10}))
    two = queue("night", quota("cpu", {"cpu": 10}), quota("none", {"cpu": 1}))
    lint = compare((CPU, one), (CPU, two)).lint
    assert lint.errors > 0
    assert (lint.brought, lint.gone) == ((), 0)


def test_second_finding_of_a_kind_is_news() -> None:
    lint = compare((CPU, NIGHT, LOST), (CPU, NIGHT, LOST, tenant("found", "nowhere"))).lint
    assert [finding.document for finding in lint.brought] == ["Tenant/found"]
    assert (lint.gone, lint.errors) == (0, 2)


def test_finding_that_goes_is_counted() -> None:
    lint = compare((CPU, NIGHT, LOST), (CPU, NIGHT)).lint
    assert (lint.brought, lint.gone, lint.errors) == ((), 1, 0)


def test_finding_whose_file_and_entry_moved_is_not_news() -> None:
    one = queue("night", quota("none", {"cpu": 1}), quota("cpu", {"cpu": 10}))
    two = queue("night", quota("cpu", {"cpu": 10}), quota("none", {"cpu": 1}))
    base, head = side(CPU, one, revision=BEFORE), side(CPU, two, path="fleet/moved.yaml")
    assert compare_sides(base, head).lint.brought == ()


def test_finding_is_matched_with_one_other_only() -> None:
    def finding(problem: str) -> Finding:
        return Finding(
            "KF001", Severity.ERROR, SourceLocation("a.yaml", 1), "spec.queue", problem, document="Tenant/astro"
        )

    lint = lint_news((finding("a"),), (finding("b"), finding("c")))
    assert [one.problem for one in lint.brought] == ["c"]
    assert lint_news((finding("b"), finding("c")), (finding("c"),)).gone == 1
