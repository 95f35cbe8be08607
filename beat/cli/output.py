"""What commands print: JSON documents for programs, tables and sentences for people, plain columns for pipes.

Nothing is cut short, nothing that a user wrote can steer the terminal, and a reader who leaves early is no error.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import textwrap
import unicodedata
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TextIO

SCHEMA_VERSION = 1
_COLOURS = {"error": "red", "problem": "red", "warning": "yellow"}
_GAP = "  "
_NARROW = 16  # with less room than this, a last column is hard to read


def document(**content: Any) -> None:
    """Prints one JSON document, in ASCII: whatever a value holds, every program and every terminal can read it."""
    echo(json.dumps({"schema_version": SCHEMA_VERSION, **content}, indent=2))


def complaint(level: str, message: str, where: str | None = None, *, err: bool = False) -> None:
    """Prints `where: level: message`; all lines but the first are indented, and on a terminal they are wrapped."""
    prefix = f"{printable(where)}: " if where else ""
    first, *rest = printable(message).split("\n")
    lines = _wrapped(f"{prefix}{level}: {first}", err=err)
    for line in rest:
        quoted = line.startswith(" ")  # an expression, or the caret under it
        lines += [_GAP + line] if quoted else _wrapped(_GAP + line, err=err)
    coloured = click.style(level, fg=_COLOURS[level], bold=True)
    echo("\n".join(lines).replace(f"{prefix}{level}", prefix + coloured, 1), err=err)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints rows in columns, without any drawing when piped.

    On a terminal the last column is wrapped; where there is no room even for that, each row becomes a block.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(_width, column)) for column in zip(headings, *cells, strict=True)]
    if not _is_terminal(sys.stdout):
        for row in (headings, *cells):
            echo(_line(row, widths))
        return
    room = columns() - sum(widths[:-1]) - len(_GAP) * len(widths[:-1])
    if room < min(widths[-1], _NARROW):
        _blocks(headings, cells)
        return
    widths[-1] = min(widths[-1], room)
    echo(click.style(_line(headings, widths), bold=True))
    _rule(sum(widths) + len(_GAP) * len(widths[:-1]))
    for *most, last in cells:
        for number, part in enumerate(_words(last, room)):
            echo(_line([*(most if number == 0 else [""] * len(most)), part], widths))


def entry(head: str, rows: Sequence[tuple[str, str]] = (), *, mark: str = "", colour: str = "") -> None:
    """Prints a line that a mark begins, and facts below it; on a terminal each is wrapped in its own column."""
    narrow = _is_terminal(sys.stdout)
    for number, part in enumerate(_words(printable(head), columns() - len(_GAP)) if narrow else [printable(head)]):
        echo(f"{click.style(mark, fg=colour, bold=True) if number == 0 else _GAP[1:]} {part}")
    indent = max((len(name) for name, _ in rows), default=0) + 3 * len(_GAP)
    for name, value in rows:
        told = printable(value).replace("\n", " ")
        first, *rest = _words(told, max(columns() - indent, _NARROW)) if narrow else [told]
        echo(f"{_GAP * 2}{printable(name)}".ljust(indent) + first)
        for part in rest:
            echo(" " * indent + part)


def say(text: str, *, err: bool = False) -> None:
    """Prints a sentence, wrapped between words on a terminal."""
    echo("\n".join(_wrapped(text, err=err)), err=err)


def echo(text: str = "", *, err: bool = False) -> None:
    """Prints a line; colours go to terminals alone, and not where NO_COLOR asks for none."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    try:
        click.echo(text, err=err, color=False if plain else None)
    except BrokenPipeError:  # `beat next … | head`: whoever read has read enough, and the exit code still counts
        hang_up(sys.stderr if err else sys.stdout)
    except OSError as e:  # a full disk
        hang_up(sys.stderr if err else sys.stdout)
        raise click.ClickException(f"the output cannot be written: {e.strerror}") from e


def hang_up(stream: TextIO) -> None:
    """From here on nobody reads `stream`: what is written goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextlib.contextmanager
def kept_for_the_report() -> Iterator[None]:
    """Within it stdout is stderr, for Python and for the programs that it starts."""
    with contextlib.redirect_stdout(sys.stderr), contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # one of the two is closed
            kept = os.dup(1)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, 1)
            os.dup2(2, 1)
        yield


def printable(text: str) -> str:
    """`text` with everything escaped that is neither a character to see nor the end of a line."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def _blocks(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    indent = max(map(len, headings)) + len(_GAP)
    for row in rows:
        _rule(columns())
        for heading, cell in ((h, c) for h, c in zip(headings, row, strict=True) if c):
            first, *rest = _words(cell, max(columns() - indent, _NARROW))
            echo(click.style(heading.ljust(indent), bold=True) + first)
            for part in rest:
                echo(" " * indent + part)


def _rule(width: int) -> None:
    echo(click.style("─" * width, dim=True))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True))
    return _GAP.join(padded).rstrip()


def _wrapped(line: str, *, err: bool) -> list[str]:
    """`line` as it fits a terminal, going on below with an indent; as it is for a pipe."""
    if not _is_terminal(sys.stderr if err else sys.stdout):
        return [line]
    return textwrap.wrap(line, columns(), subsequent_indent=_GAP, break_long_words=False, break_on_hyphens=False)


def _words(text: str, room: int) -> list[str]:
    return textwrap.wrap(text, room, break_on_hyphens=False) or [""]


def _width(text: str) -> int:
    """How many columns of a terminal `text` takes: letters of East Asia take two."""
    return len(text) + sum(unicodedata.east_asian_width(c) in "WF" for c in text)


def columns() -> int:
    """How wide the terminal is; 80 where there is none, or what COLUMNS says."""
    return shutil.get_terminal_size().columns


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()  # None: it was closed when Python started
