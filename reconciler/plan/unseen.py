"""Quotas that would become smaller only because nobody saw what they are made of.

Decision: an update that takes something away from a live queue waits until it was seen, because a quota that was not
seen is none that is 0. One that takes nothing away goes on: otherwise a worker that was never seen would hold the
queue of all the others.
"""

from collections.abc import Iterator, Mapping

from reconciler.kueue.reading import as_list, as_text, at, quantity_at
from reconciler.kueue.upgrade import to_canonical
from reconciler.objects import Manifest
from reconciler.plan.fields import changed_fields
from reconciler.prediction import Prediction
from reconciler.quantity import Quantity

_GROUPS = "spec.resourceGroups"
_NOMINAL, _LIMITS = "nominalQuota", ("borrowingLimit", "lendingLimit")

Key = tuple[str, str, str]


def why_unseen(prediction: Prediction) -> str:
    """What has to be seen before a live object may be changed; empty where it may be."""
    entry = prediction.entry
    if not entry.unseen or not any(field.path.startswith(_GROUPS) for field in changed_fields(prediction)):
        return ""
    before, after = _quotas(prediction.live or {}), _quotas(prediction.result or prediction.wanted)
    return entry.unseen if _is_less(before, after) else ""


def _is_less(before: Mapping[Key, Quantity], after: Mapping[Key, Quantity]) -> bool:
    """Where there is no limit, any limit is less; a flavor that is gone is less, also where it had nothing."""
    gone = any(key not in after for key in before if key[2] == _NOMINAL)
    limited = any(key not in before for key in after if key[2] in _LIMITS and (*key[:2], _NOMINAL) in before)
    return gone or limited or any(after[key] < old for key, old in before.items() if key in after)


def _quotas(manifest: Manifest) -> Mapping[Key, Quantity]:
    return dict(_amounts(to_canonical(manifest).manifest)) if manifest else {}


def _amounts(queue: Manifest) -> Iterator[tuple[Key, Quantity]]:
    for group in as_list(at(queue, "spec", "resourceGroups")):
        for flavor in as_list(at(group, "flavors")):
            for one in as_list(at(flavor, "resources")):
                for name in (_NOMINAL, *_LIMITS):
                    amount = quantity_at(at(one, name))
                    if amount is not None:
                        yield (as_text(at(flavor, "name")), as_text(at(one, "name")), name), amount
