"""Stage 2: the clusters and the message bus are looked at, and become Observations."""

from reconciler.observations.fleet import observe

__all__ = ["observe"]
