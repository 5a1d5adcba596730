"""The line again and again: a controller that wakes up when something happened, and otherwise now and then."""

from reconciler.run.loop import Settings, run_loop

__all__ = ["Settings", "run_loop"]
