"""Kueue's Configuration with a part of it changed, and nothing else.

A merge patch (RFC 7386): maps are merged, `null` removes a field, everything else takes the place of what was there.
Decision: a list of texts may also be said as `{add: […], remove: […]}`, because that is what people mean who want one
more framework; a whole list in git would switch off what a newer Kueue switches on.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from reconciler.errors import KfleetError
from reconciler.kueue.reading import MAPS, as_list, at
from reconciler.objects import Manifest

API_GROUP = "config.kueue.x-k8s.io"
# What Kueue's code enables where its Configuration names nothing.
DEFAULT_FRAMEWORKS = ("batch/job",)
EDITS = frozenset(("add", "remove"))
_FRAMEWORKS = ("integrations", "frameworks")


class ConfigurationError(KfleetError):
    """A text that is no Configuration of Kueue."""


def read_configuration(text: str) -> Manifest:
    try:
        content = yaml.load(text, yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise ConfigurationError("is no YAML") from error
    if not isinstance(content, dict) or content.get("kind") != "Configuration":
        raise ConfigurationError("is no Configuration of Kueue")
    return content


def write_configuration(content: Manifest) -> str:
    text: str = yaml.dump(content, Dumper=yaml.CSafeDumper, sort_keys=False)
    return text


def patched(content: Manifest, patch: Manifest) -> Manifest:
    """The Configuration as it should be; the very same value where the patch changes nothing."""
    if is_edit(at(patch, *_FRAMEWORKS)) and at(content, *_FRAMEWORKS) is None:
        # Kueue's own default would be lost otherwise: a list that is there takes its place.
        content = _merged(content, {"integrations": {"frameworks": list(DEFAULT_FRAMEWORKS)}})
    result: Manifest = _merged(content, patch)
    return content if result == content else result


def is_edit(value: Any) -> bool:
    """Whether a value says what to add to a list, or to take out of it."""
    return (
        isinstance(value, MAPS)
        and bool(value)
        and all(name in EDITS and isinstance(entry, list) for name, entry in value.items())
    )


def plain(patch: Any) -> Any:
    """What a patch sets, with lists in place of edits and without what it removes: for checks that know no patches."""
    if is_edit(patch):
        return list(as_list(patch.get("add")))
    if isinstance(patch, MAPS):
        return {name: plain(value) for name, value in patch.items() if value is not None}
    return patch


def _merged(old: Any, patch: Any) -> Any:
    if is_edit(patch):
        return _edited(list(as_list(old)), patch)
    if not isinstance(patch, MAPS):
        return patch
    result = dict(old) if isinstance(old, MAPS) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result


def _edited(old: list[Any], edit: Mapping[str, Any]) -> list[Any]:
    kept = [entry for entry in old if entry not in as_list(edit.get("remove"))]
    return kept + [entry for entry in dict.fromkeys(as_list(edit.get("add"))) if entry not in kept]
