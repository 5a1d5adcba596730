"""What `kfleet observe` shows, and a recorded look that stands in for a new one."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.builders import announcement
from tests.cluster.capacity.pool_live_fleet import SHORT, PoolLiveFleet
from tests.support import kfleet_program


@pytest.fixture(autouse=True)
def _clean_ledger(pool_live_fleet: PoolLiveFleet) -> Iterator[None]:
    yield
    pool_live_fleet.clean()


def test_recorded_look_gives_the_same_objects(pool_live_fleet: PoolLiveFleet, tmp_path: Path) -> None:
    pool_live_fleet.commit()
    with pool_live_fleet.speaking(cnaf=announcement("8")):
        observed = pool_live_fleet.live_fleet.run("observe", *SHORT, "-o", "json")
    assert observed.code == 0, observed.err
    record = json.loads(observed.out)
    (source,) = record["sources"]
    name = pool_live_fleet.name
    quota = f"{name}-nats-cnaf: cpu 8, memory 64Gi, pods 50, nvidia.com/gpu 0"
    assert f"worker1/ClusterQueue/{name}: {quota}" in source["becomes"]
    path = tmp_path / "seen.json"
    path.write_text(observed.out)
    rendered = pool_live_fleet.live_fleet.run("render", "--snapshot", str(path))
    assert rendered.code == 0 and f"{name}-nats-cnaf" in rendered.out
    assert pool_live_fleet.live_fleet.run("render").code == 4
    applied = pool_live_fleet.live_fleet.apply("--snapshot", str(path))
    assert applied.code == 0, applied.out + applied.err
    assert pool_live_fleet.quotas() == {f"{name}-nats-cnaf": "8"}


def test_pool_grows_old_by_an_earlier_look_where_no_ledger_is_kept(
    pool_live_fleet: PoolLiveFleet, tmp_path: Path
) -> None:
    pool_live_fleet.commit(poolTimeout=1)
    with pool_live_fleet.speaking(cnaf=announcement("8")):
        observed = pool_live_fleet.live_fleet.run("observe", *SHORT, "-o", "json")
    path = tmp_path / "seen.json"
    path.write_text(observed.out)
    assert pool_live_fleet.live_fleet.apply("--snapshot", str(path)).code == 0
    assert pool_live_fleet.ledger() is None and pool_live_fleet.quotas() == {f"{pool_live_fleet.name}-nats-cnaf": "8"}
    for minutes, counts in ((10, ["0"]), (60, [])):
        record = json.loads(observed.out)
        for source in record["sources"]:
            source["seenAt"] = source["changedAt"] = (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()
        path.write_text(json.dumps(record))
        later = pool_live_fleet.live_fleet.run("observe", "--before", str(path), "--observe-for", "12", "-o", "json")
        assert later.code == 0, later.err
        assert [source["granted"]["cpu"] for source in json.loads(later.out)["sources"]] == counts


def test_table_shows_every_source_and_what_it_becomes(pool_live_fleet: PoolLiveFleet) -> None:
    pool_live_fleet.commit()
    with pool_live_fleet.speaking(cnaf=announcement("8")):
        observed = pool_live_fleet.live_fleet.run("observe", *SHORT)
    head, row, *_ = observed.out.splitlines()
    assert head.split() == ["SOURCE", "STATE", "AGE", "COUNTS", "AS", "BECOMES"]
    assert (
        row.startswith(pool_live_fleet.url.removeprefix("nats://"))
        and f"{pool_live_fleet.subject}.cnaf  fresh  " in row
    )
    assert pool_live_fleet.ledger() is None


def test_file_without_observations_is_refused(pool_live_fleet: PoolLiveFleet, tmp_path: Path) -> None:
    pool_live_fleet.commit()
    path = tmp_path / "seen.json"
    for text in ("{", "{}", '{"kind": "Observations", "format": 1, "at": "x"}'):
        path.write_text(text)
        refused = pool_live_fleet.live_fleet.plan("--snapshot", str(path))
        assert refused.code == 1 and "is not a snapshot" in refused.err
        refused = pool_live_fleet.live_fleet.run("observe", "--before", str(path))
        assert refused.code == 1 and "is not a snapshot" in refused.err


def test_watched_table_in_a_pipe_is_written_again_and_again(pool_live_fleet: PoolLiveFleet) -> None:
    pool_live_fleet.commit()
    command = [kfleet_program(), "observe", "--watch", "--repo", str(pool_live_fleet.live_fleet.folder)]
    with (
        pool_live_fleet.speaking(cnaf=announcement("8")),
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
    ):
        told = (line for line in process.stdout or () if f"{pool_live_fleet.subject}.cnaf" in line)
        assert "cpu 8" in next(told) and "cpu 8" in next(told)
        process.terminate()


def test_watched_table_is_not_for_machines(pool_live_fleet: PoolLiveFleet) -> None:
    pool_live_fleet.commit()
    answer = pool_live_fleet.live_fleet.run("observe", "--watch", "-o", "json")
    assert answer.code == 1 and "-o json is for a single observation" in answer.err


def test_watched_table_follows_the_pools_until_it_is_interrupted(pool_live_fleet: PoolLiveFleet) -> None:
    pool_live_fleet.commit()
    screen, terminal = pty.openpty()
    command = [kfleet_program(), "observe", "--watch", "--repo", str(pool_live_fleet.live_fleet.folder)]
    with pool_live_fleet.speaking(cnaf=announcement("8")):
        process = subprocess.Popen(
            command,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            # A shell that runs tests in the background makes them ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(terminal)
        shown = b""
        while f"{pool_live_fleet.subject}.cnaf".encode() not in shown:
            shown += os.read(screen, 4096)
    with pool_live_fleet.speaking(lyon=announcement("4")):
        while f"{pool_live_fleet.subject}.lyon".encode() not in shown:
            shown += os.read(screen, 4096)
    process.send_signal(signal.SIGINT)
    with suppress(OSError):
        while os.read(screen, 4096):
            pass
    assert process.wait(60) == 130
    os.close(screen)
