"""Kueue itself: which release runs on which cluster, and how the next one gets there."""
