"""The command as people use it, on files alone."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import fast_yaml
from tests.builders import Document, asking, job, mini_cluster, pod_spec
from tests.support import ROOT, Kfleet, kfleet_program

EXAMPLE = ("--repo", str(ROOT))
ONE = pod_spec(asking(cpu="1"))


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "jobs.yaml"


def genomics(name: str, pod: Document = ONE, queue: str = "genomics", **spec: Any) -> Document:
    return job(name, pod, namespace="genomics", queue=queue, **spec)


def test_check_of_admitted_jobs_ends_with_0(kfleet_in_process: Kfleet, written: Path) -> None:
    written.write_text(fast_yaml.safe_dump(genomics("align")))
    answer = kfleet_in_process("check", str(written), *EXAMPLE)
    assert answer.returncode == 0
    assert answer.stdout.splitlines() == [
        f"{written}:1: Job/genomics/align: admitted",
        "  cnaf-gpu: LocalQueue genomics, ClusterQueue batch, runs on cnaf-gpu (a100)",
        "  cnaf-cpu: LocalQueue genomics, ClusterQueue batch, runs on cnaf-cpu (cpu)",
        "1 admitted",
    ]
    assert "LimitRanges" in answer.stderr


def test_check_tells_every_job_why_it_is_not_admitted_and_ends_with_3(kfleet_in_process: Kfleet, written: Path) -> None:
    huge = genomics("huge", parallelism=4000, completions=4000)
    astray = genomics("astray", queue="genomcis")
    written.write_text(fast_yaml.safe_dump_all([huge, astray, genomics("loose", queue="")]))
    answer = kfleet_in_process("check", str(written), *EXAMPLE, "--cluster", "cnaf-cpu")
    assert answer.returncode == 3
    lines = answer.stdout.splitlines()
    assert [line.rpartition(": ")[2] for line in lines if line.startswith(str(written))] == [
        "never",
        "never",
        "not queued",
    ]
    assert any("cpu 4000 is requested, but the queue can get" in line for line in lines)
    assert any(line.endswith("did you mean genomics?") for line in lines)
    assert lines[-1] == "2 never, 1 not queued"


def test_check_writes_json(kfleet_in_process: Kfleet, written: Path) -> None:
    written.write_text(fast_yaml.safe_dump_all([genomics("align"), {"apiVersion": "v1", "kind": "ConfigMap"}]))
    answer = kfleet_in_process("check", str(written), *EXAMPLE, "--cluster", "cnaf-cpu", "-o", "json")
    (record,) = json.loads(answer.stdout)["jobs"]
    assert (record["object"], record["verdict"], record["line"]) == ("Job/genomics/align", "admitted", 1)
    (said,) = record["answers"]
    assert (said["cluster"], said["clusterQueue"], said["runsOn"]) == ("cnaf-cpu", "batch", ["cnaf-cpu"])
    assert said["podSets"] == [{"name": "main", "count": 1, "flavors": {"cpu": "cpu"}}]
    assert "a document" in answer.stderr or "ConfigMap" in answer.stderr


def test_check_reads_standard_input_and_lists(written: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [genomics("a"), genomics("b")]}
    answer = subprocess.run(
        [kfleet_program(), "check", "-", *EXAMPLE, "-o", "json"],
        input=fast_yaml.safe_dump(listed),
        capture_output=True,
        text=True,
        check=False,
        cwd=written.parent,
    )
    assert [record["object"] for record in json.loads(answer.stdout)["jobs"]] == ["Job/genomics/a", "Job/genomics/b"]


def test_check_puts_jobs_without_a_namespace_where_the_option_says(kfleet_in_process: Kfleet, written: Path) -> None:
    manifest = genomics("align")
    del manifest["metadata"]["namespace"]
    written.write_text(fast_yaml.safe_dump(manifest))
    assert kfleet_in_process("check", str(written), *EXAMPLE, "-n", "genomics").returncode == 0
    assert kfleet_in_process("check", str(written), *EXAMPLE).returncode == 3


def test_check_asks_the_clusters_that_a_document_goes_to(kfleet_in_process: Kfleet, written: Path) -> None:
    written.write_text(fast_yaml.safe_dump(genomics("align", annotations={"kfleet.dev/clusters": "cnaf-cpu"})))
    answer = kfleet_in_process("check", str(written), *EXAMPLE, "-o", "json")
    assert [said["cluster"] for said in json.loads(answer.stdout)["jobs"][0]["answers"]] == ["cnaf-cpu"]


def test_check_translates_an_old_mini_cluster(kfleet_in_process: Kfleet, written: Path) -> None:
    manifest = mini_cluster("lammps", 2, containers=[asking(cpu="1")])
    manifest |= {"apiVersion": "flux-framework.org/v1alpha1"}
    manifest["metadata"]["namespace"] = "genomics"
    manifest["spec"]["jobLabels"] = {"kueue.x-k8s.io/queue-name": "genomics"}
    written.write_text(fast_yaml.safe_dump(manifest))
    assert kfleet_in_process("check", str(written), *EXAMPLE, "--cluster", "cnaf-cpu").returncode == 0


@pytest.mark.parametrize(
    ("text", "options", "code", "said"),
    [
        ("a: [", (), 1, "jobs.yaml"),
        ("kind: Job", ("--cluster", "mars"), 1, "no cluster 'mars'; there are: hub, cnaf-gpu"),
        (
            "apiVersion: batch/v1\nkind: Job\nmetadata: {annotations: {kfleet.dev/clusters: ''}}",
            (),
            1,
            "names no cluster",
        ),
        (
            "apiVersion: batch/v1\nkind: Job\nmetadata:\n  annotations: {kfleet.dev/clusters: nope}",
            (),
            1,
            "'nope' selects no cluster; there are: hub, cnaf-gpu",
        ),
        ("apiVersion: v1\nkind: List\nitems:\n- kind: Job\n- nope", (), 1, "items[1]: 'nope' is not an object"),
        ("", (), 1, "the input contains no job"),
        ("apiVersion: v1\nkind: ConfigMap", ("-o", "json"), 1, "the input contains no job"),
    ],
)
def test_check_says_what_is_wrong_with_what_it_was_given(
    kfleet_in_process: Kfleet, written: Path, text: str, options: tuple[str, ...], code: int, said: str
) -> None:
    written.write_text(text)
    answer = kfleet_in_process("check", str(written), *EXAMPLE, *options)
    assert (answer.returncode, answer.stdout) == (code, "")
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr


def test_check_of_an_unseen_capacity_ends_with_4(kfleet_in_process: Kfleet, written: Path, tmp_path: Path) -> None:
    own = "apiVersion: kfleet.dev/v1alpha1\n"
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    (fleet / "fleet.yaml").write_text(
        f"{own}kind: Fleet\nmetadata: {{name: a}}\n---\n"
        f"{own}kind: Cluster\nmetadata: {{name: one}}\nspec: {{role: standalone}}\n---\n"
        f"{own}kind: Flavor\nmetadata: {{name: c}}\nspec: {{nodeLabels: {{a: b}}, capacity: {{source: nodes}}}}\n---\n"
        f"{own}kind: Queue\nmetadata: {{name: q}}\nspec: {{quota: [{{flavor: c, resources: {{cpu: 50%}}}}]}}\n---\n"
        f"{own}kind: Tenant\nmetadata: {{name: t}}\nspec: {{namespaces: [genomics], queue: q}}\n"
    )
    written.write_text(fast_yaml.safe_dump(genomics("align", queue="q")))
    answer = kfleet_in_process("check", str(written), "--path", str(fleet))
    assert answer.returncode == 4
    assert "observe the clusters with --live" in answer.stdout
