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


def settings(*entries: str) -> str:
    return f"kind: Fleet\nmetadata: {{name: example}}\nspec: {{lint: [{', '.join(entries)}]}}\n"


OLD_CLASS = "apiVersion: kueue.x-k8s.io/v1beta1\nkind: WorkloadPriorityClass\nmetadata: {name: old}\nvalue: 1\n"


def levels(*snippets: str) -> set[tuple[str, str]]:
    return {(finding.rule, finding.severity.value) for finding in find(*snippets)}


def test_fleet_silences_a_rule_everywhere_or_raises_it() -> None:
    assert ("KF013", "warning") in levels(OLD_CLASS)
    off, error = (f"{{rule: KF013, level: {level}, reason: later}}" for level in ("ignore", "error"))
    assert "KF013" not in {rule for rule, _ in levels(OLD_CLASS, settings(off))}
    assert ("KF013", "error") in levels(OLD_CLASS, settings(error))


def test_fleet_cannot_change_rules_that_are_always_on_or_unknown() -> None:
    bad = "kind: Tenant\nmetadata: {name: a}\nspec: {namespaces: [b], queue: gone}\n"
    entries = ("{rule: KF001, level: ignore, reason: x}", "{rule: KF999, level: ignore, reason: x}")
    found = find(bad, settings(*entries))
    assert {finding.rule for finding in found} == {"KF001", "KF099"}
    assert {finding.field for finding in found} == {"spec.queue", "spec.lint[0].rule", "spec.lint[1].rule"}


def test_old_version_is_allowed_where_the_clusters_serve_only_that() -> None:
    old = "kind: Cluster\nmetadata: {name: east}\nspec: {role: worker, kueue: {version: '0.13'}}\n"
    assert "KF013" not in {rule for rule, _ in levels(OLD_CLASS, old)}
