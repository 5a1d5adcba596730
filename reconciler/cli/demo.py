"""`kfleet demo`: start a fleet, apply its queues from one commit, and run jobs on the workers."""

import os
import shlex
import shutil
import sys
import time
from pathlib import Path

import click

from reconciler.cli.apply import apply
from reconciler.cli.get import get
from reconciler.cli.plan import plan
from reconciler.cli.sandbox import down, up
from reconciler.cli.why import why
from reconciler.sandbox import sample
from reconciler.sandbox.certificates import kubectl
from reconciler.sandbox.fleet import Sandbox
from reconciler.sandbox.processes import Part
from reconciler.sandbox.state import MANAGER, SandboxState, load_state

NAME = "demo"
REPOSITORY = "repository"
SAMPLE = Path(sample.__path__[0])
JOBS = {"genomics": "align", "vision": "train"}
STARTED = 2  # of the jobs that are left; the third waits
PAGE = "page"


@click.command()
@click.option("--keep", "is_kept", is_flag=True, help="Keep the fleet running, with jobs and its page.")
@click.pass_context
def demo(ctx: click.Context, is_kept: bool) -> None:
    """Start a sandbox fleet, commit and apply its queues, run jobs through MultiKueue, stop the fleet."""
    _command("kfleet sandbox up --name demo --nodes sample/nodes.yaml")
    ctx.invoke(up, name=NAME, nodes=str(SAMPLE / "nodes.yaml"))
    try:
        state = load_state(NAME)
        _title("Describe in git what the clusters should contain")
        repository = commit_fleet(state.folder / REPOSITORY)
        os.environ["KUBECONFIG"] = str(state.kubeconfig)
        _title("Show what would change: queues on the workers, queues and credentials for each worker on the manager")
        _kfleet(plan, repository, "--only", "*/ClusterQueue/*", "--only", "*/Secret/*", "--only", "*/ServiceAccount/*")
        _title("Apply it")
        _kfleet(apply, repository, "--yes", "--wait", "20")
        _title("Submit jobs on the manager, one of them with GPUs, which only worker2 has")
        run_jobs(state)
        _show_fleet(repository)
        if is_kept:
            leave_jobs(state, repository)
    finally:
        if is_kept:
            _tell_way_on(load_state(NAME))
        else:
            _title("Stop the fleet")
            _command("kfleet sandbox down --name demo")
            ctx.invoke(down, name=NAME)


def commit_fleet(folder: Path) -> Path:
    from git import Actor, Repo  # noqa: PLC0415  (a fifth of a second, for those who really run the demo)

    (folder / "fleet").mkdir(parents=True)
    shutil.copy(SAMPLE / "fleet.yaml", folder / "fleet" / "fleet.yaml")
    author = Actor("kfleet demo", "demo@example.org")
    with Repo.init(folder) as repository:
        repository.git.add(all=True)
        commit = repository.index.commit("Two teams on two workers", author=author, committer=author)
    _command("git add fleet && git commit -m 'Two teams on two workers'")
    click.echo(f"{commit.hexsha[:12]} fleet/fleet.yaml")
    return folder


def run_jobs(state: SandboxState) -> None:
    """Submit the jobs on the manager and wait until the manager shows them complete."""
    started = time.monotonic()
    _shown(state, MANAGER, "apply", "--server-side", "-f", str(SAMPLE / "jobs.yaml"))
    for namespace, job in JOBS.items():
        while not kubectl(state, MANAGER, "get", "workloads", "-n", namespace, "-o", "name"):
            time.sleep(0.1)
        admitted = ("wait", "--for=condition=Admitted", "workloads", "--all", "-n", namespace, "--timeout=60s")
        kubectl(state, MANAGER, *admitted)
        read_place = ("get", "workloads", "-n", namespace, "-o", "jsonpath={.items[0].status.clusterName}")
        where = kubectl(state, MANAGER, *read_place)
        click.echo(f"\nMultiKueue sent {namespace}/{job} to {where}:")
        show_pods(state, where, namespace, job)
    for namespace, job in JOBS.items():
        _shown(state, MANAGER, "wait", "--for=condition=Complete", f"job/{job}", "-n", namespace, "--timeout=60s")
    _shown(state, MANAGER, "get", "jobs", "-A")
    click.echo(
        f"\nBoth jobs are complete on the manager, {time.monotonic() - started:.1f} s after they were submitted."
    )


def _show_fleet(repository: Path) -> None:
    _title("See the fleet: queues, jobs and where they ran, and the story of one job")
    _kfleet(get, repository, "queues")
    _kfleet(get, repository, "jobs")
    _kfleet(why, repository, "vision/train")


def leave_jobs(state: SandboxState, repository: Path) -> None:
    """Submit jobs that do not end, of which one waits for the GPUs of another, and serve the page that shows them."""
    _title("Submit jobs that keep running, and one that waits for their GPUs")
    _shown(state, MANAGER, "apply", "--server-side", "-f", str(SAMPLE / "more-jobs.yaml"))
    clusters = ("get", "workloads", "-A", "-o", "jsonpath={range .items[*]}{.status.clusterName}{'\\n'}{end}")
    while len(kubectl(state, MANAGER, *clusters).split()) < len(JOBS) + STARTED:
        time.sleep(0.1)
    serve_page(repository)
    _kfleet(get, repository, "jobs")


def serve_page(repository: Path) -> None:
    """A part of the sandbox, so that the page ends with it."""
    sandbox = Sandbox.find(NAME)
    (port,) = sandbox.take_ports(1)
    options = ("ui", "--repo", str(repository), "--listen", f"127.0.0.1:{port}")
    command = (sys.executable, "-c", "from reconciler.cli import main; main()", *options)
    sandbox.wait(sandbox.start(Part(PAGE, command, sandbox.folder / "page.log", port)).name)


def show_pods(state: SandboxState, where: str, namespace: str, job: str) -> None:
    """Show where a job's pods run, unless the job has finished already: MultiKueue then removes it from the worker."""
    pods = ("get", "pods", "-n", namespace, "-l", f"job-name={job}", "-o")
    while not kubectl(state, where, *pods, "name"):
        if kubectl(state, MANAGER, "get", "job", job, "-n", namespace, "-o", "jsonpath={.status.succeeded}"):
            click.echo("it has finished already")
            return
        time.sleep(0.1)
    _shown(state, where, *pods, "wide")


def _tell_way_on(state: SandboxState) -> None:
    page = next((f"\nThe page of the fleet: http://{one.address}/jobs" for one in state.parts if one.name == PAGE), "")
    click.echo(
        f"{page}\nThe fleet keeps running. Change it in git, and continue with:\n"
        f"  export KUBECONFIG={state.kubeconfig}\n"
        f"  cd {state.folder / REPOSITORY}\n"
        "  kfleet get jobs -w\n"
        "  kfleet why vision/distill\n"
        f"Stop it with: kfleet sandbox down --name {NAME}"
    )


def _kfleet(command: click.Command, repository: Path, *options: str) -> None:
    _command(shlex.join(("kfleet", str(command.name), *options)))
    code = command.main([*options, "--repo", str(repository)], standalone_mode=False)
    if code:
        raise click.exceptions.Exit(code)


def _shown(state: SandboxState, cluster: str, *arguments: str) -> None:
    shown = " ".join(argument.replace(str(SAMPLE), "sample") for argument in arguments)
    click.echo(f"\n$ kubectl --context {cluster} {shown}")
    click.echo(kubectl(state, cluster, *arguments).rstrip())


def _command(line: str) -> None:
    click.echo(f"$ {line}")


def _title(text: str) -> None:
    click.secho(f"\n{text}", bold=True)
