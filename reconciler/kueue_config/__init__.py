"""Kueue's own Configuration on a cluster, and its rollout."""
