import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.cli import execute
from reconciler.cli.explain_fields import Field, fields_of, find_field, list_kinds
from reconciler.cli.explain_words import allowed_of, conditions_of, describe, limits_of, type_of
from reconciler.lint.docs import example_of, shortened
from reconciler.lint.run import RULES
from tests.support import Kfleet


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert execute(["explain", *arguments]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], what: str) -> str:
    assert execute(["explain", what]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    return told.err.strip()


def every_field() -> Iterator[Field]:
    pending = list(list_kinds())
    while pending:
        field = pending.pop()
        yield field
        pending += fields_of(field)


def test_explain_alone_lists_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    lines = explained(capsys).splitlines()
    assert lines[0] == "KINDS"
    for kind in ("fleet", "cluster", "flavor", "queue", "tenant", "overlay", "masterqueue"):
        assert [line for line in lines if line.startswith(f"  {kind} ")]


def test_explain_field_tells_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert explained(capsys, "queue.spec.quota") == (
        "KIND      Queue (kfleet.dev/v1alpha1)\n"
        "FIELD     spec.quota <[]object> -required-\n"
        "LIMITS    1 to 256 entries\n"
        "\n"
        "DESCRIPTION\n"
        "  What the queue may use on each selected cluster, one entry per flavor, in the order in which Kueue\n"
        "  tries them; a cluster gets the entries of the flavors that it has.\n"
        "\n"
        "FIELDS\n"
        "  flavor <string> -required-\n"
        "      Name of a Flavor.\n"
        "  resources <map[string]quantity|percent> -required-\n"
        "      Nominal quota per resource: a quantity, or a percentage of the flavor's capacity.\n"
        "  borrowingLimit <map[string]quantity|percent>\n"
        "      How much may be borrowed from the cohort on top, per resource; needs a cohort.\n"
        "  lendingLimit <map[string]quantity|percent>\n"
        "      How much may be lent to the cohort, per resource, at most the nominal quota; needs a cohort.\n"
    )


@pytest.mark.parametrize(
    "path", ["queue.quota", "Queue.spec.quota", "QUEUES.quota", "queue.spec.quota[0]", "queue.quota[]", "queue.quota."]
)
def test_explain_finds_a_field_however_it_is_written(capsys: pytest.CaptureFixture[str], path: str) -> None:
    assert explained(capsys, path) == explained(capsys, "queue.spec.quota")


def test_explain_kind_shows_the_fields_of_its_spec(capsys: pytest.CaptureFixture[str]) -> None:
    lines = explained(capsys, "tenants").splitlines()
    assert "  apiVersion <string> -required- kfleet.dev/v1alpha1" in lines
    assert "    namespaces <[]string> -required-" in lines
    assert "    stopPolicy <string> None | Hold | HoldAndDrain" in lines


def test_explain_recursive_prints_the_tree(capsys: pytest.CaptureFixture[str]) -> None:
    tree = explained(capsys, "tenant", "--recursive").partition("FIELDS\n")[2]
    assert tree.startswith("  apiVersion <string> -required- kfleet.dev/v1alpha1\n  kind")
    assert "    fairSharing <object>\n      weight <quantity>\n    stopPolicy" in tree


def test_explain_alone_recursive_prints_every_tree(capsys: pytest.CaptureFixture[str]) -> None:
    text = explained(capsys, "--recursive")
    assert text.count("\nFIELDS\n") == len(list_kinds())
    assert "\n        natsSubject <string> -required-" in text


def test_explain_field_tells_default_allowed_and_example(capsys: pytest.CaptureFixture[str]) -> None:
    text = explained(capsys, "queue.dispatch")
    assert "DEFAULT   none\nALLOWED   multikueue, kubestellar, none\n" in text
    assert "EXAMPLE   science\n" in explained(capsys, "queue.cohort")


def test_explain_tells_what_is_required_under_a_condition(capsys: pytest.CaptureFixture[str]) -> None:
    assert "  resources <map[string]quantity> -required when source is static-" in explained(capsys, "flavor.capacity")
    operation = explained(capsys, "overlay.patches.json6902")
    assert "  value <any> -required when op is add, replace or test-" in operation


def test_explain_tells_the_rule_of_a_choice(capsys: pytest.CaptureFixture[str]) -> None:
    rule = "say exactly one of context (with or without kubeconfig), inCluster, secretRef or env"
    assert rule in explained(capsys, "cluster.access")
    assert "say exactly one of merge or json6902" in explained(capsys, "overlay.patches")
    assert "resources are for source static only" in explained(capsys, "flavor.capacity")


def test_explain_finds_names_with_dots(capsys: pytest.CaptureFixture[str]) -> None:
    text = explained(capsys, "masterqueue.flavors.nominalQuota.nvidia.com/gpu")
    assert "FIELD     spec.flavors.nominalQuota.nvidia.com/gpu <integer>\nDEFAULT   10000\n" in text


def test_explain_finds_a_key_of_a_map(capsys: pytest.CaptureFixture[str]) -> None:
    text = explained(capsys, "queue.quota.resources.nvidia.com/gpu")
    assert "FIELD     spec.quota.resources.nvidia.com/gpu <quantity|percent>\n" in text
    assert "Nominal quota per resource" in text


def test_explain_json_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(explained(capsys, "queue.preemption", "-o", "json"))
    assert content["field"] == "spec.preemption"
    assert content["type"] == "object"
    assert content["default"] == "none"
    names = {each["field"]: each["allowed"] for each in content["fields"]}
    assert names["spec.preemption.reclaimWithinCohort"] == ["Never", "LowerPriority", "Any"]
    assert not any("fields" in each for each in content["fields"])


def test_explain_json_recursive_holds_the_tree(capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(explained(capsys, "queue.preemption", "-o", "json", "--recursive"))
    assert [each["field"] for each in content["fields"][2]["fields"]] == [
        "spec.preemption.borrowWithinCohort.policy",
        "spec.preemption.borrowWithinCohort.maxPriorityThreshold",
    ]


def test_explain_json_alone_holds_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = json.loads(explained(capsys, "-o", "json"))["kinds"]
    assert [(kind["kind"], kind["apiVersion"]) for kind in kinds][-1] == ("MasterQueue", "vk.io/v1")


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        ("flavr", "'flavr': no such kind; did you mean flavor?"),
        ("cohrt", "'cohrt': no such kind; did you mean cohort?"),
        (
            "xyz.spec",
            "'xyz': no such kind; there are: fleet, cluster, flavor, queue, tenant, overlay, masterqueue",
        ),
        (".", "'': no such kind; there are: fleet, cluster, flavor, queue, tenant, overlay, masterqueue"),
        ("queue.qota", "queue: no field 'qota'; did you mean quota?"),
        ("queue.spec.qota.flavor", "queue.spec: no field 'qota'; did you mean quota?"),
        ("queue.quota.flavr", "queue.spec.quota: no field 'flavr'; did you mean flavor?"),
        ("queue.fairSharing.zzz", "queue.spec.fairSharing: no field 'zzz'; there are: weight"),
        ("queue.cohort.x", "queue.spec.cohort: no field 'x' here: cohort is a string"),
        (
            "cluster.kueue.config.x",
            "cluster.spec.kueue.config: no field 'x' here: config is free-form",
        ),
        ("KF999", "KF999: no such lint rule; kfleet explain rules lists them"),
    ],
)
def test_explain_refuses_what_does_not_exist(capsys: pytest.CaptureFixture[str], what: str, problem: str) -> None:
    assert refused(capsys, what) == f"error: {problem}"


def test_explain_finds_every_field_by_its_own_path() -> None:
    fields = list(every_field())
    assert len(fields) > 100
    assert [str(field) for field in fields if find_field(str(field)) != field] == []


def test_explain_knows_type_and_description_of_every_field() -> None:
    assert [str(field) for field in every_field() if not field.description.text] == []
    assert [str(field) for field in every_field() if field.type == "any"] == ["overlay.spec.patches.json6902.value"]


def test_explain_takes_every_note_out_of_the_descriptions() -> None:
    left = [str(field) for field in every_field() if re.search("Default:|Example:", field.description.text)]
    assert left == []
    for field in every_field():
        written = field.schema["description"]
        found = field.description.default, field.description.example
        assert ("Default:" in written, "Example:" in written) == tuple(map(bool, found)), str(field)


@pytest.mark.parametrize(
    ("schema", "type_text"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["string", "array"], "items": {"type": "string"}}, "string|[]string"),
        ({"type": "array", "items": {"type": ["string", "object"]}}, "[](string|object)"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "map[string]string"),
        ({"type": "object"}, "object"),
        ({"enum": ["a", "b"]}, "string"),
        ({"const": True}, "boolean"),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, "string|integer"),
        ({"type": "string", "format": "kfleet-duration"}, "duration"),
        ({"type": "string", "format": "uri"}, "uri"),
        ({}, "any"),
    ],
)
def test_type_of_reads_like_kubectl(schema: dict[str, Any], type_text: str) -> None:
    assert type_of(schema) == type_text


@pytest.mark.parametrize(
    ("schema", "limits"),
    [
        ({"minimum": 0}, ("at least 0",)),
        ({"minimum": 0, "maximum": 100}, ("0 to 100",)),
        ({"minLength": 1}, ("not empty",)),
        ({"maxLength": 63}, ("at most 63 characters",)),
        ({"minItems": 1, "uniqueItems": True}, ("at least 1 entry", "items are unique")),
        ({"minProperties": 1, "maxProperties": 64}, ("1 to 64 keys",)),
        ({"pattern": "^a$"}, ("matches ^a$",)),
        ({"pattern": "^a$", "patternErrorMessage": "write a"}, ("write a",)),
        ({"items": {"minLength": 1}}, ("entries: not empty",)),
        ({"propertyNames": {"maxLength": 9}}, ("keys: at most 9 characters",)),
        ({"additionalProperties": {"maxLength": 9}}, ("values: at most 9 characters",)),
        ({"items": {"properties": {}, "errorMessage": "say one"}}, ("say one",)),
        ({"errorMessage": "say one", "else": {"errorMessage": "say one"}}, ("say one",)),
        ({"additionalProperties": False}, ()),
    ],
)
def test_limits_of_tells_every_bound_once(schema: dict[str, Any], limits: tuple[str, ...]) -> None:
    assert limits_of(schema) == limits


def test_allowed_of_looks_into_lists() -> None:
    assert allowed_of({"type": "array", "items": {"enum": ["a", True]}}) == ("a", "true")


def test_describe_prefers_the_default_of_the_schema() -> None:
    description = describe({"description": "One. Two. Default: x. Example: 0.5.", "default": False})
    assert (description.text, description.default, description.example) == ("One. Two.", "false", "0.5")
    assert description.first_sentence == "One."
    assert describe({"description": "no full stop"}).first_sentence == "no full stop"


def test_conditions_of_reads_if_and_then() -> None:
    schema = {"if": {"properties": {"a": {"const": "x"}, "b": {"enum": [1, 2]}}}, "then": {"required": ["c"]}}
    assert conditions_of(schema) == {"c": "a is x and b is 1 or 2"}


def test_fields_of_takes_those_of_alternatives_too() -> None:
    document = list_kinds()[0]
    schema = {"oneOf": [{"properties": {"a": {}}}], "allOf": [{"anyOf": [{"properties": {"b": {}}}]}]}
    field = Field("Fleet", (), "object", True, "", document.description, (), (), schema)
    assert {each.name for each in fields_of(field)} == {"a", "b"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_explain_rule_tells_all_of_it(capsys: pytest.CaptureFixture[str], rule: Any) -> None:
    lines = [line.strip() for line in explained(capsys, rule.id.lower()).splitlines()]
    assert lines[:2] == [f"RULE      {rule.id}", f"SEVERITY  {rule.severity}"]
    text = " ".join(" ".join(lines).split())
    assert " ".join(rule.title.split()) in text and " ".join(rule.why.split()) in text
    example = example_of(rule.id)
    assert all(line.strip() in lines for line in f"{shortened(example.bad)}\n{shortened(example.good)}".splitlines())
    assert ("cannot be silenced" in text) is not rule.can_be_silenced
    assert json.loads(explained(capsys, rule.id, "-o", "json"))["title"] == rule.title


def test_explain_rules_lists_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    lines = explained(capsys, "rules").splitlines()
    assert [line[:5] for line in lines if line.startswith("KF")] == [rule.id for rule in RULES]
    listed = json.loads(explained(capsys, "rules", "-o", "json"))["rules"]
    assert [each["rule"] for each in listed] == [rule.id for rule in RULES]


def test_explain_runs_as_a_command(kfleet: Kfleet) -> None:
    good, bad = kfleet("explain", "queue.dispatch"), kfleet("explain", "queue.dispach")
    assert good.returncode == 0 and "multikueue, kubestellar, none" in good.stdout and good.stderr == ""
    assert bad.returncode == 1 and bad.stderr == "error: queue: no field 'dispach'; did you mean dispatch?\n"


def test_native_kind_says_where_it_belongs(capsys: pytest.CaptureFixture[str]) -> None:
    text = explained(capsys, "cohort")
    assert text.startswith("KIND      Cohort (kueue.x-k8s.io/v1beta2), a native object of Kueue\n")
    assert "spec.cohort of a Queue creates a Cohort" in text
    assert "goes to every cluster with a queue that uses it" in " ".join(text.split())
    assert explained(capsys, "workloadpriorityclasses").startswith("KIND      WorkloadPriorityClass ")
    assert json.loads(explained(capsys, "Topology", "-o", "json"))["native"] is True
    assert "kfleet.dev/clusters" not in explained(capsys, "workload")
