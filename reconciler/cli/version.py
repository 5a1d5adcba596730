"""`kfleet version`."""

import importlib.metadata
import json
import platform

import click


@click.command()
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def version(output: str) -> None:
    """Print the versions of kfleet and Python."""
    known = {"kfleet": importlib.metadata.version("kfleet"), "python": platform.python_version()}
    if output == "json":
        click.echo(json.dumps(known))
    else:
        click.echo("\n".join(f"{name} {number}" for name, number in known.items()))
