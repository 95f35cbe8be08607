"""Read a crontab(5): each line becomes a function that runs its command, because a schedule needs a function.

Fields, days and clock changes mean the same to beat as to Debian's cron.
"""

from __future__ import annotations

import functools
import re
import shlex
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from beat.migrate import files, timezone
from beat.migrate.result import Command, Draft, Found, NotCarried, gathered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from beat.migrate.result import Reading

_SYSTEM = re.compile(r"/etc/(crontab|cron\.d/.+)")
_ENVIRONMENT = re.compile(r"""\s*(?P<q>["']?)(?P<name>[A-Za-z_]\w*)(?P=q)\s*=\s*(?P<value>.*)""", re.ASCII)
_ENTRY = re.compile(r"-?(?P<rule>@\w+|(?:\S+\s+){4}\S+)\s+(?P<rest>\S.*)")
_STARTERS = re.compile(
    r"cd|env|nice|ionice|nohup|sudo|exec|time|chronic|timeout|flock|(?:ba|da|z|k)?sh|(?:python|perl|ruby|php|node)[\d.]*"
)
_NOT_PASSED = {"SHELL", "MAILTO", "MAILFROM", "CRON_TZ", "HOME"}
_ENDS = {".sh", ".py", ".pl", ".rb", ".php", ".js"}
NO_LIMIT = -1
_NOTES = (
    "a command is no function, so it cannot be added as data: save the Python as a module that your workers can import",
    "cron mails what a command prints; here it is in the worker's log, and a command that fails is a failed run",
    "job_timeout=-1 is cron's way, no limit: give each command the time that it should have at most",
)


@dataclass
class _Line:
    """A line of the table, with the variables that earlier lines set."""

    number: int
    text: str
    environ: Mapping[str, str] = field(default_factory=dict)


def read(place: str, *, tz: str | None = None, system: bool = False) -> Reading:
    """Return the table in a file, or on standard input for `-`.

    With `system`, each command has a user before it; /etc/crontab and the files of /etc/cron.d imply it.
    """
    file = files.read(place)
    own = tz or timezone.zone_name()
    with_user = system or bool(_SYSTEM.fullmatch(place))
    drafts = []
    for line in _lines(file.text):
        where = f"{file.shown}:{line.number}"
        make = functools.partial(_made, line, where, own, with_user=with_user)
        drafts.append(Draft(f"line {line.number}", where, make))
    clock = [] if tz else [f"cron follows its host's clock, here taken to be in {own}: --tz names another zone"]
    return gathered("crontab", place, drafts, [*clock, *_NOTES])


def _lines(text: str) -> Iterator[_Line]:
    """Yield the lines that are not empty, comments or variables."""
    environ: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        if found := _ENVIRONMENT.fullmatch(stripped):
            environ = {**environ, found["name"]: _unquoted(found["value"].strip())}
        else:
            yield _Line(number, stripped, environ)


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value


def _made(line: _Line, where: str, tz: str, *, with_user: bool) -> Found:
    found = _ENTRY.fullmatch(line.text)
    if not found:
        raise NotCarried(f"{line.text!r:.80} is neither five fields and a command, nor @daily and a command")
    rest, notes = found["rest"], []
    if with_user:
        user, _, rest = rest.partition(" ") if " " in rest else rest.partition("\t")
        if not rest.strip():
            raise NotCarried(f"after the fields there is only {user!r}: a system's table has a user, then a command")
        notes = [f"it ran as {user}, and runs now as whoever runs the worker"]
    command = _command(rest.strip(), line.environ)
    if "TZ" in line.environ:
        notes.append("TZ= is what the command sees, and never moved when it runs")
    return Found(
        name=f"line {line.number}",
        where=where,
        id=_called(command.line),
        cron=" ".join(found["rule"].split()),
        tz=line.environ.get("CRON_TZ") or tz,
        options={"job_timeout": NO_LIMIT},
        notes=tuple(notes),
        command=command,
    )


def _command(text: str, environ: Mapping[str, str]) -> Command:
    r"""Return the command of a line.

    The first `%` ends the command line. The rest is its input, in which each further `%` is a line break. `\%` is a
    plain `%`.
    """
    parts = [part.replace(r"\%", "%") for part in re.split(r"(?<!\\)%", text)]
    return Command(
        line=parts[0].strip(),
        stdin="\n".join(parts[1:]) + "\n" if len(parts) > 1 else None,
        shell=environ.get("SHELL") or "/bin/sh",
        home=environ.get("HOME") or None,
        environ={name: value for name, value in environ.items() if name not in _NOT_PASSED},
    )


def _called(line: str) -> str:
    """Return a name for a command: that of its program or script."""
    try:
        words = shlex.split(line.replace("(", " ").replace(")", " "))
    except ValueError:
        words = line.split()
    if words and words[0] == "cd" and "&&" in words:
        words = words[words.index("&&") + 1 :]
    for word in words:
        name = PurePosixPath(word).name
        if not (word.startswith("-") or "=" in word or word.isdigit() or not name or _STARTERS.fullmatch(name)):
            return name.removesuffix(PurePosixPath(name).suffix) if PurePosixPath(name).suffix in _ENDS else name
    return "command"
