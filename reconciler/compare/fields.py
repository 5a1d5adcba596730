"""The fields in which two revisions of an object or a document differ."""

from typing import Any

from reconciler.compare.model import FieldDiff
from reconciler.plan.fields import differences, path_text
from reconciler.plan.masking import masked


def field_diffs(kind: str, old: Any, new: Any) -> tuple[FieldDiff, ...]:
    """Masked here, where they come into the diff: what is not in it cannot be shown by anybody."""
    return tuple(
        FieldDiff(text, masked(kind, text, before), masked(kind, text, after))
        for path, before, after in differences(old, new)
        for text in (path_text(path),)
    )
