"""Dashboards and alerts for Kueue and for kfleet."""
