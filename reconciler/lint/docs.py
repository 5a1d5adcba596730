"""The page about lint, generated from the rules, and the examples of rules.

Examples are YAML: a file with the name of the module that checks the rules stands beside it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import yaml

from reconciler.lint.model import Rule
from reconciler.lint.run import RULES, TOPICS

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


@dataclass(frozen=True, slots=True)
class RuleExample:
    """A fleet that breaks the rule, and one that keeps it, as YAML. Both extend the base fleet."""

    bad: str
    good: str


def base_fleet() -> str:
    return _text(__package__, "base")


def example_of(rule: str) -> RuleExample:
    return _examples()[rule]


@cache
def _examples() -> Mapping[str, RuleExample]:
    places = [module.__name__.rpartition(".") for module in TOPICS]
    texts = [_text(package, name) for package, _, name in (*places, (__package__, "", "run"))]
    written = (each for text in texts for each in yaml.load(text, Loader=yaml.CSafeLoader).items())
    return {rule: RuleExample(**example) for rule, example in written} | dict(_long_examples())


def _text(package: str, name: str) -> str:
    return (files(package) / f"{name}.yaml").read_text(encoding="utf-8")


def _long_examples() -> Iterator[tuple[str, RuleExample]]:
    """Examples that exceed a limit, and so are hundreds of lines long."""
    yield "KF059", RuleExample(_queue_with_flavors(65), _queue_with_flavors(64))
    yield "KF128", RuleExample(_queue([_tall(n, 52) for n in range(5)]), _queue([_tall(n, 50) for n in range(5)]))
    yield "KF129", RuleExample(_queue([_wide(n, 52) for n in range(5)]), _queue([_wide(n, 51) for n in range(5)]))
    yield "KF130", RuleExample(_queue([_large(57)]), _queue([_large(56)]))


def _queue_with_flavors(count: int) -> str:
    lines = ["kind: ClusterQueue", "metadata: {name: wide}", "spec:", "  namespaceSelector: {}", "  resourceGroups:"]
    for group, start in (("cpu", 0), ("memory", 60)):
        lines += [f"  - coveredResources: [{group}]", "    flavors:"]
        lines += [
            f"    - {{name: f{number}, resources: [{{name: {group}, nominalQuota: 1}}]}}"
            for number in range(start, min(start + 60, count))
        ]
    lines += [
        f"---\nkind: ResourceFlavor\nmetadata: {{name: f{number}}}\nspec: {{nodeLabels: {{pool: f{number}}}}}"
        for number in range(count)
    ]
    return "\n".join([*lines, ""])


def _queue(groups: Iterable[str]) -> str:
    return f"kind: ClusterQueue\nspec:\n  namespaceSelector: {{}}\n  resourceGroups:{''.join(groups)}\n"


def _tall(number: int, flavors: int) -> str:
    return _group([f"example.org/r{number}"], [f"f{number}-{each}" for each in range(flavors)])


def _wide(number: int, resources: int) -> str:
    return _group([f"example.org/g{number}-{each}" for each in range(resources)], [f"g{number}-0"])


def _large(flavors: int) -> str:
    return _group([f"example.org/f{number}" for number in range(9)], [f"f{number}" for number in range(flavors)])


def _group(resources: Sequence[str], flavors: Sequence[str]) -> str:
    quotas = ", ".join(f"{{name: {name}, nominalQuota: 1}}" for name in resources)
    entries = ", ".join(f"{{name: {name}, resources: [{quotas}]}}" for name in flavors)
    return f"\n  - coveredResources: [{', '.join(resources)}]\n    flavors: [{entries}]"
