"""Where rules must keep quiet, and the less obvious ways to break them."""

import time

import pytest

from reconciler.kueue.kinds import KINDS
from reconciler.lint.model import Severity
from reconciler.lint.run import lint, lint_spec
from reconciler.render.compute import compute_desired
from reconciler.spec.files import FleetFiles
from reconciler.spec.parse import parse_fleet
from tests.support import ROOT
from tests.unit.lint.lint_findings import find, parse_snippet, rules_of

DISPATCHED = """\
kind: Queue
metadata: {name: research}
spec: {dispatch: multikueue, quota: [{flavor: cpu, resources: {cpu: 5}}]}
"""
WEST = "kind: Cluster\nmetadata: {name: west}\nspec: {role: worker}\n---\n"


@pytest.mark.parametrize("name", ["", "dev", "prod"])
def test_lint_finds_nothing_in_the_fleet_of_this_repository(name: str) -> None:
    paths = [path for folder in ("fleet", "overlays") for path in sorted((ROOT / folder).rglob("*.yaml"))]
    files = FleetFiles("here", "", {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in paths})
    spec = parse_fleet(files, name)
    assert [str(finding) for finding in lint(spec, compute_desired(spec))] == []


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS if kind.name != "LocalQueue"])
@pytest.mark.parametrize(
    "spec", ["null", "text", "[]", "{resourceGroups: 5, nodeLabels: [a], clusters: x, levels: {}}"]
)
def test_lint_survives_malformed_native_objects(kind: str, spec: str) -> None:
    found = find(f"kind: {kind}\nmetadata: {{name: odd, namespace: astro}}\nspec: {spec}\n")
    assert all(finding.place.line for finding in found)


def test_lint_survives_values_of_the_wrong_type_inside() -> None:
    snippet = """\
kind: ClusterQueue
metadata: {name: odd}
spec:
  namespaceSelector: {matchLabels: {a: [b]}, matchExpressions: [{operator: [In], key: {}}]}
  cohortName: [a]
  admissionChecksStrategy: {admissionChecks: [{name: [x]}, y]}
  resourceGroups: [{flavors: [{name: {}, resources: [{name: [cpu], nominalQuota: {}}]}, 3]}, 7]
---
kind: ResourceFlavor
metadata: {name: odd}
spec: {nodeLabels: {a: [b]}, nodeTaints: [{effect: [x]}, y], tolerations: [3], topologyName: [t]}
---
kind: MultiKueueConfig
metadata: {name: odd}
spec: {clusters: [{a: b}]}
"""
    assert "KF102" in rules_of(snippet)


def test_multikueue_sends_to_clusters_of_the_fleet_and_to_others() -> None:
    snippet = """\
kind: ClusterQueue
metadata: {name: night}
spec: {namespaceSelector: {}, admissionChecksStrategy: {admissionChecks: [{name: out}]}}
---
kind: AdmissionCheck
metadata: {name: out}
spec:
  controllerName: kueue.x-k8s.io/multikueue
  parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: out}
---
kind: MultiKueueConfig
metadata: {name: out}
spec: {clusters: [east, abroad]}
---
kind: LocalQueue
metadata: {name: jobs, namespace: default}
spec: {clusterQueue: night}
---
apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
metadata: {name: lammps}
spec: {size: 4, jobLabels: {kueue.x-k8s.io/queue-name: jobs}, containers: [{image: lammps}]}
"""
    found = {finding.rule: finding.problem for finding in find(snippet)}
    assert found.keys() == {"KF017", "KF052"}
    assert found["KF052"].startswith("MultiKueue sends its workloads to east, which")


def test_namespace_that_only_the_manager_has_is_found_where_jobs_are_sent() -> None:
    snippet = """\
kind: Queue
metadata: {name: research}
spec:
  dispatch: multikueue
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
---
kind: LocalQueue
metadata: {name: jobs, namespace: far, annotations: {kfleet.dev/clusters: all}}
spec: {clusterQueue: research}
---
apiVersion: v1
kind: Namespace
metadata: {name: far, annotations: {kfleet.dev/clusters: manager}}
"""
    (problem,) = [finding.problem for finding in find(snippet) if finding.rule == "KF052"]
    assert problem.startswith("the fleet has namespace far on the manager but not on east")
    assert "KF052" not in rules_of(snippet.replace("clusters: manager", "clusters: all"))


def test_worker_of_an_old_release_is_fine_under_an_old_manager() -> None:
    old = (
        'kind: Cluster\nmetadata: {name: hub}\nspec: {role: manager, kueue: {version: "0.14"}}\n---\n'
        'kind: Cluster\nmetadata: {name: east}\nspec: {role: worker, kueue: {version: "0.14"}}\n---\n'
        f"{DISPATCHED}"
    )
    assert rules_of(old) == set()


def test_too_many_workers_of_the_newest_release_have_one_way_out() -> None:
    workers = "---\n".join(f"kind: Cluster\nmetadata: {{name: w{n}}}\nspec: {{role: worker}}\n" for n in range(20))
    (finding,) = find(f"{workers}---\n{DISPATCHED}")
    assert finding.problem == "the queue has 21 workers, but MultiKueue of Kueue 0.19 allows at most 20"
    assert finding.hint == "split it into queues of one cohort, each with a part of the workers"


def test_targets_name_clusters_that_exist() -> None:
    native = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, annotations: {kfleet.dev/clusters: 'east,wets'}}\n"
    (finding,) = find(WEST + native)
    assert finding.problem == "there is no Cluster 'wets'; did you mean west?"
    assert finding.field == 'metadata.annotations["kfleet.dev/clusters"]'
    (finding,) = find(WEST + native.replace("east,wets", "worker"))
    assert finding.problem == "there is no Cluster 'worker'; did you mean workers?"


def test_namespace_of_which_only_the_name_is_known_is_not_checked_by_labels() -> None:
    by_label = """\
kind: LocalQueue
metadata: {name: jobs, namespace: site, annotations: {kfleet.dev/clusters: workers}}
spec: {clusterQueue: open}
---
kind: Queue
metadata: {name: open}
spec:
  namespaceSelector: {matchLabels: {team: a}}
  quota: [{flavor: cpu, resources: {cpu: 5}}]
"""
    assert rules_of(by_label) == set()
    assert rules_of(by_label.replace("team: a", "kubernetes.io/metadata.name: other")) == {"KF067"}


def test_generated_objects_do_not_repeat_the_errors_of_their_document() -> None:
    snippet = """\
kind: Queue
metadata: {name: research}
spec: {quota: [{flavor: cpu, resources: {cpu: 5}, lendingLimit: {cpu: 1}}]}
"""
    desired = compute_desired(parse_snippet(snippet))
    assert any("lendingLimit" in repr(entry.manifest) for entry in desired.objects)
    assert rules_of(snippet) == {"KF023"}


def test_lint_spec_speaks_where_documents_contradict_each_other() -> None:
    spec = parse_snippet("kind: Tenant\nmetadata: {name: physics}\nspec: {namespaces: [astro], queue: research}\n")
    with pytest.raises(ExceptionGroup):
        compute_desired(spec)
    assert [finding.problem for finding in lint_spec(spec)] == [
        (
            "tenant astro (at fleet/all.yaml:46) has a LocalQueue research in namespace astro already, "
            "for queue research (on east)"
        )
    ]


def test_lint_of_three_thousand_documents_is_fast() -> None:
    entry = "{flavor: cpu, resources: {cpu: 1m}}"
    documents = [f"kind: Cluster\nmetadata: {{name: w{n}}}\nspec: {{role: worker}}\n" for n in range(3)]
    documents += [
        f"kind: Queue\nmetadata: {{name: q{n}}}\nspec: {{cohort: c{n % 50}, quota: [{entry}]}}\n" for n in range(750)
    ]
    documents += [
        f"kind: Tenant\nmetadata: {{name: t{n}}}\nspec: {{namespaces: [n{n}], queue: q{n % 750}}}\n"
        for n in range(2250)
    ]
    spec = parse_snippet("---\n".join(documents))
    desired = compute_desired(spec)
    assert len(desired.objects) > 10_000
    started = time.process_time()
    assert lint(spec, desired) == ()
    assert time.process_time() - started < 5


def test_priority_class_of_a_standalone_cluster_may_differ() -> None:
    snippet = """\
kind: Cluster
metadata: {name: alone}
spec: {role: standalone}
---
kind: WorkloadPriorityClass
metadata: {name: urgent, annotations: {kfleet.dev/clusters: manager}}
value: 1000
---
kind: WorkloadPriorityClass
metadata: {name: urgent, annotations: {kfleet.dev/clusters: ROLE}}
value: 500
"""
    assert rules_of(snippet.replace("ROLE", "standalones")) == set()
    assert rules_of(snippet.replace("ROLE", "workers")) == {"KF049"}


def test_too_many_workers_of_an_old_release_have_two_ways_out() -> None:
    old = 'kind: Cluster\nmetadata: {name: hub}\nspec: {role: manager, kueue: {version: "0.15"}}\n---\n'
    workers = "---\n".join(f"kind: Cluster\nmetadata: {{name: w{n}}}\nspec: {{role: worker}}\n" for n in range(10))
    (finding,) = find(f"{old}{workers}---\n{DISPATCHED}")
    assert finding.hint.startswith("upgrade the manager's Kueue, which then allows 20, or split it")
    more = workers.replace("name: w", "name: v")
    (finding,) = find(f"{old}{workers}---\n{more}---\n{DISPATCHED}")
    assert finding.hint.startswith("split it")


def test_local_queue_without_namespace_is_an_error_at_its_metadata() -> None:
    metadata = "{name: lost, annotations: {kfleet.dev/clusters: workers}}"
    text = f"kind: LocalQueue\nmetadata: {metadata}\nspec: {{clusterQueue: research}}\n"
    found = [one for one in find(text) if one.severity is Severity.ERROR]
    assert {one.rule for one in found} == {"KF112"}
    assert found[0].field == "metadata.namespace"


@pytest.mark.parametrize(
    ("metadata", "rule"),
    [
        ("namespace: Astro", "KF112"),
        ("namespace: astro, lables: {a: b}", "KF101"),
        ("namespace: astro, labels: [a]", "KF102"),
        ("namespace: astro, labels: {a: 3}", "KF102"),
        ("namespace: astro, labels: {a: very fast}", "KF111"),
        ("namespace: astro, annotations: {a: yes}", "KF102"),
    ],
)
def test_metadata_of_an_object_of_another_group_is_checked_too(metadata: str, rule: str) -> None:
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: odd\n  {metadata.replace(', ', chr(10) + '  ')}\n"
    (found,) = find(text)
    assert (found.rule, found.severity) == (rule, Severity.ERROR)
    assert found.field.startswith("metadata.") and found.place.line > 4


def test_resource_that_is_mistyped_in_one_of_two_places_is_not_a_matter_of_order() -> None:
    group = "{coveredResources: [cpu, memroy], flavors: [{name: cpu, resources: [%s]}]}"
    quotas = ", ".join(f"{{name: {name}, nominalQuota: 1}}" for name in ("cpu", "memory"))
    found = find(f"kind: ClusterQueue\nspec:\n  namespaceSelector: {{}}\n  resourceGroups: [{group % quotas}]\n")
    assert [one.hint for one in found if one.rule == "KF124"] == [
        "memroy is only in coveredResources, memory only here: give both the same name"
    ]


def test_flavor_that_only_another_cluster_has_says_which() -> None:
    text = """\
kind: ClusterQueue
metadata: {name: own, annotations: {kfleet.dev/clusters: manager}}
spec:
  namespaceSelector: {}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: cpu, resources: [{name: cpu, nominalQuota: 1}]}]}]
"""
    (found,) = [one for one in find(text) if one.rule == "KF033"]
    assert found.problem == "there is no ResourceFlavor 'cpu' (on hub)"
    assert found.hint.endswith(" has it: add this cluster to its clusters")
