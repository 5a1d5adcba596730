"""What lint says of queues whose jobs KubeStellar carries."""

from tests.unit.lint.lint_findings import find

DOWNSYNCED = """\
kind: Queue
metadata: {name: research}
spec:
  dispatch: kubestellar
  quota: [{flavor: cpu, resources: {cpu: 50%}}]
---
kind: Cluster
metadata: {name: west, labels: {site: cnaf}}
spec: {role: worker}
---
kind: Fleet
metadata: {name: example}
spec: {kubestellar: SETTINGS}
"""


def problems(settings: str) -> list[tuple[str, str]]:
    return [(finding.rule, finding.problem) for finding in find(DOWNSYNCED.replace("SETTINGS", settings))]


def test_downsynced_queue_is_clean() -> None:
    assert problems("{}") == []


def test_clusters_with_the_same_labels_cannot_be_told_apart() -> None:
    assert problems("{selectBy: [site]}") == [
        ("KF043", "KubeStellar cannot distinguish it from east: both are site=cnaf, so a job would run on both")
    ]


def test_cluster_without_the_label_is_never_found() -> None:
    assert problems("{selectBy: [name, zone]}") == [
        ("KF043", "has no label zone, by which KubeStellar selects clusters"),
        ("KF043", "has no label zone, by which KubeStellar selects clusters"),
    ]


def test_name_of_a_cluster_has_to_fit_into_a_label() -> None:
    text = DOWNSYNCED.replace("SETTINGS", "{}").replace("name: west", f"name: {'w' * 64}")
    (finding,) = find(text)
    assert finding.rule == "KF043"
    assert finding.problem == "its name has 64 characters, but as a label of each job it may have at most 63"


def test_weight_of_a_cluster_that_is_not_there_is_found() -> None:
    ((rule, problem),) = problems("{placement: {rule: weights, weights: {est: 3}}}")
    assert rule == "KF003" and problem.startswith("there is no Cluster 'est'")


def test_quota_of_the_manager_names_flavors_that_exist() -> None:
    text = DOWNSYNCED.replace("SETTINGS", "{}").replace(
        "  dispatch: kubestellar\n", "  dispatch: kubestellar\n  managerQuota: [{flavor: cup, resources: {cpu: 1}}]\n"
    )
    ((rule, problem),) = [(finding.rule, finding.problem) for finding in find(text)]
    assert rule == "KF002" and problem.startswith("there is no Flavor 'cup'")
