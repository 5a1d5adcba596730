"""The command `kfleet`: it parses arguments, prints results to stdout and messages to stderr, and sets the exit code.

0  ok                          2  changes found (plan, diff with --detailed-exitcode)
1  error, also wrong usage     3  refused by a guard       4  some clusters could not be observed or changed
"""

import gc
import importlib
import keyword
import os
import sys
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from reconciler.errors import EdgeError, ExitCode, KfleetError, RefusedError, SpecError
from reconciler.text import suggest

# The list that `kfleet --help` prints. A command's module has the command's name and is imported only when the command
# runs, so listing stays fast whatever the commands import.
COMMANDS: Mapping[str, str] = {
    "apply": "Apply the fleet in git to the clusters.",
    "argocd": "Run as an Argo CD plugin: print the objects of one cluster for one Application.",
    "bootstrap": "Create kfleet's ServiceAccount on a cluster, with the minimal RBAC permissions.",
    "check": "Check whether jobs would be admitted, by which queue, and where they would run.",
    "completion": "Print a shell completion script.",
    "crds": "Print the CustomResourceDefinitions of MasterQueues and ClusterMetrics.",
    "credentials": "Show and rotate the tokens that the manager uses to reach its workers.",
    "demo": "Start a sandbox fleet, commit and apply its queues, run jobs through MultiKueue, stop the fleet.",
    "diff": "Show the effect of a change in git on the clusters, without contacting them.",
    "doctor": "Report what is wrong, risky or wasteful with the Kueue of live clusters.",
    "explain": "Explain a kind of the fleet or one of its fields.",
    "get": "Show clusters, queues, cohorts, jobs, pools or tenants of the fleet as they are now.",
    "import": "Write a fleet from what live clusters have, so that applying it changes no spec.",
    "init": "Write a small starting fleet for the clusters of a kubeconfig.",
    "kueue": "Install and upgrade Kueue itself, cluster by cluster, with helm.",
    "observe": "Show observed capacity per source, its age, and the quotas derived from it.",
    "plan": "Show what would change on the clusters and why; write nothing.",
    "preflight": "Report what prevents the fleet from working on its clusters, and how to fix it.",
    "render": "Print the Kubernetes objects of each cluster, in the API version that its Kueue serves.",
    "run": "Run the controller: watch the repository and the clusters, and reconcile them.",
    "sandbox": "Run a real fleet on this machine, without containers.",
    "schema": "Print the JSON Schema of all fleet documents, or of one kind.",
    "simulate": "Play a change with a real Kueue on this machine: who is admitted, preempted, or still waits.",
    "snapshot": "Record what the clusters and message buses answer, for --snapshot of other commands.",
    "status": "Show the status of each cluster: reachability, versions, objects, health issues.",
    "ui": "Serve the page of the fleet on this machine: clusters, queues, jobs, plan, capacity.",
    "uninstall": "End a fleet: release what kfleet wrote, or delete it.",
    "validate": "Report all problems of a fleet, with file and line.",
    "version": "Print the versions of kfleet and Python.",
    "why": "Explain why a job waits, where it runs, or why it is not queued.",
}


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  (the same)
        if cmd_name not in COMMANDS:
            return None
        try:
            name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
            found = getattr(importlib.import_module(f"reconciler.cli.{name}"), name)
        except ModuleNotFoundError as error:
            # Only the sandbox needs the packages of the extra `sandbox`.
            hint = "install the missing packages: pip install 'kfleet[sandbox]'"
            raise EdgeError(f"kfleet {cmd_name}", f"the package {error.name} is not installed", hint) from error
        return found if isinstance(found, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"no such command {name!r}{suggest(name, COMMANDS)}")
        return super().resolve_command(ctx, args)

    # Quoted, so that it is not evaluated: CompletionItem is generic only since click 8.5.
    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem[Any]]":
        """Complete from the list above: importing every command would make completion noticeably slow."""
        names = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  (the same)
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kfleet", prog_name="kfleet", message="%(prog)s %(version)s")
def kfleet() -> None:
    """Reconcile Kueue queues across many Kubernetes clusters from a git repository.

    \b
    Try it on this machine, without a cluster:
      kfleet sandbox up
    """


def main() -> None:
    # A command reads thousands of objects and keeps them until it ends. Collecting garbage among them repeatedly would
    # take half as long as reading them. A long-running command enables the collector again.
    gc.disable()
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: list[str]) -> int:
    """Run one command and return its exit code. Only this function turns errors into exit codes and messages."""
    try:
        answer = kfleet.main(arguments, prog_name="kfleet", standalone_mode=False)
    except click.ClickException as error:
        return _report_usage(error)
    except (KeyboardInterrupt, click.exceptions.Abort):
        _say("interrupted")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe (`kfleet … | head`). Keep the interpreter from reporting that at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except KfleetError as error:
        return _report([error])
    except ExceptionGroup as group:
        found = _flat(group)
        if not all(isinstance(error, KfleetError) for error in found):
            raise
        return _report([error for error in found if isinstance(error, KfleetError)])
    return answer if isinstance(answer, int) else ExitCode.OK


def _report_usage(error: click.ClickException) -> int:
    """Wrong usage is an error: 2 is `changes found`, and a script must not take a mistyped option for changes."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
    else:
        context = error.ctx if isinstance(error, click.UsageError) else None
        _say(error.format_message(), f"{context.command_path} --help" if context else "")
    return ExitCode.ERROR


def _report(errors: list[KfleetError]) -> int:
    for error in errors:
        if isinstance(error, EdgeError):
            _say(f"{error.where}: {error.problem}", error.hint)
        elif isinstance(error, SpecError):
            _say_where(error)
        else:
            _say(str(error))
    is_refused = any(isinstance(error, RefusedError) for error in errors)
    return ExitCode.REFUSED if is_refused else ExitCode.ERROR


def _flat(group: ExceptionGroup[Exception]) -> list[Exception]:
    found: list[Exception] = []
    for error in group.exceptions:
        found.extend(_flat(error) if isinstance(error, ExceptionGroup) else [error])
    return found


def _say_where(error: SpecError) -> None:
    """As `kfleet validate` prints a finding, so that editors and scripts find the line in the output of any command."""
    click.echo(f"{error.place}: ", nl=False, err=True)
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(": ".join(filter(None, (error.rule, error.field, error.problem))), err=True)


def _say(problem: str, hint: str = "") -> None:
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(problem, err=True)
    if hint:
        click.secho("hint:  ", fg="cyan", bold=True, nl=False, err=True)
        click.echo(hint.replace("\n", "\n       "), err=True)
