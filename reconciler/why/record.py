"""A story as a JSON document; schemas/why.json describes it."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from reconciler.why.model import Story

API_VERSION = "kfleet.dev/v1alpha1"


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
