"""Every rule is broken by its bad example and kept by its good one."""

import pytest

from reconciler.lint.docs import example_of
from reconciler.lint.model import Rule, Severity
from reconciler.lint.run import RULES
from reconciler.pipeline.load import unreadable
from reconciler.render.compute import compute_desired
from reconciler.spec.files import FleetFiles
from reconciler.spec.parse import parse_fleet
from tests import fast_yaml
from tests.unit.lint.lint_findings import completed, find

FLEET_RULES = [rule for rule in RULES if rule.id < "KF100"]
SERVER_RULES = [rule for rule in RULES if "KF100" <= rule.id < "KF200"]
READING_RULES = [rule for rule in RULES if "KF200" <= rule.id < "KF209"]
STANDALONE = "apiVersion: kfleet.dev/v1alpha1\nkind: Cluster\nmetadata: {name: %s}\nspec: {role: standalone}\n"
TWO_STANDALONES = "---\n".join(
    ("apiVersion: kfleet.dev/v1alpha1\nkind: Fleet\nmetadata: {name: two}\n", STANDALONE % "a", STANDALONE % "workers")
)


def by_id(rule: Rule) -> str:
    return rule.id


def test_base_fleet_is_clean() -> None:
    assert find("") == ()


@pytest.mark.parametrize("rule", FLEET_RULES, ids=by_id)
def test_bad_example_breaks_exactly_its_rule(rule: Rule) -> None:
    found = find(example_of(rule.id).bad)
    assert {(finding.rule, finding.severity) for finding in found} == {(rule.id, rule.severity)}
    assert all(finding.place.line for finding in found)


@pytest.mark.parametrize("rule", FLEET_RULES, ids=by_id)
def test_good_example_breaks_no_rule(rule: Rule) -> None:
    assert find(example_of(rule.id).good) == ()


@pytest.mark.parametrize("rule", SERVER_RULES, ids=by_id)
def test_refused_example_is_an_error_of_its_rule_alone(rule: Rule) -> None:
    errors = {finding.rule for finding in find(example_of(rule.id).bad) if finding.severity is Severity.ERROR}
    assert errors == {rule.id}


@pytest.mark.parametrize("rule", SERVER_RULES, ids=by_id)
def test_accepted_example_is_not_an_error(rule: Rule) -> None:
    assert [finding for finding in find(example_of(rule.id).good) if finding.severity is Severity.ERROR] == []


def reading_errors(rule: Rule, example: str) -> set[str]:
    base = fast_yaml.safe_dump_all(completed(""), sort_keys=False)
    text = TWO_STANDALONES if rule.id == "KF206" else base
    is_overlay = "kind: Overlay" in example
    path = "overlays/prod/overlay.yaml" if is_overlay else "fleet/example.yaml"
    files = FleetFiles("test", "", {"fleet/all.yaml": text.encode(), path: example.encode()})
    try:
        compute_desired(parse_fleet(files, "prod" if is_overlay else ""))
    except ExceptionGroup as group:
        return {finding.rule for finding in unreadable(group)}
    return set()


@pytest.mark.parametrize("rule", READING_RULES, ids=by_id)
def test_unreadable_example_is_an_error_of_its_rule_alone(rule: Rule) -> None:
    assert reading_errors(rule, example_of(rule.id).bad) == {rule.id}
    assert reading_errors(rule, example_of(rule.id).good) == set()


def test_rules_have_ids_of_their_own() -> None:
    ids = [rule.id for rule in RULES]
    assert ids == sorted(set(ids))


def test_errors_of_the_server_cannot_be_silenced() -> None:
    assert [rule.id for rule in SERVER_RULES if rule.can_be_silenced] == []
