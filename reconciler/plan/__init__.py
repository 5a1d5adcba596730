"""Stage 5: predictions become a Plan: what happens to which object, why, in which order, and what is refused."""

from reconciler.plan.make import Looks, make_plan
from reconciler.plan.model import Action, Change, ClusterPlan, Plan, Reason, Refusal, Refused
from reconciler.plan.tokens import tokens_only

__all__ = [
    "Action",
    "Change",
    "ClusterPlan",
    "Looks",
    "Plan",
    "Reason",
    "Refusal",
    "Refused",
    "make_plan",
    "tokens_only",
]
