"""Grafana dashboards and Prometheus alerts for Kueue's queues, for GPUs and for kfleet itself."""

from reconciler.desired.monitoring.objects import monitoring_objects

__all__ = ["monitoring_objects"]
