"""`kfleet sandbox`: a real fleet on this machine."""

import os
import time
from collections.abc import Sequence

import click

from reconciler.cli.progress import shown_progress
from reconciler.errors import ExitCode
from reconciler.sandbox import fleet
from reconciler.sandbox.build import build_programs, origin
from reconciler.sandbox.certificates import kubeconfig_text
from reconciler.sandbox.options import DEFAULT_COUNT, SandboxOptions, check_options
from reconciler.sandbox.processes import is_alive, memory
from reconciler.sandbox.programs import DEFAULT_KUEUE, KUEUE_VERSIONS, PROGRAMS
from reconciler.sandbox.releases import DEFAULTS, VARIABLE, read_releases
from reconciler.sandbox.state import SandboxState, list_sandboxes, load_state

name_option = click.option("--name", default="default", show_default=True, help="Which sandbox.")


@click.group()
def sandbox() -> None:
    """Run a real fleet on this machine, without containers.

    Each cluster is an API server with controllers, a scheduler and Kueue; workers have nodes; all share one NATS
    server. Everything listens on loopback only, and nothing needs root.

    \b
    Examples:
      kfleet sandbox up                             a manager and two workers
      kfleet sandbox up --kueue worker2=0.16.2      an older Kueue on one worker
      kfleet sandbox up --kubestellar               KubeStellar dispatches the jobs
      kfleet sandbox kubectl -- get nodes --context worker1
      kfleet sandbox stop worker1/kube-apiserver    a worker that does not answer; start brings it back
      kfleet sandbox down
    """


@sandbox.command()
@click.option("--workers", default=2, show_default=True, help="How many worker clusters.")
@name_option
@click.option(
    "--kueue",
    "kueue_choices",
    multiple=True,
    metavar="[CLUSTER=]VERSION",
    help=f"Kueue's version, for all clusters or for one: {', '.join(KUEUE_VERSIONS)} or none. Repeatable. "
    f"[default: {DEFAULT_KUEUE}]",
)
@click.option(
    "--nodes",
    default=str(DEFAULT_COUNT),
    show_default=True,
    metavar="FILE|N",
    help="Nodes of each worker: a number, or a file with Node documents "
    "(the annotation kfleet.dev/clusters: worker1 selects the workers of a node).",
)
@click.option(
    "--kubestellar",
    "has_kubestellar",
    is_flag=True,
    help="Run real KubeStellar controllers: the manager is the workload description space, a further cluster is named "
    "its, and workers have no Kueue unless --kueue sets one. Built on first use, which takes about five minutes.",
)
def up(workers: int, name: str, kueue_choices: tuple[str, ...], nodes: str, has_kubestellar: bool) -> None:
    """Start a sandbox, which keeps running after this command has ended."""
    default_kueue, by_cluster = _kueue_versions(kueue_choices)
    options = SandboxOptions(name, workers, default_kueue, by_cluster, nodes, has_kubestellar=has_kubestellar)
    check_options(options)
    fleet.refuse_second(name)
    with shown_progress() as report:
        build_programs(options.programs, report)
    started = time.monotonic()
    running = fleet.up(options, lambda line: click.echo(line, err=True))
    click.echo(f"sandbox {name} is up after {time.monotonic() - started:.1f} s\n")
    _print_clusters(running.state)


@sandbox.command()
@click.option("--all", "is_all", is_flag=True, help="All sandboxes of this user.")
@name_option
def down(name: str, is_all: bool) -> None:
    """Stop everything that `up` started, and delete its data."""
    for chosen in list_sandboxes() if is_all else [name]:
        fleet.down(chosen)
        click.echo(f"sandbox {chosen} is down")


@sandbox.command()
@name_option
def status(name: str) -> int:
    """Show the state of each process; exits with 1 if one has died."""
    state = load_state(name)
    _print_clusters(state)
    click.echo()
    rows = [
        (part.name, "running" if is_alive(part) else "dead", str(part.pid), part.address, f"{memory(part) >> 20} MiB")
        for part in state.parts
    ]
    _print_table(("PART", "STATE", "PID", "ADDRESS", "MEMORY"), rows)
    dead = [part.name for part in state.parts if not is_alive(part)]
    if dead:
        click.echo(
            f"\n{len(dead)} dead; see: kfleet sandbox logs {dead[0]}; then: kfleet sandbox start {dead[0]}", err=True
        )
    return ExitCode.ERROR if dead else ExitCode.OK


@sandbox.command()
@click.option("--cluster", help="Print only this cluster's context.")
@click.option("--path", "is_path", is_flag=True, help="Print the path of the file instead of its content.")
@name_option
def kubeconfig(name: str, cluster: str | None, is_path: bool) -> None:
    """Print the kubeconfig, with one context per cluster, named like the cluster."""
    state = load_state(name)
    chosen = [state.cluster(cluster)] if cluster else state.clusters
    if is_path:
        click.echo(state.folder / cluster / "kubeconfig" if cluster else state.kubeconfig)
    else:
        click.echo(kubeconfig_text(chosen), nl=False)


@sandbox.command()
@click.argument("part")
@click.option("--lines", default=50, show_default=True, help="Number of lines from the end; 0 for all.")
@name_option
def logs(name: str, part: str, lines: int) -> None:
    """Print the log of a process, for example etcd or worker1/kueue."""
    text = load_state(name).part(part).log.read_text(errors="replace").splitlines()
    click.echo("\n".join(text[-lines:] if lines else text))


@sandbox.command(context_settings={"ignore_unknown_options": True})
@click.option("--cluster", default="manager", show_default=True, help="The context to use.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@name_option
def kubectl(name: str, cluster: str, arguments: tuple[str, ...]) -> None:
    """Run the sandbox's own kubectl.

    \b
    Examples:
      kfleet sandbox kubectl -- get clusterqueues
      kfleet sandbox kubectl --cluster worker1 -- get nodes
    """
    state = load_state(name)
    os.environ["KUBECONFIG"] = str(state.kubeconfig)
    program = str(PROGRAMS["kubernetes"].binary)
    os.execv(program, [program, "kubectl", "--context", state.cluster(cluster).name, *arguments])  # noqa: S606


@sandbox.command()
@click.argument("programs", nargs=-1, type=click.Choice(tuple(PROGRAMS)), metavar="[PROGRAM]...")
@click.option(
    "--releases",
    default="",
    metavar="FILE",
    help=f"Addresses and checksums of release binaries. [default: ${VARIABLE}, or: kfleet sandbox releases]",
)
def build(programs: tuple[str, ...], releases: str) -> None:
    """Build every program of the sandboxes, or some, in advance, so that `up` starts quickly.

    A program whose release binary can be fetched is taken from there if its checksum is that of the list. Any other one
    is compiled from pinned Go modules. The output says which, and why.

    \b
    Examples:
      kfleet sandbox build
      kfleet sandbox build --releases releases.yaml etcd kubernetes
    """
    chosen = [PROGRAMS[name] for name in programs] or list(PROGRAMS.values())
    with shown_progress() as report:
        build_programs(chosen, report, releases=read_releases(releases))
    _print_table(("PROGRAM", "FROM"), [(program.name, origin(program)) for program in chosen if program.target])


@sandbox.command()
def releases() -> None:
    """Print the list of release binaries, to write checksums or addresses of a mirror into it.

    \b
    Examples:
      kfleet sandbox releases > releases.yaml
      kfleet sandbox build --releases releases.yaml
    """
    click.echo(DEFAULTS.read_text(encoding="utf-8"), nl=False)


@sandbox.command()
@click.argument("parts", nargs=-1, required=True, metavar="PART...")
@name_option
def stop(name: str, parts: tuple[str, ...]) -> None:
    """Stop parts of a running sandbox, to see what happens then.

    \b
    Examples:
      kfleet sandbox stop worker1/kube-apiserver     a worker that does not answer
      kfleet sandbox stop worker1/kueue nats
      kfleet sandbox start worker1/kube-apiserver
    """
    running = fleet.Sandbox.find(name)
    for part in [running.state.part(part) for part in parts]:
        was_alive = is_alive(part)
        running.stop(part.name)
        click.echo(f"{part.name} {'is stopped' if was_alive else 'was not running'}")


@sandbox.command()
@click.argument("parts", nargs=-1, required=True, metavar="PART...")
@name_option
def start(name: str, parts: tuple[str, ...]) -> None:
    """Start parts that were stopped or have died, and wait until they answer.

    \b
    Examples:
      kfleet sandbox start worker1/kube-apiserver
    """
    running = fleet.Sandbox.find(name)
    for part in [running.state.part(part) for part in parts]:
        if is_alive(part):
            click.echo(f"{part.name} is running already")
        else:
            running.restart(part.name)
            click.echo(f"{part.name} is started")


def _kueue_versions(choices: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    default, by_cluster = DEFAULT_KUEUE, {}
    for choice in choices:
        cluster, separator, version = choice.rpartition("=")
        if separator:
            by_cluster[cluster] = version
        else:
            default = version
    return default, by_cluster


def _print_clusters(state: SandboxState) -> None:
    rows = [
        (cluster.name, cluster.role, cluster.access.server, f"v{cluster.kueue}" if cluster.kueue else "-")
        for cluster in state.clusters
    ]
    _print_table(("CLUSTER", "ROLE", "SERVER", "KUEUE"), rows)
    click.echo(f"\nNATS        {state.nats_url}")
    click.echo(f"kubeconfig  export KUBECONFIG={state.kubeconfig}")


def _print_table(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[index]) for row in (titles, *rows)) for index in range(len(titles))]
    for row in (titles, *rows):
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
