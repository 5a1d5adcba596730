"""`kfleet argocd generate` without a server: parameters, deadlines, and capacity that was observed."""

import errno
import json
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.capacity.codec import look_record
from reconciler.capacity.model import Entry, Ledger, ObservedCapacity, Sample, SourceKey
from reconciler.errors import KfleetError
from reconciler.objects import ClusterName, Ref
from reconciler.quantity import parse
from reconciler.report.argocd import (
    OBSERVED,
    OPTIONS,
    WAVE,
    Parameters,
    annotate_for_argocd,
    observed_note,
    read_parameters,
)
from reconciler.snapshot.model import FlavorKey
from reconciler.spec.enums import CapacitySource
from tests import fast_yaml
from tests.builders import ALL_DELETES, Document, cluster_document, flavor, fleet_document, main_tenant, open_queue
from tests.support import eventually, kfleet_program

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
QUEUE = Ref(ClusterName("hub"), "kueue.x-k8s.io", "ClusterQueue", "", "gpu")
HUB = {"name": "cluster", "string": "hub"}


@dataclass(frozen=True)
class Application:
    """A repository as Argo CD lays it out for its plugin."""

    folder: Path

    def write(self, *documents: Document) -> None:
        cluster = cluster_document("hub", "standalone")
        path = self.folder / "fleet" / "fleet.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(fast_yaml.safe_dump_all([fleet_document("one", policy=ALL_DELETES), cluster, *documents]))

    def start(self, *options: str, **parameters: str) -> subprocess.Popen[str]:
        settings = {f"ARGOCD_ENV_{name.upper()}": value for name, value in parameters.items()}
        return subprocess.Popen(
            [kfleet_program(), "argocd", "generate", *options],
            cwd=self.folder / "fleet",
            env=os.environ | {"ARGOCD_APP_SOURCE_PATH": "fleet"} | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def generate(self, *options: str, **parameters: str) -> tuple[int, list[dict[str, Any]], str]:
        with self.start(*options, **parameters) as process:
            out, err = process.communicate(timeout=60)
        return process.returncode, [json.loads(text) for text in out.split("---\n") if text], err


@pytest.fixture
def application(tmp_path: Path) -> Application:
    return Application(tmp_path / "repository")


@pytest.mark.parametrize(
    ("environment", "want"),
    [
        ({}, Parameters()),
        ({"ARGOCD_APP_PARAMETERS": "null", "ARGOCD_ENV_OVERLAY": "prod"}, Parameters(overlay="prod")),
        ({"ARGOCD_APP_PARAMETERS": json.dumps([HUB]), "PARAM_CLUSTER": "other"}, Parameters("hub")),
        ({"PARAM_CLUSTER": "hub", "ARGOCD_ENV_CLUSTER": "other"}, Parameters("hub")),
    ],
)
def test_parameters_come_from_what_argo_cd_sets(environment: Mapping[str, str], want: Parameters) -> None:
    assert read_parameters(environment) == want


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "ARGOCD_APP_PARAMETERS: is not a list of parameters"),
        ('{"name": "cluster"}', "is not a list of parameters"),
        ('["hub"]', "is not a list of parameters"),
        ('[{"name": "cluster", "array": ["hub"]}]', "parameter cluster: must be a string"),
        ('[{"name": "role", "string": "hub"}]', "parameter 'role': is not known"),
    ],
)
def test_parameters_that_cannot_be_read_are_refused(text: str, problem: str) -> None:
    with pytest.raises(KfleetError, match=problem):
        read_parameters({"ARGOCD_APP_PARAMETERS": text})


def test_object_keeps_what_the_fleet_says_of_it() -> None:
    own = {OPTIONS: "Prune=false", "example.org/mine": "1"}
    found = annotate_for_argocd(
        QUEUE, {"kind": "ClusterQueue", "metadata": {"name": "gpu", "annotations": own}}, "yesterday"
    )
    annotations = found["metadata"]["annotations"]
    assert annotations == {**own, WAVE: annotations[WAVE], OBSERVED: "yesterday"}


@pytest.mark.parametrize(("kind", "option"), [("MultiKueueCluster", "Prune=confirm"), ("LocalQueue", None)])
def test_worker_that_leaves_is_deleted_only_once_an_operator_confirms_it(kind: str, option: str | None) -> None:
    ref = Ref(ClusterName("hub"), "kueue.x-k8s.io", kind, "", "east")
    assert (
        annotate_for_argocd(ref, {"kind": kind, "metadata": {"name": "east"}})["metadata"]["annotations"].get(OPTIONS)
        == option
    )


def test_observation_becomes_stale_and_says_so() -> None:
    assert observed_note(NOW, NOW + timedelta(hours=47)) == "2026-05-04T03:02:01Z"
    assert observed_note(NOW, NOW + timedelta(hours=49)) == "2026-05-04T03:02:01Z, stale: older than 2 days"


def test_generate_needs_an_observation_where_capacity_is_observed(application: Application) -> None:
    application.write(*_live())
    code, objects, err = application.generate()
    assert (code, objects) == (1, []) and "capacity is not known" in err and "parameter snapshot" in err


def test_generate_prints_a_cluster_whose_capacity_is_known(application: Application) -> None:
    observed = flavor("cpu", capacity={"source": "nodes"}, clusters={"names": ["hub"]})
    only_hub = {
        **(day := open_queue("day", "cpu", {"cpu": "40%"})),
        "spec": {**day["spec"], "clusters": {"names": ["hub"]}},
    }
    application.write(observed, only_hub, cluster_document("other", "standalone"), flavor("other"))
    code, objects, err = application.generate(cluster="other")
    assert code == 0, err
    assert [one["kind"] for one in objects] == ["ResourceFlavor"]
    assert application.generate(cluster="hub")[0] == 1


def test_generate_takes_capacity_from_a_file_and_says_how_old_it_is(application: Application) -> None:
    application.write(*_live())
    (application.folder / "seen.json").write_text(json.dumps(look_record(_look())))
    code, objects, err = application.generate(snapshot="seen.json")
    assert code == 0, err
    found = next(entry for entry in objects if entry["kind"] == "ClusterQueue")
    assert found["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] == "40"
    assert found["metadata"]["annotations"][OBSERVED] == "2026-05-04T03:02:01Z, stale: older than 2 days"


def test_generate_refuses_queues_that_only_a_cluster_knows(application: Application) -> None:
    application.write()
    path = application.folder / "fleet" / "fleet.yaml"
    path.write_text(
        path.read_text().replace("spec:\n  policy:", "spec:\n  masterQueues: {fromCluster: true}\n  policy:")
    )
    code, objects, err = application.generate()
    assert (code, objects) == (1, []) and "MasterQueues that are read from a cluster cannot be rendered" in err


def test_generate_gives_up_at_its_deadline(application: Application) -> None:
    application.write()
    os.mkfifo(application.folder / "never.json")
    code, objects, err = application.generate("--deadline", "0.5", snapshot="never.json")
    assert (code, objects) == (1, []) and "took longer than 0.5 s; nothing was printed" in err


def test_generate_ends_on_sigterm(application: Application) -> None:
    application.write()
    os.mkfifo(application.folder / "never.json")
    with application.start(snapshot="never.json") as process:
        writer = eventually(lambda: _opened(application.folder / "never.json"))
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        os.close(writer)
    assert (process.returncode, out) == (1, "") and "ended by SIGTERM; nothing was printed" in err


def _opened(path: Path) -> int | None:
    """Somebody who writes into a pipe: there is one as soon as somebody reads from it."""
    try:
        return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return None


def _live() -> list[Document]:
    observed = flavor("cpu", capacity={"source": "nodes"}, nodeLabels={"example.org/class": "cpu"})
    return [observed, open_queue("day", "cpu", {"cpu": "40%"}), main_tenant("team", "day")]


def _look() -> ObservedCapacity:
    source = SourceKey(CapacitySource.NODES, FlavorKey(ClusterName("hub"), "cpu"))
    amounts = {"cpu": parse("100")}
    ledger = Ledger((Entry(Sample(source, NOW, amounts), NOW, amounts),))
    return ObservedCapacity(NOW, ledger, ledger)
