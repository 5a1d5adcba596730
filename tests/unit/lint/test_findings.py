"""What a finding says: where, which object, on which clusters."""

from textwrap import dedent

from reconciler.lint.model import Severity
from reconciler.spec.files import FleetFiles
from reconciler.spec.parse import parse_fleet
from tests import fast_yaml
from tests.unit.lint.lint_findings import completed, find, find_text, findings_of, parse_snippet

HEAD = """\
apiVersion: kfleet.dev/v1alpha1
kind: Fleet
metadata: {name: test}
---
apiVersion: kfleet.dev/v1alpha1
kind: Cluster
metadata: {name: hub}
spec: {role: standalone}
---
"""
WORKERS = "---\n".join(f"kind: Cluster\nmetadata: {{name: w{number}}}\nspec: {{role: worker}}\n" for number in range(7))
STRICT = """\
kind: Queue
metadata: {name: research}
spec:
  cohort: science
  queueingStrategy: StrictFIFO
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
---
kind: Cohort
metadata: {name: science, annotations: {kfleet.dev/clusters: workers}}
"""


def test_finding_points_to_the_line_of_a_native_field() -> None:
    text = HEAD + dedent("""\
        apiVersion: kueue.x-k8s.io/v1beta2
        kind: ClusterQueue
        metadata: {name: night}
        spec:
          namespaceSelector: {}
          queueingStrategy: FIFO
        """)
    (finding,) = find_text(text)
    assert (finding.rule, finding.severity) == ("KF104", Severity.ERROR)
    assert str(finding.place) == "fleet/all.yaml:15"
    assert finding.field == "spec.queueingStrategy"
    assert finding.problem == "'FIFO' is not one of StrictFIFO, BestEffortFIFO (on hub)"


def test_finding_of_a_generated_object_names_it_at_its_document() -> None:
    (finding,) = find(STRICT)
    assert finding.problem.startswith("east/ClusterQueue/research: with StrictFIFO, a first job")
    assert finding.field == "spec.queueingStrategy"
    assert finding.place == parse_snippet(STRICT).queues[0].document.place("spec", "queueingStrategy")


def test_finding_is_one_for_all_clusters_with_the_same_problem() -> None:
    (finding,) = find(f"{STRICT}---\n{WORKERS}")
    assert finding.problem.startswith("east/ClusterQueue/research: ")
    assert finding.problem.endswith("behind it, the same on w0, w1, w2, w3, w4 and 2 more")


def test_finding_differs_where_the_numbers_of_clusters_differ() -> None:
    snippet = """\
kind: Cluster
metadata: {name: west}
spec: {role: worker}
---
kind: Flavor
metadata: {name: cpu}
spec:
  nodeLabels: {pool: cpu}
  capacity: {source: static, resources: {cpu: 100}}
---
kind: Queue
metadata: {name: research}
spec:
  clusters: {names: [east]}
  quota: [{flavor: cpu, resources: {cpu: 70}}]
---
kind: Queue
metadata: {name: other}
spec:
  namespaceSelector: {}
  quota: [{flavor: cpu, resources: {cpu: 120}}]
"""
    assert [finding.problem for finding in find(snippet)] == [
        "the queues get 120 cpu of flavor cpu, but its capacity is 100 (on west)",
        "the queues get 190 cpu of flavor cpu, but its capacity is 100 (on east)",
    ]


def test_findings_stand_in_the_order_of_the_files() -> None:
    snippet = "kind: Tenant\nmetadata: {name: a}\nspec: {namespaces: [b], queue: c}\n---\n" + STRICT
    found = find(snippet)
    assert [finding.rule for finding in found] == ["KF073", "KF001"]
    assert [finding.place.line for finding in found] == sorted(finding.place.line for finding in found)
    assert found == find(snippet)


def test_finding_is_printed_with_place_field_hint_and_rule() -> None:
    finding = find("kind: Tenant\nmetadata: {name: a}\nspec: {namespaces: [b], queue: reserch}\n")[0]
    line = 1 + sum(1 for _ in completed(""))
    assert finding.place.line > line
    assert str(finding) == (
        f"fleet/all.yaml:{finding.place.line}: spec.queue: there is no Queue 'reserch'; did you mean research? [KF001]"
    )


def test_finding_suggests_no_name_where_hundreds_are_wrong() -> None:
    tenants = (
        f"kind: Tenant\nmetadata: {{name: t{n}}}\nspec: {{namespaces: [n{n}], queue: reserch}}\n" for n in range(60)
    )
    found = find("---\n".join(tenants))
    assert {finding.problem for finding in found} == {"there is no Queue 'reserch'"}
    assert len(found) == 60


def test_findings_hold_no_password() -> None:
    snippet = """\
apiVersion: vk.io/v1
kind: MasterQueue
metadata: {name: pools}
spec:
  template: {cohort: pools, stopPolicy: Stop}
  flavors:
  - name: a
    natsFlavor: {natsConnector: "nats://user:hunter2@nats", natsSubject: s, poolRegExp: x, poolTimeout: 3}
"""
    found = find(snippet)
    assert {finding.rule for finding in found} == {"KF080", "KF081", "KF084", "KF086", "KF087"}
    assert "hunter2" not in repr(found)


QUEUE_TEXT = """\
apiVersion: kfleet.dev/v1alpha1
kind: Queue
metadata: {name: night}
spec:
  cohort: science
  fairSharing: {weight: 2}
  queueingStrategy: StrictFIFO
  namespaceSelector: {}
  quota:
  - flavor: cpu
    resources:
      cpu: 10%
      memory: 1000000000Gi
"""


def test_finding_about_a_rendered_object_points_to_the_field_that_was_typed() -> None:
    base = fast_yaml.safe_dump_all(completed(""), sort_keys=False)
    files = {"fleet/all.yaml": base.encode(), "fleet/queue.yaml": QUEUE_TEXT.encode()}
    found = findings_of(parse_fleet(FleetFiles("test", "", files)))
    places = {one.rule: (str(one.place), one.field) for one in found if one.place.path == "fleet/queue.yaml"}
    assert places["KF072"] == ("fleet/queue.yaml:6", "spec.fairSharing")
    assert places["KF073"] == ("fleet/queue.yaml:7", "spec.queueingStrategy")
    assert ("fleet/queue.yaml:13", "spec.quota[0].resources.memory") in places.values()
