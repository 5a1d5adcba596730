"""`kfleet schema`: the JSON Schema of fleet documents."""

from pathlib import Path

import click

from reconciler.errors import EdgeError
from reconciler.spec.schema import FILES
from reconciler.spec.schema_bundle import schema_text


@click.command()
@click.argument("kind", required=False, type=click.Choice(tuple(FILES), case_sensitive=False))
@click.option("--out", default="", metavar="FILE", help="Write to this file, in place of an older schema in it.")
def schema(kind: str | None, out: str) -> None:
    """Print the JSON Schema of all fleet documents, or of one kind.

    It is complete in itself: it refers to no other file and to no address. `kfleet init` writes it beside the documents
    as .kfleet.schema.json; write it again after an update of kfleet.

    \b
    Examples:
      kfleet schema queue
      kfleet schema --out fleet/.kfleet.schema.json
      echo '# yaml-language-server: $schema=.kfleet.schema.json'    first line of each document, for editors
    """
    text = schema_text(kind or "")
    if not out:
        click.echo(text, nl=False)
        return
    try:
        _write(Path(out), text)
    except OSError as error:
        raise EdgeError(out, f"cannot write: {error.strerror}") from error
    click.echo(f"wrote {out}")


def _write(path: Path, text: str) -> None:
    """Replace the file at once: an editor may be reading it."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
