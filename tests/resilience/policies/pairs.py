"""Every pair of options: a night in which both matter, or why they are refused together.

If you add an option to beat, add it here with a value that matters.
"""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from beat import Requires
from beat.errors import DeclarationError
from beat.schedule import cross_checks
from beat.timing import clock
from tests.resilience.policies.stage import History, Pass, Stage, declared
from tests.resilience.policies.workers import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from beat.schedule.schedule import Schedule
    from tests.resilience.policies.clients import Connect

HOUR = 3600
EVENING = datetime(2026, 11, 16, 20, tzinfo=UTC)
NIGHT = [Pass(), Pass(), Pass(5.5 * HOUR), *[Pass()] * 7]
HOURS = [Pass(HOUR), Pass(HOUR), Pass(5.5 * HOUR), Pass(0.5 * HOUR), *[Pass(HOUR)] * 6]
"""The same night, of a schedule that has no ticks of its own."""
SUCCESSES: dict[str, list[float]] = {"y": [1, 2, 8, 9, 10, 14], "z": [1.5]}
"""How many hours after its beginning."""
RUNS = [Plan(lasts=2.5 * HOUR)]
TICKS = {"every": "1h"}


class Option(NamedTuple):
    """An option, with a value that matters on that night."""

    name: str
    says: Mapping[str, Any]
    needs: Mapping[str, Any] = MappingProxyType({})
    """What it says nothing without."""
    instead: Mapping[str, Any] = MappingProxyType({})
    """Another value, where this is what holds if nothing is said."""


OPTIONS = (
    Option('misfire="once"', {"misfire": "once"}, instead={"misfire": "all"}),
    Option('misfire="skip"', {"misfire": "skip"}),
    Option('misfire="all"', {"misfire": "all"}),
    Option('misfire_after="90m"', {"misfire_after": "90m"}),
    Option('catchup_window="3h"', {"catchup_window": "3h"}),
    Option("catchup_limit=2", {"catchup_limit": 2}, {"misfire": "all"}),
    Option('overlap="allow"', {"overlap": "allow"}, instead={"overlap": "skip"}),
    Option('overlap="skip"', {"overlap": "skip"}),
    Option('overlap="wait"', {"overlap": "wait"}),
    Option('overlap="replace"', {"overlap": "replace"}),
    Option("max_running=2", {"max_running": 2}, {"overlap": "wait"}),
    Option("max_waiting=2", {"max_waiting": 2}, {"overlap": "wait"}),
    Option("start=22:30", {"start": EVENING + timedelta(hours=2.5)}),
    Option("end=05:30", {"end": EVENING + timedelta(hours=9.5)}),
    Option("max_runs=3", {"max_runs": 3}),
    Option('exclude="2026-11-16"', {"exclude": "2026-11-16"}),
    Option('jitter="40m"', {"jitter": "40m"}),
    Option('"H * * * *"', {"cron": "H * * * *"}),
    Option('every="50m"', {"every": "50m"}),
    Option('"15 * * * *"', {"cron": "15 * * * *"}),
    Option("enabled=False", {"enabled": False}),
    Option('group="reports"', {"group": "reports"}),
    Option('group="alerts"', {"group": "alerts"}),
    Option('route="round_robin"', {"queues": ["a", "b"], "route": "round_robin"}),
    Option('route="broadcast"', {"queues": ["a", "b"], "route": "broadcast"}),
    Option('slow_queue="slow"', {"slow_queue": "slow", "slow_after": "1h", "slow_times": 2, "slow_window": "1d"}),
    Option('requires="y"', {"requires": Requires("y", within="2h")}),
    Option('follows="y"', {"follows": "y"}),
)
PAIRS = tuple(itertools.combinations(OPTIONS, 2))
TOGETHER: dict[tuple[str, str], dict[str, Any]] = {
    ('"H * * * *"', '"15 * * * *"'): {"cron": "H */2 * * *"},
    ("max_running=2", "max_runs=3"): {"overlap": "wait", "max_running": 2, "max_runs": 5},
    ('overlap="skip"', 'group="reports"'): {"overlap": "skip", "max_running": 2, "group": "reports"},
    ('overlap="wait"', 'group="reports"'): {"overlap": "wait", "max_running": 2, "group": "reports"},
    ('requires="y"', 'follows="y"'): {"requires": Requires("z", within="2h"), "follows": "y"},
}
"""Other values, where those would not show it."""
SMALLER = [
    ('overlap="skip"', "alerts"),
    ('overlap="wait"', "alerts"),
    *itertools.product(['overlap="replace"', "max_waiting=2"], ["reports", "alerts"]),
    ("max_running=2", "alerts"),
]
"""Room of its own beside that of a group."""


def outcome(pair: tuple[Option, Option], connect: Connect) -> str:
    """Return what becomes of the ticks of that night, or the refusal."""
    first, second = pair
    if same := first.says.keys() & second.says.keys() - {"cron"}:
        return f"refused: {max(same)} is one option, and has one value"
    said = options(*pair)
    refused = refusal(said)
    return f"refused: {refused}" if refused else told(said, connect)


def options(*pair: Option) -> dict[str, Any]:
    """All that is said, and what it needs."""
    needed = {name: value for each in pair for name, value in each.needs.items()}
    said = {name: value for each in pair for name, value in each.says.items()}
    said = TOGETHER[pair[0].name, pair[1].name] if (*(each.name for each in pair),) in TOGETHER else said
    return ({} if {"every", "cron", "follows"} & said.keys() else TICKS) | needed | said


def refusal(said: dict[str, Any]) -> str:
    """Why a schedule cannot say all that; nothing if it can."""
    try:
        registry = declared(said)
        for error in cross_checks.check(registry, registry.groups):
            raise error
    except DeclarationError as e:
        return str(e).partition(": ")[2]  # without the place
    return ""


def told(said: dict[str, Any], connect: Connect) -> str:
    """What becomes of the ticks, if the model agrees."""
    night = HOURS if "follows" in said else NIGHT
    successes = {name: [EVENING + timedelta(hours=n) for n in hours] for name, hours in SUCCESSES.items()}
    waits = "follows" in said or "requires" in said
    stage = Stage(History(said, night, RUNS, EVENING, successes=successes if waits else {}), connect)
    stage.plays(*night)
    words, state = "; ".join(_stretches(stage)) or "nothing", stage.state["state"]
    if stage.schedule.enabled:
        stage.recovers()
    return words if state == "active" else f"{words}; {state}"


def _stretches(stage: Stage) -> Iterator[str]:
    """`21:00 to 23:00 enqueued`, for each stretch of ticks that fare alike."""
    fate = {tick: f"skipped ({reason})" for tick, reason in stage.verdicts.items()}
    fate |= dict.fromkeys(stage.waiting, "waits")
    waited = {line["tick"] for line in stage.ledger if line["type"] == "waiting"}
    for line in stage.ledger:
        if line["type"] == "enqueued":
            tick, at = clock.read(line["tick"]), clock.read(line["at"])
            how = "waited" if line["tick"] in waited else "caught up" if line["by"] == "catchup" else "enqueued"
            how = "waited" if how == "enqueued" and line["by"] == "follows" and at > tick else how
            fate[tick] = how + _later(at - tick) + _where(line, stage.schedule)
    for words, ticks in itertools.groupby(sorted(fate), fate.__getitem__):
        first, *rest = [f"{tick:%H:%M}" for tick in ticks]
        if stage.schedule.follows:  # nobody could know what lies between them
            yield f"{', '.join([first, *rest])} {words}"
        else:
            yield f"{first} to {rest[-1]} {words}" if rest else f"{first} {words}"


def _where(line: dict[str, Any], schedule: Schedule) -> str:
    """The queues to which a tick went, where it could have gone elsewhere."""
    queue = " and ".join(schedule.queues) if "shards" in line else line.get("queue", schedule.queue)
    return f" at {queue}" if schedule.route or queue != schedule.queue else ""


def _later(late: timedelta) -> str:
    hours, minutes = divmod(late // timedelta(minutes=1), 60)
    return f" {hours} h {minutes:02} min later" if hours else f" {minutes} min later" if minutes else ""
