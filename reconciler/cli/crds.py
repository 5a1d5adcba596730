"""`kfleet crds`: the CustomResourceDefinitions of the kinds that kfleet reads besides Kueue's own."""

from importlib.resources import files

import click

NAMES = ("clustermetrics", "masterqueues")


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(NAMES))
def crds(names: tuple[str, ...]) -> None:
    """Print the CustomResourceDefinitions of MasterQueues and ClusterMetrics.

    \b
    Examples:
      kfleet crds masterqueues | kubectl apply --server-side -f -
    """
    folder = files("reconciler") / "crds"
    for name in names or NAMES:
        text = (folder / f"{name}.yaml").read_text(encoding="utf-8")
        click.echo(f"---\n{text}", nl=False)
