"""Every metric that a dashboard or an alert names exists: in the real Kueue, after it had work, and in kfleet."""

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics import MetricWrapperBase

from reconciler.pipeline.offline import Source, compute, read_files
from reconciler.plan import Plan
from reconciler.plan.make import Looks
from reconciler.run.cycle import CycleReport
from reconciler.run.metrics import Metrics
from tests.support import ROOT
from tests.unit.monitoring.names import named_labels


def test_metrics_of_kfleet_have_the_labels_that_are_asked_of_them() -> None:
    """By what they are declared with: in a healthy fleet many have no sample."""
    computed = compute(read_files(Source(str(ROOT))))
    metrics = Metrics()
    metrics.note(CycleReport(computed, Plan(computed.spec.fleet.name, "abc", (), ()), Looks([], {}), 0.1))
    counted = [one for one in vars(metrics).values() if isinstance(one, MetricWrapperBase)]
    declared = {one._name: set(one._labelnames) for one in counted}
    declared |= {one.name: set(one._labelnames) for one in metrics.collect() if isinstance(one, GaugeMetricFamily)}
    asked = named_labels("kfleet_")
    assert sum(map(len, asked.values())) > 20
    lacking = {metric: names - declared[metric.removesuffix("_total")] for metric, names in asked.items()}
    assert {metric: names for metric, names in lacking.items() if names} == {}
