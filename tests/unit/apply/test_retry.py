"""How often a request is sent, and when no more are."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from reconciler.apply.retry import RetryPolicy, check_allowed, with_retries
from reconciler.errors import ClusterError

SOON = timedelta(milliseconds=1)
BUSY = ClusterError("hub", "busy", status=503, reason="ServiceUnavailable")
SILENT = ClusterError("hub", "no answer")
CONFLICT = ClusterError("hub", "changed meanwhile", status=409, reason="Conflict")
WRONG = ClusterError("hub", "not valid", status=422, reason="Invalid")


def failing(error: ClusterError, times: int, sent: list[int]) -> Callable[[], str]:
    """A request that fails this many times, and then is answered."""

    def send() -> str:
        sent.append(len(sent) + 1)
        if len(sent) <= times:
            raise error
        return "done"

    return send


def patient(total: timedelta = timedelta(minutes=1), **more: timedelta) -> RetryPolicy:
    return RetryPolicy(total=total, first=more.pop("first", SOON), longest=more.pop("longest", SOON))


@pytest.mark.parametrize(("error", "times"), [(BUSY, 0), (BUSY, 2), (SILENT, 3), (CONFLICT, 1)])
def test_request_that_may_succeed_later_is_sent_again_and_attempts_are_counted(error: ClusterError, times: int) -> None:
    assert with_retries(failing(error, times, []), patient()) == ("done", times + 1)


def test_request_that_stays_wrong_is_sent_once() -> None:
    sent: list[int] = []
    policy = patient()
    with pytest.raises(ClusterError, match="not valid"):
        with_retries(failing(WRONG, 1, sent), policy)
    assert sent == [1]
    assert not policy.is_spent.is_set()


@pytest.mark.parametrize(
    ("error", "is_spent", "is_silent"), [(BUSY, True, False), (SILENT, True, True), (CONFLICT, False, False)]
)
def test_last_error_says_whether_others_need_to_try(error: ClusterError, *, is_spent: bool, is_silent: bool) -> None:
    """A conflict is about one object; a busy server is busy for all, and one that is silent too."""
    sent: list[int] = []
    policy = patient(timedelta())
    with pytest.raises(ClusterError) as raised:
        with_retries(failing(error, 1, sent), policy)
    assert raised.value is error and sent == [1]
    assert (policy.is_spent.is_set(), policy.is_silent.is_set()) == (is_spent, is_silent)


def test_request_after_the_timeout_is_sent_once() -> None:
    sent: list[int] = []
    policy = patient()
    policy.is_spent.set()
    with pytest.raises(ClusterError, match="busy"):
        with_retries(failing(BUSY, 1, sent), policy)
    assert sent == [1]


def test_nothing_is_sent_to_a_server_that_is_silent() -> None:
    sent: list[int] = []
    policy = patient()
    policy.is_silent.set()
    with pytest.raises(ClusterError, match="cluster: not tried, because the server had stopped responding"):
        with_retries(failing(BUSY, 0, sent), policy)
    assert sent == []


def test_nothing_is_sent_any_more_once_writing_is_forbidden() -> None:
    sent: list[int] = []
    policy = RetryPolicy(first=SOON, forbidden=lambda: "the lease was lost" if sent else "")
    with pytest.raises(ClusterError, match="kfleet: the lease was lost"):
        with_retries(failing(BUSY, 9, sent), policy)
    assert sent == [1]


def test_everything_may_be_sent_by_default() -> None:
    policy = RetryPolicy()
    check_allowed(policy)
    assert (policy.forbidden(), policy.total, policy.awaited) == ("", timedelta(seconds=40), timedelta.max)
    assert policy.first < policy.longest < policy.total


def test_pauses_grow() -> None:
    """At 10 ms, 20 ms, 40 ms … a second is over after seven; with pauses that stay the same it would take a hundred."""
    sent: list[int] = []
    with pytest.raises(ClusterError, match="busy"):
        with_retries(failing(BUSY, 1000, sent), patient(timedelta(seconds=1), first=10 * SOON, longest=9000 * SOON))
    assert 3 <= len(sent) <= 9


def test_pauses_grow_no_longer_than_the_longest() -> None:
    """Growing ones would let twelve requests take 20 s."""
    first = 10 * SOON
    answer = with_retries(failing(BUSY, 12, []), patient(timedelta(seconds=8), first=first, longest=first))
    assert answer == ("done", 13)


def test_retry_budget_of_one_cluster_is_not_spent_by_another() -> None:
    whole = patient(timedelta(seconds=7))
    one, other = whole.for_one_cluster(), whole.for_one_cluster()
    one.is_spent.set()
    one.is_silent.set()
    assert not other.is_spent.is_set() and not other.is_silent.is_set()
    assert one == other == whole
