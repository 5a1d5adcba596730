"""MiniClusters get a queue where there is one to get, and keep the one they name."""

from tests.builders import CLUSTERS, QUEUE_NAME, Document, annotated, local_queue, tenant
from tests.unit.flux.lammps import FLAVOR, RESEARCH, TENANT, fleet_lammps, made

SECOND = tenant("more", "research", "astro", localQueue="night")


def labels(*documents: Document) -> dict[str, dict[str, str]]:
    return {name: one["spec"].get("jobLabels", {}) for name, one in made(*documents)[1].items()}


def test_mini_cluster_gets_the_only_local_queue_of_its_namespace() -> None:
    documents = (FLAVOR, RESEARCH, TENANT, fleet_lammps())
    assert labels(*documents) == {"east": {QUEUE_NAME: "jobs"}, "west": {QUEUE_NAME: "jobs"}}
    notes = {entry.notes for entry in made(*documents)[0].objects if entry.ref.kind == "MiniCluster"}
    assert notes == {("goes through jobs, the only LocalQueue of namespace astro",)}


def test_mini_cluster_gets_a_local_queue_that_is_written_as_it_is() -> None:
    local = annotated(local_queue("own", "astro", "research"), {CLUSTERS: "east"})
    assert labels(FLAVOR, RESEARCH, local, fleet_lammps()) == {"east": {QUEUE_NAME: "own"}, "west": {}}


def test_mini_cluster_keeps_the_queue_and_the_labels_that_it_names() -> None:
    named = fleet_lammps(jobLabels={QUEUE_NAME: "other", "team": "a"})
    assert labels(FLAVOR, RESEARCH, TENANT, named)["east"] == {QUEUE_NAME: "other", "team": "a"}
    unnamed = fleet_lammps(jobLabels={"team": "a"})
    assert labels(FLAVOR, RESEARCH, TENANT, unnamed)["east"] == {QUEUE_NAME: "jobs", "team": "a"}


def test_mini_cluster_gets_nothing_where_there_is_a_choice_or_no_queue() -> None:
    assert labels(FLAVOR, RESEARCH, TENANT, SECOND, fleet_lammps())["east"] == {}
    assert labels(FLAVOR, RESEARCH, fleet_lammps())["east"] == {}


def test_mini_cluster_on_a_cluster_without_the_queue_gets_nothing() -> None:
    assert labels(FLAVOR, RESEARCH, TENANT, fleet_lammps(targets="manager")) == {"hub": {}}
