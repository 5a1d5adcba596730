"""`kfleet demo`: a fleet comes up, and a job goes from the manager to a worker and back."""

import time
from collections.abc import Callable
from pathlib import Path

import click

from reconciler.cli.sandbox import down, up
from reconciler.sandbox import sample
from reconciler.sandbox.kubectl import kubectl
from reconciler.sandbox.kueue import NAMESPACE
from reconciler.sandbox.state import MANAGER, SandboxState, load_state

NAME = "demo"
SAMPLE = Path(sample.__path__[0])
WORKERS = ("worker1", "worker2")

Say = Callable[[str], None]


@click.command()
@click.option("--keep", "is_kept", is_flag=True, help="Leave the fleet up afterwards.")
@click.pass_context
def demo(ctx: click.Context, is_kept: bool) -> None:
    """Bring a fleet up, send a job through MultiKueue, take the fleet down."""
    _command("kfleet sandbox up --name demo")
    ctx.invoke(up, name=NAME)
    try:
        state = load_state(NAME)
        _title("Connect the workers to the manager, with plain kubectl")
        connect_workers(state, click.echo)
        _title("Submit a job on the manager")
        run_job(state, click.echo)
    finally:
        if is_kept:
            click.echo(f"\nThe fleet stays up. Take it down with: kfleet sandbox down --name {NAME}")
        else:
            _title("Take the fleet down")
            _command("kfleet sandbox down --name demo")
            ctx.invoke(down, name=NAME)


def connect_workers(state: SandboxState, say: Say) -> None:
    """Queues on the workers; queue, check and credentials on the manager."""
    for worker in WORKERS:
        _shown(say, state, worker, "apply", "--server-side", "-f", str(SAMPLE / "worker.yaml"))
        _shown(
            say,
            state,
            MANAGER,
            *("create", "secret", "generic", f"{worker}-kubeconfig", "-n", NAMESPACE),
            f"--from-file=kubeconfig={state.folder / worker / 'kubeconfig'}",
        )
    _shown(say, state, MANAGER, "apply", "--server-side", "-f", str(SAMPLE / "manager.yaml"))
    _shown(say, state, MANAGER, "wait", "--for=condition=Active", "clusterqueue/sample", "--timeout=60s")


def run_job(state: SandboxState, say: Say) -> None:
    """Submit the job on the manager, and follow it until the manager shows it complete."""
    started = time.monotonic()
    _shown(say, state, MANAGER, "apply", "--server-side", "-f", str(SAMPLE / "job.yaml"))
    while not kubectl(state, MANAGER, "get", "workloads", "-o", "name"):
        time.sleep(0.1)
    _shown(say, state, MANAGER, "wait", "--for=condition=Admitted", "workloads", "--all", "--timeout=60s")
    where = kubectl(state, MANAGER, "get", "workloads", "-o", "jsonpath={.items[0].status.clusterName}")
    say(f"\nMultiKueue sent it to {where}:")
    _shown(say, state, where, "get", "pods", "-o", "wide")
    _shown(say, state, MANAGER, "wait", "--for=condition=Complete", "job/sample", "--timeout=60s")
    _shown(say, state, MANAGER, "get", "jobs,workloads")
    took = time.monotonic() - started
    say(f"\nThe job ran on {where} and is complete on the manager, {took:.1f} s after it was submitted.")


def _shown(say: Say, state: SandboxState, cluster: str, *arguments: str) -> None:
    shown = " ".join(argument.replace(str(SAMPLE), "sample").replace(str(state.folder), "…") for argument in arguments)
    say(f"\n$ kubectl --context {cluster} {shown}")
    say(kubectl(state, cluster, *arguments).rstrip())


def _command(line: str) -> None:
    click.echo(f"$ {line}")


def _title(text: str) -> None:
    click.secho(f"\n{text}", bold=True)
