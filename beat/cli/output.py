"""Print the output of commands: JSON for programs, tables and sentences for people, plain columns for pipes.

No text is cut short, no text of a user can control the terminal, and a reader that closes the pipe is no error. Modules
that only JSON or only terminals need are imported on use, so that other commands start fast.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from beat.client.describe import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TextIO

    Paint = Callable[[str, str], str]

_COLOURS = {"error": "red", "problem": "red", "warning": "yellow"}
_GAP = "  "
_NARROW = 16  # a last column that is narrower than this is hard to read


def document(**content: Any) -> None:
    """Print one JSON document in ASCII, so that every program and every terminal can read it."""
    echo(_json({"schema_version": SCHEMA_VERSION, **content}))


def long_document(name: str, items: Iterable[Any], **content: Any) -> None:
    """Print one JSON document with the list `name`, whose items are printed as they come, however many there are."""
    head = _json({"schema_version": SCHEMA_VERSION, **content}).removesuffix("\n}")
    echo(f'{head},\n  "{name}": [', ended=False)
    between = "\n"
    for each in items:
        echo(between + "    " + _json(each).replace("\n", "\n    "), ended=False)
        between = ",\n"
    echo("]\n}" if between == "\n" else "\n  ]\n}")


def _json(value: Any) -> str:
    import json  # noqa: PLC0415 (for documents alone)

    return json.dumps(value, indent=2)


def complaint(level: str, message: str, where: str | None = None, *, err: bool = False) -> None:
    """Print `where: level: message`, wrapped on a terminal. Lines of the message after the first are indented."""
    echo("\n".join(complained(level, message, where, err=err)), err=err)


def complained(level: str, message: str, where: str | None = None, *, err: bool = False) -> list[str]:
    """Return the lines that `complaint` prints."""
    prefix = f"{printable(where)}: " if where else ""
    first, *rest = printable(message).split("\n")
    lines = wrapped(f"{prefix}{level}: {first}", err=err)
    for line in rest:
        quoted = line.startswith(" ")  # an expression, or the caret under it
        lines += [_GAP + line] if quoted else wrapped(_GAP + line, err=err)
    coloured = click.style(level, fg=_COLOURS[level], bold=True)
    lines[0] = lines[0].replace(f"{prefix}{level}", prefix + coloured, 1)
    return lines


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns, and without a rule or colours in a pipe.

    On a terminal wrap the last column, or print each row as a block if there is no room for that.
    """
    for line in laid_out(headings, rows):
        echo(line)


def laid_out(headings: Sequence[str], rows: Sequence[Sequence[str]], paint: Paint | None = None) -> Iterator[str]:
    """Yield the lines that `table` prints. `paint` gets the heading and text of a cell and returns coloured text."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = widths_of(headings, cells)
    if not is_terminal():
        yield from (_line(row, widths) for row in (headings, *cells))
        return
    room = columns() - sum(widths[:-1]) - len(_GAP) * len(widths[:-1])
    if room < min(widths[-1], _NARROW):
        yield from _blocks(headings, cells)
        return
    widths[-1] = min(widths[-1], room)
    yield click.style(_line(headings, widths), bold=True)
    yield _rule(width_of(widths))
    paints = [functools.partial(paint, heading) for heading in headings] if paint else None
    for *most, last in cells:
        for number, part in enumerate(_words(last, room)):
            yield _line([*(most if number == 0 else [""] * len(most)), part], widths, paints)


def widths_of(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return how many columns of the terminal each column of a table takes."""
    return [max(map(_width, column)) for column in zip(headings, *rows, strict=True)]


def width_of(widths: Sequence[int]) -> int:
    """Return how many columns of the terminal a table with these columns takes, including the gaps."""
    return sum(widths) + len(_GAP) * len(widths[1:])


def entry(head: str, rows: Sequence[tuple[str, str]] = (), *, mark: str = "", colour: str = "") -> None:
    """Print a mark with a line, and facts below it, each wrapped in its own column on a terminal."""
    narrow = is_terminal()
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
    """Print a sentence, wrapped between words on a terminal."""
    echo("\n".join(wrapped(text, err=err)), err=err)


def echo(text: str = "", *, err: bool = False, ended: bool = True) -> None:
    """Print text, with a line end if `ended`. Colours appear only on a terminal, and only if NO_COLOR is not set."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    try:
        click.echo(text, err=err, nl=ended, color=False if plain else None)
    except UnicodeEncodeError as e:  # the encoding of the terminal lacks a character
        echo(text.encode(e.encoding, "replace").decode(e.encoding), err=err, ended=ended)
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does; the exit code still counts
        hang_up(sys.stderr if err else sys.stdout)
    except OSError as e:  # a full disk
        hang_up(sys.stderr if err else sys.stdout)
        raise click.ClickException(f"the output cannot be written: {e.strerror}") from e


def hang_up(stream: TextIO) -> None:
    """Redirect `stream` to /dev/null, because its reader has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextlib.contextmanager
def kept_for_the_report() -> Iterator[None]:
    """Redirect stdout to stderr within the block, for Python and for the programs that it starts."""
    with contextlib.redirect_stdout(sys.stderr), contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # one of the two is closed
            kept = os.dup(1)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, 1)
            os.dup2(2, 1)
        yield


def printable(text: str) -> str:
    """Return `text` with every character escaped that is neither printable nor a line end."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def _blocks(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    indent = max(map(len, headings)) + len(_GAP)
    for row in rows:
        yield _rule(columns())
        for heading, cell in ((h, c) for h, c in zip(headings, row, strict=True) if c):
            first, *rest = _words(cell, max(columns() - indent, _NARROW))
            yield click.style(heading.ljust(indent), bold=True) + first
            yield from (" " * indent + part for part in rest)


def _rule(width: int) -> str:
    return click.style("─" * width, dim=True)


def _line(cells: Sequence[str], widths: Sequence[int], paints: Sequence[Callable[[str], str]] | None = None) -> str:
    painted = [paint(cell) for paint, cell in zip(paints, cells, strict=True)] if paints else cells
    padded = (shown + " " * (width - _width(cell)) for shown, cell, width in zip(painted, cells, widths, strict=True))
    return _GAP.join(padded).rstrip()


def wrapped(line: str, *, err: bool = False) -> list[str]:
    """Return the lines of `line` wrapped to the terminal with an indent, or `line` unchanged for a pipe."""
    if not is_terminal(err=err):
        return [line]
    return _wrap(line, columns(), subsequent_indent=_GAP, break_long_words=False)


def _words(text: str, room: int) -> list[str]:
    return _wrap(text, room) or [""]


def _wrap(text: str, room: int, **how: Any) -> list[str]:
    import textwrap  # noqa: PLC0415 (for terminals alone)

    return textwrap.wrap(text, room, break_on_hyphens=False, **how)


def _width(text: str) -> int:
    """Return how many columns of a terminal `text` takes. Wide East Asian characters take two."""
    if text.isascii():
        return len(text)
    import unicodedata  # noqa: PLC0415 (for letters beyond ASCII alone)

    return len(text) + sum(unicodedata.east_asian_width(c) in "WF" for c in text)


def columns() -> int:
    """Return the width of the terminal: the variable COLUMNS if it is set, and 80 if there is no terminal."""
    import shutil  # noqa: PLC0415 (for terminals alone)

    return shutil.get_terminal_size().columns


def is_terminal(*, err: bool = False) -> bool:
    """Return whether stdout, or stderr if `err` is true, is a terminal."""
    stream = sys.stderr if err else sys.stdout
    return stream is not None and stream.isatty()  # None: it was closed when Python started
