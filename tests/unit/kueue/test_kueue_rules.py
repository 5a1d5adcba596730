import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kueue.kinds import KINDS, NEWEST, parse_version
from reconciler.kueue.rules.kinds import check_object
from reconciler.kueue.rules.structure import RULES
from tests.builders import cpu_group
from tests.unit.kueue.cases import BAD, GOOD
from tests.unit.kueue.rule_case import Case, by_version, case_object, case_queue

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    "resourceGroups",
    "coveredResources",
    "flavors",
    "resources",
    "name",
    "nominalQuota",
    "namespaceSelector",
    "matchExpressions",
    "nodeTaints",
    "tolerations",
    "levels",
    "clusterSource",
    "preemption",
    "fairSharing",
    "metadata",
    "labels",
)


@pytest.mark.parametrize(("case", "version"), by_version(BAD))
def test_check_object_finds_what_the_server_refuses(case: Case, version: str) -> None:
    assert case.rule in {
        violation.rule for violation in check_object(case.manifest, parse_version(version), case.gates)
    }


@pytest.mark.parametrize(("case", "version"), by_version(GOOD))
def test_check_object_passes_what_the_server_takes(case: Case, version: str) -> None:
    assert check_object(case.manifest, parse_version(version), case.gates) == ()


def test_every_rule_has_a_bad_and_a_good_case() -> None:
    ids = {rule.id for rule in RULES} - {"KF100"}
    assert ids == {case.rule for case in BAD}
    assert ids - {case.rule for case in GOOD} <= {"KF124", "KF153", "KF158", "KF159"}


def test_rule_ids_are_unique_and_in_range() -> None:
    ids = [rule.id for rule in RULES]
    assert len(set(ids)) == len(ids)
    assert all("KF100" <= one <= "KF199" for one in ids)


def test_cases_are_named_once() -> None:
    names = [(case.name, version) for case in (*BAD, *GOOD) for version in case.versions if case.refused_by]
    assert len(set(names)) == len(names)


def test_check_object_reports_every_mistake_at_once() -> None:
    manifest = case_queue(cpu_group("-1", borrowingLimit="2"), cohort="a", stopPolicy="Drain")
    rules = [violation.rule for violation in check_object(manifest, NEWEST)]
    assert sorted(rules) == ["KF101", "KF104", "KF125", "KF126"]


def test_check_object_names_path_value_and_what_is_allowed() -> None:
    manifest = case_queue(
        {"coveredResources": ["cpu"], "flavors": [{"name": "a", "resources": [{"name": "cpu", "nominalQouta": 1}]}]}
    )
    missing, typo = check_object(manifest, NEWEST)
    assert str(missing) == "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: is required and missing"
    assert str(typo) == (
        "spec.resourceGroups[0].flavors[0].resources[0].nominalQouta: unknown field (did you mean nominalQuota?)"
    )


def test_check_object_says_the_new_name_of_an_old_field() -> None:
    (violation,) = check_object(case_queue(cpu_group(), cohort="team"), NEWEST)
    assert violation.hint == "v1beta2 calls it cohortName"


def test_check_object_says_which_kueue_brought_a_field() -> None:
    manifest = case_object("MultiKueueConfig", {"clusters": ["a"], "quotaManagement": "Manual"})
    (violation,) = check_object(manifest, parse_version("0.17"))
    assert violation.problem == "this Kueue does not have the field, which was added in 0.18"


def test_check_object_refuses_a_version_that_kueue_never_had() -> None:
    manifest = {**case_object("ResourceFlavor", {}), "apiVersion": "kueue.x-k8s.io/v2"}
    assert [violation.rule for violation in check_object(manifest, NEWEST)] == ["KF100"]


@pytest.mark.parametrize(
    ("kind", "spec", "good", "bad"),
    [
        (
            "ClusterQueue",
            {"resourceGroups": [{"coveredResources": [f"r{n}" for n in range(17)], "flavors": []}]},
            "0.14",
            "0.13",
        ),
        ("MultiKueueConfig", {"clusters": [f"c{number}" for number in range(11)]}, "0.16", "0.15"),
        ("Topology", {"levels": [{"nodeLabel": f"l{number}"} for number in range(9)]}, "0.13", "0.12"),
    ],
)
def test_check_object_knows_the_limits_of_each_release(kind: str, spec: object, good: str, bad: str) -> None:
    def has_problem(version: str) -> bool:
        violations = check_object(case_object(kind, spec), parse_version(version))
        return any("at most" in violation.problem for violation in violations)

    assert not has_problem(good) and has_problem(bad)


@pytest.mark.parametrize(
    ("version", "is_refused"), [("0.13.4", False), ("0.13.5", True), ("0.11", False), ("0.14", True)]
)
def test_check_object_knows_the_patch_that_refuses_tiny_weights(version: str, is_refused: bool) -> None:  # noqa: FBT001
    manifest = case_queue(cpu_group(), fairSharing={"weight": "1n"})
    assert bool(check_object(manifest, parse_version(version))) is is_refused


@pytest.mark.parametrize(
    ("version", "is_refused"), [("0.16.5", False), ("0.16.6", True), ("0.17.0", False), ("0.17.1", True)]
)
def test_check_object_knows_the_patch_that_checks_on_flavors(version: str, is_refused: bool) -> None:  # noqa: FBT001
    manifest = case_queue(cpu_group(), admissionChecksStrategy={"admissionChecks": [{"name": "a", "onFlavors": ["b"]}]})
    assert bool(check_object(manifest, parse_version(version))) is is_refused


def test_check_object_leaves_other_groups_alone() -> None:
    assert check_object({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "spec": 1}, NEWEST) == ()


@given(
    kind=st.sampled_from([kind.name for kind in KINDS]),
    spec=st.recursive(
        ANYTHING,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
        max_leaves=20,
    ),
    metadata=ANYTHING,
)
def test_check_object_never_fails_and_never_changes_what_it_reads(kind: str, spec: object, metadata: object) -> None:
    manifest = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}
    before = copy.deepcopy(manifest)
    check_object(manifest, NEWEST, frozenset({"ConcurrentAdmission"}))
    assert repr(manifest) == repr(before)
