"""MiniClusters get a queue where there is one to get, and keep the one they name."""

from tests.unit.flux.documents import FLAVOR, QUEUE, RESEARCH, TENANT, made, text

SECOND = TENANT.replace("name: astro}", "name: more}").replace("localQueue: jobs", "localQueue: night")


def labels(*documents: str) -> dict[str, dict[str, str]]:
    return {name: one["spec"].get("jobLabels", {}) for name, one in made(*documents)[1].items()}


def test_mini_cluster_gets_the_only_local_queue_of_its_namespace() -> None:
    documents = (FLAVOR, RESEARCH, TENANT, text())
    assert labels(*documents) == {"east": {QUEUE: "jobs"}, "west": {QUEUE: "jobs"}}
    notes = {entry.notes for entry in made(*documents)[0].objects if entry.ref.kind == "MiniCluster"}
    assert notes == {("goes through jobs, the only LocalQueue of namespace astro",)}


def test_mini_cluster_gets_a_local_queue_that_is_written_as_it_is() -> None:
    local = (
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\n"
        "metadata: {name: own, namespace: astro, annotations: {kfleet.dev/clusters: east}}\n"
        "spec: {clusterQueue: research}\n"
    )
    assert labels(FLAVOR, RESEARCH, local, text()) == {"east": {QUEUE: "own"}, "west": {}}


def test_mini_cluster_keeps_the_queue_and_the_labels_that_it_names() -> None:
    named = text(labels=f"  jobLabels: {{{QUEUE}: other, team: a}}\n")
    assert labels(FLAVOR, RESEARCH, TENANT, named)["east"] == {QUEUE: "other", "team": "a"}
    unnamed = text(labels="  jobLabels: {team: a}\n")
    assert labels(FLAVOR, RESEARCH, TENANT, unnamed)["east"] == {QUEUE: "jobs", "team": "a"}


def test_mini_cluster_gets_nothing_where_there_is_a_choice_or_no_queue() -> None:
    assert labels(FLAVOR, RESEARCH, TENANT, SECOND, text())["east"] == {}
    assert labels(FLAVOR, RESEARCH, text())["east"] == {}


def test_mini_cluster_on_a_cluster_without_the_queue_gets_nothing() -> None:
    assert labels(FLAVOR, RESEARCH, TENANT, text(targets="manager")) == {"hub": {}}
