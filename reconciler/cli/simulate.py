"""`kfleet simulate`: what a change does to running and waiting jobs, played with a real Kueue on this machine."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, BinaryIO

import click

from reconciler.capacity.model import ObservedCapacity
from reconciler.cli.check import read_jobs
from reconciler.cli.options import load_or_stop, quiet_option, timeout_option
from reconciler.cli.output import paint, shown_work, verbose_option
from reconciler.cli.planning import looking_options, opened
from reconciler.cli.progress import shown_progress
from reconciler.errors import ExitCode
from reconciler.objects import ClusterName, Manifest
from reconciler.pipeline.capacity import ObserveOptions
from reconciler.pipeline.line import WITHOUT_PREFLIGHT, observe_and_render, plan_fleet
from reconciler.pipeline.load import Revision, Source, located
from reconciler.pipeline.objects import observe_fleet_objects
from reconciler.pipeline.observe import Connections
from reconciler.plan.model import Plan
from reconciler.simulate.model import Simulation
from reconciler.simulate.run import Question, play
from reconciler.simulate.text import simulation_lines, simulation_markdown, simulation_record
from reconciler.simulate.whatif import (
    AddedJob,
    Removed,
    WorldChange,
    changed_capacity,
    lost_workloads,
    read_job,
    removed_nodes,
)
from reconciler.snapshot.recording import Recording
from reconciler.spec.formats import parse_duration
from reconciler.spec.model import FleetSpec
from reconciler.text import counted, suggest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """The options of the command; without a `base`, the change is from what runs to the `head`."""

    base: str
    head: str
    looking: ObserveOptions
    recording: Recording | None
    timeout: float
    limit: timedelta
    files: tuple[BinaryIO, ...]
    count: int
    is_until_admitted: bool
    nodes: tuple[str, ...]
    pools: tuple[str, ...]
    down: str
    cluster: str
    namespace: str
    is_verbose: bool
    output: str

    @property
    def world(self) -> WorldChange:
        return WorldChange(nodes=self.nodes, pools=self.pools, down=ClusterName(self.down) if self.down else None)


def _read_limit(_context: click.Context, _option: click.Parameter, value: str) -> timedelta:
    try:
        return parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _read_pools(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if not value.endswith("=0"):
            raise click.BadParameter(f"{value!r}: write the name of a pool and =0")
    return tuple(value.removesuffix("=0") for value in values)


@click.command()
@click.option("--repo", default=".", show_default=True, help="Repository: a path, or an https, ssh or file URL.")
@click.option("--path", default="fleet", show_default=True, help="Folder of the fleet in the repository.")
@click.option("--overlay", default="", metavar="NAME", help="Overlay to apply to both, from overlays/NAME.")
@click.option("--base", default="", metavar="REV", help="Revision to compare with. [default: what runs]")
@click.option("--head", default="", metavar="REV", help="Revision to simulate. [default: the working tree]")
@looking_options
@timeout_option
@quiet_option
@click.option(
    "--for",
    "limit",
    callback=_read_limit,
    default="60s",
    metavar="TIME",
    show_default=True,
    help="How long jobs may move after the change; ends early if nothing moves.",
)
@click.option("--submit", "files", multiple=True, type=click.File("rb"), help="Also submit the jobs of this file.")
@click.option("--count", type=click.IntRange(min=1), default=1, show_default=True, help="Submit each job N times.")
@click.option(
    "--until-admitted",
    "is_until_admitted",
    is_flag=True,
    help="Then end running jobs one by one, until the submitted ones start.",
)
@click.option(
    "--remove-nodes", "nodes", multiple=True, metavar="[CLUSTER/]GLOB", help="Play without these nodes. Repeatable."
)
@click.option(
    "--pool",
    "pools",
    multiple=True,
    callback=_read_pools,
    metavar="NAME=0",
    help="Play with an empty pool. Repeatable.",
)
@click.option(
    "--worker-down",
    "down",
    default="",
    metavar="NAME",
    help="Submit the jobs that MultiKueue sent to this worker to each remaining worker.",
)
@click.option("--cluster", default="", metavar="NAME", help="Submit there. [default: the manager, or the only cluster]")
@click.option("-n", "--namespace", default="default", show_default=True, help="For jobs without a namespace.")
@verbose_option
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="json is described by schemas/simulate.json; markdown fits into a comment on a pull request.",
)
def simulate(repo: str, path: str, overlay: str, **options: Any) -> int:
    """Play a change with a real Kueue on this machine: who is admitted, preempted, or still waits.

    Each cluster that the change touches gets a twin: a control plane and a Kueue on loopback, with the queues and
    workloads that were observed. kfleet applies the change there. No cluster of the fleet is written to, and nothing
    is left running. Needs the programs of `kfleet sandbox`, which are built on first use.

    \b
    Examples:
      kfleet simulate                                   the working tree against what runs
      kfleet simulate --base main --head feature --snapshot world.json.gz
      kfleet simulate --submit job.yaml --count 10 --until-admitted
      kfleet simulate --remove-nodes 'cnaf-gpu/rack7-*' --pool cineca=0
      kfleet simulate --snapshot world.json.gz -o markdown > comment.md

    \b
    Exit codes:
      0  played until nothing moved, or nothing to play
      4  a touched cluster was not observed completely, or jobs still moved when the time was over
    """
    chosen = _Options(**options)
    if chosen.is_until_admitted and not chosen.files:
        raise click.UsageError("--until-admitted is about the jobs of --submit")
    simulation = _simulated(located(Source(repo, chosen.head, path, overlay)), chosen)
    _print(simulation, chosen.output)
    return ExitCode.OK if simulation.is_settled and not simulation.unknown else ExitCode.INCOMPLETE


def _simulated(source: Source, chosen: _Options) -> Simulation:
    started = time.monotonic()
    documents = [*read_jobs(chosen.files, chosen.namespace)]
    sources = (source, replace(source, revision=chosen.base)) if chosen.base else (source,)
    revisions = [load_or_stop(one) for one in sources]
    spec = revisions[0].spec
    _known_cluster(spec, chosen.down, "--worker-down")
    jobs = tuple(_added(documents, spec, chosen.cluster, chosen.count))
    with opened(spec, chosen.timeout, chosen.recording) as connections:
        with shown_work(is_verbose=chosen.is_verbose):
            question = _question(revisions, connections, chosen.looking, chosen.world)
        question = replace(question, jobs=jobs, limit=chosen.limit, is_until_admitted=chosen.is_until_admitted)
        with shown_progress() as report, shown_work(is_verbose=chosen.is_verbose) as tell:
            played = play(question, connections, tell, report)
        taken_at = connections.now
    return Simulation(
        base=chosen.base or "what runs",
        head=chosen.head or "the working tree",
        taken_at=taken_at,
        clusters=played.clusters,
        unknown=played.unknown,
        notes=tuple(_world_notes(chosen.world, question)),
        seconds=round(time.monotonic() - started, 1),
    )


def _question(
    revisions: list[Revision], connections: Connections, looking: ObserveOptions, world: WorldChange
) -> Question:
    """Observe once; the head is planned in the changed world, and the base in the one that was observed."""
    head = revisions[0]
    seen = observe_and_render(head, connections, looking).snapshot
    looking = replace(looking, recorded=seen.capacity)
    removed: Removed = {}
    lost: Mapping[ClusterName, tuple[Manifest, ...]] = {}
    changed = looking
    if world:
        objects = observe_fleet_objects(seen.spec, connections)
        removed = removed_nodes(objects, world.nodes)
        lost = lost_workloads(objects, world.down) if world.down else {}
        capacity = seen.capacity or ObservedCapacity(connections.now)
        changed = replace(looking, recorded=changed_capacity(capacity, seen.spec, objects, removed, world.pools))
    return Question(
        spec=seen.spec,
        plan=_planned(head, connections, changed),
        base_plan=_planned(revisions[1], connections, looking) if len(revisions) > 1 else None,
        removed=removed,
        lost=lost,
    )


def _known_cluster(spec: FleetSpec, name: str, option: str) -> None:
    known = [cluster.name for cluster in spec.clusters]
    if name and name not in known:
        raise click.BadParameter(f"no cluster {name!r}{suggest(name, known)}", param_hint=option)


def _world_notes(world: WorldChange, question: Question) -> Iterator[str]:
    if count := sum(len(nodes) for nodes in question.removed.values()):
        yield f"without {counted(count, 'node')}: a quota changes where the fleet takes it from nodes"
    if world.down:
        yield f"without {world.down}: its jobs are tried on each other worker by itself, so a job may start on several"
    if world.pools:
        yield f"with nothing in the pools {', '.join(world.pools)}"


def _planned(revision: Revision, connections: Connections, looking: ObserveOptions) -> Plan:
    """Return the plan as `kfleet plan` makes it, without its preflight: a twin shows what works."""
    return plan_fleet(revision, connections, looking, WITHOUT_PREFLIGHT).plan


def _added(documents: list[Any], spec: FleetSpec, cluster: str, count: int) -> Iterator[AddedJob]:
    if not documents:
        return
    target = _target(spec, cluster)
    for document in documents:
        found = read_job(document.value)
        if isinstance(found, str):
            raise click.ClickException(f"{document.place()}: {found}")
        yield AddedJob(target, found, count)


def _target(spec: FleetSpec, wanted: str) -> ClusterName:
    known = [cluster.name for cluster in spec.clusters]
    _known_cluster(spec, wanted, "--cluster")
    if wanted:
        return ClusterName(wanted)
    if spec.manager:
        return spec.manager.name
    if len(known) > 1:
        raise click.UsageError(f"--submit: the fleet has no manager, so say where: --cluster {known[0]}")
    return known[0]


def _print(simulation: Simulation, output: str) -> None:
    if output == "json":
        click.echo(json.dumps(simulation_record(simulation), indent=2, ensure_ascii=False))
    elif output == "markdown":
        click.echo(simulation_markdown(simulation))
    else:
        for line in simulation_lines(simulation, paint):
            click.echo(line)
