"""What the benchmarks say of arrivals: a rate that no start-up hides in, and lateness that is nobody else's."""

from __future__ import annotations

import pytest

from benchmarks.arrivals import Sample, past_the_gap, past_the_second, rate


def samples(*pairs: tuple[float, int]) -> list[Sample]:
    return [Sample(at, arrived) for at, arrived in pairs]


def test_a_rate_counts_from_the_first_arrival_to_the_last() -> None:
    assert rate(samples((10.0, 100), (10.5, 300), (12.0, 1100))) == pytest.approx(500)


def test_waiting_for_the_first_arrival_does_not_slow_a_rate_down() -> None:
    assert rate(samples((0.0, 0), (9.0, 0), (10.0, 1), (11.0, 501))) == pytest.approx(500)


def test_looking_on_after_the_last_arrival_does_not_slow_a_rate_down() -> None:
    assert rate(samples((10.0, 1), (11.0, 501), (15.0, 501), (20.0, 501))) == pytest.approx(500)


def test_what_came_with_the_first_look_does_not_make_a_rate_faster() -> None:
    assert rate(samples((10.0, 900), (11.0, 1000))) == pytest.approx(100)


@pytest.mark.parametrize("seen", [(), ((1.0, 0), (2.0, 0)), ((1.0, 7),), ((1.0, 0), (2.0, 7), (3.0, 7))])
def test_there_is_no_rate_of_what_came_at_once_or_never(seen: tuple[tuple[float, int], ...]) -> None:
    with pytest.raises(ValueError, match="no rate"):
        rate(samples(*seen))


def test_what_is_due_on_the_second_is_as_late_as_it_is_past_it() -> None:
    assert past_the_second([1000.002, 1001.25, 1002.0]) == pytest.approx([0.002, 0.25, 0.0])


def test_what_is_due_a_second_after_the_last_is_as_late_as_its_gap_is_too_long() -> None:
    assert past_the_gap([1000.4, 1001.402, 1002.402, 1003.5]) == pytest.approx([0.002, 0.0, 0.098])


def test_a_drift_is_charged_step_by_step_and_not_as_a_sum() -> None:
    drifting = [1000 + n * 1.003 for n in range(100)]
    assert max(past_the_gap(drifting)) == pytest.approx(0.003)


def test_a_tick_that_never_came_is_a_second_of_lateness() -> None:
    assert past_the_gap([1000.0, 1001.0, 1003.0]) == pytest.approx([0.0, 1.0])


def test_who_comes_too_early_is_not_less_than_punctual() -> None:
    assert past_the_gap([1000.0, 1000.9]) == [0.0]
