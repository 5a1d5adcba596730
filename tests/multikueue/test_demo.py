"""The demo: from empty clusters by one commit and one apply to jobs that ran where they fit."""

from tests.support import Kfleet


def test_demo_takes_jobs_of_two_teams_to_the_workers_that_fit(kfleet: Kfleet) -> None:
    told = kfleet("demo")
    assert told.returncode == 0, (told.stdout, told.stderr)
    assert "+ Secret/kueue-system/multikueue-worker1" in told.stdout
    # Only worker2 has GPUs.
    assert "MultiKueue sent vision/train to worker2:" in told.stdout
    assert "MultiKueue sent genomics/align to worker" in told.stdout
    jobs = [line.split() for line in told.stdout.splitlines() if line.startswith(("genomics ", "vision "))]
    assert [line[:4] for line in jobs] == [
        ["genomics", "align", "Complete", "2/2"],
        ["vision", "train", "Complete", "1/1"],
    ]
    assert "sandbox demo is down" in told.stdout
