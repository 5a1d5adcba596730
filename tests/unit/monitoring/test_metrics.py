"""Every metric that a dashboard or an alert names exists: in the real Kueue, after it had work, and in kfleet."""

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics import MetricWrapperBase

from reconciler.controller.cycle import CycleReport
from reconciler.controller.metrics import Metrics
from reconciler.pipeline.load import Source, load_files, read_files
from reconciler.pipeline.render import render_offline
from reconciler.plan.make import Comparison
from reconciler.plan.model import Plan
from tests.support import ROOT
from tests.unit.monitoring.names import named_labels


def test_metrics_of_kfleet_have_the_labels_that_are_asked_of_them() -> None:
    """By what they are declared with: in a healthy fleet many have no sample."""
    computed = load_files(read_files(Source(str(ROOT))))
    metrics = Metrics()
    plan = Plan(computed.spec.fleet.name, "abc", (), ())
    metrics.note(
        CycleReport(
            rendered=render_offline(computed), plan=plan, looks=Comparison(views=[], predictions={}), seconds=0.1
        )
    )
    counted = [one for one in vars(metrics).values() if isinstance(one, MetricWrapperBase)]
    declared = {one._name: set(one._labelnames) for one in counted}
    declared |= {one.name: set(one._labelnames) for one in metrics.collect() if isinstance(one, GaugeMetricFamily)}
    asked = named_labels("kfleet_")
    assert sum(map(len, asked.values())) > 20
    lacking = {metric: names - declared[metric.removesuffix("_total")] for metric, names in asked.items()}
    assert {metric: names for metric, names in lacking.items() if names} == {}
