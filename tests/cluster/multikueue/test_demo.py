"""The demo: from empty clusters by one commit and one apply to jobs that ran where they fit."""

import json

import pytest

from reconciler.cli.demo import show_pods
from reconciler.sandbox.certificates import kubectl
from reconciler.sandbox.state import load_state
from tests.cluster.web.reading import get
from tests.support import Kfleet, eventually

pytestmark = pytest.mark.usefixtures("loopback")


def test_demo_takes_jobs_of_two_teams_to_the_workers_that_fit(kfleet: Kfleet) -> None:
    try:
        told = kfleet("demo")
    finally:
        kfleet("sandbox", "down", "--name", "demo")  # in case it did not come so far
    assert told.returncode == 0, (told.stdout, told.stderr)
    assert "+ Secret/kueue-system/multikueue-worker1" in told.stdout
    # Only worker2 has GPUs.
    assert "MultiKueue sent vision/train to worker2:" in told.stdout
    assert "MultiKueue sent genomics/align to worker" in told.stdout
    jobs = [line.split() for line in told.stdout.splitlines() if line.startswith(("genomics ", "vision "))]
    assert [line[:4] for line in jobs[:2]] == [
        ["genomics", "align", "Complete", "2/2"],
        ["vision", "train", "Complete", "1/1"],
    ]
    shown = told.stdout.partition("$ kfleet get jobs")[2]
    jobs_shown, _, story = shown.partition("$ kfleet why vision/train")
    assert "finished" in next(line for line in jobs_shown.splitlines() if "train" in line)
    assert "worker2" in next(line for line in jobs_shown.splitlines() if "train" in line)
    assert story.strip().splitlines()[0].startswith("finished: ")
    assert "sandbox demo is down" in told.stdout


def states_on_page(lines: list[str]) -> list[str]:
    """The states of the jobs that are left, on the page whose address was printed."""
    page = next(line.partition(": ")[2] for line in lines if line.startswith("The page of the fleet: http://"))
    view = json.loads(get(page.removesuffix("jobs") + "api/view").body)
    return sorted(job["state"] for job in view["jobs"] if job["name"] in ("assemble", "distill", "finetune"))


def test_demo_that_is_kept_tells_how_to_go_on(kfleet: Kfleet, capsys: pytest.CaptureFixture[str]) -> None:
    told = kfleet("demo", "--keep")
    try:
        lines = [line.strip() for line in told.stdout.splitlines()]
        path = next(line.removeprefix("export KUBECONFIG=") for line in lines if line.startswith("export KUBECONFIG="))
        repository = next(line.removeprefix("cd ") for line in lines if line.startswith("cd "))
        status = kfleet("status", "--repo", repository, KUBECONFIG=path)
        assert status.returncode == 0, (status.stdout, status.stderr)
        assert "worker2: ok" in status.stdout
        # On a slow machine a job may be over, and its pods gone, before anybody looks.
        state = load_state("demo")
        left = ("get", "pods", "-n", "vision", "-l", "job-name=train", "-o", "name")
        eventually(lambda: not kubectl(state, "worker2", *left))
        eventually(lambda: states_on_page(lines) == ["pending", "running", "running"], 60)
        show_pods(state, "worker2", "vision", "train")
        assert capsys.readouterr().out == "it has finished already\n"
    finally:
        down = kfleet("sandbox", "down", "--name", "demo")
    assert down.returncode == 0, down.stderr
