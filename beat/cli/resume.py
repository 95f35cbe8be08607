"""`beat resume`: end pauses, and skip the held ticks or leave them to the misfire policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from beat.cli import common_options, output, schedule_ids
from beat.client.describe import after_change, instants
from beat.client.upcoming import due
from beat.timing.zones import zone

if TYPE_CHECKING:
    from datetime import datetime

    from beat.client.client import Client
    from beat.client.schedule_info import Standing
    from beat.timing.zones import Zone


class _Resumed(NamedTuple):
    found: Standing
    passed: int
    """How many ticks the end of the pause skipped."""


@click.command("resume")
@click.argument("ids", nargs=-1, metavar="ID...", shell_complete=schedule_ids.complete)
@click.option("--catch-up", is_flag=True, help="Let the misfire policy decide about held ticks, as after an outage.")
@click.option("--all", "everything", is_flag=True, help="Resume everything that beat pause --all has paused.")
@common_options.sure
@common_options.the_version
@common_options.the_author
@common_options.the_url
@common_options.as_json
def command(
    *,
    ids: tuple[str, ...],
    catch_up: bool,
    everything: bool,
    yes: bool,
    version: int | None,
    by: str | None,
    url: str | None,
    as_json: bool,
) -> int:
    """End pauses: each schedule goes on with its next tick, and nothing fires at once.

    \b
    beat resume report
    beat resume report --catch-up     the misfire policy decides about what was held
    beat resume --all                 all that `beat pause --all` has paused

    The ticks that the pause held are recorded as one skip. With --catch-up they count as missed, and the schedule's
    misfire policy says which of them fire: the latest, none, or all. What was paused by name stays paused with --all.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    wanted = common_options.named(ids, version, everything=everything)
    client = common_options.client(url, by)
    if everything:
        return _all(client, catch_up=catch_up, yes=yes, as_json=as_json)
    done, code = common_options.each(client, wanted, lambda each: _resume(client, each, version, catch_up=catch_up))
    if as_json:
        output.document(schedules=[{**after_change.plain(each.found), "passed": each.passed} for each in done])
    for each in done if not as_json else ():
        _tell(each, client.now())
    return code


def _resume(client: Client, schedule_id: str, version: int | None, *, catch_up: bool) -> _Resumed:
    before = client.get(schedule_id)
    found = client.resume(schedule_id, catch_up=catch_up, expected_version=version)
    return _Resumed(found, after_change.passed(before, found))


def _all(client: Client, *, catch_up: bool, yes: bool, as_json: bool) -> int:
    if not common_options.agreed("Resume every schedule that was paused with --all?", yes=yes):
        return common_options.NOT_DONE
    done = client.resume_all(catch_up=catch_up)
    if as_json:
        output.document(resumed=done)
    elif done:
        output.say(f"{done:,} schedule{'s go' if done != 1 else ' goes'} on; what was paused by name stays paused")
    else:
        output.say("no schedule was paused with --all; what was paused by name stays paused")
    return 0


def _tell(resumed: _Resumed, now: datetime) -> None:
    found, where = resumed.found, zone(resumed.found.tz)
    passed = f"; {common_options.ticks(resumed.passed)} passed while it was paused" if resumed.passed else ""
    output.say(f"{found.schedule_id}: {_goes_on(found, where, now)}{passed}")


def _goes_on(found: Standing, where: Zone, now: datetime) -> str:
    if found.state != "active" or found.next_run is None:
        return f"is {found.state or 'broken'}, and has no tick to come"
    moved = due(found) or found.next_run
    if found.next_run <= now:
        policy = found.policies.misfire if found.policies else "once"
        return f"catches up from {instants.both(found.next_run, where)} on (misfire={policy!r})"
    which = f"the tick of {instants.both(found.next_run, where)}, moved to " if moved != found.next_run else ""
    return f"goes on with {which}{common_options.when(moved, where, now)}"
