"""Every rule of lint with its reason and examples: what docs/lint.md is made of."""

from reconciler.lint.catalog import (
    admission,
    cohorts,
    configuration,
    credentials,
    flavors,
    flux,
    masterqueue,
    multikueue,
    policies,
    quotas,
    reading,
    references,
    server,
    skypilot,
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
            *flux.RULES,
            *credentials.RULES,
            *configuration.RULES,
            *skypilot.RULES,
            *tenants.RULES,
            *policies.RULES,
            *masterqueue.RULES,
            *server.RULES,
            *reading.RULES,
        ),
        key=lambda rule: rule.id,
    )
)
