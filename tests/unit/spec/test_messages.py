"""Messages to users: where, what, and what is allowed instead."""

import pytest

from reconciler.text import suggest
from tests.unit.spec.fleet_texts import EAST, files, problems, problems_of

QUOTA = "quota: [{flavor: a, resources: {cpu: 1}}]"
ALPHA = "kfleet.dev/v1alpha1"


def document_text(kind: str, spec: str, api_version: str = ALPHA) -> str:
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\nspec:\n  {spec}\n"


QUEUES = {
    f"{QUOTA}\n  clusters: {{matchExpressions: [{{key: a, operator: in, values: [b]}}]}}": "6: "
    "spec.clusters.matchExpressions[0].operator: 'in' is not allowed; did you mean In?; allowed: In, NotIn, Exists",
    f"{QUOTA}\n  dispatsh: none": "6: spec.dispatsh: unknown field; did you mean dispatch?; allowed: admissionChecks, ",
    "cohort: a": "4: spec.quota: is required",
    f"{QUOTA}\n  dispatch: Multikueue": "6: spec.dispatch: 'Multikueue' is not allowed; did you mean multikueue?; "
    "allowed: multikueue, kubestellar, none",
    f"{QUOTA}\n  cohort: 7": "6: spec.cohort: 7 is not a string: put it in quotes",
    f"{QUOTA}\n  cohort: [a]": "6: spec.cohort: a list of 1 is not a string",
    f"{QUOTA}\n  drainOnDelete: null": "6: spec.drainOnDelete: nothing is not true or false",
    "quota: {}": "5: spec.quota: a mapping of 0 is not a list",
    "quota: []": "5: spec.quota: must not be empty",
    "quota:\n  - flavor: a\n    resources: {cpu: x}": "7: spec.quota[0].resources.cpu: 'x' is not a quantity: "
    "write it like 4, 500m, 1.5 or 64Gi",
    "quota:\n  - flavor: a\n    resources: {cpu: 1x}": "7: spec.quota[0].resources.cpu: '1x' is not a quantity: "
    "write it like 4, 500m, 1.5 or 64Gi",
    "quota:\n  - flavor: a\n    resources: {cpu: 1KI}": "7: spec.quota[0].resources.cpu: '1KI' is not a quantity: ",
    "quota:\n  - flavor: a\n    resources: {cpu: 120%}": "7: spec.quota[0].resources.cpu: '120%' is not a percentage: "
    "write it like 60% or 12.5%, from 0% to 100%",
    'quota:\n  - flavor: a\n    resources:\n      "cpu!": 1': "8: spec.quota[0].resources[\"cpu!\"]: 'cpu!' is not "
    "allowed: a resource is named like cpu, memory or nvidia.com/gpu",
    f"{QUOTA}\n  cohort: Big_One": "6: spec.cohort: 'Big_One' is not allowed: use lower case letters, digits, - and ., "
    "beginning and ending with a letter or digit",
    f"{QUOTA}\n  cohort: {'a' * 300}": "6: spec.cohort: has 300 characters: at most 253",
    f"{QUOTA}\n  clusters: {{names: [a], matchLabels: {{a: b}}}}": "6: spec.clusters: use names alone, "
    "or matchLabels and matchExpressions",
    f"{QUOTA}\n  clusters: {{names: [a, a]}}": "6: spec.clusters.names: contains the same entry twice",
    f"{QUOTA}\n  clusters: {{}}": "6: spec.clusters: must not be empty",
    f"{QUOTA}\n  clusters: {{matchExpressions: [{{key: a, operator: In}}]}}": "6: "
    "spec.clusters.matchExpressions[0].values: is required",
    f"{QUOTA}\n  clusters: {{matchExpressions: [{{key: a, operator: Exists, values: [b]}}]}}": "6: "
    "spec.clusters.matchExpressions[0].values: Exists and DoesNotExist take no values",
}
OTHERS = {
    document_text(
        "Cluster", 'role: worker\n  drain: "true"'
    ): "6: spec.drain: 'true' is not allowed: write true without quotes; allowed: false, true, evict",
    document_text("Cluster", 'role: worker\n  suspend: "true"'): "6: spec.suspend: 'true' is not true or false: "
    "write true without quotes",
    document_text("Queue", "quota:\n  - flavor: a\n    resources: {cpu: -5}"): "7: spec.quota[0].resources.cpu: "
    "-5 is negative: write 0 or more",
    "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n": "2: kind: "
    "a Kustomization is not an object of a cluster",
    "apiVersion: v1\nkind: Namespace\nmetadata:\n\tname: a\n": "4: not valid YAML: the line is indented with a tab; "
    "use spaces",
    "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {{ .Values.name }}\n": "4: templates ({{ … }}) are not "
    "supported: commit what they print",
    document_text(
        "Cluster", "role: worker\n  credentials: {secret: a, lifetime: 1h}"
    ): "6: spec.credentials: say lifetime and server, or secret, or clusterProfile",
    document_text(
        "Cluster", "role: worker\n  credentials: {server: 10.0.0.4}"
    ): "6: spec.credentials.server: '10.0.0.4' is not allowed: write an address like https://10.0.0.4:6443",
    document_text(
        "Cluster", "role: worker\n  access: {context: a, env: B}"
    ): "6: spec.access: say exactly one of context (with or without kubeconfig), inCluster, secretRef or env",
    document_text("Cluster", "role: worker\n  kueue: {version: 0.19}"): "6: spec.kueue.version: 0.19 is not a string: "
    "put it in quotes",
    document_text("Flavor", "capacity: {source: static}"): "5: spec.capacity.resources: is required",
    document_text(
        "Flavor", "capacity: {source: nodes, resources: {cpu: 1}}"
    ): "5: spec.capacity: resources are for source static only",
    document_text("Flavor", "capacity: {source: nodes, headroom: 5}"): "5: spec.capacity.headroom: 5 is not a string: "
    "write 5%",
    document_text("Flavor", f"capacity: {{source: nodes}}\n  nodeTaints: [{'{key: a, effect: NoExecute},' * 9}]"): "6: "
    "spec.nodeTaints: has 9 entries: at most 8",
    document_text("MasterQueue", "flavors:\n  - natsFlavor: {poolRegExp: '('}", "vk.io/v1"): "6: spec.flavors[0]",
    document_text("Queue", QUOTA, "kfleet.dev/v1"): "1: apiVersion: 'kfleet.dev/v1' is not allowed; did you mean "
    "kfleet.dev/v1alpha1?; allowed: kfleet.dev/v1alpha1",
}


@pytest.mark.parametrize(
    ("text", "message"), [*((document_text("Queue", spec), wanted) for spec, wanted in QUEUES.items()), *OTHERS.items()]
)
def test_message_says_where_what_and_what_is_allowed(text: str, message: str) -> None:
    found = problems_of(text, EAST)
    assert found[0].startswith(f"fleet/doc0.yaml:{message}")
    assert len(found) == 1 or "flavors" in message


def test_message_about_the_labels_of_pools_says_what_to_write() -> None:
    found, *_ = problems_of(document_text("Fleet", "policy: {capacity: {poolLabels: [a b]}}"))
    where = "fleet/doc0.yaml:5: spec.policy.capacity.poolLabels[0]: 'a b' is not allowed"
    assert found == f"{where}: write the key of a label, like site, or a domain with a slash, like example.org/"


def test_all_messages_come_at_once_in_order() -> None:
    wrong = document_text("Queue", "quota: []\n  cohort: 1\n  dispatsh: none\n  stopPolicy: Hold")
    found = problems_of(wrong, "a: [", document_text("Cluster", "role: boss"))
    assert [problem.split(": ")[0] for problem in found] == [
        "fleet/doc0.yaml:5",
        "fleet/doc0.yaml:6",
        "fleet/doc0.yaml:7",
        "fleet/doc1.yaml:2",
        "fleet/doc2.yaml:5",
    ]


@pytest.mark.parametrize(
    ("limit", "problem"),
    [("maxDeletes: -1", "-1 is too small: at least 0"), ("maxPercent: 101", "101 is too large: at most 100")],
)
def test_message_names_the_limits_of_a_number(limit: str, problem: str) -> None:
    text = document_text("Fleet", f"policy: {{prune: {{{limit}}}}}")
    assert any(found.endswith(problem) for found in problems_of(text))


@pytest.mark.parametrize("wrong", ["90", "1d", "s", "-1s", "99999h", "1m1"])
def test_message_names_a_wrong_duration(wrong: str) -> None:
    text = document_text("Fleet", f"policy: {{capacity: {{staleAfter: '{wrong}'}}}}")
    assert any(f"spec.policy.capacity.staleAfter: '{wrong}'" in found for found in problems_of(text))


@pytest.mark.parametrize(("pattern", "problem"), [("(", "missing )"), ("a{99999999999}", "repetition number")])
def test_message_names_a_wrong_pattern(pattern: str, problem: str) -> None:
    nats = f"{{natsConnector: x, natsSubject: s, poolRegExp: '{pattern}'}}"
    text = document_text("MasterQueue", f"flavors: [{{name: a, natsFlavor: {nats}}}]", "vk.io/v1")
    found = problems_of(text, EAST)
    assert f"poolRegExp: '{pattern}' is not a regular expression" in found[0]
    assert problem in found[0]


def test_message_shortens_a_long_value() -> None:
    assert len(problems_of(document_text("Queue", f"{QUOTA}\n  dispatch: {'x' * 9000}"))[0]) < 250


def test_messages_of_one_document_are_bounded() -> None:
    keys = "".join(f"  k{index}: 1\n" for index in range(500))
    found = problems_of(document_text("Queue", QUOTA) + keys)
    assert len(found) == 101
    assert any(problem.endswith("400 more problems in this document") for problem in found)


@pytest.mark.parametrize(
    ("capacity", "problem"),
    [
        ("{source: nats}", "spec.capacity.nats: is required"),
        ("{source: nodes, nats: {connector: x, subject: s, pools: [a]}}", "nats is for source nats only"),
        ("{source: clusterMetrics, subtractOther: true}", "subtractOther is for source nodes only"),
        ("{source: nats, nats: {connector: x, subject: s}}", "say exactly one of pools or poolRegExp"),
    ],
)
def test_capacity_that_does_not_fit_its_source_is_reported(capacity: str, problem: str) -> None:
    (message,) = problems_of(document_text("Flavor", f"capacity: {capacity}"))
    assert problem in message


def test_secret_text_is_kept_in_one_place() -> None:
    text = document_text("Fleet", "nats: [{servers: [nats], password: {env: A, file: b}}]")
    assert any("say exactly one of env, file or secretRef" in message for message in problems_of(text))


@pytest.mark.parametrize(
    ("wrong", "known", "meant"),
    [("esat", ["west", "east"], "; did you mean east?"), ("nroth", ["hub", "east", "west"], "")],
)
def test_suggestion_knows_swapped_letters_and_is_silent_where_nothing_is_near(
    wrong: str, known: list[str], meant: str
) -> None:
    assert suggest(wrong, known) == meant


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("capacity: {staleAfter: 90}", "spec.policy.capacity.staleAfter: 90 is not a string: write 90s"),
        ("prune: {maxPercent: 25%}", "spec.policy.prune.maxPercent: '25%' is not a whole number: write 25"),
    ],
)
def test_number_in_the_wrong_form_is_shown_in_the_right_one(policy: str, message: str) -> None:
    text = f"apiVersion: {ALPHA}\nkind: Fleet\nmetadata: {{name: a}}\nspec:\n  policy: {{{policy}}}\n"
    assert f"fleet/all.yaml:5: {message}" in problems(files(fleet__all=text))
