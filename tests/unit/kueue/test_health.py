import pytest

from reconciler.kueue.health import REASONS, ConditionReason, explain


@pytest.mark.parametrize("one", REASONS, ids=lambda one: f"{one.kind}-{one.reason}")
def test_every_reason_says_what_it_means_and_what_to_do(one: ConditionReason) -> None:
    assert explain(one.kind, one.reason) is one
    assert one.meaning.endswith(".")
    assert bool(one.remedy) or one.is_healthy


def test_explain_knows_no_reason_of_its_own_invention() -> None:
    assert explain("ClusterQueue", "BadWeather") is None
    assert explain("Topology", "Ready") is None


def test_degraded_check_is_not_healthy_and_says_what_to_do() -> None:
    reason = explain("AdmissionCheck", "SomeActiveClusters")
    assert reason is not None and not reason.is_healthy and reason.remedy
