from datetime import UTC, datetime, timedelta

from reconciler.web.events import KEPT, CapacityHistory, CapacitySample, history_record, sample_of
from tests.unit.web.views import example_view

START = datetime(2026, 11, 18, 16, 0, tzinfo=UTC)
GPU = ("pool", "gpu")


def test_history_keeps_one_sample_a_minute() -> None:
    history = CapacityHistory()
    for second in range(0, 180, 20):
        history = history.with_sample(CapacitySample(START + timedelta(seconds=second), {GPU: str(second)}))
    assert [sample.amounts[GPU] for sample in history.samples] == ["0", "60", "120"]


def test_history_forgets_what_is_older_than_its_hours() -> None:
    history = CapacityHistory()
    for minute in range(KEPT + 5):
        history = history.with_sample(CapacitySample(START + timedelta(minutes=minute), {GPU: "8"}))
    assert (len(history.samples), history.samples[0].at) == (KEPT, START + timedelta(minutes=5))


def test_amount_that_was_unknown_is_null_and_not_zero() -> None:
    other = CapacitySample(START + timedelta(minutes=1), {("other", "cpu"): "4"})
    history = CapacityHistory().with_sample(CapacitySample(START, {GPU: "8"})).with_sample(other)
    assert history_record(history) == {
        "times": ["2026-11-18T16:00:00Z", "2026-11-18T16:01:00Z"],
        "series": [
            {"name": "other", "resource": "cpu", "amounts": [None, "4"]},
            {"name": "pool", "resource": "gpu", "amounts": ["8", None]},
        ],
    }


def test_sample_has_the_sources_that_were_seen() -> None:
    view = example_view()
    seen = {pool["name"] for pool in view["pools"] if pool["state"] != "unknown"}
    assert seen and {name for name, _ in sample_of(view, START).amounts} == seen
    assert sample_of({**view, "pools": None}, START).amounts == {}
