"""What a server was asked for in vain is not asked for again for a while; everything else is."""

from datetime import timedelta

import pytest

from reconciler.clients import connection as silence
from reconciler.clients.connection import LONGEST, Silence, subject_of

KUEUE = "/apis/kueue.x-k8s.io"
SECRETS, SECRET = "/api/v1/secrets", "/api/v1/namespaces/team/secrets/token"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(silence, "time", made)
    return made


@pytest.fixture
def kept(clock: Clock) -> Silence:
    assert clock.now
    return Silence(timedelta(seconds=5))


@pytest.mark.parametrize(
    ("path", "subject"),
    [
        (SECRETS, "secrets."),
        ("/api/v1/namespaces/team/secrets", "secrets."),
        (SECRET, "secrets./"),
        ("/api/v1/namespaces", "namespaces."),
        ("/api/v1/namespaces/kube-system", "namespaces./"),
        (f"{KUEUE}/v1beta1/multikueueconfigs", "multikueueconfigs.kueue.x-k8s.io"),
        (f"{KUEUE}/v1beta2/multikueueconfigs", "multikueueconfigs.kueue.x-k8s.io"),
        (f"{KUEUE}/v1beta2", f"{KUEUE}/v1beta2"),
        ("/apis", "/apis"),
    ],
)
def test_subject_of_a_path(path: str, subject: str) -> None:
    assert subject_of(path) == subject


def test_collection_that_hangs_is_left_alone_by_itself(kept: Silence, clock: Clock) -> None:
    kept.note_hang(SECRETS)
    assert kept.is_kept("/api/v1/namespaces/team/secrets")
    assert not kept.is_kept(SECRET) and not kept.is_kept("/api/v1/pods") and not kept.is_whole()
    clock.now += 5
    assert not kept.is_kept(SECRETS)


def test_collection_that_hangs_again_is_left_alone_for_longer_until_it_answers(kept: Silence, clock: Clock) -> None:
    for pause in (5, 10, 20, 40, LONGEST, LONGEST):
        kept.note_hang(SECRETS)
        clock.now += pause - 1
        assert kept.is_kept(SECRETS)
        clock.now += 1
        assert not kept.is_kept(SECRETS)
    kept.note_answer("/api/v1/pods")
    kept.note_hang(SECRETS)
    clock.now += 5
    assert kept.is_kept(SECRETS)
    kept.note_answer(SECRETS)
    kept.note_hang(SECRETS)
    clock.now += 5
    assert not kept.is_kept(SECRETS)


def test_server_that_answers_nothing_is_left_alone_as_a_whole(kept: Silence, clock: Clock) -> None:
    kept.note_whole()
    assert kept.is_whole() and kept.is_kept(SECRETS) and kept.is_kept("/apis")
    clock.now += 5
    assert not kept.is_whole() and not kept.is_kept("/apis")
    kept.note_whole()
    kept.note_answer()
    assert not kept.is_whole() and kept.was_broken_within(1.0)
    clock.now += 1
    assert not kept.was_broken_within(1.0)


def test_server_that_is_asked_again_still_has_a_collection_that_hangs(kept: Silence) -> None:
    kept.note_hang(SECRETS)
    kept.note_whole()
    kept.forget()
    assert not kept.is_kept("/apis") and kept.is_kept(SECRETS)


def test_timeout_longer_than_any_pause_is_kept(clock: Clock) -> None:
    kept = Silence(timedelta(seconds=2 * LONGEST))
    for _ in range(3):
        kept.note_hang(SECRETS)
        clock.now += 2 * LONGEST - 1
        assert kept.is_kept(SECRETS)
