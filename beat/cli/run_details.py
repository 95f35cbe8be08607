"""Print the details of a run, and everything that is known about its error."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from beat.cli import common_options, output
from beat.client.describe import decisions
from beat.config import masking

if TYPE_CHECKING:
    from beat.history.history import Fired


def show(run: Fired, *, reveal: bool) -> None:
    """Print the run, with secrets in its report and its error masked unless `reveal` is true."""
    known = run if reveal else replace(run, details=masking.masked(dict(run.details)))
    output.table(["job", run.job_id], _masked(decisions.details(known), reveal=reveal))
    if run.advice:
        output.echo()
        output.say(output.printable(str(run.advice)))
    if run.error and run.error.traceback:
        output.echo()
        output.echo(output.printable(common_options.worded(run.error.traceback.rstrip("\n"), reveal=reveal)))


def _masked(facts: list[list[str]], *, reveal: bool) -> list[list[str]]:
    return [[name, common_options.worded(value, reveal=reveal)] for name, value in facts]
