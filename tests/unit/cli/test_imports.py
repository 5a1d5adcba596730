"""What a command loads before it starts: each package costs time, and files that a reader has to open."""

import subprocess
import sys

import pytest

LOADED = "import sys, reconciler.cli.{}; print(*sorted(sys.modules))"


@pytest.mark.parametrize(
    ("command", "unneeded"),
    [
        ("render", ("reconciler.clients.kubernetes", "reconciler.state", "reconciler.apply", "urllib3")),
        ("validate", ("reconciler.clients.kubernetes", "reconciler.state", "reconciler.apply", "urllib3")),
        ("plan", ("reconciler.admission", "reconciler.scheduling", "reconciler.apply", "reconciler.web", "nats")),
    ],
)
def test_command_loads_only_the_stages_that_it_runs(command: str, unneeded: tuple[str, ...]) -> None:
    code = LOADED.format(command)
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert f"reconciler.cli.{command}" in loaded
    assert [name for name in loaded if name.startswith(unneeded)] == []
