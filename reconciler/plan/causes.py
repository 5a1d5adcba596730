"""Where a changed field comes from: somebody changed the cluster, git changed, or what was observed did.

It is told by what was wanted of the field when the object was last written. Items of a list are known by their
position, as in the differences themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.objects import Manifest
from reconciler.ownership.dress import BY_SPEC, is_same_origin, recorded_fields, recorded_name, wanted_hash, wish_of
from reconciler.ownership.fingerprints import Fingerprints, Path, fingerprints
from reconciler.plan.model import Cause
from reconciler.prediction import Prediction


@dataclass(frozen=True, slots=True)
class History:
    """What is wanted of an object now, and what was when it was last written.

    `by_spec` is what git alone says of it, where observations have a say. `whole` is the cause of every change, where
    that is all that can be told; `moved` is the cause of a change of the wish that no field tells.
    """

    by_spec: Manifest | None
    whole: Cause | None
    moved: Cause
    now: Fingerprints = frozenset()
    then: Fingerprints = frozenset()

    def cause(self, path: Path, old: Any, new: Any) -> Cause:
        if self.whole is not None:
            return self.whole
        wanted = fingerprints(new, path) & self.now
        is_same_wish = wanted <= self.then if wanted else not fingerprints(old, path) & self.then
        if is_same_wish:
            return Cause.DRIFT
        said = fingerprints(_at(self.by_spec, path), path, BY_SPEC) & self.now
        return Cause.OBSERVATION if said and said <= self.then else self.moved


def history_of(prediction: Prediction) -> History:
    entry, live = prediction.entry, prediction.live or {}
    name, then = recorded_name(live), recorded_fields(live)
    moved = Cause.OBSERVATION if is_same_origin(entry, name) else Cause.SPEC
    if name == wanted_hash(entry):
        return History(entry.by_spec, Cause.DRIFT, moved)
    if not then:
        return History(entry.by_spec, moved, moved)
    return History(entry.by_spec, None, moved, wish_of(prediction.wanted, entry), then)


def _at(value: Any, path: Path) -> Any:
    for step in path:
        if isinstance(value, Mapping):
            value = value.get(str(step))
        else:
            is_item = isinstance(value, list | tuple) and isinstance(step, int) and step < len(value)
            value = value[step] if is_item else None
    return value
