"""KF100 upwards: what the API server refuses. The rules are those of Kueue; here are their examples."""

from reconciler.kueue.rules.registry import RULES as REFUSALS
from reconciler.lint.catalog.server_examples import EXAMPLES
from reconciler.lint.model import Rule, Severity

RULES = tuple(
    Rule(
        refusal.id,
        Severity.ERROR,
        refusal.title,
        refusal.why,
        bad=EXAMPLES[refusal.id].bad,
        good=EXAMPLES[refusal.id].good,
        can_be_silenced=False,
    )
    for refusal in REFUSALS
)
