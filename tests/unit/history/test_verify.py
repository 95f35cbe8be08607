"""A sound ledger is called sound, and whatever is taken from it, put into it or changed in it is noticed."""

from __future__ import annotations

import functools
import json
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beat.history import ledger
from beat.history.ledger import Changed, Enqueued, Entry, Outcome, Reopened, Skipped
from beat.history.verify import Stretch, Verification, verify
from beat.policies.decide import Fire, Lateness, prepare
from beat.schedule import serialize
from beat.timing import clock
from tests.support import oracle
from tests.unit.history.test_ledger import entries as any_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from beat.schedule.schedule import Schedule

NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
LATE = timedelta(milliseconds=4)
MISFIRE = timedelta(minutes=10)

Rule = dict[str, Any]
MINUTELY: Rule = {"cron": "* * * * *", "tz": "UTC"}
HOURLY: Rule = {"cron": "0 * * * *", "tz": "UTC"}
QUARTERLY: Rule = {"every": "15m", "phase": "7m", "tz": "UTC"}


@dataclass
class Life:
    """A schedule as beats would treat it: its ledger, oldest first, and its hash."""

    rule: Rule
    now: datetime = NINE
    lines: list[Entry] = field(default_factory=list)
    next: datetime | None = None
    state: str = "active"
    prefix: str = "job"
    runs: int = 0
    skips: int = 0
    outcomes: dict[str, str] = field(default_factory=dict)
    jobs: dict[str, datetime | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.next = self.schedule.after(self.now)
        self.lines.append(Changed("registered", "r0", self.rule, None, None, self.next, self.now, "web-1"))

    @property
    def schedule(self) -> Schedule:
        return serialize.ticking(self.rule)

    @property
    def open(self) -> set[str]:
        return {job for job, outcome in self.outcomes.items() if not outcome}

    def until(self, now: datetime) -> Life:
        """A beat is there all the time: every tick becomes a job."""
        while self.next and self.next <= now:
            self._decide(self.next + LATE)
        self.now = now
        return self

    def away(self, now: datetime) -> Life:
        """Nobody was there until now: what is too late is skipped, but for the latest."""
        self.now = now
        if self.next and self.next <= now:
            self._decide(now)
        return self

    def _decide(self, now: datetime) -> None:
        assert self.next
        for verdict in prepare(self.schedule, self.next, now, lateness=Lateness(MISFIRE), most=100_000):
            if isinstance(verdict, Fire):
                by = "scheduler" if now - verdict.tick <= MISFIRE else "catchup"
                self.enqueue(verdict.tick, by, at=now)
            else:
                self.skips += verdict.count
                skipped = (verdict.tick, verdict.last, verdict.count, "misfire", self.skips, now, "web-1")
                self.lines.append(Skipped(*skipped))
            self.next = verdict.next
        self.state = "active" if self.next else "finished"

    def enqueue(self, tick: datetime | None, by: str = "manual", at: datetime | None = None) -> str:
        self.runs += 1
        job, at = f"{self.prefix}_{self.runs}", at or self.now
        self.lines.append(Enqueued(tick, job, by, 4, self.runs, at, "web-1"))
        self.outcomes[job], self.jobs[job] = "", tick
        return job

    def end(self, job: str, outcome: str = "succeeded") -> Life:
        attempts = 1 + sum(isinstance(line, Outcome) and line.job == job for line in self.lines)
        made = Outcome(outcome, self.jobs[job], job, self.now, self.now, 0.0, "w1", attempts, self.now, "web-2")
        self.lines.append(made)
        self.outcomes[job] = outcome
        return self

    def again(self, job: str) -> Life:
        self.lines.append(Reopened(self.jobs[job], job, self.outcomes[job], 1, self.now, "web-2"))
        self.outcomes[job] = ""
        return self

    def change(self, rule: Rule) -> Life:
        """A tick that is due stays; others move to the first one of the new rule."""
        before, was, self.rule = self.next, self.rule, rule
        if not (self.next and self.next <= self.now and self.state == "active"):
            self.next = self.schedule.after(self.now)
            self.state = "active" if self.next else "finished"
        kind = "updated" if self.next == before else "moved"
        self.lines.append(Changed(kind, "r1", rule, was, before, self.next, self.now, "web-1"))
        return self

    def trim(self, verdicts: int) -> Life:
        """To so many verdicts, as the scripts do."""
        places = [n for n, line in enumerate(self.lines) if isinstance(line, Enqueued | Skipped)]
        if len(places) > verdicts:
            del self.lines[: places[-verdicts]]
        return self

    def verify(self, lines: Iterable[Entry | None] | None = None, **other: Any) -> Verification:
        """What is found, if Redis holds these lines."""
        kept = self.lines if lines is None else [line for line in lines if line]
        written = [json.dumps(ledger.plain(line)).encode() for line in kept]
        counted = Counter(self.outcomes.values())
        known: dict[str, Any] = {
            "rule": self.rule,
            "next_run": self.next,
            "run_count": self.runs,
            "skip_count": self.skips,
            "state": self.state,
            "now": self.now,
            "jobs": self.jobs,
            "open_jobs": self.open,
            "counts": {
                "success_count": counted["succeeded"],
                "failure_count": counted["failed"] + counted["lost"],
                "stopped_count": counted["stopped"],
            },
        }
        entries = [entry for line in reversed(written) if (entry := read(line))]
        return verify("report", entries, **(known | other))


@functools.cache
def read(line: bytes) -> Entry | None:
    """Each life is verified again and again, with one line that differs."""
    return ledger.read(line)


def sound(found: Verification) -> Verification:
    assert found.problems == ()
    assert found.missing == found.double == ()
    assert found.sound
    assert found.expected == found.accounted
    return found


def eventful() -> Life:
    """A life with all that can happen in it."""
    life = Life(MINUTELY).until(NINE + 5 * MINUTE)
    life.end("job_1").end("job_2", "failed").end("job_3", "lost").end("job_4", "stopped")
    life.again("job_2").end("job_2", "failed").again("job_2").end("job_2").again("job_3")
    by_hand = life.enqueue(None)
    life.until(NINE + 7 * MINUTE).end(by_hand)
    life.away(NINE + HOUR).until(NINE + HOUR + 3 * MINUTE)
    life.change(QUARTERLY).until(NINE + 2 * HOUR).away(NINE + 8 * HOUR)
    life.now = NINE + 8 * HOUR + 8 * MINUTE  # a tick is due while the rule changes
    life.change(HOURLY).until(NINE + 12 * HOUR)
    life.change({**MINUTELY, "start": "2026-11-16T22:00:00Z"}).away(NINE + 15 * HOUR).until(
        NINE + 15 * HOUR + 5 * MINUTE
    )
    return life


# --- sound ledgers ----------------------------------------------------------------------------------------------------


def test_an_eventful_ledger_is_sound() -> None:
    life = eventful()
    found = sound(life.verify())
    assert {type(line) for line in life.lines} == {Enqueued, Skipped, Outcome, Reopened, Changed}
    assert found.expected == sum(line.count for line in life.lines if isinstance(line, Skipped)) + life.runs - 1
    assert (found.pending, found.trimmed_before, found.off) == (0, None, ())


def test_a_tick_that_passed_before_its_time_for_a_run_that_somebody_asked_for_is_sound() -> None:
    life = Life(HOURLY)
    assert life.next
    life.enqueue(None)
    skipped = Skipped(life.next, life.next, 1, "instead", 1, life.now, "ann")
    life.lines.append(skipped)
    life.skips, life.next = 1, life.next + HOUR
    assert sound(life.verify()).expected == 1
    life.lines[-1] = replace(skipped, reason="misfire")
    assert "was decided before it was due" in life.verify().problems[0]


def test_a_tick_that_somebody_has_moved_may_fire_before_its_time() -> None:
    life = Life(HOURLY)
    assert life.next
    moved = ledger.Acted("deferred", life.now, "ann", until=life.now + MINUTE, tick=life.next)
    life.lines.append(moved)
    life.enqueue(life.next, "scheduler", at=life.now + MINUTE)
    life.next, life.now = life.next + HOUR, life.now + 2 * MINUTE
    assert sound(life.verify()).expected == 1
    life.lines.remove(moved)
    assert "was decided before it was due" in life.verify().problems[0]


def test_a_backfill_decides_about_no_tick() -> None:
    life = Life(HOURLY).until(NINE + 3 * HOUR)
    life.enqueue(NINE - HOUR, "backfill")
    life.enqueue(NINE + 2 * HOUR, "backfill")
    assert sound(life.verify()).expected == 3


def test_a_schedule_that_has_not_ticked_yet_is_sound() -> None:
    found = sound(Life(HOURLY).verify())
    assert (found.expected, found.pending, found.trimmed_before) == (0, 0, None)


RULES = [
    MINUTELY,
    HOURLY,
    QUARTERLY,
    {"every": "90s", "tz": "Europe/Berlin"},
    {"every": "7h", "anchor": "2026-11-16T03:30:00Z", "start": "2026-11-16T03:30:00Z", "tz": "UTC"},
    {"cron": "30 2 * * *", "tz": "Europe/Berlin"},
    {"cron": "*/5 0 0,12 * * *", "seconds": True, "tz": "Asia/Kathmandu"},
    {"cron": "0 9 * * mon-fri", "tz": "America/New_York"},
    {"cron": "*/30 * * * *", "tz": "Australia/Lord_Howe"},
    {"cron": "0 * * * *", "tz": "UTC", "start": "2026-11-17T00:30:00Z", "end": "2026-11-18T00:00:00Z"},
]
BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"
DST_DAYS = [
    (BERLIN, datetime(2026, 3, 29, 1, tzinfo=UTC)),
    (BERLIN, datetime(2026, 10, 25, 1, tzinfo=UTC)),
    (NEW_YORK, datetime(2026, 3, 8, 7, tzinfo=UTC)),
    (NEW_YORK, datetime(2026, 11, 1, 6, tzinfo=UTC)),
    (LORD_HOWE, datetime(2026, 4, 4, 15, tzinfo=UTC)),
    (LORD_HOWE, datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_kind_of_rule_is_followed(rule: Rule) -> None:
    sound(Life(rule).until(NINE + 3 * DAY).verify())
    sound(Life(rule).away(NINE + 3 * DAY).verify())


@pytest.mark.parametrize(("tz", "shift"), DST_DAYS, ids=str)
@pytest.mark.parametrize(
    "expression", ["* * * * *", "*/20 * * * *", "30 2 * * *", "30 1 * * *", "0 */2 * * *", "15 1,2 * * *"]
)
def test_the_clock_changes_and_what_cron_would_have_done_is_what_was_expected(
    expression: str, tz: str, shift: datetime
) -> None:
    began, ended = shift - DAY, shift + DAY
    walked = oracle.walk(ZoneInfo(tz), began - DAY, ended)
    ticks = [tick for tick in oracle.ticks(oracle.parse(expression), walked) if began < tick < ended]
    life = Life({"cron": expression, "tz": tz}, now=began)
    for tick in ticks:
        life.enqueue(tick, "scheduler", at=tick + LATE)
    life.now, life.next = ended - SECOND, life.schedule.after(ended - SECOND)
    assert sound(life.verify()).expected == len(ticks)
    for tick in sorted(ticks, key=lambda tick: abs(tick - shift))[:3]:
        found = life.verify(line for line in life.lines if not (isinstance(line, Enqueued) and line.tick == tick))
        assert found.missing == (Stretch(tick, tick, 1),)
        assert found.expected == len(ticks)


@pytest.mark.parametrize("every", ["15m", "1h", "24h"])
def test_an_interval_knows_no_clock_changes(every: str) -> None:
    for _, shift in DST_DAYS:
        life = Life({"every": every, "tz": BERLIN}, now=shift - 2 * DAY).until(shift + 2 * DAY)
        assert sound(life.verify()).expected == 4 * DAY / serialize.ticking(life.rule).timing.period  # type: ignore[union-attr]


def test_a_schedule_that_ended_is_sound() -> None:
    life = Life({**HOURLY, "end": "2026-11-16T12:00:00Z"}).until(NINE + DAY)
    assert (life.state, life.next) == ("finished", None)
    assert sound(life.verify()).expected == 3


def test_a_schedule_that_ended_and_was_given_a_longer_life_is_sound() -> None:
    life = Life({**HOURLY, "end": "2026-11-16T12:00:00Z"}).until(NINE + DAY).change(HOURLY).until(NINE + 2 * DAY)
    assert sound(life.verify()).expected == 3 + 24


def test_a_rule_that_ends_at_once_lets_the_due_tick_go_first() -> None:
    life = Life(HOURLY).until(NINE + 2 * HOUR)
    life.now = NINE + 3 * HOUR + MINUTE
    life.change({**HOURLY, "end": "2026-11-16T10:00:00Z"}).until(life.now)
    assert (life.state, life.next) == ("finished", None)
    assert sound(life.verify()).expected == 3


@pytest.mark.parametrize("late", [1 * MINUTE, 3 * HOUR])
def test_a_due_tick_that_is_a_stranger_to_the_new_rule_gets_its_verdict(late: timedelta) -> None:
    life = Life(QUARTERLY).until(NINE + HOUR)
    stranger = life.next
    assert stranger
    life.now = stranger + late
    life.change(HOURLY).away(life.now).until(life.now + 5 * HOUR)
    decided = {line.tick for line in life.lines if isinstance(line, Enqueued | Skipped)}
    assert stranger in decided
    found = sound(life.verify())
    assert found.expected == sum(line.count for line in life.lines if isinstance(line, Skipped)) + life.runs


def test_runs_that_somebody_asked_for_are_no_ticks() -> None:
    life = Life(HOURLY).until(NINE + 2 * HOUR)
    life.enqueue(None)
    life.enqueue(NINE - DAY, "backfill")
    assert sound(life.until(NINE + 4 * HOUR).verify()).expected == 4


def test_what_is_due_and_not_decided_is_pending() -> None:
    life = Life(MINUTELY).until(NINE + HOUR)
    found = life.verify(now=NINE + HOUR + 5 * MINUTE + SECOND)
    assert (sound(found).expected, found.pending) == (60, 5)
    assert life.verify(now=NINE + HOUR + 5 * MINUTE).pending == 5, "a tick is due when it comes"
    assert life.verify(now=life.next).pending == 1
    assert life.verify(now=NINE + HOUR + 5 * MINUTE, state="disabled").pending == 0


def test_a_pending_stranger_is_counted() -> None:
    life = Life(QUARTERLY).until(NINE + HOUR)
    life.now = NINE + HOUR + 8 * MINUTE
    assert sound(life.change(HOURLY).verify()).pending == 1


def test_ticks_that_came_while_the_schedule_was_off_are_told_and_not_expected() -> None:
    life = Life(HOURLY).until(NINE + 2 * HOUR)
    life.state = "disabled"
    life.now = NINE + 6 * HOUR + MINUTE
    found = sound(life.change(HOURLY).until(NINE + 8 * HOUR).verify())
    assert found.off == (Stretch(NINE + 3 * HOUR, NINE + 6 * HOUR, 4),)
    assert found.expected == 2 + 2


@pytest.mark.parametrize(("enabled", "passed"), [(3 * HOUR - SECOND, 0), (3 * HOUR, 1), (3 * HOUR + SECOND, 1)])
def test_the_tick_at_which_a_schedule_is_enabled_passes_it_by(enabled: timedelta, passed: int) -> None:
    life = Life(HOURLY).until(NINE + 2 * HOUR)
    life.state, life.now = "disabled", NINE + enabled
    found = sound(life.change(HOURLY).until(NINE + 6 * HOUR).verify())
    assert sum(each.count for each in found.off) == passed
    assert found.expected == 6 - passed


def test_a_tick_that_came_while_its_change_was_being_written_is_due_at_once() -> None:
    life = Life(HOURLY).until(NINE + 10 * MINUTE).change(MINUTELY)
    assert life.next
    lines = other(life, 1, at=life.next)
    sound(life.verify(lines, now=life.next))


def test_a_run_that_ended_in_another_way_after_all_is_no_problem() -> None:
    life = Life(HOURLY).until(NINE + HOUR).end("job_1", "failed")
    life.now += SECOND
    sound(life.end("job_1").verify())


def test_what_is_not_given_is_not_compared() -> None:
    life = Life(HOURLY).until(NINE + 5 * HOUR)
    life.outcomes["job_3"] = "failed"
    sound(life.verify(jobs=None, open_jobs=None, counts=None))
    assert not life.verify().sound


lives = st.lists(
    st.one_of(
        st.tuples(st.just("until"), st.integers(1, 6 * 3600)),
        st.tuples(st.just("away"), st.integers(1, 3 * 86400)),
        st.tuples(st.just("wait"), st.integers(1, 86400)),
        st.tuples(st.just("change"), st.integers(0, len(RULES) - 1)),
        st.tuples(st.just("enqueue"), st.none()),
        st.tuples(st.just("end"), st.integers(0, 99)),
        st.tuples(st.just("trim"), st.integers(1, 50)),
    ),
    max_size=12,
)


def lived(rule: int, steps: list[tuple[str, int | None]]) -> Life:
    life = Life(RULES[rule], now=datetime(2026, 10, 24, 12, tzinfo=UTC))  # the clocks of Berlin change in the night
    for step, value in steps:
        match step, value:
            case "until", int(seconds):
                life.away(life.now).until(life.now + seconds * SECOND)
            case "away", int(seconds):
                life.away(life.now + seconds * SECOND)
            case "wait", int(seconds):
                life.now += seconds * SECOND
            case "change", int(n):
                life.change(RULES[n])
            case "end", int(n) if life.runs:
                job = f"job_{1 + n % life.runs}"
                life.end(job, ("succeeded", "failed", "lost", "stopped")[n % 4]) if not life.outcomes[
                    job
                ] else life.again(job)
            case "trim", int(verdicts):
                life.trim(verdicts)
            case "enqueue", None:
                life.enqueue(None)
    return life


@given(st.integers(0, len(RULES) - 1), lives)
@settings(deadline=None)
def test_every_life_is_sound(rule: int, steps: list[tuple[str, int | None]]) -> None:
    life = lived(rule, steps)
    found = sound(life.verify())
    trimmed = not (isinstance(life.lines[0], Changed) and life.lines[0].type == "registered")
    assert (found.trimmed_before is not None) == trimmed


@given(st.integers(0, len(RULES) - 1), lives, st.data())
@settings(deadline=None)
def test_in_every_life_a_verdict_that_is_gone_is_noticed(
    rule: int, steps: list[tuple[str, int | None]], data: st.DataObject
) -> None:
    life = lived(rule, [*steps, ("until", 3600)])
    verdicts = [n for n, line in enumerate(life.lines) if isinstance(line, Enqueued | Skipped)]
    if verdicts:
        gone = data.draw(st.sampled_from(verdicts))
        found = life.verify(life.lines[:gone] + life.lines[gone + 1 :])
        assert not found.sound or gone == 0, "the oldest line of all may have been trimmed"


# --- what was harmed --------------------------------------------------------------------------------------------------


def other(life: Life, place: int, **fields: Any) -> list[Entry]:
    return [*life.lines[:place], replace(life.lines[place], **fields), *life.lines[place + 1 :]]


def places(life: Life, *kinds: type[Entry]) -> list[int]:
    return [n for n, line in enumerate(life.lines) if isinstance(line, kinds)]


EVENTFUL = eventful()
ALL = range(len(EVENTFUL.lines))


@pytest.mark.parametrize("place", ALL[1:])
def test_a_line_that_is_gone_is_noticed(place: int) -> None:
    found = EVENTFUL.verify(EVENTFUL.lines[:place] + EVENTFUL.lines[place + 1 :])
    line = EVENTFUL.lines[place]
    if isinstance(line, Reopened) and EVENTFUL.outcomes[line.job]:
        return  # it ended once more: RQ can do that between two looks, and then there is no such line
    assert not found.sound
    if isinstance(line, Enqueued) and line.tick:
        assert found.missing == (Stretch(line.tick, line.tick, 1),)
        assert found.expected == EVENTFUL.verify().expected
    if isinstance(line, Skipped):
        assert found.missing == (Stretch(line.tick, line.last, line.count),)


def test_the_first_line_that_is_gone_is_taken_for_trimmed() -> None:
    found = EVENTFUL.verify(EVENTFUL.lines[1:])
    assert found.trimmed_before == NINE + MINUTE


@pytest.mark.parametrize("place", ALL)
def test_a_line_that_stands_there_twice_is_noticed(place: int) -> None:
    lines = EVENTFUL.lines
    found = EVENTFUL.verify([*lines[: place + 1], *lines[place:]])
    assert not found.sound
    line = lines[place]
    if isinstance(line, Skipped):
        assert found.double == (Stretch(line.tick, line.last, line.count),)
    elif isinstance(line, Enqueued) and line.tick:
        assert found.double == (Stretch(line.tick, line.tick, 1),)
    else:
        assert found.double == ()
    assert found.expected == EVENTFUL.verify().expected


@pytest.mark.parametrize("place", ALL)
def test_a_line_that_comes_again_at_the_end_is_noticed(place: int) -> None:
    assert not EVENTFUL.verify([*EVENTFUL.lines, EVENTFUL.lines[place]]).sound


@pytest.mark.parametrize("place", places(EVENTFUL, Enqueued, Skipped)[:-1])
def test_two_verdicts_that_changed_places_are_noticed_and_not_called_missing(place: int) -> None:
    verdicts = places(EVENTFUL, Enqueued, Skipped)
    following = verdicts[verdicts.index(place) + 1]
    if any(isinstance(line, Changed) for line in EVENTFUL.lines[place:following]):
        return
    lines = list(EVENTFUL.lines)
    lines[place], lines[following] = lines[following], lines[place]
    found = EVENTFUL.verify(lines)
    assert not found.sound
    assert found.missing == found.double == ()
    assert found.expected == EVENTFUL.verify().expected


def shifted(by: timedelta) -> Callable[[Any], Any]:
    return lambda value: None if value is None else value + by


def plus(number: int) -> Callable[[Any], Any]:
    return lambda value: value + number


def becomes(*words: Any) -> Callable[[Any], Any]:
    return lambda value: next(word for word in words if word != value)


HARMS: list[tuple[type[Entry], str, Callable[[Any], Any]]] = [
    *((kind, "tick", shifted(by)) for kind in (Enqueued, Skipped, Outcome, Reopened)
      for by in (-DAY, -HOUR, -MINUTE, -SECOND, timedelta(milliseconds=500), SECOND, MINUTE, HOUR, DAY)),
    *((Skipped, "last", shifted(by)) for by in (-DAY, -MINUTE, -SECOND, SECOND, MINUTE, DAY)),
    *((Changed, "before", shifted(by)) for by in (-HOUR, -SECOND, SECOND, HOUR)),
    *((Changed, "next", shifted(by)) for by in (-DAY, -SECOND, SECOND, HOUR, 400 * DAY)),
    *((kind, "number", plus(n)) for kind in (Enqueued, Skipped) for n in (-1, 1, 1000)),
    *((Skipped, "count", plus(n)) for n in (-1, 1, -1000)),
    (Enqueued, "by", becomes("manual", "scheduler")),
    (Enqueued, "job", becomes("job_1", "job_2")),
    (Outcome, "job", becomes("job_0")),
    (Reopened, "job", becomes("job_0")),
    (Reopened, "was", becomes("stopped", "failed")),
    (Outcome, "type", becomes("stopped", "failed")),
    (Changed, "rule", becomes({"cron": "7 7 7 7 *", "tz": "UTC"})),
    (Changed, "rule", becomes({"cron": "banana", "tz": "UTC"})),
    (Changed, "rule", becomes({})),
    (Changed, "next", becomes(None)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "harm"), HARMS, ids=[f"{kind.__name__}-{name}-{n}" for n, (kind, name, _) in enumerate(HARMS)]
)
def test_a_value_that_was_changed_is_noticed(kind: type[Entry], name: str, harm: Callable[[Any], Any]) -> None:
    for place in places(EVENTFUL, kind):
        value = getattr(EVENTFUL.lines[place], name)
        if name == "by" and EVENTFUL.lines[place].tick is None:  # type: ignore[union-attr]
            continue
        harmed = harm(value)
        if harmed != value:
            found = EVENTFUL.verify(other(EVENTFUL, place, **{name: harmed}))
            assert not found.sound, (place, EVENTFUL.lines[place])


@pytest.mark.parametrize(
    "harm",
    [
        {"run_count": EVENTFUL.runs + 1},
        {"run_count": EVENTFUL.runs - 1},
        {"run_count": 0},
        {"run_count": None},
        {"skip_count": EVENTFUL.skips + 1},
        {"skip_count": EVENTFUL.skips - 1},
        {"skip_count": None},
        {"next_run": NINE},
        {"next_run": None},
        {"next_run": (EVENTFUL.next or NINE) + MINUTE},
        {"next_run": (EVENTFUL.next or NINE) - MINUTE},
        {"next_run": (EVENTFUL.next or NINE) - SECOND},
        {"rule": HOURLY},
        {"rule": {}},
        {"rule": {"cron": "banana", "tz": "UTC"}},
        {"open_jobs": set()},
        {"open_jobs": EVENTFUL.open | {"job_1"}},
        {"open_jobs": EVENTFUL.open | {"job_0"}},
        {"jobs": {**EVENTFUL.jobs, "job_0": NINE + 3 * MINUTE}},
        {"counts": {"success_count": 0}},
        {"counts": {"failure_count": 1}},
        {"counts": {"stopped_count": 2}},
    ],
    ids="-".join,
)
def test_a_state_that_says_something_else_is_noticed(harm: dict[str, Any]) -> None:
    assert not EVENTFUL.verify(**harm).sound


def test_a_gap_is_counted_by_the_rule() -> None:
    life = Life(MINUTELY).until(NINE + 100 * MINUTE)
    found = life.verify(life.lines[:11] + life.lines[41:])
    assert found.missing == (Stretch(NINE + 11 * MINUTE, NINE + 40 * MINUTE, 30),)
    assert (found.expected, found.accounted, found.double) == (100, 70, ())


def test_the_newest_lines_that_are_gone_are_missed() -> None:
    life = Life(MINUTELY).until(NINE + 100 * MINUTE)
    found = life.verify(life.lines[:-7])
    assert found.missing == (Stretch(NINE + 94 * MINUTE, NINE + 100 * MINUTE, 7),)


def test_lines_that_are_gone_before_a_change_are_missed() -> None:
    life = Life(MINUTELY).until(NINE + 10 * MINUTE).change(HOURLY).until(NINE + 5 * HOUR)
    found = life.verify(life.lines[:8] + life.lines[11:])
    assert found.missing == (Stretch(NINE + 8 * MINUTE, NINE + 10 * MINUTE, 3),)


def test_a_change_that_jumps_over_ticks_leaves_a_gap() -> None:
    life = Life(MINUTELY).until(NINE + 10 * MINUTE).change(HOURLY)
    harmed = other(life, len(life.lines) - 1, next=NINE + 4 * HOUR)
    found = life.verify(harmed, next_run=NINE + 4 * HOUR)
    assert found.missing == (Stretch(NINE + HOUR, NINE + 3 * HOUR, 3),)


def test_a_stretch_that_overlaps_what_was_decided_is_double_as_far_as_it_does() -> None:
    life = Life(MINUTELY).until(NINE + 10 * MINUTE)
    life.lines.append(Skipped(NINE + 6 * MINUTE, NINE + 15 * MINUTE, 10, "misfire", 10, NINE + HOUR, "web-1"))
    life.skips, life.next = 10, NINE + 16 * MINUTE
    found = life.verify()
    assert found.double == (Stretch(NINE + 6 * MINUTE, NINE + 10 * MINUTE, 5),)
    assert found.expected == found.accounted == 15


@pytest.mark.parametrize("which", ["tick", "last", "one between"])
def test_a_tick_in_a_stretch_that_was_skipped_is_double(which: str) -> None:
    life = Life(MINUTELY).away(NINE + HOUR)
    skipped = life.lines[1]
    tick = getattr(skipped, which, NINE + 30 * MINUTE)
    life.enqueue(tick, "scheduler")
    assert life.verify().double == (Stretch(tick, tick, 1),)


def test_a_schedule_that_goes_on_after_its_end_is_noticed() -> None:
    life = Life({**HOURLY, "end": "2026-11-16T12:00:00Z"}).until(NINE + 4 * HOUR)
    assert life.verify(next_run=NINE + 5 * HOUR).problems == (
        "next_run is 2026-11-16T14:00:00Z, and the ledger says that there are no more ticks",
    )
    life.enqueue(NINE + 4 * HOUR, "scheduler")
    assert life.verify().problems == ("2026-11-16T13:00:00Z was decided, and there were to be no more ticks",)


def test_two_jobs_for_one_tick_are_noticed() -> None:
    life = Life(MINUTELY).until(NINE + 10 * MINUTE)
    found = life.verify(jobs={**life.jobs, "job_other": NINE + 3 * MINUTE})
    assert found.problems == ("job job_other of 2026-11-16T09:03:00Z exists, and no line says so",)


def test_a_schedule_that_redis_lost_misses_what_came_meanwhile() -> None:
    life = Life(HOURLY).until(NINE + 3 * HOUR)
    again = Life(HOURLY, now=NINE + 10 * HOUR + MINUTE, prefix="new").until(NINE + 12 * HOUR)
    again.lines = life.lines + again.lines
    found = again.verify(open_jobs=life.open | again.open)
    assert found.missing == (Stretch(NINE + 4 * HOUR, NINE + 10 * HOUR, 7),)
    assert found.problems == ("the schedule was lost, and registered again at 2026-11-16T19:01:00Z",)


@pytest.mark.parametrize(("registered", "missed"), [(4 * HOUR - SECOND, 0), (4 * HOUR, 1), (4 * HOUR + SECOND, 1)])
def test_a_schedule_that_redis_lost_misses_the_tick_at_which_it_comes_back(registered: timedelta, missed: int) -> None:
    life = Life(HOURLY).until(NINE + 3 * HOUR)
    again = Life(HOURLY, now=NINE + registered, prefix="new").until(NINE + 6 * HOUR)
    again.lines = life.lines + again.lines
    found = again.verify(open_jobs=life.open | again.open)
    assert sum(each.count for each in found.missing) == missed
    assert found.expected == 6


def test_a_decision_before_its_time_is_noticed() -> None:
    life = Life(HOURLY).until(NINE + 3 * HOUR)
    found = life.verify(other(life, 2, at=NINE + 2 * HOUR - LATE))
    assert found.problems == (
        "2026-11-16T11:00:00Z was decided before it was due, at 2026-11-16T10:59:59.996Z",
    )  # fmt: skip


def test_a_tick_that_came_out_of_order_and_then_once_more_is_double() -> None:
    life = Life(HOURLY).until(NINE + 4 * HOUR)
    lines = life.lines
    found = life.verify([*lines[:2], lines[3], lines[2], lines[2], lines[4]])
    assert found.missing == ()
    assert found.double == (Stretch(NINE + 2 * HOUR, NINE + 2 * HOUR, 1),)


@pytest.mark.parametrize(
    ("found_late", "gaps"),
    [(2, [(3, 6)]), (3, [(2, 2), (4, 6)]), (5, [(2, 4), (6, 6)]), (6, [(2, 5)])],
)
def test_a_tick_that_came_out_of_order_parts_a_gap(found_late: int, gaps: list[tuple[int, int]]) -> None:
    life = Life(HOURLY).until(NINE + 8 * HOUR)
    lines = [*life.lines[:2], life.lines[7], life.lines[found_late], life.lines[8]]
    found = life.verify(lines)
    assert found.missing == tuple(Stretch(NINE + a * HOUR, NINE + b * HOUR, b - a + 1) for a, b in gaps)
    assert (found.expected, found.accounted, found.double) == (8, 4, ())


def test_a_decision_about_what_is_no_tick_is_noticed() -> None:
    life = Life(HOURLY).until(NINE + 2 * HOUR)
    life.enqueue(NINE + 30 * MINUTE, "scheduler")
    behind = life.verify()
    assert behind.problems == ("2026-11-16T09:30:00Z was decided, and 2026-11-16T12:00:00Z was to come next",)
    life.now = NINE + 4 * HOUR
    life.enqueue(NINE + 3 * HOUR + 30 * MINUTE, "scheduler")
    ahead = life.verify(next_run=NINE + 4 * HOUR)
    assert ahead.problems == (*behind.problems, "2026-11-16T12:30:00Z was decided, and is not a tick of the rule")
    assert ahead.missing == (Stretch(NINE + 3 * HOUR, NINE + 3 * HOUR, 1),)
    assert ahead.expected == 3


def test_a_change_that_goes_on_with_what_is_no_tick_is_noticed() -> None:
    life = Life(MINUTELY).until(NINE + 10 * MINUTE).change(HOURLY)
    stranger = NINE + 30 * MINUTE
    found = life.verify(other(life, len(life.lines) - 1, next=stranger), next_run=stranger)
    assert found.problems == (
        "the change of 2026-11-16T09:10:00Z goes on with 2026-11-16T09:30:00Z, and the rule with 2026-11-16T10:00:00Z",
    )


def test_a_job_that_was_enqueued_twice_is_noticed() -> None:
    life = Life(HOURLY)
    life.enqueue(None)
    found = life.verify([*life.lines, *other(life, 1, number=2)[1:]], run_count=2)
    assert found.problems == ("job job_1 was enqueued twice, at 2026-11-16T09:00:00Z",)


def test_an_outcome_that_is_older_than_its_run_is_noticed() -> None:
    life = Life(HOURLY).until(NINE + HOUR).end("job_1")
    found = life.verify([life.lines[0], life.lines[2], life.lines[1]])
    assert "job job_1 has an outcome that is older than itself, at 2026-11-16T10:00:00.004Z" in found.problems


def test_a_stretch_that_ends_before_it_begins_is_noticed() -> None:
    life = Life(HOURLY).until(NINE + 2 * HOUR)
    life.lines.append(Skipped(NINE + 3 * HOUR, NINE + 2 * HOUR, 1, "misfire", 1, NINE + 4 * HOUR, "web-1"))
    life.skips, life.next = 1, NINE + 4 * HOUR
    assert life.verify().problems == (
        "the stretch from 2026-11-16T12:00:00Z ends before it begins, at 2026-11-16T11:00:00Z",
    )  # fmt: skip


def test_a_problem_is_said_in_a_sentence() -> None:
    life = Life(HOURLY).until(NINE + 3 * HOUR)
    assert life.verify(run_count=5).problems == ("run_count is 5, and the ledger says 3",)
    assert life.verify(next_run=NINE).problems == (
        "next_run is 2026-11-16T09:00:00Z, and the ledger says that 2026-11-16T13:00:00Z comes next",
    )
    gone = life.verify([*life.lines[:2], *life.lines[3:]], jobs=None, open_jobs=None)
    assert gone.problems == ("run 3 of 2026-11-16T12:00:00.004Z follows run 1",)


# --- what cannot be seen ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdicts", [1, 2, 10, 99, 100])
def test_a_trimmed_ledger_claims_nothing_before_its_first_tick(verdicts: int) -> None:
    life = Life(MINUTELY).until(NINE + 100 * MINUTE).trim(verdicts)
    found = sound(life.verify())
    first = NINE + (101 - verdicts) * MINUTE
    assert (found.trimmed_before, found.expected) == (first if verdicts < 100 else None, verdicts)


def test_a_trimmed_ledger_has_outcomes_without_a_verdict() -> None:
    life = Life(MINUTELY).until(NINE + 10 * MINUTE)
    for n in range(1, 11):
        life.end(f"job_{n}")
    sound(life.trim(3).verify())


def test_an_outcome_without_a_verdict_is_noticed_where_the_ledger_should_have_it() -> None:
    life = Life(MINUTELY).until(NINE + 10 * MINUTE).trim(5).end("job_8")
    lines = [line for line in life.lines if not (isinstance(line, Enqueued) and line.job == "job_8")]
    said = "job job_8 has an outcome, and no line says that it was enqueued, at 2026-11-16T09:10:00Z"
    assert said in life.verify(lines).problems


def test_a_trimmed_ledger_may_begin_with_a_change() -> None:
    life = Life(MINUTELY).until(NINE + 10 * MINUTE).change(HOURLY).until(NINE + 5 * HOUR)
    found = sound(life.verify(life.lines[11:]))
    assert (found.trimmed_before, found.expected) == (NINE + 11 * MINUTE, 5)


def test_a_trimmed_ledger_begins_with_the_rule_that_its_first_change_replaced() -> None:
    life = Life(MINUTELY).until(NINE + 10 * MINUTE).change(HOURLY).until(NINE + 5 * HOUR).trim(9)
    found = sound(life.verify())
    assert (found.trimmed_before, found.expected) == (NINE + 7 * MINUTE, 9)
    assert not life.verify([life.lines[0], *life.lines[2:]]).sound


def test_a_trimmed_ledger_may_begin_with_a_stranger() -> None:
    life = Life(QUARTERLY).until(NINE + HOUR)
    life.now = NINE + HOUR + 8 * MINUTE
    life.change(HOURLY).until(NINE + 5 * HOUR).trim(5)
    assert isinstance(life.lines[0], Enqueued)
    assert sound(life.verify()).trimmed_before == NINE + HOUR + 7 * MINUTE


def test_a_change_from_a_rule_that_nobody_wrote_down_is_where_the_claims_begin() -> None:
    life = Life(MINUTELY).until(NINE + 10 * MINUTE).change(HOURLY).until(NINE + 5 * HOUR).trim(9)
    place = places(life, Changed)[0]
    found = life.verify(other(life, place, was=None))
    assert (sound(found).trimmed_before, found.expected) == (NINE + 11 * MINUTE, 5)


def test_an_empty_ledger_claims_nothing() -> None:
    life = Life(MINUTELY).until(NINE + 10 * MINUTE)
    found = sound(life.verify([], jobs=None, open_jobs=None))
    assert (found.expected, found.trimmed_before) == (0, NINE + 11 * MINUTE)
    assert life.verify([], next_run=None, jobs=None, open_jobs=None).trimmed_before == life.now


def test_jobs_from_before_the_ledger_are_not_missed() -> None:
    life = Life(MINUTELY).until(NINE + 10 * MINUTE).trim(3)
    sound(life.verify(jobs={**life.jobs, "job_old": NINE - DAY, "by_hand": None}))
    sound(life.verify(jobs={**life.jobs, "job_old": NINE + 7 * MINUTE}))
    assert not life.verify(jobs={**life.jobs, "job_other": NINE + 8 * MINUTE}).sound


# --- since ------------------------------------------------------------------------------------------------------------


def test_only_what_was_asked_about_is_judged() -> None:
    life = Life(MINUTELY).until(NINE + 100 * MINUTE)
    harmed = life.lines[:11] + life.lines[41:]
    assert sound(life.verify(harmed, since=NINE + 42 * MINUTE, open_jobs=None)).expected == 59
    found = life.verify(harmed, since=NINE + 31 * MINUTE)
    assert found.missing == (Stretch(NINE + 31 * MINUTE, NINE + 40 * MINUTE, 10),)
    assert (found.expected, found.accounted) == (70, 60)


def test_a_line_of_the_very_instant_that_was_asked_about_is_judged() -> None:
    life = Life(HOURLY).until(NINE + 5 * HOUR)
    harmed = other(life, 3, number=7)
    at = life.lines[3].at
    assert len(life.verify(harmed, since=at).problems) == 2
    assert len(life.verify(harmed, since=at + SECOND).problems) == 1, "the line that follows does not follow"


def test_a_skipped_stretch_counts_as_far_as_it_was_asked_about() -> None:
    life = Life(MINUTELY).away(NINE + HOUR)
    assert sound(life.verify(since=NINE + 30 * MINUTE)).expected == 31
    assert sound(life.verify(since=NINE + 30 * MINUTE + SECOND)).expected == 30
    fired = places(life, Enqueued)
    assert sound(life.verify(since=getattr(life.lines[1], "last", None))).expected == 1 + len(fired)
    assert sound(life.verify(since=NINE + 2 * HOUR)).expected == 0


def test_what_was_trimmed_before_what_was_asked_about_needs_no_word() -> None:
    life = Life(MINUTELY).until(NINE + 100 * MINUTE).trim(50)
    assert life.verify(since=NINE + 51 * MINUTE).trimmed_before is None
    assert life.verify(since=NINE + 50 * MINUTE).trimmed_before == NINE + 51 * MINUTE


@pytest.mark.parametrize("since", [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_one_may_ask_about_all_time_and_about_none(since: datetime) -> None:
    sound(EVENTFUL.verify(since=since))


# --- anything ---------------------------------------------------------------------------------------------------------

FAR = [
    instant
    for year in (1, 1799, 1969, 1970, 5000, 9990, 9999)
    for instant in (datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC))
]


@given(st.lists(any_entries | st.sampled_from(EVENTFUL.lines), max_size=10))
@settings(deadline=None, max_examples=50)
def test_any_entries_are_judged(entries: list[Entry]) -> None:
    found = EVENTFUL.verify(entries)
    assert found.expected == found.accounted + sum(each.count for each in found.missing)


@pytest.mark.parametrize("far", FAR, ids=str)
def test_a_line_at_the_ends_of_the_calendar_is_noticed(far: datetime) -> None:
    for place in places(EVENTFUL, Enqueued, Skipped):
        if EVENTFUL.lines[place].tick:  # type: ignore[union-attr]
            assert not EVENTFUL.verify(other(EVENTFUL, place, tick=far, at=far)).sound
    for place in places(EVENTFUL, Changed):
        assert not EVENTFUL.verify(other(EVENTFUL, place, next=far)).sound
    for place in places(EVENTFUL, Changed)[1:]:
        assert not EVENTFUL.verify(other(EVENTFUL, place, before=far)).sound


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_state_at_the_ends_of_the_calendar_is_noticed(rule: Rule) -> None:
    life = Life(rule).until(NINE + DAY)
    for far in FAR:
        assert not life.verify(next_run=far).sound, far
        assert not life.verify(next_run=far, now=datetime.max.replace(tzinfo=UTC)).sound, far
        life.verify(now=far)
        assert life.verify(life.lines[:0], next_run=far, now=datetime.max.replace(tzinfo=UTC)).pending > 0, far


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"cron": 7, "tz": []},
        {"every": None},
        {"every": "1m", "start": 7, "tz": "UTC"},
        {"cron": "* * * * *", "tz": "Mars"},
    ],
    ids=str,
)
def test_a_rule_that_cannot_be_read_is_said(rule: Rule) -> None:
    assert EVENTFUL.verify(rule=rule).problems == ("the rule in force cannot be read",)
    changes = places(EVENTFUL, Changed)
    for place in changes[:-1]:
        found = EVENTFUL.verify(other(EVENTFUL, place, rule=rule))
        at = clock.text(EVENTFUL.lines[place].at)
        assert found.problems == (f"the rule that came at {at} cannot be read",)
        assert found.accounted == EVENTFUL.verify().accounted


def test_a_ledger_may_tell_of_thousands_of_changes() -> None:
    life = Life(MINUTELY)
    for n in range(4000):
        life.change((HOURLY, MINUTELY, QUARTERLY)[n % 3])
    began = time.process_time()
    assert sound(life.verify()).expected == 0
    assert time.process_time() - began < 2


@pytest.mark.parametrize("planted", ["enqueued", "skipped", "changed"])
def test_a_ledger_full_of_nonsense_is_judged_in_time(planted: str) -> None:
    life = Life(MINUTELY).until(NINE + HOUR)
    at = NINE + DAY
    for n in range(3000):
        tick = NINE + (n * 7919 % 1440) * MINUTE
        match planted:
            case "enqueued":
                life.enqueue(tick, "scheduler", at=at)
            case "skipped":
                life.lines.append(Skipped(tick, tick + 5 * MINUTE, 6, "misfire", n, at, "web-1"))
            case "changed":
                life.lines.append(Changed("moved", "r", HOURLY if n % 2 else MINUTELY, None, tick, tick, at, "web-1"))
    began = time.process_time()
    assert not life.verify().sound
    assert time.process_time() - began < 5


def test_a_week_of_minutes_takes_well_under_a_second() -> None:
    life = Life(MINUTELY).until(NINE + 7 * DAY)
    entries = life.lines[::-1]
    began = time.process_time()
    found = verify(
        "report", entries, rule=MINUTELY, next_run=life.next, run_count=life.runs, skip_count=0, state="active",
        now=life.now, jobs=life.jobs, open_jobs=set(life.jobs),
    )  # fmt: skip
    took = time.process_time() - began
    assert (sound(found).expected, found.accounted) == (10_080, 10_080)
    assert took < 1
