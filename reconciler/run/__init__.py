"""The line again and again: a controller that wakes up when something happened, and otherwise now and then."""

from reconciler.run.loop import Settings, run_loop
from reconciler.run.revisions import Trust

__all__ = ["Settings", "Trust", "run_loop"]
