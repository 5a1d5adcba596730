"""`kfleet completion`: scripts that let a shell complete commands and options."""

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

# The shell sets this variable when it asks for completions; click answers before any command runs.
VARIABLE = "_KFLEET_COMPLETE"
_BY_SHELL: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command()
@click.argument("shell", type=click.Choice(list(_BY_SHELL)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a shell completion script.

    \b
    Examples:
      source <(kfleet completion bash)
      kfleet completion zsh > "${fpath[1]}/_kfleet"
      kfleet completion fish > ~/.config/fish/completions/kfleet.fish
    """
    complete = _BY_SHELL[shell](ctx.find_root().command, {}, "kfleet", VARIABLE)
    click.echo(complete.source())
