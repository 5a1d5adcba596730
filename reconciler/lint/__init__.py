"""Stage 2, after reading: what is wrong with a fleet that no schema can see, found before any cluster is asked."""

from reconciler.lint.catalog import RULES
from reconciler.lint.model import Finding, Rule, Severity
from reconciler.lint.run import lint, lint_spec

__all__ = ["RULES", "Finding", "Rule", "Severity", "lint", "lint_spec"]
