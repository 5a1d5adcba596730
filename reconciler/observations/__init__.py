"""Stage 2: the clusters and the message bus are looked at, and become Observations."""

from reconciler.observations.fleet import observe
from reconciler.observations.links import sent_workers

__all__ = ["observe", "sent_workers"]
