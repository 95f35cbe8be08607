"""The roll of beats: who died is missed, who stopped is not."""

from __future__ import annotations

from typing import Any

from beat.client.beats import Instance
from beat.client.surveying import Attendance
from beat.web.roll import Roll, stuck
from tests.lines import MINUTE, NINE, SECOND


def beat(name: str, *, seen: Any = NINE, **other: Any) -> Instance:
    told: dict[str, Any] = {
        "host": "vm", "pid": 1, "version": "1", "tzdata": "", "app": "", "schedules": 1, "fired": 0,
        "started_at": NINE - 60 * MINUTE, "seen_at": seen, "last_pass": seen, "clock_offset_ms": 0,
    }  # fmt: skip
    return Instance(name, **told | other)


def there(now: Any, *beats: Instance, lapsed: Any = ()) -> Attendance:
    return Attendance(beats, lapsed, None, now)


def test_a_beat_whose_heartbeat_lapsed_is_missed_for_a_quarter_of_an_hour() -> None:
    roll = Roll()
    gone = there(NINE, beat("a"), lapsed=(("b", NINE - SECOND),))
    assert [each.name for each in roll.call(gone)] == ["b"]
    assert [each.name for each in roll.call(there(NINE + MINUTE, beat("a", seen=NINE + MINUTE)))] == ["b"]
    assert roll.call(there(NINE + 15 * MINUTE, beat("a", seen=NINE + 15 * MINUTE))) == []


def test_a_beat_that_vanished_while_somebody_looked_is_missed_although_redis_has_forgotten_it() -> None:
    roll = Roll()
    for n in range(0, 21, 2):
        now = NINE + n * SECOND
        assert roll.call(there(now, beat("a", seen=now), beat("b"))) == []
    now = NINE + 21 * SECOND
    [missing] = roll.call(there(now, beat("a", seen=now)))
    assert (missing.name, missing.since) == ("b", NINE)


def test_a_beat_that_stopped_is_not_missed() -> None:
    roll = Roll()
    roll.call(there(NINE, beat("a"), beat("b")))
    now = NINE + 2 * SECOND
    assert roll.call(there(now, beat("a", seen=now))) == []
    assert roll.call(there(NINE + MINUTE, beat("a", seen=NINE + MINUTE))) == []


def test_what_happened_while_nobody_looked_is_not_guessed() -> None:
    roll = Roll()
    roll.call(there(NINE, beat("a"), beat("b")))
    assert roll.call(there(NINE + 5 * MINUTE, beat("a", seen=NINE + 5 * MINUTE))) == []


def test_a_beat_that_was_replaced_or_came_back_is_not_missed() -> None:
    roll = Roll()
    gone = (("b", NINE),)
    assert roll.call(there(NINE + SECOND, beat("c", started_at=NINE + SECOND), lapsed=gone)) == []
    assert roll.call(there(NINE + SECOND, beat("b"), lapsed=gone)) == []


def test_a_beat_that_shows_life_and_does_not_pass_is_stuck() -> None:
    slow, new = beat("slow", last_pass=NINE - 31 * SECOND), beat("new", last_pass=None, started_at=NINE)
    assert stuck([beat("a"), slow, new], NINE) == [slow]
