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

from beat import clock, embedded
from beat.errors import DeclarationError
from beat.registry import Registry
from tests.policies.clients import clients
from tests.policies.stage import History, Pass, Stage
from tests.policies.workers import Plan
from tests.redis.job_functions import anything

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tests.policies.clients import Connect

PAGE = Path(__file__).parent.parent.parent / "docs/reference/policy-pairs.md"
HOUR = 3600
EVENING = datetime(2026, 11, 16, 20, tzinfo=UTC)
NIGHT = [Pass(), Pass(), Pass(5.5 * HOUR), *[Pass()] * 7]
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
)
PAIRS = tuple(itertools.combinations(OPTIONS, 2))
TOGETHER: dict[tuple[str, str], dict[str, Any]] = {
    ('"H * * * *"', '"15 * * * *"'): {"cron": "H */2 * * *"},
    ("max_running=2", "max_runs=3"): {"overlap": "wait", "max_running": 2, "max_runs": 5},
}
"""Other values, where those would not show it."""
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
    ('"H * * * *"', '"15 * * * *"'): "`H` stands in an expression, here in `H */2 * * *`",
}
"""What is not obvious."""
ABOUT = """\
# Pairs of options

What the [policies](../guides/policies.md) do together. Each row is a test, in `tests/policies/test_pairs.py`: it is
played on a real Redis, compared with a model, and tried without either of the two, which must make a difference.
`make pairs` writes this page. A pair stands with the one that comes first of: {index}.

A schedule of id `x` that ticks every hour, unless an option says otherwise, is registered on 2026-11-16 at 20:00 UTC. A
beat passes at its first two ticks, none does for five and a half hours, and then one does at each of the next seven.
Every run takes two and a half hours. `max_running` and `max_waiting` go with `overlap="wait"`, `catchup_limit` with
`misfire="all"`.

Late ticks are *caught up* with, ticks that *waited* had no room at first, in brackets is why a tick was skipped.
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
        return Cell(first.name, second.name, f"refused: {same.pop()} is one option, and has one value")
    said = options(*pair)
    refused = refusal(said)
    return Cell(first.name, second.name, f"refused: {refused}" if refused else told(said, connect))


def options(*pair: Option) -> dict[str, Any]:
    """All that is said, and what it needs."""
    needed = {name: value for each in pair for name, value in each.needs.items()}
    said = {name: value for each in pair for name, value in each.says.items()}
    said = TOGETHER[pair[0].name, pair[1].name] if (*(each.name for each in pair),) in TOGETHER else said
    return ({} if {"every", "cron"} & said.keys() else TICKS) | needed | said


def refusal(said: dict[str, Any]) -> str:
    """Why a schedule cannot say all that; nothing if it can."""
    given = dict(said)
    try:
        Registry().register(anything, given.pop("cron", None), id="x", **given)
    except DeclarationError as e:
        return str(e).partition(": ")[2]  # without the place
    return ""


def told(said: dict[str, Any], connect: Connect) -> str:
    """What becomes of the ticks, if the model agrees."""
    stage = Stage(History(said, NIGHT, RUNS, EVENING), connect)
    stage.plays(*NIGHT)
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
            fate[tick] = how + _later(at - tick)
    for words, ticks in itertools.groupby(sorted(fate), fate.__getitem__):
        first, *rest = [f"{tick:%H:%M}" for tick in ticks]
        yield f"{first} to {rest[-1]} {words}" if rest else f"{first} {words}"


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
