"""Stage 6: a plan is carried out. Apply obeys and decides nothing."""

from reconciler.apply.cluster import Tell
from reconciler.apply.fleet import apply_plan, tell_nobody
from reconciler.apply.retry import RETRIED_FOR, Patience

__all__ = ["RETRIED_FOR", "Patience", "Tell", "apply_plan", "tell_nobody"]
