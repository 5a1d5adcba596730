"""`kfleet why`: the whole story of a job, with the true reason in the first line."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import click

from reconciler.cli.options import load_or_stop, read_recording, snapshot_option, source_options, timeout_option
from reconciler.cli.output import paint
from reconciler.cli.planning import opened
from reconciler.kubestellar.decide import decide_placements
from reconciler.kubestellar.model import Decision
from reconciler.kubestellar.observe import observe_placements
from reconciler.kueue.reading import as_text, at
from reconciler.objects import ClusterName
from reconciler.pipeline.admission import observe_named
from reconciler.pipeline.load import Source
from reconciler.pipeline.objects import observe_fleet_objects
from reconciler.pipeline.observe import Connections
from reconciler.spec.model import FleetSpec
from reconciler.spec.places import downsynced_queues
from reconciler.text import suggest
from reconciler.why.index import Stories, build_stories
from reconciler.why.model import State, Story, Subject
from reconciler.why.story import find_subjects, similar_names, tell
from reconciler.why.text import stories_record, story_lines

NOT_RUNNING = 3
INCOMPLETE = 4
Decisions = Mapping[tuple[str, str], Decision]


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that the stories are computed from."""

    stories: Stories
    decisions: Decisions


@click.command()
@click.argument("name", metavar="NAMESPACE/NAME")
@source_options
@click.option("--cluster", default="", metavar="NAME", help="Only the job on this cluster. [default: all]")
@timeout_option
@snapshot_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def why(name: str, source: Source, cluster: str, timeout: float, snapshot: str | None, output: str) -> int:
    """Explain why a job waits, where it runs, or why it is not queued.

    NAME is a job of any kind, a Workload or a pod. The first line is the reason in one sentence. The rest is the place
    in the queue and what is ahead, what each flavor lacks, the open checks, what each worker says, what would let the
    job in, and what happened so far, for queues without dispatch, with MultiKueue and with KubeStellar.

    \b
    Examples:
      kfleet why team-a/train
      kfleet why team-a/train-7x2kq --cluster cnaf-gpu
      kfleet why team-a/job-train-2f6d1 -o json
      kfleet why team-a/train --snapshot world.json.gz

    \b
    Exit codes:
      0  the job runs, is admitted, or has finished
      1  there is no job of this name
      3  the job waits, is never admitted, or is not queued
      4  the answer is unknown, because a cluster was not observed
    """
    namespace, slash, own = name.partition("/")
    if not (namespace and slash and own) or "/" in own:
        raise click.ClickException(f"{name}: write the job, Workload or pod as NAMESPACE/NAME")
    spec = load_or_stop(source).spec
    _check_cluster(spec, cluster)
    with opened(spec, timeout, read_recording(snapshot)) as connections:
        observed = _observed(spec, connections, namespace, own)
    subjects = find_subjects(observed.stories, (namespace, own), ClusterName(cluster) if cluster else None)
    if not subjects:
        return _not_found(observed.stories, namespace, own)
    told = [tell(observed.stories, one, _decision(observed, one)) for one in subjects]
    if output == "json":
        click.echo(json.dumps(stories_record(told, observed.stories.objects.taken_at), indent=2, ensure_ascii=False))
    else:
        click.echo("\n\n".join("\n".join(story_lines(story, paint)) for story in told))
    return exit_code(told)


def _check_cluster(spec: FleetSpec, name: str) -> None:
    known = [cluster.name for cluster in spec.clusters]
    if name and name not in known:
        raise click.BadParameter(f"no cluster {name!r}{suggest(name, known)}", param_hint="--cluster")


def _observed(spec: FleetSpec, connections: Connections, namespace: str, name: str) -> Observed:
    """The only place of this command that contacts clusters."""
    objects = observe_fleet_objects(spec, connections)
    extra = observe_named(objects, connections.clients, namespace, name)
    return Observed(build_stories(objects, spec, extra), _decisions(spec, connections))


def _decisions(spec: FleetSpec, connections: Connections) -> Decisions:
    """Return what kfleet would do now with each job of KubeStellar; nothing if that could not be observed."""
    if not downsynced_queues(spec):
        return {}
    look = observe_placements(spec, connections.clients, connections.removed, connections.lost, connections.unread)
    if look is None or look.gaps:
        return {}
    return {(one.job.ref.namespace, one.job.workload): one for one in decide_placements(spec, look)}


def _decision(observed: Observed, subject: Subject) -> Decision | None:
    metadata = at(subject.workload, "metadata")
    key = as_text(at(metadata, "namespace")), as_text(at(metadata, "name"))
    is_manager = subject.cluster == observed.stories.objects.manager
    return observed.decisions.get(key) if is_manager else None


def _not_found(stories: Stories, namespace: str, name: str) -> int:
    """A job on a cluster that was not observed is unknown, and not missing."""
    gaps = stories.objects.gaps
    for gap in gaps:
        click.secho(f"not observed: {gap}", fg="yellow", err=True)
    hint = similar_names(stories, (namespace, name))
    problem = f"{namespace}/{name}: no cluster of the fleet has a job, Workload or pod of this name{hint}"
    if gaps:
        click.echo(f"{State.UNKNOWN}: {namespace}/{name} was not found on the clusters that were observed")
        return INCOMPLETE
    raise click.ClickException(problem)


def exit_code(told: list[Story]) -> int:
    """Return whether all jobs have what they need; what is unknown counts only if no other job certainly waits."""
    states = {story.reason.state for story in told} - {State.RUNS, State.ADMITTED, State.FINISHED, State.FAILED}
    if not states:
        return 0
    return INCOMPLETE if states == {State.UNKNOWN} else NOT_RUNNING
