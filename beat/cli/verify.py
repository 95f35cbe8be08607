"""`beat verify`: recompute every tick, and report those that the ledger does not hold, or holds twice."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from beat.cli import common_options, output, schedule_ids
from beat.client.describe import decisions, instants
from beat.timing import clock
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beat.history.verify import Stretch, Verification

_BAD = 1
_COUNTS = ("expected", "accounted", "missing", "double", "pending", "held", "waiting")
_ALWAYS = _COUNTS[:4]


@click.command("verify")
@click.argument("schedule_id", required=False, metavar="[ID]", shell_complete=schedule_ids.complete)
@click.option("--since", metavar="TIME", help="Begin then: 24h, yesterday, 2026-11-16, 2026-11-16T02:00Z.")
@common_options.the_url
@common_options.as_json
def command(*, schedule_id: str | None, since: str | None, url: str | None, as_json: bool) -> int:
    """Recompute every tick that was to come, and compare with what the ledger accounts for.

    \b
    beat verify                         all schedules
    beat verify report --since 7d       one, the last week of it
    beat verify --json | jq '.schedules[] | select(.sound | not)'

    The ticks of the definitions in force, with all their changes, must have one verdict each; the counters of the
    schedule and the jobs that RQ still has must agree. Ticks from before the ledger was trimmed are not claimed.
    Ends with 1 if a tick is missing or double, or anything does not agree.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    client = common_options.client(url)
    own = zone(client.get(schedule_id).tz if schedule_id else client.settings.tz)
    found = client.verify(schedule_id, since=None if since is None else instants.since(since, own, client.now()))
    if as_json:
        output.document(sound=all(each.sound for each in found), schedules=[_plain(each) for each in found])
    else:
        _show(found)
    return 0 if all(each.sound for each in found) else _BAD


def _show(found: Sequence[Verification]) -> None:
    if len(found) > 1:
        _table(found)
    for each in found:
        for problem in _problems(each):
            output.complaint("problem", problem, each.schedule_id)
    totals = {name: sum(_count(each, name) for each in found) for name in _COUNTS}
    words = [f"{number:,} {name}" for name, number in totals.items() if number or name in _ALWAYS]
    output.say(", ".join(words))
    for each in found if len(found) == 1 else ():
        if each.trimmed_before:
            output.say(f"trimmed before {clock.text(each.trimmed_before)}: earlier ticks are not claimed")


def _table(found: Sequence[Verification]) -> None:
    columns = {"schedule": [each.schedule_id for each in found]}
    columns |= {name: [f"{_count(each, name):,}" for each in found] for name in _COUNTS}
    columns["trimmed before"] = [clock.text(each.trimmed_before) if each.trimmed_before else "" for each in found]
    told = {name: cells for name, cells in columns.items() if name in ("schedule", *_ALWAYS) or _says(cells)}
    output.table(list(told), list(zip(*told.values(), strict=True)))


def _says(cells: Sequence[str]) -> bool:
    return any(cell not in ("", "0") for cell in cells)


def _problems(found: Verification) -> list[str]:
    missing = [f"missing: {_stretch(each)}" for each in found.missing]
    return [*missing, *(f"double: {_stretch(each)}" for each in found.double), *found.problems]


def _stretch(found: Stretch) -> str:
    if found.count == 1:
        return f"the tick of {clock.text(found.first)}"
    return f"{found.count:,} ticks from {clock.text(found.first)} to {clock.text(found.last)}"


def _count(found: Verification, name: str) -> int:
    value = getattr(found, name)
    return value if isinstance(value, int) else sum(each.count for each in value)


def _plain(found: Verification) -> dict[str, Any]:
    named = ("missing", "double", "off")
    stretches = {name: [decisions.times(asdict(each)) for each in getattr(found, name)] for name in named}
    return decisions.times({
        "schedule": found.schedule_id,
        "sound": found.sound,
        "expected": found.expected,
        "accounted": found.accounted,
        "pending": found.pending,
        "held": found.held,
        "waiting": found.waiting,
        **stretches,
        "trimmed_before": found.trimmed_before,
        "problems": list(found.problems),
    })  # fmt: skip
