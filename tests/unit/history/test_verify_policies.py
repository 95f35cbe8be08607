"""Under every policy a ledger that a beat really wrote is sound, and what is taken from it or put in is noticed."""

from __future__ import annotations

import functools
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beat.history import ledger
from beat.history.ledger import Changed, Enqueued, Skipped, Waiting
from beat.history.verify import Stretch, verify
from beat.timing import clock
from tests.support.policy_stage import NINE, RUNS, Policed

if TYPE_CHECKING:
    from collections.abc import Callable

    from beat.history.ledger import Entry

MINUTE = timedelta(minutes=1)
IN_LINE = "beat:waiting:report"


def at(minute: int, count: int = 1) -> Stretch:
    return Stretch(NINE + minute * MINUTE, NINE + (minute + count - 1) * MINUTE, count)


def entries(policed: Policed) -> list[Entry]:
    """The ledger, newest first."""
    return [entry for line in policed.redis.lrange(RUNS, 0, -1) if (entry := ledger.read(line))]


def put(policed: Policed, newest_first: list[Entry]) -> Policed:
    policed.redis.delete(RUNS)
    policed.redis.rpush(RUNS, *(json.dumps(ledger.plain(entry)) for entry in newest_first))
    return policed


def changes(newest_first: list[Entry]) -> set[str]:
    return {entry.type for entry in newest_first if isinstance(entry, Changed)}


def busy(policed: Policed, *, minutes: int = 9) -> Policed:
    """Every run takes three minutes."""
    for minute in range(1, minutes + 1):
        policed.until(1)
        if minute % 3 == 0:
            for job in policed.redis.zrange("beat:running:report", 0, -1):
                policed.end(int(job.decode().rpartition("_")[2]) // 60 - clock.floor(NINE) // 60)
    return policed


def stubborn(policed: Policed) -> Policed:
    """The run of 09:01 is at work until 09:05."""
    policed.until(1).begin(1)
    return policed.until(4).end(1).until(3)


def raised(**options: Any) -> Policed:
    return Policed(max_runs=3, **options).until(6).change(max_runs=5, **options).until(6)


def lowered() -> Policed:
    """One runs, two wait: that is all there is to be."""
    return Policed(overlap="wait", max_waiting=3, max_runs=9).until(3).change(overlap="wait", max_waiting=3, max_runs=3)


def paused_while_one_waits() -> Policed:
    policed = Policed(overlap="wait").until(2)
    policed.redis.hset("beat:schedule:report", "state", "paused")
    return policed.end(1)


LIVES: dict[str, Callable[[], Policed]] = {
    "misfire once": lambda: Policed().until(3).away(10).until(3),
    "misfire skip": lambda: Policed(misfire="skip").until(3).away(10).until(3),
    "misfire all, a few at a time": lambda: Policed(misfire="all", catchup_limit=2).until(3).away(10).until(3),
    "too old": lambda: Policed(misfire="all", catchup_window="4m").until(3).away(10).until(3),
    "excluded days": lambda: Policed(every="6h", exclude=["2026-11-17..2026-11-18"]).until(4 * 1440),
    "excluded days that were missed": lambda: Policed(every="6h", exclude=["2026-11-17"]).away(3 * 1440).until(1440),
    "overlap skip": lambda: busy(Policed(overlap="skip")),
    "overlap wait": lambda: busy(Policed(overlap="wait")),
    "overlap wait in a long line": lambda: busy(Policed(overlap="wait", max_waiting=5), minutes=12),
    "overlap wait, two at a time": lambda: busy(Policed(overlap="wait", max_running=2)),
    "overlap wait, caught up with": lambda: busy(Policed(overlap="wait", misfire="all").away(7), minutes=6),
    "overlap replace": lambda: Policed(overlap="replace").until(6),
    "overlap replace, while one cannot be stopped": lambda: stubborn(Policed(overlap="replace")),
    "paused while one waits": paused_while_one_waits,
    "overlap no longer": lambda: busy(Policed(overlap="wait")).until(1).change().until(4),
    "max_runs": lambda: Policed(max_runs=3).until(6),
    "max_runs raised": raised,
    "max_runs lowered": lambda: Policed(max_runs=9).until(6).change(max_runs=3).until(6),
    "max_runs lowered and raised": lambda: raised().change(max_runs=2).until(3).change(max_runs=9).until(3),
    "max_runs with one that waits": lambda: Policed(overlap="wait", max_runs=2).until(4).end(1).until(3),
    "max_runs, caught up with": lambda: Policed(misfire="all", max_runs=3).away(10).until(3),
    "max_runs lowered below those that wait": lambda: lowered().until(3),
    "max_runs lowered below those that wait, and they take their turn": lambda: lowered().until(1).work().until(3),
    "ended while they waited, and goes on": lambda: (
        Policed(overlap="wait", misfire="all", end=NINE + 8 * MINUTE)
        .away(9)
        .work()
        .until(1)
        .change(overlap="skip")
        .until(2)
    ),
    "max_runs and no longer": lambda: Policed(max_runs=3).until(6).change().until(3),
    "jitter": lambda: Policed(jitter="50s").until(6.5),
    "jitter longer than the period": lambda: Policed(jitter="5m").until(12),
    "jitter that changes": lambda: Policed(jitter="50s").until(3.2).change(jitter="10s").until(4),
    "everything": lambda: busy(Policed(overlap="wait", misfire="all", jitter="20s", max_runs=8).away(5), minutes=12),
}


@functools.cache
def lived(name: str) -> Policed:
    """Made once, and when it is wanted: who changes a ledger puts it back."""
    return LIVES[name]()


@pytest.fixture(params=LIVES)
def life(request: pytest.FixtureRequest) -> Any:
    policed = lived(request.param)
    whole = entries(policed)
    yield policed
    put(policed, whole)


def test_every_policy_leaves_a_sound_ledger(life: Policed) -> None:
    found = life.sound()
    told = entries(life)
    decided = sum(
        entry.count if isinstance(entry, Skipped) else 1 for entry in told if isinstance(entry, Enqueued | Skipped)
    )
    waited = {entry.tick for entry in told if isinstance(entry, Waiting)}
    verdicts = {entry.tick for entry in told if isinstance(entry, Enqueued | Skipped)}
    assert (found.expected, found.accounted, found.waiting) == (decided, decided, len(waited - verdicts))
    assert found.trimmed_before is None


def test_the_lives_hold_every_reason_and_every_way() -> None:
    told = [entry for policed in map(lived, LIVES) for entry in entries(policed)]
    assert {entry.reason for entry in told if isinstance(entry, Skipped)} == {
        "misfire", "too_old", "excluded", "overlap", "replaced", "paused", "finished",
    }  # fmt: skip
    assert {entry.by for entry in told if isinstance(entry, Enqueued)} == {"scheduler", "catchup"}
    assert any(isinstance(entry, Waiting) for entry in told)


def test_a_verdict_that_is_gone_is_missing(life: Policed) -> None:
    whole = entries(life)
    for place, entry in enumerate(whole):
        if isinstance(entry, Enqueued | Skipped):
            found = put(life, whole[:place] + whole[place + 1 :]).verify()
            last, count = (entry.last, entry.count) if isinstance(entry, Skipped) else (entry.tick, 1)
            assert not found.sound
            if found.missing != (Stretch(entry.tick, last, count),):  # type: ignore[arg-type]
                # It was the last one: with one fewer there may be none to come, or the end has come too early.
                assert found.missing == ()
                assert life.redis.hget("beat:schedule:report", "state") == b"finished" or "moved" in changes(whole)


def test_a_verdict_that_stands_there_twice_is_double(life: Policed) -> None:
    whole = entries(life)
    for place, entry in enumerate(whole):
        if isinstance(entry, Enqueued | Skipped):
            found = put(life, [*whole[: place + 1], *whole[place:]]).verify()
            assert entry.tick in {each.first for each in found.double}, entry


def overtaken(whole: list[Entry], place: int) -> bool:
    """Whether the ledger tells of a later tick before the one that waited had its verdict, or it has none yet."""
    for entry in reversed(whole[:place]):
        if isinstance(entry, Changed):
            return True
        if isinstance(entry, Enqueued | Skipped | Waiting):
            return entry.tick != whole[place].tick  # type: ignore[union-attr]
    return True


def test_a_line_that_tells_of_waiting_is_needed_where_another_tick_went_ahead(life: Policed) -> None:
    whole = entries(life)
    for place, entry in enumerate(whole):
        if isinstance(entry, Waiting):
            assert put(life, whole[:place] + whole[place + 1 :]).verify().sound != overtaken(whole, place), entry
            assert not put(life, [*whole[: place + 1], *whole[place:]]).verify().sound


def test_a_trimmed_ledger_is_sound_wherever_it_was_cut(life: Policed) -> None:
    whole = entries(life)
    for kept in range(len(whole)):
        life.redis.delete(RUNS)
        if kept:
            put(life, whole[:kept])
        life.sound()


# --- what waits -------------------------------------------------------------------------------------------------------


def test_what_waits_is_neither_missing_nor_accounted_for() -> None:
    found = Policed(overlap="wait", max_waiting=2).until(4).sound()
    assert (found.expected, found.waiting, found.pending) == (2, 2, 0)


def test_what_waited_and_left_without_a_verdict_is_missing() -> None:
    policed = Policed(overlap="wait", max_waiting=2).until(3)
    policed.redis.zrem(IN_LINE, "report 2026-11-16T09:02:00Z scheduler")
    found = policed.verify()
    assert (found.missing, found.double, found.waiting) == ((at(2),), (), 1)


def test_what_waits_and_is_not_told_of_is_a_problem() -> None:
    policed = Policed(overlap="wait").until(2)
    policed.redis.zadd(IN_LINE, {"report 2026-11-16T08:00:00Z scheduler": 0})
    assert policed.verify().problems == ("2026-11-16T08:00:00Z waits, and the ledger does not say so",)


def test_what_waits_twice_is_double() -> None:
    policed = Policed(overlap="wait").until(2)
    newest, *rest = entries(policed)
    assert put(policed, [newest, newest, *rest]).verify().double == (at(2),)


def test_what_waits_since_before_the_ledger_is_no_problem() -> None:
    policed = Policed(overlap="wait").until(4)
    policed.redis.ltrim(RUNS, 0, 0)
    found = policed.sound()
    assert found.trimmed_before == NINE + 4 * MINUTE


def test_only_what_was_asked_about_is_counted() -> None:
    policed = Policed(overlap="wait", max_waiting=3).until(4)
    [found] = policed.client.verify("report", since=NINE + 3 * MINUTE)
    assert (found.waiting, found.expected) == (2, 0)


def test_what_nobody_compares_waits_still() -> None:
    policed = Policed(overlap="wait").until(2)
    told: dict[str, Any] = {"rule": {"every": "1m", "tz": "UTC"}, "next_run": NINE + 3 * MINUTE, "state": "active"}
    found = verify("report", entries(policed), **told, run_count=1, skip_count=0, now=NINE + 2 * MINUTE)
    assert (found.sound, found.waiting) == (True, 1)


def test_verify_says_how_many_wait() -> None:
    policed = Policed(overlap="wait").until(2)
    assert policed.says("verify") == "1 expected, 1 accounted, 0 missing, 0 double, 1 waiting\n"
    assert policed.document("verify")["schedules"][0]["waiting"] == 1


# --- what is over, put off, or still to come --------------------------------------------------------------------------


def test_a_schedule_that_stops_before_its_last_run_is_noticed() -> None:
    policed = Policed(max_runs=5).until(3)
    policed.redis.hdel("beat:schedule:report", "next_run", "due_at")
    policed.redis.hset("beat:schedule:report", "state", "finished")
    assert policed.verify().problems == (
        "next_run is empty, and the ledger says that 2026-11-16T09:04:00Z comes next",
    )  # fmt: skip


def test_a_schedule_that_goes_on_after_its_last_run_is_noticed() -> None:
    policed = Policed(max_runs=2).until(4)
    policed.redis.hset("beat:schedule:report", "next_run", "2026-11-16T09:03:00Z")
    assert policed.verify().problems == (
        "next_run is 2026-11-16T09:03:00Z, and the ledger says that there are no more ticks",
    )


def test_a_schedule_without_max_runs_does_not_just_finish() -> None:
    policed = Policed().until(3)
    policed.redis.hdel("beat:schedule:report", "next_run", "due_at")
    policed.redis.hset("beat:schedule:report", "state", "finished")
    assert not policed.verify().sound


def test_a_tick_that_jitter_puts_off_is_not_pending_and_others_are() -> None:
    policed = Policed(jitter="30s").until(3)
    assert policed.sound().pending == 0
    policed.beat.clock.advance("17s")
    assert policed.sound().pending == 1


def test_ticks_that_are_caught_up_with_later_are_pending() -> None:
    assert Policed(misfire="all", catchup_limit=2).away(10).sound().pending == 8


# --- any life ---------------------------------------------------------------------------------------------------------

OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "misfire": st.sampled_from(["once", "skip", "all"]),
        "overlap": st.sampled_from(["skip", "wait", "replace"]),
        "max_runs": st.integers(1, 8),
        "jitter": st.sampled_from(["5s", "40s", "2m"]),
        "exclude": st.just(["2026-11-16..2026-11-17"]),
        "end": st.integers(3, 15).map(lambda minutes: NINE + minutes * MINUTE),
    },
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("until"), st.sampled_from([0.3, 1, 2])),
        st.tuples(st.just("away"), st.sampled_from([1, 4, 9])),
        st.tuples(st.just("work"), st.none()),
        st.tuples(st.just("change"), OPTIONS),
    ),
    max_size=8,
)


@given(OPTIONS, STEPS, st.sampled_from([2, 1000]))
@settings(deadline=None, max_examples=40)
def test_every_life_is_sound(options: dict[str, Any], steps: list[tuple[str, Any]], history_limit: int) -> None:
    policed = Policed(history_limit=history_limit, **options)
    for step, value in steps:
        match step:
            case "work":
                policed.work()
            case "change":
                policed.change(**value)
            case _:
                getattr(policed, step)(value)
    found = policed.sound()
    assert found.expected == found.accounted
