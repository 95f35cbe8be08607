"""A run at length: its facts, and all that is known of its error."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from beat import secrecy
from beat.cli import output
from beat.words import telling

if TYPE_CHECKING:
    from beat.history import Fired


def show(run: Fired, *, reveal: bool) -> None:
    """Print the run; what looks secret in the details of its report is masked, unless it is to be revealed."""
    known = run if reveal else replace(run, details=secrecy.masked(dict(run.details)))
    output.table(["job", run.job_id], telling.details(known))
    if run.advice:
        output.echo()
        output.say(output.printable(str(run.advice)))
    if run.error and run.error.traceback:
        output.echo()
        output.echo(output.printable(run.error.traceback.rstrip("\n")))
