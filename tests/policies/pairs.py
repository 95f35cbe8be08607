"""Every pair of options: a night in which both matter, or why they are refused together.

`make pairs` writes docs/reference/policy-pairs.md. Whoever adds an option adds it here, with a value that matters.
"""

from __future__ import annotations

import itertools
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from beat import Requires, clock, embedded, relations
from beat.errors import DeclarationError
from tests.policies.clients import clients
from tests.policies.stage import History, Pass, Stage, declared
from tests.policies.workers import Plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from beat.schedule import Schedule
    from tests.policies.clients import Connect

PAGE = Path(__file__).parent.parent.parent / "docs/reference/policy-pairs.md"
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
NOTES = {
    (
        'misfire="once"',
        'exclude="2026-11-16"',
    ): "the latest missed tick of another day fires, all before it are misfires",
    ('misfire="skip"', "max_runs=3"): "what is skipped is no run",
    ('misfire="all"', 'overlap="skip"'): "the first takes the room, those caught up with beside it find it taken",
    ('misfire="all"', 'overlap="wait"'): "they stand in line like any other, and the line is no longer for them",
    ('misfire="all"', 'overlap="replace"'): "of those that are caught up with, the newest wins",
    ('misfire="all"', "max_runs=3"): "what is caught up with is cut short",
    ('misfire_after="90m"', 'jitter="40m"'): "late is what is later than both together",
    ('catchup_window="3h"', 'overlap="wait"'): "who waits was decided in time, and does not become too old in line",
    ('overlap="wait"', "end=05:30"): "who waits at the end still gets in",
    ('overlap="wait"', "max_runs=3"): "those that wait count",
    ('overlap="replace"', "max_runs=3"): "what was replaced does not count",
    ("max_running=2", "max_runs=3"): "those that wait count; here with `max_runs=5`",
    ("start=22:30", 'every="50m"'): "the ticks are counted from the start",
    ("start=22:30", "end=05:30"): "both are ticks, if a tick is then",
    ("end=05:30", "max_runs=3"): "whichever comes first",
    ('misfire="all"', 'requires="y"'): "the older ticks had their success, the newer ones did not",
    **{
        (
            f'overlap="{each}"',
            'group="reports"',
        ): "its own room comes first, then the group's; here with `max_running=2`"
        for each in ("skip", "wait")
    },
    **{(first, f'group="{group}"'): "whichever has less room decides" for first, group in SMALLER},
    ('overlap="wait"', 'route="round_robin"'): "the queue is chosen when it gets in, not when it comes",
    ('overlap="wait"', 'slow_queue="slow"'): "whether it is slow is decided when it gets in",
    ('overlap="wait"', 'requires="y"'): "what it requires is looked at when it comes, not when it gets in",
    ('overlap="replace"', 'route="broadcast"'): "all parts of the old run are stopped",
    ("max_running=2", 'route="broadcast"'): "a tick counts once, however many jobs it becomes",
    ("max_runs=3", 'group="reports"'): "those that wait count",
    ("max_runs=3", 'route="broadcast"'): "a tick counts once, however many jobs it becomes",
    ("max_runs=3", 'requires="y"'): "what is skipped is no run",
    ("max_runs=3", 'follows="y"'): "it has finished, and every further success is told",
    ("end=05:30", 'group="reports"'): "who waits at the end still gets in",
    ("enabled=False", 'follows="y"'): "every success is told",
    ('exclude="2026-11-16"', 'follows="y"'): "the day is that of the success",
    ('route="round_robin"', 'slow_queue="slow"'): "what is slow goes to the slow queue, whatever its route",
    ('requires="y"', 'follows="y"'): 'here with `requires=Requires("z", within="2h")`, which succeeds at 21:30',
    ('"H * * * *"', '"15 * * * *"'): "`H` stands in an expression, here in `H */2 * * *`",
}
"""What is not obvious."""
ABOUT = """\
# Pairs of options

What the policies of [time](../guides/policies.md) and of [place](../guides/places.md) do together. Each row is a
test, in `tests/policies/test_pairs.py`: it is played on a real Redis, compared with a model, and tried without either
of the two, which must make a difference. `make pairs` writes this page. A pair stands with the one that comes first
of: {index}.

A schedule of id `x` that ticks every hour, unless an option says otherwise, is registered on 2026-11-16 at 20:00 UTC. A
beat passes at its first two ticks, none does for five and a half hours, and then one does at each of the next seven.
Every run takes two and a half hours. `max_running` and `max_waiting` go with `overlap="wait"`, `catchup_limit` with
`misfire="all"`.

The groups `reports` and `alerts` have room for one run, `alerts` with `when_full="skip"`, and nobody else is in them.
A route has the queues `a` and `b`. Two runs of more than an hour within a day are slow. The schedule `y` succeeds at
21:00, 22:00, 04:00, 05:00, 06:00 and 10:00; what is required is `Requires("y", within="2h")`.

Late ticks are *caught up* with, ticks that *waited* had no room at first, in brackets is why a tick was skipped, and
the queue is named where there is a choice.
"""


class Cell(NamedTuple):
    """What the table says about a pair."""

    first: str
    second: str
    words: str

    @property
    def row(self) -> str:
        """As it stands on the page."""
        note = NOTES.get((self.first, self.second))
        return f"| `{self.second}` | {f'**{note}**: ' if note else ''}{self.words} |"


def cell(pair: tuple[Option, Option], connect: Connect) -> Cell:
    """What becomes of the ticks of that night, or the refusal."""
    first, second = pair
    if same := first.says.keys() & second.says.keys() - {"cron"}:
        return Cell(first.name, second.name, f"refused: {max(same)} is one option, and has one value")
    said = options(*pair)
    refused = refusal(said)
    return Cell(first.name, second.name, f"refused: {refused}" if refused else told(said, connect))


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
        for error in relations.check(registry, registry.groups):
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


def page(cells: Iterable[Cell]) -> str:
    """The whole page."""
    names = [option.name for option in OPTIONS]
    parts = [ABOUT.format(index=", ".join(f"`{name}`" for name in names))]
    for first, rows in itertools.groupby(cells, lambda each: each.first):
        parts.append(f"## `{first}`\n\n| with | what becomes of the ticks |\n|---|---|\n")
        parts[-1] += "".join(f"{each.row}\n" for each in rows)
    return "\n".join(parts)


def main() -> None:
    """Writes it."""
    with (
        tempfile.TemporaryDirectory() as home,
        embedded.start(Path(home) / "redis") as server,
        clients(server) as connect,
    ):
        PAGE.write_text(page(cell(pair, connect) for pair in PAIRS), encoding="utf-8")


if __name__ == "__main__":
    main()
