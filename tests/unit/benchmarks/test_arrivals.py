"""What the benchmarks say of arrivals: a rate that no start-up hides in, and lateness that is nobody else's."""

from __future__ import annotations

import threading
from typing import Self

import pytest

from benchmarks.arrivals import Sample, looked, past_the_gap, past_the_second, rate, rate_since, watch
from benchmarks.peers.crowds import CROWDS


class Statistics:
    """A Redis that has carried out one more of these commands at each look."""

    def __init__(self, *commands: str) -> None:
        self.commands, self.looks = commands, 0

    def info(self, section: str) -> dict[str, dict[str, int]]:
        assert section == "commandstats"
        self.looks += 1
        return {f"cmdstat_{command}": {"calls": 1} for command in self.commands[: self.looks]}


class Busy:
    """A Redis that has something else to do before each answer: there is one job more each time."""

    def __init__(self, waits_s: float) -> None:
        self.waits_s, self.jobs = waits_s, 0

    def pipeline(self, *, transaction: bool) -> Busy:
        assert not transaction
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def llen(self, _: str) -> None: ...

    def execute(self) -> list[int]:
        threading.Event().wait(self.waits_s)
        self.jobs += 1
        return [self.jobs]


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


def test_a_rate_since_an_instant_counts_all_jobs_and_all_of_the_time() -> None:
    assert rate_since(9.0, samples((10.0, 100), (10.5, 300), (11.0, 1000))) == pytest.approx(500)


def test_a_rate_since_an_instant_is_lower_than_one_that_leaves_out_reading_what_is_due() -> None:
    seen = samples((10.0, 0), (14.0, 1), (24.0, 5001))
    assert [rate_since(9.0, seen), rate(seen)] == pytest.approx([333.4, 500])


def test_a_rate_since_an_instant_ends_with_the_last_arrival() -> None:
    assert rate_since(9.0, samples((10.0, 100), (11.0, 1000), (15.0, 1000))) == pytest.approx(500)


def test_what_was_there_at_the_first_look_has_a_rate_since_an_instant() -> None:
    assert rate_since(9.0, samples((11.0, 1000))) == pytest.approx(500)


def test_there_is_no_rate_since_an_instant_of_what_never_came() -> None:
    with pytest.raises(ValueError, match="nothing ever arrived"):
        rate_since(9.0, samples((10.0, 0)))


def test_a_scheduler_looks_when_redis_has_counted_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    redis = Statistics("hset", "zrange", "zrangebyscore", "rpush")
    monkeypatch.setattr("time.time", lambda: 100.0 + redis.looks)
    assert looked(redis, "zrangebyscore", patience_s=10, alive=lambda: True) == 103.0


def test_who_never_looks_is_named_for_it_and_not_waited_for_for_ever() -> None:
    with pytest.raises(TimeoutError, match="never looked for what is due: no zrangebyscore in 0 s"):
        looked(Statistics("hset", "zadd"), "zrangebyscore", patience_s=0.03, alive=lambda: True)


def test_who_ends_before_it_looks_is_not_waited_for() -> None:
    with pytest.raises(ChildProcessError, match=r"ended before it looked for what is due \(zrangebyscore\)"):
        looked(Statistics("hset"), "zrangebyscore", patience_s=60, alive=lambda: False)


def test_who_keeps_its_schedules_in_redis_says_what_it_looks_with() -> None:
    looking = {who for who, crowd in CROWDS.items() if crowd(10, 1).looks}
    assert looking == {"rq-scheduler", "RedBeat", "APScheduler"}


def test_who_has_waited_for_a_busy_redis_does_not_look_away_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    found = watch(Busy(0.05), ["q0"], 3, cap_s=60, patience_s=60, alive=lambda: True)
    assert [sample.arrived for sample in found] == [1, 2, 3]
    assert max(pauses) < 0.05  # not nine times as long


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
