"""`beat trigger`: run a schedule at once, and with --wait wait for the run to end."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from beat.cli import common_options, output, schedule_ids
from beat.client.describe import changes, decisions, instants, values, workers
from beat.errors import NoRedis
from beat.timing import durations
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beat.client.client import Client
    from beat.client.trigger import Attendance
    from beat.history.history import Fired
    from beat.timing.zones import Zone

_TIMED_OUT, _INTERRUPTED = 124, 130
_SECOND = timedelta(seconds=1)


@click.command("trigger")
@click.argument("schedule_id", metavar="ID", shell_complete=schedule_ids.complete)
@click.option(
    "--arg", "named", metavar="NAME=VALUE", multiple=True, help="Replace one argument; the value is JSON or text."
)
@click.option(
    "--args", "args", metavar="JSON", help="Replace positional arguments by a list, or named ones by an object."
)
@click.option("--timeout", metavar="PERIOD", help="Stop waiting after this time, such as 10m; needs --wait.")
@click.option("--wait", is_flag=True, help="Wait for the run to finish and exit with its result.")
@click.option("--force", is_flag=True, help="Run even if a previous run is still in progress.")
@click.option("--skip-next", is_flag=True, help="Run in place of the next tick, which is skipped.")
@common_options.the_author
@common_options.the_url
@common_options.as_json
def command(
    *,
    schedule_id: str,
    named: tuple[str, ...],
    args: str | None,
    timeout: str | None,
    wait: bool,
    force: bool,
    skip_next: bool,
    by: str | None,
    url: str | None,
    as_json: bool,
) -> int:
    """Run a schedule now, whatever is next; no scheduler needs to be alive.

    \b
    beat trigger report
    beat trigger report --wait                  stay until it has ended
    beat trigger report --wait --timeout 10m    or for ten minutes; then end with 124
    beat trigger report --arg day=2026-11-16 --arg copies=2
    beat trigger report --skip-next             now, instead of at nine

    The run is enqueued at once, once, and the next tick stays as it is. Arguments are laid over those of the schedule;
    a value is JSON where it can be (2, true, [1, 2]), else text, and --arg 'code="007"' is text for sure. Arguments
    that the function does not take are refused. A paused schedule runs, too, and stays paused. With --wait the exit
    code is 0 if the run succeeded, and 1 if it failed, was stopped or was lost.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    if timeout is not None and not wait:
        raise click.UsageError("--timeout is how long --wait waits: say both, or neither")
    seconds = None if timeout is None else durations.parse(timeout, "--timeout").total_seconds()
    positional, keyed = values.arguments(args, named)
    client = common_options.client(url, by)
    before = client.get(schedule_id)
    run = client.trigger(schedule_id, args=positional, kwargs=keyed, force=force, skip_next=skip_next)
    where = zone(before.tz)
    if not as_json:
        queue = before.definition.get("queue", "")
        output.say(output.printable(f"{_step('queued', run.at, where)} on {queue}: {run.job_id}, by {run.beat}"))
        if before.pause:
            output.say(output.printable(f"{changes.paused(before.pause, where)}; only this run is enqueued"), err=True)
        if skip_next and before.next_run:
            output.say(f"instead of it the tick of {instants.both(before.next_run, where)} passes", err=True)
    code = 0
    if wait:
        run, code = _followed(client, run, where, seconds, as_json=as_json)
    if as_json:
        output.document(**common_options.shown({"run": decisions.plain(run)}, reveal=False))
    elif not wait:
        output.say(f"To see how it ends: beat history {schedule_id} -n 1", err=True)
    return code


def _attending(where: Zone) -> Callable[[Fired, Attendance], None]:
    """Return a function that prints what the command waits for, each time that this changes."""
    said = ""

    def attend(run: Fired, found: Attendance) -> None:
        nonlocal said
        words = workers.awaited(run.state, run.worker, found.queues, found.schedulers, where)
        if words != said:
            said = words
            output.say(output.printable(words), err=True)

    return attend


def _followed(client: Client, run: Fired, where: Zone, timeout: float | None, *, as_json: bool) -> tuple[Fired, int]:
    """Print each step of the run. When it has ended, or after the timeout, return it with the exit code."""
    told: dict[str, datetime] = {}
    goes_on = f"the run goes on; to see how it ends: beat history {run.schedule_id} -n 1"
    begun, attend = time.monotonic(), _attending(where)
    try:
        for run in client.follow(run.job_id, timeout=timeout, attend=attend):  # noqa: B020, PLR1704 (the same run, later)
            for word, at, words in _steps(run, client):
                if not as_json and (word not in told or at - told[word] > _SECOND):  # a repeated step may differ by ms
                    output.say(output.printable(f"{_step(word, at, where)} {words}".rstrip()))
                told[word] = at
    except KeyboardInterrupt:
        output.echo(err=True)
        output.say(goes_on, err=True)
        raise click.exceptions.Exit(_INTERRUPTED) from None
    except NoRedis:
        output.say(goes_on, err=True)
        raise
    if not run.closed_at and timeout is not None and time.monotonic() - begun >= timeout:
        output.say(f"gave up after {instants.span(timeout)} (--timeout): {goes_on}", err=True)
        return run, _TIMED_OUT
    if not run.closed_at:
        output.say("nothing is known of the run any more: somebody has removed the schedule, or its job", err=True)
    elif run.error and run.error.traceback and not as_json:
        output.say(f"For the traceback: beat history {run.schedule_id} --failed -n 1 -v", err=True)
    return run, 0 if run.state == "succeeded" else 1


def _step(word: str, at: datetime, where: Zone) -> str:
    return f"{instants.clock_time(at, where)}  {word:<9}"


def _steps(run: Fired, client: Client) -> Iterator[tuple[str, datetime, str]]:
    """Yield the steps of a run so far: a word, its time, and details."""
    if run.started_at:
        waited = f"after {instants.span(run.wait)} in the queue" if run.wait is not None else ""
        by = f"by worker {run.worker}" if run.worker else ""
        yield "started", run.started_at, ", ".join(part for part in (by, waited) if part)
    if run.closed_at:
        took = f"after {instants.span(run.duration)}" if run.duration is not None else ""
        said = common_options.worded(decisions.error(run) or run.message, reveal=False)
        yield run.state, run.ended_at or run.closed_at, ": ".join(part for part in (took, said.split("\n")[0]) if part)
    elif run.state == "scheduled":
        yield "waits", client.now(), "for its next attempt: the last one failed"
