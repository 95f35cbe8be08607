"""Incidents: one alert for a row of failures, one more when it goes on, one when it is over; always by the same id."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beat.events.event import Notice
from beat.notify.alerts import incidents, rules
from beat.notify.alerts.incidents import Sign, State, step
from beat.timing import clock

START = datetime(2026, 11, 16, 9, tzinfo=UTC)


def rule(**given: Any) -> rules.Rule:
    return rules.read({"on": ["failed", "recovered"], "channel": "ops", "name": "r", **given}, "a rule")


def sign(number: int, kind: Any = "trouble", event: str = "failed", **more: Any) -> Sign:
    at = START + timedelta(minutes=number)
    return Sign(kind, event, "report", f"{number}-0", at, **{"job": f"job{number}", "error": "KeyError: x", **more})


def told(mine: rules.Rule, *history: Sign) -> list[tuple[str, str, str]]:
    """Which channel heard what, in which message about which incident."""
    state, found = None, []
    for each in history:
        state, messages = step(mine, state, each)
        found += [(m.channel, json.loads(m.text)["state"], m.key) for m in messages]
        assert state is None or State.read(state.text()) == state
    return found


def test_a_row_of_failures_is_one_alert_and_one_when_it_is_over() -> None:
    found = told(rule(), sign(1), sign(2), sign(3), sign(4, "well"), sign(5, "well"))
    assert found == [("ops", "opened", "r.run.report.1-0 1"), ("ops", "closed", "r.run.report.1-0 2")]


def test_the_nth_failure_in_a_row_opens_it_and_a_success_begins_anew() -> None:
    history = [sign(1), sign(2), sign(3, "well"), sign(4), sign(5), sign(6), sign(7)]
    assert told(rule(times=3), *history) == [("ops", "opened", "r.run.report.6-0 1")]


def test_a_second_channel_is_told_after_more_failures_and_both_when_it_is_over() -> None:
    mine = rule(times=2, escalate_after=4, escalate_to="pager")
    found = told(mine, *(sign(n) for n in range(1, 7)), sign(9, "well"))
    assert found == [
        ("ops", "opened", "r.run.report.2-0 1"),
        ("pager", "escalated", "r.run.report.2-0 2"),
        ("ops", "closed", "r.run.report.2-0 3"),
        ("pager", "closed", "r.run.report.2-0 3"),
    ]


def test_a_second_channel_is_told_when_it_lasts() -> None:
    mine = rule(on="broken", escalate_after="30m", escalate_to="pager")
    found = told(
        mine, *(sign(n, kind, "broken") for n, kind in ((1, "trouble"), (30, "still"), (31, "still"), (40, "still")))
    )
    assert [(channel, how) for channel, how, _ in found] == [("ops", "opened"), ("pager", "escalated")]


def test_without_recovered_nobody_hears_that_it_is_over() -> None:
    assert len(told(rule(on="failed"), sign(1), sign(2, "well"), sign(3))) == 2


def test_who_wants_to_hear_only_that_it_is_over_hears_only_that() -> None:
    found = told(rule(on="recovered"), sign(1), sign(2), sign(3, "well"), sign(4, "well"))
    assert [(channel, how) for channel, how, _ in found] == [("ops", "closed")]


def test_a_success_that_ended_before_the_failure_ends_nothing() -> None:
    assert len(told(rule(), sign(5), sign(4, "well"))) == 1
    assert len(told(rule(), sign(5), sign(6, "well"))) == 2


def test_a_failure_in_the_future_hides_no_success() -> None:
    """Redis' clock was ahead when it was noted, and has gone back since."""
    state, _ = step(rule(), None, sign(10_000))
    assert state
    assert step(rule(), state, sign(5, "well")).state == state
    now = START + timedelta(minutes=3)
    assert step(rule(), state.by(now), sign(5, "well")).state is None
    assert (state.by(now).since, state.by(now).last) == (clock.text(now), clock.text(now))
    assert state.by(START + timedelta(days=365)) == state


def test_the_parts_of_one_tick_count_once_and_one_that_succeeds_ends_nothing() -> None:
    parts = [sign(1, job="tick"), sign(2, job="tick"), sign(3, "well", job="tick")]
    assert told(rule(times=2), *parts, sign(4, job="next")) == [("ops", "opened", "r.run.report.4-0 1")]


def test_what_rq_runs_again_does_not_count() -> None:
    assert told(rule(times=2), sign(1), sign(2, "undone"), sign(3)) == []
    assert len(told(rule(times=2), sign(1), sign(2), sign(3, "undone"), sign(4))) == 1


def test_a_schedule_that_is_gone_is_forgotten_without_a_word() -> None:
    assert told(rule(times=2), sign(1), sign(2, "gone"), sign(3)) == []
    assert len(told(rule(), sign(1), sign(2, "gone"))) == 1


def test_what_lasts_is_told_once() -> None:
    found = told(rule(on=["late_end", "recovered"]), *(sign(n, event="late_end", job="j") for n in (1, 2, 3)))
    assert [how for _, how, _ in found] == ["opened"]


@pytest.mark.parametrize(
    ("event", "kind", "words"),
    [
        ("failed", "trouble", "report failed: KeyError: x"),
        ("lost", "trouble", "report was lost: KeyError: x"),
        ("late_fire", "trouble", "report was due at 2026-11-16T09:00:00Z, and has not fired"),
        ("late_start", "trouble", "report was queued at 2026-11-16T09:01:00Z, and has not started: job1"),
        ("late_end", "trouble", "report started at 2026-11-16T09:01:00Z, and has not ended: job1"),
        ("no_worker", "trouble", "ticks go to the queue report, and no live worker reads it"),
        ("broken", "trouble", "report is broken, and does not fire: KeyError: x"),
        ("no_beat", "trouble", "no scheduler was running from 2026-11-16T09:01:00Z to 2026-11-16T09:01:00Z"),
        ("failed", "well", "report has succeeded again: it had failed once since 2026-11-16T09:01:00Z"),
        ("late_fire", "well", "report is no longer late"),
        ("late_start", "well", "report waits no longer: job1"),
        ("late_end", "well", "report has ended: job1"),
        ("no_worker", "well", "a worker reads the queue report again: none had since 2026-11-16T09:01:00Z"),
        ("broken", "well", "report is in order again"),
    ],
)
def test_every_alert_is_a_sentence(event: str, kind: str, words: str) -> None:
    mine = rule(on=[event, "recovered"])
    state, messages = step(mine, None, sign(1, event=event, tick=clock.text(START)))
    if kind == "well":
        _, messages = step(mine, state, sign(2, "well", event))
    assert json.loads(messages[0].text)["text"] == words


def test_a_template_says_it_in_other_words() -> None:
    mine = rule(template="{{{schedule}}} {count}x {error} {queue}| {text}")
    _, [message] = step(mine, None, sign(1))
    assert json.loads(message.text)["text"] == "{report} 1x KeyError: x | report failed: KeyError: x"


def test_a_queue_with_strange_letters_makes_an_incident_that_fits_a_header() -> None:
    _, [message] = step(rule(on="no_worker"), None, Sign("trouble", "no_worker", "a b\r\nc: ü", "1-0", START))
    assert message.key == "r.no_worker.a%20b%0D%0Ac%3A%20%C3%BC.1-0 1"


@pytest.mark.parametrize(
    "written",
    ["", "7", "[]", "{}", '{"event": 1, "count": 1, "since": "x", "last": "x"}', "{" * 5000, '{"count": "1"}',
     '{"event":"failed","count":-1,"since":"2026-11-16T09:00:00Z","last":"2026-11-16T09:00:00Z"}',
     '{"event":"failed","count":1,"since":"2026-11-16T09:00:00Z","last":"2026-11-16T09:00:00Z","told":7}',
     '{"event":"failed","count":1,"since":"2026-11-16T09:00:00Z","last":"2026-11-16T09:00:00Z","incident":"a b"}'],
    ids=range(10),
)  # fmt: skip
def test_what_is_no_state_is_none(written: str) -> None:
    assert State.read(written) is None


# --- notices ---------------------------------------------------------------------------------------------------------


def notice(type_: str, schedule: str = "report", **entry: Any) -> Notice:
    fields = {
        b"type": type_.encode(),
        b"schedule": schedule.encode(),
        b"job": b"j",
        b"entry": json.dumps(entry).encode(),
    }
    found = Notice.read("1794819600000-0", fields)
    assert found
    return found


@pytest.mark.parametrize(
    ("found", "kind", "subject", "error"),
    [
        (notice("failed", error={"type": "KeyError", "message": "no\nuser"}), "trouble", "report", "KeyError: no user"),
        (notice("failed", error=7), "trouble", "report", "7"),
        (notice("lost", error=None), "trouble", "report", ""),
        (notice("succeeded"), "well", "report", ""),
        (notice("reopened", was="failed"), "undone", "report", ""),
        (notice("removed"), "gone", "report", ""),
        (notice("retired"), "gone", "report", ""),
        (notice("no_worker", "", queue="mail"), "trouble", "mail", ""),
        (notice("worker_back", "", queue="mail"), "well", "mail", ""),
    ],
)  # fmt: skip
def test_a_notice_is_a_sign(found: Notice, kind: str, subject: str, error: str) -> None:
    sign = incidents.of(found)
    assert sign
    assert (sign.kind, sign.subject, sign.error, sign.id) == (kind, subject, error, "1794819600000-0")


@pytest.mark.parametrize(
    "found",
    [notice("enqueued"), notice("reopened", was="stopped"), notice("failed", ""), notice("no_worker", "", queue=7)],
    ids=lambda each: each.type,
)
def test_what_means_nothing_to_a_rule_is_no_sign(found: Notice) -> None:
    assert incidents.of(found) is None


# --- any history, any kill -------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=30),
    st.integers(1, 3),
)
def test_whoever_is_killed_before_it_is_written_each_incident_is_told_once_by_one_id(
    history: list[tuple[bool, int]], times: int
) -> None:
    """A decision is made again as often as its beat was killed before it was written: nothing else comes of it."""
    mine, state, found = rule(times=times), None, list[tuple[str, str]]()
    streak, expected = 0, 0
    for number, (fails, kills) in enumerate(history, 1):
        each = sign(number, "trouble" if fails else "well")
        decided = step(mine, state, each)
        assert all(step(mine, State.read(state.text()) if state else None, each) == decided for _ in range(kills))
        state = decided.state
        found += [(json.loads(m.text)["state"], m.key.split()[0]) for m in decided.messages]
        streak = streak + 1 if fails else 0
        expected += streak == times
    opened = [incident for how, incident in found if how == "opened"]
    assert len(opened) == len(set(opened)) == expected
    closed = [incident for how, incident in found if how == "closed"]
    assert closed == opened[: len(closed)]
    assert len(opened) - len(closed) == (1 if streak >= times else 0)
