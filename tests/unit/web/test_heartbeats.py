"""Which schedulers are missing or stuck: one that died is missed, one that stopped is not."""

from __future__ import annotations

from typing import Any

from beat.client.overview import Attendance
from beat.storage.heartbeat import Instance
from beat.web.heartbeats import missing, stuck
from tests.support.lines import MINUTE, NINE, SECOND


def beat(name: str, *, seen: Any = NINE, **other: Any) -> Instance:
    told: dict[str, Any] = {
        "host": "vm", "pid": 1, "version": "1", "tzdata": "", "app": "", "schedules": 1, "fired": 0,
        "started_at": NINE - 60 * MINUTE, "seen_at": seen, "last_pass": seen, "clock_offset_ms": 0,
    }  # fmt: skip
    return Instance(name, **told | other)


def there(now: Any, *beats: Instance, lapsed: Any = ()) -> Attendance:
    return Attendance(beats, lapsed, None, now)


def test_schedulers_whose_heartbeat_expired_are_missing_the_newest_first() -> None:
    gone = there(NINE, beat("a"), lapsed=(("b", NINE - MINUTE), ("c", NINE - SECOND)))
    assert [(each.name, each.since) for each in missing(gone)] == [("c", NINE - SECOND), ("b", NINE - MINUTE)]


def test_without_any_scheduler_the_last_ones_are_missing() -> None:
    assert [each.name for each in missing(there(NINE, lapsed=(("b", NINE - 60 * MINUTE),)))] == ["b"]


def test_a_scheduler_that_a_later_one_has_replaced_is_not_missing() -> None:
    gone = (("b", NINE),)
    assert missing(there(NINE + SECOND, beat("c", started_at=NINE + SECOND), lapsed=gone)) == []


def test_a_beat_that_shows_life_and_does_not_pass_is_stuck() -> None:
    slow, new = beat("slow", last_pass=NINE - 31 * SECOND), beat("new", last_pass=None, started_at=NINE)
    assert stuck([beat("a"), slow, new], NINE, SECOND) == [slow]


def test_a_scheduler_that_rests_for_a_minute_between_cycles_is_not_stuck_after_half_of_it() -> None:
    resting, stuck_one = beat("resting", last_pass=NINE - 61 * SECOND), beat("b", last_pass=NINE - 121 * SECOND)
    assert stuck([resting, stuck_one], NINE, MINUTE) == [stuck_one]
