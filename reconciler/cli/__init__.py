"""The command `kfleet`: arguments in, results on stdout, messages on stderr, an exit code.

0  ok          2  changes found (plan, diff with --detailed-exitcode); also wrong usage
1  error       3  refused by a guard        4  some clusters could not be seen or changed
"""

import gc
import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from reconciler.errors import EdgeError, KfleetError, RefusedError

INTERRUPTED = 130
# What `kfleet --help` lists. The commands themselves are imported only when they are used, so that the list stays fast
# whatever they need; each lives in the module of its name.
COMMANDS: Mapping[str, str] = {
    "apply": "Make the clusters hold what the fleet says.",
    "argocd": "Serve as Argo CD's plugin: the objects of one cluster, for one Application.",
    "bootstrap": "Give kfleet an account on a cluster, with the rights that it needs there and no others.",
    "check": "Say whether jobs would be admitted, by which queue, and where they would run.",
    "completion": "Print what makes a shell complete kfleet's commands and options.",
    "credentials": "Show and renew the tokens with which the manager reaches its workers.",
    "crds": "Print the CustomResourceDefinitions of MasterQueues and ClusterMetrics, for clusters that lack them.",
    "demo": "Bring a fleet up, commit and apply its queues, send jobs through MultiKueue, take the fleet down.",
    "diff": "Show what a change in git means for the clusters, without asking any.",
    "explain": "Explain a kind of the fleet or one of its fields.",
    "init": "Write a small starting fleet for the clusters of a kubeconfig.",
    "observe": "Show what has how much now: pools, nodes, clusters, their age, and what each becomes.",
    "plan": "Show what would change on the clusters, and why; change nothing.",
    "preflight": "Say what will keep the fleet from working on its clusters, and what to do about it.",
    "render": "Print the Kubernetes objects of each cluster, in the API version that its Kueue serves.",
    "run": "Follow the repository and the clusters, and keep them right.",
    "sandbox": "A real fleet on this machine, without containers.",
    "status": "Show how each cluster is: reachable, versions, objects, and what is not well.",
    "validate": "Say everything that is wrong with a fleet, with file and line.",
    "version": "Print the version of kfleet and of the Python it runs on.",
}


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  (the same)
        if cmd_name not in COMMANDS:
            return None
        try:
            found = getattr(importlib.import_module(f"reconciler.cli.{cmd_name}"), cmd_name)
        except ModuleNotFoundError as error:
            # The sandbox stands on packages that nobody else needs.
            hint = "install what it needs: pip install 'kfleet[sandbox]'"
            raise EdgeError(f"kfleet {cmd_name}", f"the package {error.name} is not installed", hint) from error
        return found if isinstance(found, click.Command) else None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """From the list above: importing every command would take longer than anybody waits for a name."""
        names = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  (the same)
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kfleet", prog_name="kfleet", message="%(prog)s %(version)s")
def kfleet() -> None:
    """Keep the batch queues of many Kubernetes clusters the way a git repository says.

    \b
    Try it on this machine, without a cluster:
      kfleet sandbox up
    """


def main() -> None:
    # A command reads thousands of objects and keeps them until it ends: looking for garbage among them again and again
    # would take half as long as reading them. Who stays switches it on again.
    gc.disable()
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: list[str]) -> int:
    """Run one command and return its exit code: the only place that turns errors into codes and messages."""
    try:
        answer = kfleet.main(arguments, prog_name="kfleet", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.exceptions.Abort):
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`kfleet … | head`). Keep the interpreter from complaining about it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KfleetError as error:
        return _report([error])
    except ExceptionGroup as group:
        found = _flat(group)
        if not all(isinstance(error, KfleetError) for error in found):
            raise
        return _report([error for error in found if isinstance(error, KfleetError)])
    return answer if isinstance(answer, int) else 0


def _report(errors: list[KfleetError]) -> int:
    for error in errors:
        if isinstance(error, EdgeError):
            _say(f"{error.where}: {error.problem}", error.hint)
        else:
            _say(str(error))
    return 3 if any(isinstance(error, RefusedError) for error in errors) else 1


def _flat(group: ExceptionGroup[Exception]) -> list[Exception]:
    found: list[Exception] = []
    for error in group.exceptions:
        found.extend(_flat(error) if isinstance(error, ExceptionGroup) else [error])
    return found


def _say(problem: str, hint: str = "") -> None:
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(problem, err=True)
    if hint:
        click.secho("hint:  ", fg="cyan", bold=True, nl=False, err=True)
        click.echo(hint.replace("\n", "\n       "), err=True)
