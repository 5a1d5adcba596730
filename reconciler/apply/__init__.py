"""Stage 6: a plan is carried out. Apply obeys and decides nothing."""

from reconciler.apply.fleet import apply_plan
from reconciler.apply.retry import Patience

__all__ = ["Patience", "apply_plan"]
