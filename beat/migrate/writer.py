"""Write schedules as Python: a module that declares them with beat, with comments on what cannot move.

Text from the other tool appears in the module only as a literal or in a comment, except the dotted path of a
function, and so cannot become code.
"""

from __future__ import annotations

import re
import textwrap
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from beat.migrate.result import identifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from beat.migrate.result import Command, Found, Reading

_WIDTH = 100
_PLAIN = re.compile(r"/[\w@%+=:,./ -]+", re.ASCII)  # a program's path and arguments without shell syntax
_CALLED = {"rq-scheduler": "rq-scheduler", "rq-cron": "rq cron", "celery": "Celery", "crontab": "crontab"}
_TAKEN = {"beat", "datetime", "os", "pathlib", "subprocess"}


def module(reading: Reading) -> str:
    """Return the text of a module that declares all schedules, and lists in comments those that cannot move."""
    parts = [_documented(f"Schedules that moved in from {_CALLED[reading.source]}: {reading.place}"), ""]
    parts += _imports(reading)
    parts += _listed("All of them:", [(None, note) for note in reading.notes])
    parts += _listed("Could not move in:", [(left.name, left.why) for left in reading.left])
    names: set[str] = set(_TAKEN)
    for found in reading.found:
        parts += ["", *(_function(found, names) if found.command else _call(found))]
    return "\n".join(parts) + "\n"


def _imports(reading: Reading) -> Iterator[str]:
    commands = [found.command for found in reading.found if found.command]
    dated = any(isinstance(value, datetime) for found in reading.found for value in found.options.values())
    if dated:
        yield "import datetime"
    if any(command.environ for command in commands):
        yield "import os"
    if any(command.home is None for command in commands):
        yield "import pathlib"
    if commands:
        yield "import subprocess"
    if commands or dated:
        yield ""
    yield from sorted({"import beat", *(f"import {_home(found.func)}" for found in reading.found if found.func)})


def _home(path: str) -> str:
    """Return the module of a function's path, without the class that may contain the function."""
    parts = path.split(".")[:-1]
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1][:1].isupper() else parts)


def _listed(title: str, lines: list[tuple[str | None, str]]) -> Iterator[str]:
    if lines:
        yield from ("", f"# {title}")
    for name, text in lines:
        first, *rest = f"{name}: {text}".split("\n") if name else text.split("\n")
        yield from _comment(first, "# - ", "#   ")
        yield from (f"#   {_seen(line)}" for line in rest)


def _comment(text: str, first: str = "# ", others: str = "# ") -> list[str]:
    whole = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.wrap(_seen(text), _WIDTH, initial_indent=first, subsequent_indent=others, **whole)  # type: ignore[arg-type]  # flags


def _call(found: Found) -> list[str]:
    return [*_head(found), _arranged("beat.register", [found.func, *_declared(found, found.func.rpartition(".")[2])])]


def _function(found: Found, names: set[str]) -> list[str]:
    name = identifier(found.id)
    while name in names:
        name += "_"
    names.add(name)
    command = found.command
    assert command is not None  # noqa: S101 (the caller has checked)
    return [
        "",
        *_head(found),
        _arranged("@beat.periodic", _declared(found, name)),
        f"def {name}():",
        f"    {_documented(command.line)}",
        _indented(_arranged("subprocess.run", _run(command), width=_WIDTH - 4)),
    ]


def _head(found: Found) -> Iterator[str]:
    yield f"# {_seen(found.name)} ({_seen(found.where)})"
    yield from (line for note in found.notes for line in _comment(f"Note: {note}"))


def _declared(found: Found, name: str) -> list[str]:
    """Return the arguments of a declaration after the function, whose name is the default id."""
    rule = [written(found.cron)] if found.cron is not None else [f"every={written(found.every)}"]
    said = {**({"id": found.id} if found.id != name else {}), **found.given()}
    return rule + [f"{key}={written(value)}" for key, value in said.items() if key != "every"]


def _run(command: Command) -> list[str]:
    """Return the arguments of `subprocess.run` for a command; it uses a shell unless the command is plain."""
    words = command.line.split() if _PLAIN.fullmatch(command.line) else [command.shell, "-c", command.line]
    line = [written(words)]
    line += ["check=True", f"cwd={_text(command.home) if command.home else 'pathlib.Path.home()'}"]
    if command.stdin is not None:
        line += [f"input={_text(command.stdin)}", "text=True"]
    return [*line, f"env=os.environ | {written(dict(command.environ))}"] if command.environ else line


def _arranged(called: str, arguments: list[str], width: int = _WIDTH) -> str:
    line = f"{called}({', '.join(arguments)})"
    if len(line) <= width:
        return line
    return "\n".join([f"{called}(", *(f"    {argument}," for argument in arguments), ")"])


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


def written(value: Any) -> str:
    """Return a Python expression that evaluates to an equal value."""
    if isinstance(value, datetime):
        at = value.astimezone(UTC)
        parts = [at.year, at.month, at.day, at.hour, at.minute, at.second]
        return f"datetime.datetime({', '.join(map(str, parts))}, tzinfo=datetime.UTC)"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(written, value))}{',' * (len(value) == 1)})"
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, dict):
        return _mapping(value)
    return repr(value)


def _mapping(value: Mapping[Any, Any]) -> str:
    return f"{{{', '.join(f'{written(key)}: {written(item)}' for key, item in value.items())}}}"


def _text(text: str) -> str:
    """Return a string literal without control characters, in double quotes unless that needs more backslashes."""
    quoted = repr(text)
    return f'"{quoted[1:-1]}"' if quoted[0] == "'" and '"' not in quoted else quoted


def _documented(text: str) -> str:
    quoted = _text(text)
    return f'""{quoted}""' if quoted[0] == '"' else quoted


def _seen(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
