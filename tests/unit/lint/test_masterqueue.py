"""MasterQueues: the less obvious ways to break their rules, and where these keep quiet."""

import pytest

from tests.unit.lint.lint_findings import find, rules_of


def master(nats: str = "pools: [cnaf]", template: str = "", connector: str = "nats://nats") -> str:
    return f"""\
apiVersion: vk.io/v1
kind: MasterQueue
metadata: {{name: pools}}
spec:
  template: {{cohort: pools{template}}}
  flavors:
  - name: a
    natsFlavor: {{natsConnector: "{connector}", natsSubject: s, virtualNode: vk, poolTimeout: 65, {nats}}}
"""


@pytest.mark.parametrize("pattern", ["^podman", "(?i)^podman", r"\Apodman", ".*"])
def test_pattern_may_be_anchored_in_many_ways(pattern: str) -> None:
    assert rules_of(master(f"poolRegExp: '{pattern}'")) == set()


def test_empty_pattern_is_not_anchored() -> None:
    assert rules_of(master("poolRegExp: ''")) == {"KF086"}


def test_token_in_a_connector_is_a_secret_too() -> None:
    assert rules_of(master(connector="nats://s3cret@nats")) == {"KF080"}


def test_second_connector_may_hold_a_secret() -> None:
    assert rules_of(master(connector="nats://one:4222,nats://user:s3cret@two:4222")) == {"KF080"}


def test_pool_name_with_a_dot_is_not_part_of_a_subject() -> None:
    assert rules_of(master("pools: [cnaf.t1]")) == {"KF089"}


def test_preemption_without_borrowing_is_fine() -> None:
    assert rules_of(master(template=", preemption: {withinClusterQueue: LowerPriority}")) == set()
    assert rules_of(master(template=", preemption: {borrowWithinCohort: {policy: Never}}")) == set()


def test_local_flavor_of_a_master_queue_must_be_in_the_fleet() -> None:
    local = """\
apiVersion: vk.io/v1
kind: MasterQueue
metadata: {name: pools}
spec:
  template: {cohort: pools}
  flavors: [{name: nowhere, nominalQuota: {}, localFlavor: {}}]
"""
    (finding,) = find(local)
    assert (finding.rule, finding.field) == ("KF033", "spec.flavors[0].localFlavor")
    assert finding.hint == "add a Flavor or a native ResourceFlavor of this name, unless another tool makes it"


def test_master_queue_without_a_spec_is_silent() -> None:
    assert rules_of("apiVersion: vk.io/v1\nkind: MasterQueue\nmetadata: {name: pools}\n") == set()


def test_password_in_the_connector_of_a_flavor_is_seen_too() -> None:
    flavor = """\
kind: Flavor
metadata: {name: cpu}
spec:
  capacity: {source: nats, nats: {connector: "nats://user:s3cret@nats", subject: s, pools: [cnaf]}}
"""
    (finding,) = find(flavor)
    assert (finding.rule, finding.field) == ("KF080", "spec.capacity.nats.connector")
    assert "s3cret" not in str(finding)


@pytest.mark.parametrize(
    ("connector", "is_other"),
    [
        ("nats://user:s3cret@nats:4222", False),
        ("user:s3cret@nats", False),
        ("nats://other:s3cret@nats", True),
        ("nats://user:another@nats", True),
        ("nats://nats", True),
        ("nats://other:s3cret@elsewhere", False),
    ],
)
def test_two_logins_for_the_same_servers_are_an_error(connector: str, *, is_other: bool) -> None:
    flavor = f"""\
kind: Flavor
metadata: {{name: cpu}}
spec:
  capacity: {{source: nats, nats: {{connector: "{connector}", subject: s, pools: [cnaf]}}}}
"""
    found = [one for one in find(f"{master(connector='nats://user:s3cret@nats')}---\n{flavor}") if one.rule == "KF098"]
    assert [one.field for one in found] == (["spec.capacity.nats.connector"] if is_other else [])
    assert not any("s3cret" in str(one) for one in found)


def test_connector_with_a_server_that_the_login_does_not_name_is_an_error() -> None:
    fleet = "kind: Fleet\nmetadata: {name: example}\nspec: {nats: [{servers: [known], token: {env: T}}]}\n---\n"
    assert rules_of(fleet + master(connector="nats://known")) == set()
    (finding,) = find(fleet + master(connector="nats://known,nats://evil"))
    assert finding.rule == "KF098" and finding.problem.endswith("not for evil:4222")


@pytest.mark.parametrize(
    ("old", "new", "field", "problem"),
    [
        ("cohort: pools", "cohort: pools, preemtion: {}", "spec.template.preemtion", "; did you mean preemption?"),
        ("nominalQuota", "nominalQouta", "spec.flavors[0].nominalQouta", "; did you mean nominalQuota?"),
        ("flavors:", "extra: 1\n  flavors:", "spec.extra", ""),
    ],
)
def test_field_that_the_crd_would_drop_is_named(old: str, new: str, field: str, problem: str) -> None:
    master = """\
apiVersion: vk.io/v1
kind: MasterQueue
metadata: {name: pools}
spec:
  template: {cohort: pools}
  flavors:
  - {name: cpu, localFlavor: {any: thing}, nominalQuota: {cpu: 8, example.org/anything: 1}}
"""
    assert "KF211" not in rules_of(master)
    (found,) = [one for one in find(master.replace(old, new)) if one.rule == "KF211"]
    assert (found.field, found.problem) == (field, f"unknown field, which has no effect{problem}")
