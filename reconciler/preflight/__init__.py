"""What will keep a fleet from working, found before it does: each with what to do about it."""

from reconciler.preflight.find import find_obstacles
from reconciler.preflight.model import Facts
from reconciler.preflight.rights import find_doubts

__all__ = ["Facts", "find_doubts", "find_obstacles"]
