"""What is counted for a timeline: ledgers slice by slice, ticks to come, and where schedules pile up."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beat.client import timeline
from beat.client.timeline import Rhythm, Slices
from beat.history import ledger
from beat.schedule import serialize
from tests.support.lines import MINUTE, MINUTELY, NINE, SECOND, Ledger

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

HOUR = timedelta(hours=1)
EDGES = [NINE + n * HOUR for n in range(-3, 1)]
"""Three hours up to nine."""
RULE = serialize.ticking(MINUTELY)


def lines(book: Ledger, **how: Any) -> list[bytes]:
    return [json.dumps(ledger.plain(entry), **how).encode() for entry in book.newest_first]


def tally(book: Ledger) -> timeline.Tally:
    return Slices(EDGES).tally(lines(book), RULE)


def book() -> Ledger:
    return Ledger().registered(NINE - 10 * HOUR, NINE - 9 * HOUR)


# The past


def test_a_run_is_counted_where_it_was_enqueued_by_what_became_of_it() -> None:
    told = book()
    for n, kind in enumerate(("succeeded", "failed", "stopped", "lost")):
        told.fired(NINE - 2 * HOUR + n * MINUTE).ended(NINE - 2 * HOUR + n * MINUTE, kind)
    told.fired(NINE - MINUTE)
    expected = {(1, "succeeded"): 1, (1, "failed"): 1, (1, "stopped"): 1, (1, "lost"): 1, (2, "open"): 1}
    assert tally(told).counts == expected


def test_a_run_that_somebody_asked_for_counts_too() -> None:
    assert tally(book().fired(None, at=NINE - MINUTE).ended(None)).counts == {(2, "succeeded"): 1}


def test_the_newest_outcome_counts_and_a_run_that_was_opened_again_is_open() -> None:
    tick = NINE - MINUTE
    told = book().fired(tick).ended(tick, "failed")
    told.entries.append(ledger.Reopened(tick, told.job(tick), "failed", 2, NINE, "web-2"))
    assert tally(told).counts == {(2, "open"): 1}
    assert tally(told.ended(tick)).counts == {(2, "succeeded"): 1}


def test_an_instant_at_the_edge_begins_a_slice() -> None:
    told = (
        book().fired(NINE - 2 * HOUR, at=NINE - 2 * HOUR).fired(NINE - HOUR, at=NINE - HOUR - timedelta(milliseconds=1))
    )
    assert tally(told).counts == {(1, "open"): 2}


def test_skipped_ticks_lie_where_they_were_due_not_where_that_was_decided() -> None:
    told = book().skipped(NINE - 2.5 * HOUR, NINE - HOUR - MINUTE, 90, at=NINE - MINUTE)
    assert tally(told).counts == {(0, "skipped"): 30, (1, "skipped"): 60}


def test_of_skipped_ticks_only_those_of_these_hours_count() -> None:
    told = book().skipped(NINE - 5 * HOUR, NINE - 2 * HOUR - MINUTE, 180, at=NINE - MINUTE)
    assert tally(told).counts == {(0, "skipped"): 60}


@pytest.mark.parametrize("rule", [None, serialize.ticking({"every": "7m", "tz": "UTC"})])
def test_skipped_ticks_of_a_rule_that_is_gone_lie_where_they_began(rule: Any) -> None:
    told = book().skipped(NINE - 2.5 * HOUR, NINE - HOUR - MINUTE, 90)
    assert Slices(EDGES).tally(lines(told), rule).counts == {(0, "skipped"): 90}


def test_what_is_older_is_not_read() -> None:
    told = book().fired(NINE - 4 * HOUR).ended(NINE - 4 * HOUR).fired(NINE - MINUTE)
    assert tally(told) == timeline.Tally(Counter({(2, "open"): 1}), reached=True, oldest="2026-11-16T05:00:00.004")


def test_a_ledger_that_was_trimmed_says_since_when_it_tells_all() -> None:
    told = Ledger().fired(NINE - 2 * HOUR).fired(NINE - MINUTE)
    assert tally(told)[1:] == (False, "2026-11-16T07:00:00.004")
    assert tally(Ledger())[1:] == (False, "")


def test_a_tick_that_went_to_all_queues_counts_once_as_its_parts_say() -> None:
    tick, told = NINE - MINUTE, book().fired(NINE - MINUTE, shards=2)
    job = told.job(tick)
    told.ended(tick, job=f"{job}_s0", of=job)
    assert tally(told).counts == {(2, "open"): 1}
    told.ended(tick, "failed", job=f"{job}_s1", of=job, shard=1)
    assert tally(told).counts == {(2, "failed"): 1}


runs = st.builds(
    lambda n, kind, by: (
        ledger.Enqueued(NINE - n * SECOND, f"beat_report_{n}", by, 4, n, NINE - n * SECOND, "web-2-71-9c")
        if kind == "enqueued"
        else ledger.Outcome(kind, None, f"beat_report_{n}", None, NINE, 3.1, None, 1, NINE, "web", message='"at":"x')
    ),
    st.integers(0, 100_000),
    st.sampled_from(["enqueued", *ledger.OUTCOMES]),
    st.sampled_from(["scheduler", "manual", 'a "strange\\ one']),
)


@given(runs)
def test_a_glance_sees_what_reading_the_whole_line_would(entry: ledger.Entry) -> None:
    short = json.dumps(ledger.plain(entry), separators=(",", ":")).encode()
    with mock.patch.object(ledger, "read", return_value=ledger.read(short)):
        whole: Any = timeline.glance(b"not a line that a script wrote")
    assert timeline.glance(short) in (whole, (whole[0], "enqueued", whole[2]))


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.just(b'{"type":"enqueued","tick":null,"job":"x","by":"","late_ms":1,"n":1,"at":"99Z"'),
        )
    )
)
def test_whatever_lies_in_a_ledger_is_passed_over(garbage: list[bytes]) -> None:
    Slices(EDGES).tally(garbage, RULE)


class Shelf:
    """Ledgers, and how many lines of them were asked for."""

    def __init__(self, ledgers: Mapping[str, Ledger]) -> None:
        self._lines = {name: lines(told) for name, told in ledgers.items()}
        self.asked: list[dict[str, int]] = []

    def heads(self, asked: Mapping[str, int]) -> Any:
        self.asked.append(dict(asked))
        return [(each, self._lines[each][:number]) for each, number in asked.items()]

    def look(self) -> timeline.Past:
        archive: Any = self
        return timeline.look_back(archive, dict.fromkeys(self._lines, RULE), EDGES)


def often(runs: int) -> Ledger:
    told = book()
    for n in range(runs, 0, -1):
        told.fired(NINE - n * MINUTE).ended(NINE - n * MINUTE)
    return told


def test_as_many_lines_are_asked_for_as_the_rule_makes_likely() -> None:
    shelf = Shelf({"a": often(600)})
    found = shelf.look()
    assert shelf.asked == [{"a": 2 * 180 + 4}, {}]
    assert found == timeline.Past(Counter({(n, "succeeded"): 60 for n in range(3)}), 0, None)


def test_a_ledger_that_holds_more_is_read_again_as_deep_as_it_gets() -> None:
    told = often(600)
    for n in range(400):  # somebody asked for many runs
        told.fired(None, job=f"m{n}", at=NINE - 30 * SECOND)
    shelf = Shelf({"a": told, "b": often(1)})
    found = shelf.look()
    assert shelf.asked[1] == {"a": timeline.DEEPEST}
    assert (found.counts[2, "open"], found.counts[0, "succeeded"], found.partial) == (400, 60, 0)


def test_where_there_is_too_much_for_all_those_with_most_are_cut_short_and_it_is_said() -> None:
    daily = book().fired(NINE - HOUR).ended(NINE - HOUR)
    with mock.patch.object(timeline, "MOST_LINES", 300):
        archive: Any = (shelf := Shelf({"a": often(600), "b": often(600), "c": daily}))
        rules = {"a": RULE, "b": RULE, "c": serialize.ticking({"cron": "0 8 * * *", "tz": "UTC"})}
        found = timeline.look_back(archive, rules, EDGES)
    assert shelf.asked[0] == {"a": 147, "b": 147, "c": 6}
    assert found.counts == {(1, "succeeded"): 26, (2, "succeeded"): 121}
    assert (found.partial, found.whole_from) == (2, NINE - 73 * MINUTE + timedelta(milliseconds=4))


def test_of_a_ledger_without_a_verdict_in_what_was_read_nothing_is_claimed() -> None:
    with mock.patch.object(timeline, "MOST_LINES", 1):
        found = Shelf({"a": often(2)}).look()
    assert (found.counts, found.partial, found.whole_from) == ({}, 1, NINE)


# What is to come


AHEAD = [NINE + n * HOUR for n in range(25)]


def rhythm(rule: Mapping[str, Any], *names: str, first: datetime = NINE) -> Rhythm:
    return Rhythm(serialize.ticking({"tz": "UTC", **rule}), first, sorted(names))


def several(name: str, number: int) -> list[str]:
    return [f"{name}{n:03}" for n in range(number)]


def test_ticks_to_come_are_counted_for_every_schedule_of_a_rhythm() -> None:
    found = timeline.look_ahead(
        [rhythm({"cron": "*/20 * * * *"}, "a", "b"), rhythm({"cron": "30 10 * * *"}, "c")], AHEAD
    )
    assert found.counts == [6, 7, *[6] * 22]
    assert (found.pile_ups, found.often) == ([], 0)


def test_ticks_before_the_one_to_come_do_not_count() -> None:
    found = timeline.look_ahead([rhythm({"cron": "0 * * * *"}, "a", first=NINE + 3 * HOUR)], AHEAD)
    assert found.counts == [0, 0, 0, *[1] * 21]


def test_ticks_that_are_due_and_not_decided_are_known() -> None:
    assert rhythm({"cron": "* * * * *"}, "a", "b", first=NINE - 5 * MINUTE).overdue(NINE) == 10
    assert rhythm({"cron": "0 0 * * *"}, "a", first=NINE - MINUTE).overdue(NINE) == 1, "a tick that was moved"
    assert rhythm({"cron": "* * * * *"}, "a").overdue(NINE) == 0


@given(st.sampled_from([0, 30, 5000]), st.sampled_from(["0 * * * *", "*/7 3-5 * * mon", "* * * * *", "0 0 1 1 *"]))
def test_what_is_counted_is_what_would_be_walked(most: int, cron: str) -> None:
    made = rhythm({"cron": cron, "tz": "Europe/Berlin"}, "a", "b")
    with mock.patch.object(timeline, "_MOST_TICKS", most):
        found = timeline.look_ahead([made], AHEAD)
    assert found.counts == [2 * made.count(a, b) for a, b in itertools.pairwise(AHEAD)]


def test_a_pile_up_names_the_instant_and_the_schedules() -> None:
    night = rhythm({"cron": "0 0 * * *"}, *several("night", 20))
    others = [rhythm({"cron": f"{n} {n % 24} * * *"}, f"other{n}") for n in range(1, 60)]
    [found] = timeline.look_ahead([*others, night], AHEAD).pile_ups
    assert (found.at, found.times, found.schedules) == (NINE + 15 * HOUR, 1, 20)
    assert found.names == tuple(several("night", 10))


def test_the_same_schedules_pile_up_once_in_the_list_with_how_often() -> None:
    hourly, night = rhythm({"cron": "0 * * * *"}, *several("h", 30)), rhythm({"cron": "0 0 * * *"}, "a", "b")
    found = timeline.look_ahead([hourly, night], AHEAD).pile_ups
    assert [(each.at, each.times, each.schedules) for each in found] == [(NINE + 15 * HOUR, 1, 32), (NINE, 23, 30)]
    assert found[0].names[:3] == ("a", "b", "h000")


def test_who_has_jitter_is_no_pile() -> None:
    night = rhythm({"cron": "0 0 * * *"}, *several("night", 20))
    found = timeline.look_ahead([replace(night, spread=True), rhythm({"cron": "0 0 * * *"}, *several("a", 9))], AHEAD)
    assert (sum(found.counts), found.pile_ups) == (29, [])


def test_nine_schedules_are_no_pile() -> None:
    assert timeline.look_ahead([rhythm({"cron": "0 0 * * *"}, *several("a", 9))], AHEAD).pile_ups == []


def test_a_load_that_is_always_the_same_is_no_pile() -> None:
    assert timeline.look_ahead([rhythm({"cron": "* * * * *"}, *several("a", 500))], AHEAD).pile_ups == []
    spread = [rhythm({"cron": f"{n % 60} {n // 60} * * *"}, *several(f"s{n}_", 10)) for n in range(1440)]
    assert timeline.look_ahead(spread, AHEAD).pile_ups == []


def test_what_ticks_too_often_is_counted_and_not_walked() -> None:
    every = rhythm({"every": "1s"}, *several("a", 1000))
    with mock.patch.object(Rhythm, "dues", side_effect=AssertionError("it was walked")):
        found = timeline.look_ahead([every, replace(every)], [NINE + n * HOUR for n in range(0, 169, 6)])
    assert found.counts == [2 * 6 * 3_600_000] * 28
    assert found.often == 2000


def test_the_largest_pile_ups_are_listed_and_the_others_counted() -> None:
    every = [rhythm({"cron": f"{n % 60} {n // 60} * * *"}, *several(f"s{n}_", 100)) for n in range(0, 1440, 10)]
    found = timeline.look_ahead(every, AHEAD)
    assert (len(found.pile_ups), found.more_pile_ups) == (100, 44)
