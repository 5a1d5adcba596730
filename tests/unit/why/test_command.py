"""`kfleet why` as a command: its argument, its options, its exit codes."""

import pytest

from reconciler.cli import execute
from reconciler.cli.why import exit_code
from reconciler.why.model import State, Story, StoryReason
from tests.support import ROOT
from tests.unit.why.situations import ONLY

FLEET = ("--path", str(ROOT / "docs" / "examples" / "kubestellar" / "fleet"))


@pytest.mark.parametrize("name", ["train", "a/b/c", "/train", "team/"])
def test_why_needs_namespace_and_name(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert execute(["why", name, *FLEET]) == 1
    assert f"{name}: write the job, Workload or pod as NAMESPACE/NAME" in capsys.readouterr().err


def test_why_knows_the_clusters_of_the_fleet(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["why", "team/train", "--cluster", "managr", *FLEET]) == 1
    assert "no cluster 'managr'; did you mean manager?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ((State.RUNS,), 0),
        ((State.FAILED, State.FINISHED, State.ADMITTED), 0),
        ((State.WAITS,), 3),
        ((State.NOT_QUEUED, State.RUNS), 3),
        ((State.UNKNOWN,), 4),
        ((State.UNKNOWN, State.NEVER), 3),
        ((State.UNKNOWN, State.RUNS), 4),
    ],
)
def test_exit_code_is_that_of_what_is_certain(states: tuple[State, ...], code: int) -> None:
    told = [Story(cluster=ONLY, title="Job/team/a", reason=StoryReason(state, "")) for state in states]
    assert exit_code(told) == code
