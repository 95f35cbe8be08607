"""The clock guard: what passed on one clock must have passed on the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beat.engine import clock_guard
from beat.engine.clock_guard import FORWARD_MS, Guard, Jump, Mark
from beat.storage.clock_setback import BACKWARD_MS

if TYPE_CHECKING:
    from pathlib import Path

HERE = clock_guard.boot()
HOUR = 3_600_000
times = st.integers(0, 10**14)


def at(uptime_ms: int, redis_ms: int, boot: str = HERE) -> Mark:
    """A reply that came at once."""
    return Mark(boot, uptime_ms, uptime_ms, redis_ms)


def judged(redis_ms: int, uptime_ms: int) -> tuple[Jump, int]:
    """What a guard says when so much has passed by each clock."""
    watch = Guard(at(1000, 5000))
    return watch.judge(at(1000 + uptime_ms, 5000 + redis_ms)), watch.by_ms


@pytest.mark.parametrize(
    ("redis_ms", "uptime_ms", "jump"),
    [
        (1000, 1000, Jump.NONE),
        (0, 0, Jump.NONE),
        (FORWARD_MS, 0, Jump.NONE),  # a jump of just two minutes is small
        (FORWARD_MS + 1, 0, Jump.FORWARD),
        (HOUR, 1000, Jump.FORWARD),
        (24 * HOUR * 365, 1000, Jump.FORWARD),
        (HOUR, HOUR, Jump.NONE),  # the machine slept, and its uptime knows
        (24 * HOUR, 24 * HOUR - 60_000, Jump.NONE),  # clocks drift
        (-BACKWARD_MS, 0, Jump.NONE),
        (-BACKWARD_MS - 1, 0, Jump.BACKWARD),
        (1000, 1000 + BACKWARD_MS + 1, Jump.BACKWARD),  # it stood still
        (-HOUR, 1000, Jump.BACKWARD),
    ],
)
def test_a_jump_is_what_one_clock_knows_and_the_other_does_not(redis_ms: int, uptime_ms: int, jump: Jump) -> None:
    assert judged(redis_ms, uptime_ms) == (jump, 0 if jump is Jump.NONE else redis_ms - uptime_ms)


def test_the_first_reading_is_no_jump() -> None:
    assert Guard().judge(at(1, HOUR)) is Jump.NONE


def test_each_reading_is_judged_by_the_one_before_it() -> None:
    watch = Guard()
    readings = [(0, 0), (HOUR, 1), (HOUR + 1000, 1001), (1000, 2000), (HOUR, 3000)]
    found = []
    for redis, uptime in readings:
        found.append(watch.judge(at(uptime, redis)))
        watch.accept(at(uptime, redis))
    assert found == [Jump.NONE, Jump.FORWARD, Jump.NONE, Jump.BACKWARD, Jump.FORWARD]


def test_a_jump_forward_stays_one_until_it_is_accepted() -> None:
    watch = Guard(at(0, 0))
    assert [watch.judge(at(n, HOUR + n)) for n in (1, 2, 3)] == [Jump.FORWARD] * 3
    watch.accept(at(4, HOUR + 4))
    assert watch.judge(at(5, HOUR + 5)) is Jump.NONE


def test_a_jump_backward_is_one_only_once() -> None:
    watch = Guard(at(0, HOUR))
    assert [watch.judge(at(n, n)) for n in (1, 2, 3)] == [Jump.BACKWARD, Jump.NONE, Jump.NONE]


@given(
    rounds=st.lists(st.tuples(st.integers(0, HOUR), st.integers(0, HOUR), st.integers(0, HOUR)), max_size=8),
    drift=st.integers(-1000, 1000),
)
def test_no_delay_is_taken_for_a_jump(rounds: list[tuple[int, int, int]], drift: int) -> None:
    """Between two questions, on the way there and on the way back any time may pass."""
    watch, uptime = Guard(), 1000
    for pause, there, back in rounds:
        asked = uptime + pause
        redis = asked + there + 10**12 + drift
        uptime = asked + there + back
        assert watch.judge(Mark(HERE, asked, uptime, redis)) is Jump.NONE


@given(there=st.integers(0, 1000), back=st.integers(0, 1000), by=st.integers(FORWARD_MS + 2001, 10**10))
def test_a_large_jump_is_seen_through_small_delays(there: int, back: int, by: int) -> None:
    before = Mark(HERE, 0, there + back, there)
    assert Guard(before).judge(Mark(HERE, 5000, 5000 + there + back, 5000 + there + by)) is Jump.FORWARD
    assert Guard(before).judge(Mark(HERE, 5000, 5000 + there + back, 5000 + there - by)) is Jump.BACKWARD


def test_a_mark_of_an_earlier_process_of_this_boot_is_trusted() -> None:
    assert Guard(at(0, 0)).judge(at(1000, HOUR)) is Jump.FORWARD


@pytest.mark.parametrize("boot", ["another", "", "-"])
def test_a_mark_of_another_boot_is_not_comparable(boot: str) -> None:
    assert Guard(at(0, 0, boot)).judge(at(1000, HOUR)) is Jump.NONE


def test_where_boots_have_no_names_no_foreign_mark_is_comparable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_guard, "boot", lambda: "-")
    assert Guard(at(5, 5, "-")).judge(at(1000, HOUR, "-")) is Jump.NONE


def test_a_system_that_does_not_name_its_boots_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(clock_guard, "_BOOT_ID", tmp_path / "missing")
    clock_guard.boot.cache_clear()
    assert clock_guard.boot() == "-"
    clock_guard.boot.cache_clear()


def test_a_mark_is_now_by_this_machines_uptime() -> None:
    asked = clock_guard.uptime_ms()
    made = clock_guard.mark(asked, 7)
    assert (made.boot, made.asked_ms, made.redis_ms) == (HERE, asked, 7)
    assert 0 <= made.answered_ms - asked < 10_000


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "Pd"]), min_size=1), times, times)
def test_a_mark_is_read_as_it_was_written(boot: str, uptime: int, redis: int) -> None:
    assert Mark.read(f"{boot} {uptime} {redis}") == at(uptime, redis, boot)


@pytest.mark.parametrize(
    "garbage",
    [
        "",
        " ",
        "boot",
        "boot 1",
        "boot 1 2 3",
        "boot -1 2",
        "boot 1.5 2",
        "boot \u0661 \u0662",
        "boot x 2",
        "boot \u00b2 3",
        "\x00",
    ],
)
def test_what_is_no_mark_is_none(garbage: str) -> None:
    assert Mark.read(garbage) is None


@given(st.text())
def test_no_text_does_harm(text: str) -> None:
    read = Mark.read(text)
    assert read is None or isinstance(read.asked_ms, int)


@pytest.mark.parametrize("digits", [5000, 100_000])
def test_a_number_that_python_does_not_read_is_no_mark(digits: int) -> None:
    assert Mark.read(f"boot 1 {'9' * digits}") is None
