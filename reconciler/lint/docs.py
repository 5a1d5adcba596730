"""The page about lint, made of the rules themselves."""

from collections.abc import Iterator

from reconciler.lint.catalog import RULES
from reconciler.lint.catalog.base import BASE
from reconciler.lint.model import Rule

LONGEST_LINE = 120
MOST_LINES = 20
FIRST_OF_SERVER = "KF100"
HEAD = """\
# Lint

`kfleet validate` reads the fleet as a whole and reports what no schema can see, before any cluster is asked. Every
finding names its rule, the file and line, what is wrong, and where it can be said also what would be right. Errors
stop `plan` and `apply`; warnings are printed and counted. What is the same on several clusters is one finding.

## Silence a rule

A rule is silenced on one document by an annotation, with a reason; several are separated by `;`:

```yaml
metadata:
  name: spare
  annotations:
    kfleet.dev/lint-ignore: "KF055: the nodes arrive next month"
```

Rules that are *always on* cannot be silenced, because the fleet could not be rendered or its objects would be refused.
An annotation that silences nothing is itself a warning (KF099).

## Rules

"""
EXAMPLES = f"""\
## Examples

The examples stand in this small fleet; a document of the same kind and name takes the place of the one here.
`apiVersion` is left out where it is `kfleet.dev/v1alpha1`, or `kueue.x-k8s.io/v1beta2` for the kinds of Kueue, and
`metadata` where the name does not matter. Long examples are cut at `…`.

```yaml
{BASE}```
"""
SERVER = """\
## What the API server refuses

The rules from KF100 upwards are those of Kueue's own API and webhooks, for the release that runs on the cluster. They
hold for every object, written or generated.
"""


def rules_markdown() -> str:
    return "".join((HEAD, *_table(), "\n", EXAMPLES, *_sections()))


def _table() -> Iterator[str]:
    yield "| rule | | holds that | silenced by annotation |\n|---|---|---|---|\n"
    for rule in RULES:
        silenced = "yes" if rule.can_be_silenced else "always on"
        yield f"| [{rule.id}](#{rule.id.lower()}) | {rule.severity} | {rule.title} | {silenced} |\n"


def _sections() -> Iterator[str]:
    for rule in RULES:
        if rule.id == FIRST_OF_SERVER:
            yield f"\n{SERVER}"
        yield (
            f"\n### {rule.id}\n\n**{_sentence(rule)}** ({rule.severity}): {rule.why}.\n\n"
            f"```yaml\n# bad\n{shortened(rule.bad)}```\n\n```yaml\n# good\n{shortened(rule.good)}```\n"
        )


def _sentence(rule: Rule) -> str:
    return rule.title[0].upper() + rule.title[1:]


def shortened(example: str) -> str:
    """An example as it is shown to people: a few of them are hundreds of lines long."""
    lines = [line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} …" for line in example.splitlines()]
    kept = lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], "# …"]
    return "".join(f"{line}\n" for line in kept)
