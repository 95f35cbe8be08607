"""`beat doctor`: report everything that could be wrong, with remedies, and print the least rights that beat needs."""

from __future__ import annotations

import re
import sys
import textwrap
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

import click

from beat.cli import common_options, output
from beat.doctor import LEVELS, OK, PROBLEM, Doctor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from beat.doctor import Finding

_BAD = 1
_COLOURS = {"ok": "green", "note": "cyan", "warning": "yellow", "problem": "red"}
_TITLES = {
    "redis": "Redis",
    "memory": "What it takes",
    "beats": "Beats",
    "schedules": "Schedules",
    "queues": "Queues",
    "state": "What stands in Redis",
    "rights": "Rights",
}
_LEVEL = max(map(len, LEVELS)) + 2
_MANY = 5000
_USER = re.compile(r"[^\s()\x00-\x1f]{1,200}")


@click.command("doctor")
@click.option("--acl", is_flag=True, help="Print only the least rights, as a command for redis-cli.")
@click.option(
    "--user", metavar="NAME", default="beat", show_default=True, help="Name the user who gets the rights of --acl."
)
@click.option("--every-feature", is_flag=True, help="Include the rights of features that nothing uses yet.")
@click.option("--read-only", is_flag=True, help="Include only the rights that reading needs.")
@common_options.the_url
@common_options.as_json
def command(*, acl: bool, user: str, every_feature: bool, read_only: bool, url: str | None, as_json: bool) -> int:
    """Look at everything that could be wrong, and say what to do about it.

    \b
    beat doctor                         all of it
    beat doctor --json | jq '.findings[] | select(.level == "problem")'
    beat doctor --acl                   the least rights that beat needs here
    beat doctor --acl --user beat | redis-cli
    beat doctor --acl --user web --read-only | redis-cli      for `beat web --read-only`

    This checks Redis, memory and how fast it grows, schedulers and their clocks, schedules, queues and their workers,
    the keys, and the rights of the Redis user. Nothing is written. If that user may not look, the missing right is
    named. Ends with 1 if there is a problem; notes and warnings are none.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    doctor = Doctor(common_options.where(url))
    if acl:
        _rule(doctor, user, every_feature=every_feature, read_only=read_only, as_json=as_json)
        return 0
    found = doctor.examine(_progress())
    levels = Counter(each.level for each in found)
    if as_json:
        plain = [each._asdict() for each in found]
        output.document(sound=not levels[PROBLEM], counts={each: levels[each] for each in LEVELS}, findings=plain)
    else:
        _show(found)
        output.say(
            ", ".join(f"{levels[each]} {each}{'s' * (each != OK and levels[each] != 1)}" for each in LEVELS[::-1])
        )
    return _BAD if levels[PROBLEM] else 0


def _rule(doctor: Doctor, user: str, *, every_feature: bool, read_only: bool, as_json: bool) -> None:
    if not _USER.fullmatch(user):
        raise click.UsageError(f"--user {user!r:.60} cannot be a name: no spaces, no parentheses")
    rule, left_out = doctor.rule(every_feature=every_feature)
    rule = rule.reading() if read_only else rule
    if as_json:
        output.document(user=user, rule=rule.words(), left_out=left_out)
        return
    output.echo(rule.command(user))
    output.say(f"a new user has no password yet: ACL SETUSER {user} >PASSWORD", err=True)
    if left_out:
        output.say(f"not in use, and left out (--every-feature takes them in): {', '.join(left_out)}", err=True)


def _progress() -> Callable[[int], None]:
    """Return a function that prints, on a terminal, the number of schedules once every 5,000 of them."""
    if sys.stderr is None or not sys.stderr.isatty():
        return lambda _: None
    return lambda number: output.echo(f"{number:,} schedules …", err=True) if number % _MANY == 0 else None


def _show(found: Sequence[Finding]) -> None:
    for group, findings in groupby(found, lambda each: each.group):
        output.echo(click.style(_TITLES.get(group, group), bold=True))
        for each in findings:
            _show_one(each)


def _show_one(finding: Finding) -> None:
    """Print a finding with its level, and its remedy below it."""
    level = click.style(finding.level.ljust(_LEVEL), fg=_COLOURS[finding.level])
    _indented(f"  {level}", 2 + _LEVEL, finding.what)
    if finding.remedy:
        _indented(f"{' ' * (2 + _LEVEL)}{click.style('→', bold=True)} ", 4 + _LEVEL, finding.remedy)


def _indented(head: str, width: int, text: str) -> None:
    """Print text after a head of `width` columns, wrapped with an indent on a terminal and as one line in a pipe."""
    lines = [output.printable(text)]
    if sys.stdout is not None and sys.stdout.isatty():
        room = max(output.columns() - width, 20)
        whole = re.sub(r"'[^']*'", lambda quoted: quoted[0].replace(" ", "\0"), lines[0])  # do not wrap inside quotes
        wrapped = textwrap.wrap(whole, room, break_long_words=False, break_on_hyphens=False) or [""]
        lines = [line.replace("\0", " ") for line in wrapped]
    for number, line in enumerate(lines):
        output.echo((" " * width if number else head) + line)
