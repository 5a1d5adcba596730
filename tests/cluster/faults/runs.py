"""The command as a process that can be killed, and what must be true after the fleet is whole again."""

import io
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from reconciler import cli
from reconciler.sandbox.fleet import Sandbox
from tests.cluster.faults.shapes import Shape, members, priorities, recorded_kinds
from tests.support import kfleet_program

# For an apply that must succeed in the end, however long a server takes to start on a busy machine, and for one that
# must give up.
PATIENTLY = ("--retry-for", "600")
BRIEFLY = ("--retry-for", "5")


@contextmanager
def applying(repo: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """An apply that goes on beside the test; it never outlives it."""
    command = [kfleet_program(), "apply", "--repo", str(repo), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def finished(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    output, errors = process.communicate(timeout=600)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def run(command: str, repo: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The command in this process: starting another one would take longer than most commands do."""
    arguments = [command, "--repo", str(repo), *options]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.execute(arguments)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def told(answer: subprocess.CompletedProcess[str]) -> str:
    """Everything that a run said, for the message of a failed assertion."""
    return f"exit {answer.returncode}\n{answer.stdout}\n{answer.stderr}"


def assert_converges(sandbox: Sandbox, repo: Path, shape: Shape) -> None:
    """One more apply makes everything right, and the next plan is empty."""
    applied = run("apply", repo)
    assert applied.returncode == 0, told(applied)
    assert_as_wanted(sandbox, shape)
    planned = run("plan", repo, "--detailed-exitcode")
    assert planned.returncode == 0 and "no changes" in planned.stdout, told(planned)


def assert_as_wanted(sandbox: Sandbox, shape: Shape, *clusters: str) -> None:
    """Each cluster holds the objects of the fleet and no other ones, and its inventory names their kinds."""
    for cluster in clusters or tuple(shape.kubeconfigs):
        api = sandbox.api(cluster)
        assert members(api, shape) == shape.objects(cluster), cluster
        assert priorities(api, shape) == ({shape.priority} if shape.teams else set()), cluster
        assert recorded_kinds(api, shape) == {name.partition("/")[0] for name in shape.objects(cluster)}, cluster
