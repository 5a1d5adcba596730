"""One writer at a time: who holds the fleet's lease is told, and a dead holder loses it."""

import time
from typing import Any

import pytest

from reconciler.clients.lease import DURATION, MARGIN, LeaseObservation, Loss, elapsed

ADA = "ada/1/a"


def test_writing_ends_while_what_was_sent_is_still_on_its_way() -> None:
    """Whoever takes the lease after its duration must not meet a request that was sent just before."""
    now = elapsed()
    assert not Loss(now).why()
    assert Loss(now - (DURATION - MARGIN).total_seconds()).why().startswith("the lease is lost")


def test_lease_is_lost_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """time.monotonic stands still meanwhile on Linux, and the first thing after waking up would be a write."""
    clocks = {time.CLOCK_BOOTTIME: 1000.0, time.CLOCK_MONOTONIC: 1000.0}
    monkeypatch.setattr(time, "clock_gettime", clocks.__getitem__)
    monkeypatch.setattr(time, "monotonic", lambda: clocks[time.CLOCK_MONOTONIC])
    lost = Loss(elapsed())
    clocks[time.CLOCK_BOOTTIME] += 600.0
    assert lost.is_set()


def lease_of(holder: str, renewed: str, seconds: int = 12) -> dict[str, Any]:
    return {"spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": seconds}}


@pytest.mark.parametrize("lease", [None, {}, lease_of("", "2020"), lease_of("me", "2020")])
def test_lease_that_is_not_another_ones_is_free(lease: dict[str, Any] | None) -> None:
    assert LeaseObservation().is_free(lease, "me", 100.0, 100.0)


@pytest.mark.parametrize("renewed", ["1970-01-01T00:00:00.000000Z", "2970-01-01T00:00:00.000000Z"])
def test_lease_is_free_when_its_holder_showed_no_life_for_its_duration(renewed: str) -> None:
    """Whatever time it is for the holder."""
    seen = LeaseObservation()
    assert not seen.is_free(lease_of(ADA, renewed), "me", 100.0, 100.0)
    assert not seen.is_free(lease_of(ADA, renewed), "me", 112.0, 112.0)
    assert seen.is_free(lease_of(ADA, renewed), "me", 112.1, 112.1) and not seen.is_alive


def test_lease_of_a_holder_that_renews_it_is_never_free() -> None:
    seen = LeaseObservation()
    for now in range(100, 200, 11):
        assert not seen.is_free(lease_of(ADA, f"1970-01-01T00:00:{now - 100:02}.000000Z"), "me", now, now)
    assert seen.is_alive


def test_lease_whose_answers_take_long_is_not_taken_early() -> None:
    seen = LeaseObservation()
    assert not seen.is_free(lease_of(ADA, "1"), "me", 100.0, 110.0)
    assert not seen.is_free(lease_of(ADA, "1"), "me", 120.0, 130.0)
    assert seen.is_free(lease_of(ADA, "1"), "me", 122.1, 130.0)
