"""The page about lint, generated from the rules."""

from collections.abc import Iterator

from reconciler.lint.examples import base_fleet, example_of
from reconciler.lint.model import Rule
from reconciler.lint.run import RULES

LONGEST_LINE = 120
MOST_LINES = 20
FIRST_OF_SERVER = "KF100"
FIRST_OF_READING = "KF200"
HEAD = """\
# Lint

`kfleet validate` checks the fleet as a whole and reports problems that no schema can detect, before any cluster is
contacted. Every finding names its rule, the file and line, the problem and, if possible, the fix. Errors stop `plan`
and `apply`; warnings are printed and counted. The same problem on several clusters is one finding.

## Silence a rule

An annotation on one document silences a rule there, with a reason; several are separated by `;`:

```yaml
metadata:
  name: spare
  annotations:
    kfleet.dev/lint-ignore: "KF055: the nodes arrive next month"
```

`lint` of the Fleet silences a rule everywhere or changes its severity, with a reason too:

```yaml
kind: Fleet
spec:
  lint:
  - {rule: KF013, level: ignore, reason: the clusters are upgraded in May}
  - {rule: KF070, level: error, reason: every cohort here reclaims}
```

Rules that are *always on* cannot be silenced, because kfleet could not render the fleet or the API server would reject
its objects. An annotation that silences nothing is itself a warning (KF099).

## Rules

"""
EXAMPLES = """\
## Examples

The examples extend this small fleet; a document of the same kind and name replaces the one here. `apiVersion` is
omitted if it is `kfleet.dev/v1alpha1`, or `kueue.x-k8s.io/v1beta2` for the kinds of Kueue, and `metadata` if the name
does not matter. Long examples are cut at `…`.

```yaml
%s```
"""
SERVER = """\
## What the API server rejects

The rules from KF100 upwards are those of Kueue's own API and webhooks, for the release that runs on the cluster. They
apply to every object, written or generated.
"""


READING = """\
## What cannot be read

The rules from KF200 upwards are about files and single documents. Until they are read, no other rule is checked.
"""


def rules_markdown() -> str:
    return "".join((HEAD, *_table(), "\n", EXAMPLES % base_fleet(), *_sections()))


def _table() -> Iterator[str]:
    yield "| rule | | checks that | silenced by annotation |\n|---|---|---|---|\n"
    for rule in RULES:
        silenced = "yes" if rule.can_be_silenced else "always on"
        yield f"| [{rule.id}](#{rule.id.lower()}) | {rule.severity} | {rule.title} | {silenced} |\n"


def _sections() -> Iterator[str]:
    for rule in RULES:
        if rule.id == FIRST_OF_SERVER:
            yield f"\n{SERVER}"
        if rule.id == FIRST_OF_READING:
            yield f"\n{READING}"
        example = example_of(rule.id)
        yield (
            f"\n### {rule.id}\n\n**{_sentence(rule)}** ({rule.severity}): {rule.why}.\n\n"
            f"```yaml\n# bad\n{shortened(example.bad)}```\n\n```yaml\n# good\n{shortened(example.good)}```\n"
        )


def _sentence(rule: Rule) -> str:
    return rule.title[0].upper() + rule.title[1:]


def shortened(example: str) -> str:
    """Return an example for the page: a few of them are hundreds of lines long."""
    lines = [line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} …" for line in example.splitlines()]
    kept = lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], "# …"]
    return "".join(f"{line}\n" for line in kept)
