"""Jobs that hold quota on the manager and that no worker can serve."""

from reconciler.why.dispatch import unserved_reservations
from tests.unit.why.situations import (
    ADMITTED,
    ORIGIN,
    RESERVED,
    WEST,
    admission,
    check_state,
    lost,
    queued,
    refused,
    sent,
)
from tests.unit.why.test_dispatch import TOO_LARGE, copy, reserved


def test_reservation_that_no_worker_can_serve_is_named_with_what_it_holds() -> None:
    small = copy(refused(TOO_LARGE))
    (line,) = unserved_reservations(sent(reserved(), east=(small,), west=(small,)))
    assert line.startswith(
        "Job/team/mine holds 4 cpu of flavor default of queue batch, and no worker can ever run it: "
    )


def test_job_without_a_covered_resource_is_named_too() -> None:
    mine = queued("mine", RESERVED, ADMITTED, cpu="", admission=admission(""))
    (line,) = unserved_reservations(sent(mine))
    assert line == "Job/team/mine is admitted, and no worker can ever run it: kfleet why team/mine"


def test_job_that_waits_for_room_or_for_an_unseen_worker_is_not_named() -> None:
    small = copy(refused(TOO_LARGE))
    assert list(unserved_reservations(sent(reserved(), east=(small,), west=lost(WEST)))) == []
    assert list(unserved_reservations(sent(reserved(), east=(small,), west=(copy(RESERVED, ADMITTED),)))) == []


def test_job_without_quota_and_a_finished_one_are_not_named() -> None:
    waiting = queued("mine", refused(TOO_LARGE))
    assert list(unserved_reservations(sent(waiting))) == []
    states = [check_state()]
    assert list(unserved_reservations(sent(queued("other", labels=ORIGIN, admissionChecks=states)))) == []
