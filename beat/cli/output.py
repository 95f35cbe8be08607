"""What commands print: JSON documents for programs, tables for people, plain columns for pipes."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMA_VERSION = 1


def document(**content: Any) -> None:
    """Prints one JSON document."""
    click.echo(json.dumps({"schema_version": SCHEMA_VERSION, **content}, indent=2, ensure_ascii=False))


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints rows in columns: never cut short, and without any drawing when piped."""
    if not sys.stdout.isatty():
        _plain(headings, rows)
        return
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415 (only terminals pay for rich)
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    grid = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        grid.add_column(heading, overflow="fold")
    for row in rows:
        grid.add_row(*row)
    Console(highlight=False, markup=False).print(grid)


def _plain(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    for row in (headings, *rows):
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
