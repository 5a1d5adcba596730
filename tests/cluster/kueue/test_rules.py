"""Every rule against real servers: what kfleet refuses they refuse, and what it lets pass they take."""

import pytest
from hypothesis import given, settings

from reconciler.clients.kubernetes import ApiServer
from reconciler.kueue.conversion import to_canonical
from reconciler.kueue.kinds import kind_of, parse_version
from reconciler.kueue.rules.kinds import check_object
from reconciler.lint.docs import example_of
from reconciler.lint.model import Rule
from reconciler.lint.run import RULES
from reconciler.objects import Manifest
from reconciler.render.compute import compute_desired
from reconciler.sandbox.fleet import Sandbox
from tests.cluster.kueue.mutants import mutants
from tests.cluster.kueue.servers import CLUSTER_BY_KUEUE, refusal, refusal_of_apply
from tests.unit.kueue.cases import BAD, GOOD
from tests.unit.kueue.rule_case import Case, by_version
from tests.unit.lint.lint_findings import parse_snippet

WEBHOOK = "admission webhook"
# A version that Kueue never had has no address to be sent to, and the namespace of the other example is not here.
# Rules from KF200 on are about files and documents, which no server sees.
EXAMPLES = [rule for rule in RULES if "KF100" < rule.id < "KF200" and rule.id != "KF112"]


@pytest.fixture
def api(request: pytest.FixtureRequest, fleet: Sandbox, case: Case, version: str) -> ApiServer:
    cluster = request.getfixturevalue("gated_cluster") if case.gates else CLUSTER_BY_KUEUE[version]
    return fleet.api(cluster)


@pytest.fixture
def example_api(request: pytest.FixtureRequest, fleet: Sandbox, rule: Rule) -> ApiServer:
    is_gated = "ConcurrentAdmission" in example_of(rule.id).bad
    return fleet.api(request.getfixturevalue("gated_cluster") if is_gated else "worker1")


@pytest.mark.parametrize(("case", "version"), by_version(BAD))
def test_server_refuses_what_a_rule_refuses(api: ApiServer, case: Case, version: str) -> None:
    problem = refusal(api, case.manifest)
    assert problem, f"{version} takes it"
    assert (WEBHOOK in problem) == (case.refused_by == "webhook"), problem


@pytest.mark.parametrize(("case", "version"), by_version(GOOD))
def test_server_takes_what_the_rules_let_pass(api: ApiServer, case: Case, version: str) -> None:
    assert not refusal(api, case.manifest), version


@pytest.mark.parametrize("rule", EXAMPLES, ids=lambda rule: rule.id)
def test_server_refuses_the_bad_example_of_a_rule_and_takes_the_good_one(example_api: ApiServer, rule: Rule) -> None:
    example = example_of(rule.id)
    assert any(refusal_of_apply(example_api, manifest) for manifest in kueue_objects(example.bad))
    assert [problem for one in kueue_objects(example.good) if (problem := refusal_of_apply(example_api, one))] == []


@pytest.mark.parametrize("version", CLUSTER_BY_KUEUE)
def test_server_and_rules_agree_about_damaged_objects(fleet: Sandbox, version: str) -> None:
    api = fleet.api(CLUSTER_BY_KUEUE[version])

    @settings(max_examples=300, derandomize=True, database=None)
    @given(manifest=mutants(version))
    def agree(manifest: Manifest) -> None:
        canonical = to_canonical(manifest).manifest
        problem = refusal_of_apply(api, canonical)
        violations = [str(violation) for violation in check_object(canonical, parse_version(version))]
        assert bool(violations) == bool(problem), f"kfleet: {violations or 'accepts'}; server: {problem or 'accepts'}"

    agree()


def kueue_objects(snippet: str) -> list[Manifest]:
    """What lint's examples become if nobody looks at them; without the team, whose namespace is not here."""
    objects = compute_desired(parse_snippet(snippet)).objects
    return [entry.manifest for entry in objects if kind_of(entry.manifest) and entry.document.kind != "Tenant"]
