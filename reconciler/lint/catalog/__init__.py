"""Every rule of lint with its reason and examples: what docs/lint.md is made of."""

from reconciler.lint.catalog import (
    admission,
    cohorts,
    credentials,
    flavors,
    masterqueue,
    multikueue,
    policies,
    quotas,
    references,
    server,
    tenants,
    versions,
)
from reconciler.lint.model import Rule

RULES: tuple[Rule, ...] = tuple(
    sorted(
        (
            *references.RULES,
            *versions.RULES,
            *quotas.RULES,
            *cohorts.RULES,
            *multikueue.RULES,
            *admission.RULES,
            *flavors.RULES,
            *credentials.RULES,
            *tenants.RULES,
            *policies.RULES,
            *masterqueue.RULES,
            *server.RULES,
        ),
        key=lambda rule: rule.id,
    )
)
