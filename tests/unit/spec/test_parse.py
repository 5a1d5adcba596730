from datetime import timedelta
from fractions import Fraction

import pytest

from reconciler.objects import ClusterName
from reconciler.quantity import Percent, Quantity, parse
from reconciler.spec.enums import CapacityPolicy, Drain, Policy
from reconciler.spec.files import FleetFiles, Ignore
from reconciler.spec.model import AccessSpec, AdmissionCheck, ClusterSelector, FleetSpec, SecretRef
from reconciler.spec.nats import TextRef
from reconciler.spec.parse import parse_fleet
from reconciler.spec.places import home_cluster
from reconciler.spec.selectors import LabelSelector, Targets, parse_selector
from tests import fast_yaml
from tests.support import ROOT
from tests.unit.spec.fleet_texts import EAST, FLEET, HUB, QUEUE, WEST, files, parsed, problems, problems_of
from tests.unit.spec.whole_documents import WHOLE

TENANT = (
    "apiVersion: kfleet.dev/v1alpha1\nkind: Tenant\nmetadata: {name: t}\nspec: {namespaces: [t], queue: research}\n"
)
NODES = "apiVersion: kfleet.dev/v1alpha1\nkind: Flavor\nmetadata: {name: f}\nspec: {capacity: {source: nodes}}\n"
MASTER = "apiVersion: vk.io/v1\nkind: MasterQueue\nmetadata: {name: m}\n"


def namespace_text(clusters: str | None, name: str = "nn") -> str:
    annotations = "" if clusters is None else f", annotations: {{kfleet.dev/clusters: '{clusters}', keep: me}}"
    return f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}{annotations}}}\n"


def example() -> FleetFiles:
    paths = [path for folder in ("fleet", "overlays") for path in (ROOT / folder).rglob("*.yaml")]
    return FleetFiles("example", "", {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths})


def gpus_of(spec: FleetSpec) -> Quantity:
    found = spec.queues[0].quota[0].resources["nvidia.com/gpu"]
    assert isinstance(found, Quantity)
    return found


def test_example_fleet_and_its_overlays_are_right() -> None:
    plain, dev, prod = (parse_fleet(example(), overlay) for overlay in ("", "dev", "prod"))
    assert [cluster.name for cluster in plain.clusters] == ["hub", "cnaf-gpu", "cnaf-cpu", "lyon-gpu"]
    assert [cluster.name for cluster in plain.selected(plain.queues[0].clusters)] == ["cnaf-gpu", "lyon-gpu"]
    assert "lyon-gpu" not in [cluster.name for cluster in dev.clusters]
    assert gpus_of(dev) < gpus_of(plain)
    assert gpus_of(prod) > gpus_of(plain)
    assert prod.fleet.policy.adopt == "never"


def test_fleet_fills_in_defaults() -> None:
    spec = parsed(HUB, NODES, QUEUE, TENANT)
    assert spec.fleet.policy == Policy()
    assert spec.clusters[0].access == AccessSpec()
    assert spec.clusters[0].kueue.namespace == "kueue-system"
    assert spec.flavors[0].clusters is None
    assert spec.flavors[0].capacity.headroom is None
    queue = spec.queues[0]
    assert (queue.dispatch, queue.queueing_strategy, queue.stop_policy) == ("none", "BestEffortFIFO", "None")
    assert queue.namespace_selector is None
    assert queue.fair_sharing_weight is None
    assert spec.tenants[0].local_queue == "research"
    assert spec.tenants[0].skypilot is None


def test_fleet_reads_where_the_logins_of_buses_are_kept() -> None:
    fleets = [WHOLE["Fleet"], WHOLE["Cluster"]]
    spec = parse_fleet(files(fleet__all=fast_yaml.safe_dump_all(fleets)))
    first, second, third = spec.fleet.nats
    assert (first.servers, first.user, first.password, first.key) == (("nats://a",), "u", TextRef("E"), TextRef("E"))
    assert (second.token, second.ca) == (TextRef(file="f"), TextRef(file="f"))
    assert third.credentials == TextRef(namespace="keys", name="nats", key="text")
    assert spec.fleet.has_live_master_queues


def test_fleet_reads_every_field() -> None:
    kinds = [each for kind, each in WHOLE.items() if kind not in ("Overlay", "MasterQueue")]
    spec = parse_fleet(files(fleet__all=fast_yaml.safe_dump_all(kinds)))
    capacity = CapacityPolicy(
        Percent(Fraction(1, 20)),
        timedelta(minutes=2),
        timedelta(minutes=90),
        timedelta(milliseconds=500),
        ("site", "example.org/"),
    )
    assert spec.fleet.suspend
    assert spec.fleet.policy.capacity == capacity
    cluster = spec.clusters[0]
    assert cluster.access.secret_ref == SecretRef("keys", "east", "config")
    assert (cluster.drain, cluster.suspend, cluster.kueue.version) == (Drain.WAIT, True, "0.16.2")
    flavor = spec.flavors[0]
    assert flavor.capacity.resources == {"cpu": parse(64), "memory": parse("512Gi"), "nvidia.com/gpu": parse(8)}
    assert flavor.topology_name == "racks"
    queue = spec.queues[0]
    assert queue.quota_management == "Automated"
    assert queue.quota[0].resources == {
        "cpu": Percent(Fraction(3, 5)),
        "memory": parse("500m"),
        "nvidia.com/gpu": parse(32),
    }
    assert queue.quota[0].lending_limit == {"cpu": Percent(Fraction(1, 20))}
    assert queue.manager_quota[0].borrowing_limit == {"cpu": parse(10)}
    assert queue.admission_checks == (AdmissionCheck("capacity"), AdmissionCheck("provisioning", ("a100",)))
    assert queue.fair_sharing_weight == parse(2)
    assert queue.namespace_selector is not None
    assert queue.namespace_selector.manifest() == WHOLE["Queue"]["spec"]["namespaceSelector"]
    tenant = spec.tenants[0]
    assert (tenant.local_queue, tenant.stop_policy, tenant.fair_sharing_weight) == ("jobs", "HoldAndDrain", parse(3))


def test_fleet_knows_where_each_field_stands() -> None:
    queue = parsed(QUEUE).queues[0]
    error = queue.document.error(("spec", "quota", 0, "resources", "nvidia.com/gpu"), "too many")
    assert str(error) == 'fleet/all.yaml:15: spec.quota[0].resources["nvidia.com/gpu"]: too many'


def test_master_queue_is_read_as_its_crd_reads_it() -> None:
    text = fast_yaml.safe_dump(WHOLE["MasterQueue"])
    queue = parsed(EAST, text).master_queues[0]
    assert queue.targets == Targets(words=("east",))
    assert queue.template is not None
    assert "unknown" not in queue.template
    assert queue.template["stopPolicy"] == "StopAndHold"
    nats, pattern, local = queue.flavors
    assert nats.nats is not None
    assert (nats.nats.pools, nats.nats.pool_pattern, nats.nats.pool_timeout) == (("cnaf",), None, timedelta(seconds=65))
    assert "secret" not in repr(queue)
    assert nats.lend_to[0].limits["memory"] == parse("1Gi")
    assert pattern.nats is not None
    assert (pattern.nats.pool_pattern, pattern.nats.pool_timeout) == ("^podman-", timedelta(seconds=60))
    assert pattern.nominal_quota is None
    assert local.is_local
    assert local.nominal_quota is not None
    assert {name: str(amount) for name, amount in local.nominal_quota.items()} == {
        "cpu": "1M",
        "memory": "1Ei",
        "pods": "100k",
        "nvidia.com/gpu": "10k",
    }


@pytest.mark.parametrize(
    ("written", "filled"),
    [
        ("{cohort: c}", {}),
        (
            "{cohort: c, flavorFungibility: {}}",
            {"flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "TryNextFlavor"}},
        ),
        (
            "{cohort: c, preemption: {borrowWithinCohort: {}}}",
            {
                "preemption": {
                    "reclaimWithinCohort": "Never",
                    "withinClusterQueue": "Never",
                    "borrowWithinCohort": {"policy": "LowerPriority"},
                }
            },
        ),
    ],
)
def test_master_queue_template_has_the_defaults_of_its_crd(written: str, filled: dict[str, object]) -> None:
    queue = parsed(EAST, f"{MASTER}spec: {{template: {written}}}\n").master_queues[0]
    defaults = {"stopPolicy": "None", "queueingStrategy": "BestEffortFIFO", "namespaceSelector": {}}
    assert queue.template == {"cohort": "c", **defaults, **filled}


def test_master_queue_without_a_spec_is_accepted() -> None:
    assert parsed(EAST, MASTER).master_queues[0].template is None


@pytest.mark.parametrize(
    ("clusters", "names"),
    [
        (None, ["hub"]),
        ("manager", ["hub"]),
        ("workers", ["east", "west"]),
        ("all", ["hub", "east", "west"]),
        ("west", ["west"]),
        ("manager, west", ["hub", "west"]),
        ("site=cnaf", ["east"]),
        ("site in (cnaf,lyon)", ["east", "west"]),
        ("!site", []),
        ("site!=cnaf", ["west"]),
    ],
)
def test_native_object_goes_to_the_clusters_of_its_annotation(clusters: str | None, names: list[str]) -> None:
    spec = parsed(HUB, EAST, WEST, namespace_text(clusters))
    assert [cluster.name for cluster in spec.targeted(spec.objects[0].targets)] == names


def test_native_object_goes_to_the_only_cluster() -> None:
    spec = parsed(EAST, namespace_text(None))
    assert [cluster.name for cluster in spec.targeted(spec.objects[0].targets)] == ["east"]


def test_native_object_loses_annotations_of_kfleet_only() -> None:
    assert parsed(HUB, namespace_text("all")).objects[0].manifest["metadata"] == {
        "name": "nn",
        "annotations": {"keep": "me"},
    }
    bare = namespace_text("all").replace(", keep: me", "")
    assert parsed(HUB, bare).objects[0].manifest["metadata"] == {"name": "nn"}
    assert parsed(HUB, namespace_text(None)).objects[0].manifest["metadata"] == {"name": "nn"}


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        (None, ["east", "west"]),
        (ClusterSelector(names=(ClusterName("hub"), ClusterName("west"))), ["hub", "west"]),
        (ClusterSelector(labels=LabelSelector({})), ["east", "west"]),
        (ClusterSelector(labels=parse_selector("site=lyon")), ["west"]),
        (ClusterSelector(names=(ClusterName("nowhere"),)), []),
    ],
)
def test_selector_chooses_clusters(selector: ClusterSelector | None, names: list[str]) -> None:
    assert [cluster.name for cluster in parsed(HUB, EAST, WEST).selected(selector)] == names


def test_manager_is_known() -> None:
    manager = parsed(EAST, HUB).manager
    assert manager is not None
    assert manager.name == "hub"
    assert parsed(EAST).manager is None


@pytest.mark.parametrize(("told", "namespace"), [("", "queues"), ("namespace: keys, ", "keys")])
def test_secret_with_a_kubeconfig_lies_where_kueue_is_on_the_manager(told: str, namespace: str) -> None:
    access = f"access: {{secretRef: {{{told}name: login}}}}"
    hub = HUB.replace("role: manager", "role: manager, kueue: {namespace: queues}")
    its = f"{FLEET}spec: {{kubestellar: {{its: {{{access}}}}}}}\n"
    east = EAST.replace("role: worker", f"role: worker, {access}")
    spec = parse_fleet(files(fleet__all=f"{its}---\n{hub}---\n{east}"))
    found = [spec.fleet.inventory, *(cluster.access for cluster in spec.clusters if cluster.name == "east")]
    assert [one.secret_ref.namespace for one in found if one and one.secret_ref] == [namespace, namespace]


def test_lint_rules_are_ignored_with_a_reason() -> None:
    text = namespace_text(None).replace(
        "{name: nn}", '{name: nn, annotations: {kfleet.dev/lint-ignore: "KF012: a b; KF020: c"}}'
    )
    assert parsed(HUB, text).objects[0].document.ignores == (Ignore("KF012", "a b"), Ignore("KF020", "c"))


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([FLEET], "fleet/fleet.yaml:2: kind: a Fleet exists already, at fleet/doc0.yaml:2"),
        ([EAST, EAST], "fleet/doc1.yaml:3: metadata.name: Cluster east exists already, at fleet/doc0.yaml:3"),
        ([HUB, EAST.replace("worker", "manager")], "fleet/doc1.yaml:4: spec.role: there is already a manager: hub"),
        (
            [namespace_text(None), EAST, WEST],
            "fleet/doc0.yaml:3: metadata: goes to no cluster: the fleet has no manager",
        ),
        ([MASTER, EAST, WEST], "fleet/doc0.yaml:3: metadata: goes to no cluster: the fleet has no manager"),
        (
            [HUB, namespace_text("all"), namespace_text("all")],
            "fleet/doc2.yaml:3: metadata.name: Namespace nn exists already",
        ),
        (
            [HUB, namespace_text("a=(")],
            "fleet/doc1.yaml:3: metadata.annotations[\"kfleet.dev/clusters\"]: 'a=(' is not a label",
        ),
        (
            [HUB, namespace_text(" ")],
            "fleet/doc1.yaml:3: metadata.annotations[\"kfleet.dev/clusters\"]: ' ' names no cluster",
        ),
        (["kind: Queue\n"], "fleet/doc0.yaml:1: apiVersion: is required"),
        (["apiVersion: 1\nkind: Queue\n"], "fleet/doc0.yaml:1: apiVersion: is not a string"),
        (["apiVersion: v1\nkind: List\nitems: [1]\n"], "fleet/doc0.yaml:3: items: is not a list of objects"),
        (["apiVersion: v1\nkind: List\n"], "fleet/doc0.yaml:1: items: is not a list of objects"),
        (["apiVersion: apps\nkind: X\nmetadata: {name: x}\n"], "fleet/doc0.yaml:1: apiVersion: 'apps' is not v1 or"),
        (["apiVersion: v1\nkind: X\n", HUB], "fleet/doc0.yaml:1: metadata.name: is required"),
        (
            ["apiVersion: v1\nkind: X\nmetadata: {name: A_}\n", HUB],
            "fleet/doc0.yaml:3: metadata.name: 'A_' is not a valid object name",
        ),
        ([namespace_text(None, "n"), HUB], "fleet/doc0.yaml:3: metadata.name: false is not a string: put it in quotes"),
        (
            ["apiVersion: v1\nkind: X\nmetadata: {name: '{{ .Release.Name }}'}\n", HUB],
            "fleet/doc0.yaml:3: metadata.name: '{{ .Release.Name }}': templates ({{ … }}) are not supported",
        ),
        (
            ["apiVersion: v1\nkind: X\nmetadata: {name: x, namespace: y}\n", HUB],
            "fleet/doc0.yaml:3: metadata.namespace: true is not a string: put it in quotes",
        ),
        (
            ["apiVersion: kfleet.dev/v1alpha1\nkind: Que\nmetadata: {name: x}\n"],
            (
                "fleet/doc0.yaml:2: kind: 'Que' is not a kind of kfleet.dev; did you mean Queue?; "
                "allowed: Fleet, Cluster, "
            ),
        ),
        (
            ["apiVersion: kfleet.dev/v1alpha1\nkind: Overlay\nmetadata: {name: x}\n"],
            "fleet/doc0.yaml:2: kind: an Overlay belongs into overlays/<name>/",
        ),
    ],
)
def test_mistake_is_named(documents: list[str], message: str) -> None:
    found = problems_of(*documents)
    assert len(found) == 1
    assert found[0].startswith(message)


@pytest.mark.parametrize(
    ("ignore", "problem"),
    [("KF012", "KF012 is ignored without a reason: write KF012: and the reason"), ("all", "'all' is not a lint rule")],
)
def test_lint_rule_is_not_ignored_without_a_reason(ignore: str, problem: str) -> None:
    text = HUB.replace("{name: hub}", f"{{name: hub, annotations: {{kfleet.dev/lint-ignore: '{ignore}'}}}}")
    assert problem in problems_of(text)[0]


def test_fleet_without_a_fleet_document_is_named() -> None:
    assert problems(files(fleet__a=HUB)) == ["fleet: there is no Fleet document: exactly one is required"]


def test_kustomization_without_a_kind_is_named_as_what_it_is() -> None:
    (found,) = problems(files(fleet__fleet=f"{FLEET}---\n{HUB}", fleet__kustomization="resources: [queues.yaml]\n"))
    assert found.startswith("fleet/kustomization.yaml:1: a Kustomization is not an object of a cluster")


def test_same_native_object_may_go_to_different_clusters() -> None:
    assert len(parsed(HUB, EAST, namespace_text("hub"), namespace_text("east")).objects) == 2


def test_broken_file_hides_what_depends_on_the_whole() -> None:
    assert problems(files(fleet__a="a: [1\nb: 2", fleet__b=namespace_text(None))) == [
        "fleet/a.yaml:2: not valid YAML: did not find expected ',' or ']' while parsing a flow sequence"
    ]


def home_text(home: str) -> str:
    return f"{FLEET}spec: {{homeCluster: {home}}}\n"


def test_home_cluster_is_the_one_that_the_fleet_names_or_else_the_first() -> None:
    clusters = (EAST.replace("worker", "standalone"), WEST.replace("worker", "standalone"))
    text = "---\n".join((home_text("west"), *clusters))
    assert home_cluster(parse_fleet(files(fleet__fleet=text))).name == "west"
    assert home_cluster(parsed(*clusters)).name == "east"
    assert home_cluster(parsed(EAST, HUB)).name == "hub"


@pytest.mark.parametrize(
    ("clusters", "problem"),
    [
        ((EAST, WEST), "spec.homeCluster: 'north' is not a Cluster of the fleet"),
        ((EAST, HUB), "spec.homeCluster: is only for fleets without a manager: remove it"),
    ],
)
def test_home_cluster_is_a_cluster_of_a_fleet_without_a_manager(clusters: tuple[str, ...], problem: str) -> None:
    (found,) = problems(files(fleet__fleet="---\n".join((home_text("north"), *clusters))))
    assert problem in found
