"""YAML through libyaml, as kfleet itself reads and writes it: the functions of the same names in `yaml` are Python."""

from collections.abc import Iterable, Iterator
from typing import Any

import yaml


def safe_dump(value: Any, **options: Any) -> str:
    return str(yaml.dump(value, Dumper=yaml.CSafeDumper, **options))


def safe_dump_all(values: Iterable[Any], **options: Any) -> str:
    return str(yaml.dump_all(values, Dumper=yaml.CSafeDumper, **options))


def safe_load(text: str | bytes) -> Any:
    return yaml.load(text, yaml.CSafeLoader)


def safe_load_all(text: str | bytes) -> Iterator[Any]:
    found: Iterator[Any] = yaml.load_all(text, yaml.CSafeLoader)
    return found
