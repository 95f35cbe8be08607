"""The counting rule of `benchmarks/peers`: no loss is invented, none is hidden."""

from __future__ import annotations

import pytest

from benchmarks.peers.counting import Count, count_by_grid, count_named, longest_silence

BEGIN, END = 1000, 1030
WARM, COOL = range(BEGIN - 5, BEGIN), range(END, END + 5)


def every_second(phase: float = 0.0, *, drift: float = 0.0) -> list[float]:
    return [BEGIN + n + phase + n * drift for n in range(-5, END - BEGIN + 5)]


def verdict(count: Count) -> tuple[int, int]:
    return count.lost, count.doubled


@pytest.mark.parametrize("phase", [0.0, 0.003, 0.4, 0.5, 0.999])
def test_one_message_a_second_is_neither_lost_nor_doubled_at_any_phase(phase: float) -> None:
    assert count_by_grid(every_second(phase), BEGIN, END)[:3] == (30, 0, 0)


def test_jitter_of_a_quarter_of_a_second_is_no_loss() -> None:
    jittery = [instant + (0.25 if n % 2 else 0.0) for n, instant in enumerate(every_second(0.1))]
    assert verdict(count_by_grid(jittery, BEGIN, END)) == (0, 0)


def test_a_slow_drift_is_no_loss_while_it_stays_within_reach() -> None:
    assert verdict(count_by_grid(every_second(0.9, drift=0.01), BEGIN, END)) == (0, 0)


def test_a_message_that_is_missing_is_lost() -> None:
    assert verdict(count_by_grid([i for i in every_second(0.2) if int(i) != BEGIN + 7], BEGIN, END)) == (1, 0)


def test_a_second_message_for_one_tick_is_doubled() -> None:
    assert verdict(count_by_grid([*every_second(0.2), BEGIN + 7.21], BEGIN, END)) == (0, 1)


def test_a_message_too_many_does_not_make_up_for_one_that_is_missing_elsewhere() -> None:
    arrived = [*(i for i in every_second(0.2) if int(i) != BEGIN + 17), BEGIN + 7.21]
    assert verdict(count_by_grid(arrived, BEGIN, END)) == (1, 1)


def test_a_restart_may_change_the_phase() -> None:
    arrived = [i for i in every_second(0.1) if i < BEGIN + 10] + [i for i in every_second(0.6) if i > BEGIN + 10]
    assert verdict(count_by_grid(arrived, BEGIN, END)) == (0, 0)


def test_seven_seconds_of_silence_are_seven_ticks_lost() -> None:
    arrived = [i for i in every_second(0.1) if not BEGIN + 10 < i < BEGIN + 17]
    count = count_by_grid(arrived, BEGIN, END)
    assert verdict(count) == (7, 0)
    assert count.silence == pytest.approx(8)


@pytest.mark.parametrize("phases", [(0.0, 0.0, 0.0), (0.1, 0.4, 0.7), (0.98, 0.99, 0.01)])
def test_three_schedulers_that_know_nothing_of_each_other_double_every_tick_twice(phases: tuple[float, ...]) -> None:
    arrived = [instant for phase in phases for instant in every_second(phase)]
    lost, doubled = verdict(count_by_grid(arrived, BEGIN, END))
    assert lost == 0
    assert doubled == pytest.approx(60, abs=1)


def test_what_comes_before_and_after_is_not_counted() -> None:
    around = [*WARM, *WARM, *COOL, *COOL]
    assert verdict(count_by_grid([*every_second(0.2), *around], BEGIN, END)) == (0, 0)


def test_silence_from_the_beginning_loses_every_tick() -> None:
    assert count_by_grid([], BEGIN, END) == (30, 30, 0, 30)


def test_a_named_tick_that_comes_late_is_not_lost_but_its_silence_shows() -> None:
    late = [(max(tick + 0.002, BEGIN + 12.0) if tick >= BEGIN + 3 else tick, tick) for tick in range(BEGIN, END)]
    lost_doubled = count_named(late, BEGIN, END)
    assert verdict(lost_doubled) == (0, 0)
    assert lost_doubled.silence == pytest.approx(10)


def test_named_ticks_are_counted_one_by_one() -> None:
    ticks = [*WARM, *(tick for tick in range(BEGIN, END) if tick != BEGIN + 4), BEGIN + 9, BEGIN + 9, *COOL, *COOL]
    assert verdict(count_named(((float(tick), tick) for tick in ticks), BEGIN, END)) == (1, 2)


def test_the_longest_silence_reaches_to_both_ends() -> None:
    assert longest_silence([10.0, 11.0], 4, 13) == 6
    assert longest_silence([5.0, 6.0], 4, 13) == 7
