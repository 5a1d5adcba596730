"""A bad and a good example of each rule, for the documentation, `kfleet explain` and the tests.

They are YAML: a file with the name of the module that checks the rules stands beside it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import yaml

from reconciler.lint.run import TOPICS


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
