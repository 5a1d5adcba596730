"""Stage 7: what Kueue says about the fleet's objects, in words that say what to do."""

from reconciler.health.ailments import Ailment, find_ailments
from reconciler.health.dead_ends import ways_in

__all__ = ["Ailment", "find_ailments", "ways_in"]
