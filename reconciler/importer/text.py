"""What an import says: the clusters with their roles, how many objects became what, and what was left out."""

from collections import Counter
from collections.abc import Iterator

from reconciler.importer.model import ImportedFleet, LeftObject, ObservedContexts
from reconciler.text import counted

_MOST_SHOWN = 20


def import_text(seen: ObservedContexts, made: ImportedFleet) -> str:
    taken = Counter(found.ref.cluster for found in made.taken)
    rows = [("CLUSTER", "ROLE", "KUEUE", "OBJECTS")]
    for name, role in made.roles.items():
        release = seen.objects.clusters[name].kueue.removeprefix("v") or "unknown"
        rows.append((name, str(role), release, str(taken[name])))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    table = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    total = len(made.taken)
    shaped = f"{made.shaped} as Flavors, Queues and Tenants, {total - made.shaped} as they are"
    return "\n".join([*table, "", f"{counted(total, 'object')}: {shaped}"])


def notes_of_import(seen: ObservedContexts, made: ImportedFleet) -> Iterator[str]:
    """What a person should read beside the result: what is not in the fleet, and what to do about it."""
    yield from _left(made)
    yield from (f"not seen: {gap}" for gap in seen.gaps)
    yield from made.notes
    yield from made.hand_over


def _left(made: ImportedFleet) -> Iterator[str]:
    """By reason, because a hundred objects of one tool have one."""
    reasons: dict[str, list[LeftObject]] = {}
    for one in made.left:
        reasons.setdefault(one.why, []).append(one)
    for why, objects in reasons.items():
        shown = ", ".join(str(one.ref) for one in objects[:_MOST_SHOWN])
        more = f" and {len(objects) - _MOST_SHOWN} more" if len(objects) > _MOST_SHOWN else ""
        yield f"left out: {shown}{more}: {why}"
