"""Stage 2: the clusters and the message bus are looked at, and become Observations."""

from reconciler.observations.fleet import observe
from reconciler.observations.links import native_workers, sent_workers

__all__ = ["native_workers", "observe", "sent_workers"]
