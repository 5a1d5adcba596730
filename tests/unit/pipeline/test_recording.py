"""Connections of a snapshot: which clusters they have, and from when."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reconciler.cli import execute
from reconciler.cli.options import read_recording
from reconciler.cli.snapshot import save_recording
from reconciler.errors import EdgeError
from reconciler.objects import ClusterName
from reconciler.pipeline.capacity import ObserveOptions
from reconciler.pipeline.load import Revision
from reconciler.pipeline.observe import connect_recorded, observe
from reconciler.render.compute import compute_desired
from reconciler.snapshot.recording import ClusterRecording, Recording
from tests.builders import spec_of
from tests.unit.snapshot.answers import JOBS

SPEC = spec_of()
HUB, EAST, WEST = (ClusterName(name) for name in ("hub", "east", "west"))
RECORDING = Recording(
    taken_at=datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC),
    clusters={HUB: ClusterRecording(server="https://hub"), WEST: ClusterRecording(problem="no context 'west'")},
)


def test_cluster_without_answers_is_a_gap_with_its_reason() -> None:
    connections = connect_recorded(SPEC, RECORDING)
    assert list(connections.clients) == [HUB] and connections.now == RECORDING.taken_at
    gaps = {gap.cluster: gap.why for gap in connections.gaps}
    assert gaps == {EAST: "not in the snapshot", WEST: "no context 'west'"}


def test_snapshot_without_answers_is_observed_as_unreachable() -> None:
    connections = connect_recorded(SPEC, RECORDING)
    seen = observe(Revision(SPEC, compute_desired(SPEC), ()), connections, ObserveOptions(timedelta()))
    assert seen.probe is not None
    (gap,) = seen.probe.views[HUB].gaps
    assert "not in the snapshot" in gap.why


def test_file_is_whole_private_and_packed_by_its_name(tmp_path: Path) -> None:
    for name, start in (("world.json", b"{"), ("world.json.gz", b"\x1f\x8b")):
        path = tmp_path / name
        path.write_text("old")
        assert save_recording(path, RECORDING) == len(path.read_bytes())
        assert path.read_bytes().startswith(start) and path.stat().st_mode & 0o777 == 0o600
        assert read_recording(str(path)) == RECORDING
    assert sorted(one.name for one in tmp_path.iterdir()) == ["world.json", "world.json.gz"]
    with pytest.raises(EdgeError, match="cannot write"):
        save_recording(tmp_path / "nowhere" / "world.json", RECORDING)


@pytest.mark.parametrize("text", ["{", "{}", '{"kind": "Observations", "format": 1, "at": "x"}', JOBS])
@pytest.mark.parametrize("command", ["plan", "status", "preflight", "observe", "render"])
def test_another_file_is_refused_with_one_message(
    command: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "world.json"
    path.write_text(text)
    assert execute([command, "--repo", str(Path(__file__).parents[3]), "--snapshot", str(path)]) == 1
    assert f"{path}: is not a snapshot: " in capsys.readouterr().err
