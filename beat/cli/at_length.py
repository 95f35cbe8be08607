"""A run at length: its facts, and all that is known of its error."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from beat import secrecy
from beat.cli import asking, output
from beat.words import telling

if TYPE_CHECKING:
    from beat.history import Fired


def show(run: Fired, *, reveal: bool) -> None:
    """Print the run; secrets in its report and its error are masked, unless they are to be revealed."""
    known = run if reveal else replace(run, details=secrecy.masked(dict(run.details)))
    output.table(["job", run.job_id], _masked(telling.details(known), reveal=reveal))
    if run.advice:
        output.echo()
        output.say(output.printable(str(run.advice)))
    if run.error and run.error.traceback:
        output.echo()
        output.echo(output.printable(asking.worded(run.error.traceback.rstrip("\n"), reveal=reveal)))


def _masked(facts: list[list[str]], *, reveal: bool) -> list[list[str]]:
    return [[name, asking.worded(value, reveal=reveal)] for name, value in facts]
