"""Stage 7: what Kueue says about the fleet's objects, in words that say what to do."""

from reconciler.health.ailments import Ailment, find_ailments

__all__ = ["Ailment", "find_ailments"]
