"""Rules that documents switch off for themselves."""

from tests.builders import Document, annotated, observed_flavor, tenant
from tests.unit.lint.lint_findings import find, rules_of

IGNORE = "kfleet.dev/lint-ignore"


def silenced_flavor(ignore: str) -> Document:
    return annotated(observed_flavor("spare", "nodes", nodeLabels={"pool": "spare"}), {IGNORE: ignore})


def silenced_tenant(ignore: str, queue_name: str) -> Document:
    return annotated(tenant("guests", queue_name), {IGNORE: ignore})


def test_silence_takes_the_rule_off_its_document() -> None:
    assert rules_of(silenced_flavor("KF055: soon")) == set()


def test_silence_does_not_reach_other_documents() -> None:
    other = observed_flavor("b", "nodes", nodeLabels={"pool": "b"})
    (finding,) = find(silenced_flavor("KF055: soon"), other)
    assert (finding.rule, finding.problem) == ("KF055", "no queue has quota of flavor b: its nodes stay idle")


def test_silence_does_not_reach_a_rule_that_is_always_on() -> None:
    found = {finding.rule: finding.problem for finding in find(silenced_tenant("KF001: later", "nobody"))}
    assert found.keys() == {"KF001", "KF099"}
    assert found["KF099"].startswith("KF001 cannot be silenced: without the queue")


def test_silence_does_not_reach_refusals_of_the_server() -> None:
    snippet = """\
kind: ResourceFlavor
metadata: {name: bad, annotations: {kfleet.dev/lint-ignore: "KF151: it is fine"}}
spec: {nodeLabels: {disk: very fast}}
"""
    assert rules_of(snippet) == {"KF151", "KF099"}


def test_silence_that_finds_nothing_is_a_warning() -> None:
    (finding,) = find(silenced_tenant("KF068: on purpose", "research"))
    assert finding.rule == "KF099"
    assert finding.problem == "KF068 finds nothing here to silence"
    assert finding.field == 'metadata.annotations["kfleet.dev/lint-ignore"]'


def test_silence_of_a_rule_that_does_not_exist_is_a_warning() -> None:
    (finding,) = find(silenced_tenant("KF042: no; KF998: never", "research"))[1:]
    assert finding.problem == "there is no rule KF998"


def test_silence_takes_an_error_off_its_document() -> None:
    snippet = """\
kind: LocalQueue
metadata:
  name: jobs
  namespace: astro
  annotations: {kfleet.dev/lint-ignore: "KF009: made by the site", kfleet.dev/clusters: workers}
spec: {clusterQueue: site}
"""
    assert rules_of(snippet) == set()
