"""A story as text, and as a JSON document that schemas/why.json describes."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from reconciler.text import Paint, one_line, unpainted
from reconciler.why.model import State, Story

_COLOURS = {
    State.RUNS: "green",
    State.FINISHED: "green",
    State.ADMITTED: "green",
    State.WAITS: "yellow",
    State.UNKNOWN: "yellow",
}
WIDTH = 12
API_VERSION = "kfleet.dev/v1alpha1"


def story_lines(story: Story, paint: Paint = unpainted) -> Iterator[str]:
    state = paint(story.reason.state.value, _COLOURS.get(story.reason.state, "red"))
    yield f"{state}: {one_line(story.reason.text)}"
    yield from _facts("job", [f"{story.title} on {story.cluster}"])
    if story.workload:
        yield from _facts("workload", [story.workload])
        yield from _facts("queue", [_queue(story)])
    yield from _facts("runs on", [story.runs_on] if story.runs_on else [])
    if story.place:
        yield from _facts("place", [f"{story.place.position} of {story.place.total} in queue {story.place.queue}"])
    yield from _facts("ahead", _ahead(story))
    yield from _facts("Kueue says", [one_line(story.message)] if story.message else [])
    yield from _facts("flavors", story.flavors)
    yield from _facts("checks", [f"{one.name} {one.state} {one_line(one.message)}".rstrip() for one in story.checks])
    yield from _facts("workers", [f"{one.cluster}: {one.reason}" for one in story.workers])
    yield from _facts("would help", [one.text for one in story.remedies])
    yield from _facts("story", [f"{one.time or 'unknown'}  {one.cluster}: {one.what}" for one in story.steps])
    yield from _facts("not seen", [str(gap) for gap in story.gaps])


def _queue(story: Story) -> str:
    way = {"multikueue": ", dispatched by MultiKueue", "kubestellar": ", dispatched by KubeStellar"}
    queue = f", ClusterQueue {story.cluster_queue}" if story.cluster_queue else ""
    return f"LocalQueue {story.local_queue}{queue}{way.get(story.dispatch, '')}"


def _ahead(story: Story) -> Iterator[str]:
    for one in story.ahead:
        requests = ", ".join(f"{name} {amount}" for name, amount in one.requests.items())
        yield f"{one.position}. {one.name} (priority {one.priority}" + (f"; {requests})" if requests else ")")
    more = story.place.position - 1 - len(story.ahead) if story.place else 0
    if more > 0:
        yield f"and {more} more"


def _facts(title: str, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"  {title if number == 0 else '':<{WIDTH}}{line}"


def stories_record(stories: Iterable[Story], taken_at: datetime) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "Why",
        "format": 1,
        "takenAt": taken_at.isoformat(timespec="seconds"),
        "jobs": [story_record(story) for story in stories],
    }


def story_record(story: Story) -> dict[str, Any]:
    """Unknown is null, and the gaps say why."""
    return {
        "job": story.title,
        "cluster": story.cluster,
        "state": story.reason.state.value,
        "reason": story.reason.text,
        "firstLine": str(story.reason),
        "workload": story.workload,
        "localQueue": story.local_queue,
        "clusterQueue": story.cluster_queue,
        "dispatch": story.dispatch,
        "runsOn": story.runs_on,
        "place": {"position": story.place.position, "of": story.place.total} if story.place else None,
        "ahead": [
            {"position": one.position, "job": one.name, "priority": one.priority, "requests": dict(one.requests)}
            for one in story.ahead
        ],
        "message": story.message,
        "flavors": list(story.flavors),
        "checks": [{"name": one.name, "state": one.state, "message": one.message} for one in story.checks],
        "workers": [
            {
                "cluster": one.cluster,
                "state": one.reason.state.value,
                "reason": one.reason.text,
                "message": one.message,
            }
            for one in story.workers
        ],
        "remedies": [{"kind": one.kind.value, "text": one.text, "verified": one.is_verified} for one in story.remedies],
        "steps": [{"time": one.time, "cluster": one.cluster, "what": one.what} for one in story.steps],
        "gaps": [{"cluster": one.cluster, "what": one.what, "why": one.why} for one in story.gaps],
    }
