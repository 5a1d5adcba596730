"""Colour on a terminal."""

import click


def paint(text: str, style: str) -> str:
    """Colour on a terminal; click takes it off again in a pipe."""
    return click.style(text, bold=True) if style == "bold" else click.style(text, fg=style)
