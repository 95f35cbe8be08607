"""Groups, routes, followers and what is required, tested as users test their own schedules."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest import mock

import pytest

from beat import Registry, get_current_run
from beat.testing import ManualBeat

START = datetime(2026, 11, 16, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
heard: list[str] = []


def extract() -> str:
    heard.append("extract")
    return "extract"


def load() -> str:
    run = get_current_run()
    assert run
    heard.append(f"load after {run.after}")
    return "load"


def resize() -> str:
    run = get_current_run()
    assert run
    heard.append(f"resize {run.shard} of {run.shards}")
    return "resize"


@pytest.fixture
def registry() -> Registry:
    heard.clear()
    return Registry()


def test_what_follows_runs_after_each_success(registry: Registry) -> None:
    registry.register(extract, every="1m")
    registry.register(load, follows="extract")
    registry.register(load, id="count", follows="load")
    beat = ManualBeat(START, registry=registry)
    beat.tick_until("1m")
    assert [each.schedule_id for each in beat.fired] == ["extract"]
    assert beat.run_jobs() == ["extract", "load", "load"]
    first, second, third = beat.fired
    assert (second.schedule_id, second.after, third.after) == ("load", first.job_id, second.job_id)
    assert heard == ["extract", f"load after {first.job_id}", f"load after {second.job_id}"]
    beat.assert_fired("load", at=START + MINUTE)


def test_what_fails_is_not_followed(registry: Registry) -> None:
    registry.register(load, id="extract", every="1m")
    registry.register(extract, id="count", follows="extract")
    beat = ManualBeat(START, registry=registry)
    beat.tick_until("1m")
    beat.fired[0] = replace(beat.fired[0], func="builtins.len")  # which wants an argument
    with pytest.raises(TypeError):
        beat.run_jobs()
    assert [each.schedule_id for each in beat.fired] == ["extract"]


def test_a_group_has_room_again_when_a_run_has_ended(registry: Registry) -> None:
    registry.group("reports", max_running=1)
    for each in ("a", "b", "c"):
        registry.register(extract, id=each, every="1m", group="reports")
    beat = ManualBeat(START, registry=registry)
    assert [each.schedule_id for each in beat.tick_until("1m")] == ["a"]
    assert beat.run_jobs() == ["extract"] * 3
    assert sorted(each.schedule_id for each in beat.fired) == ["a", "b", "c"]


def test_what_is_required_must_have_succeeded(registry: Registry) -> None:
    registry.register(extract, every="10m")
    registry.register(extract, "5 * * * *", id="publish", requires="extract within 1h")
    beat = ManualBeat(START, registry=registry)
    beat.tick_until("5m")
    assert [(each.schedule_id, each.reason) for each in beat.skipped] == [("publish", "dependency")]
    beat.tick_until("5m")
    beat.run_jobs()
    assert "publish" in {each.schedule_id for each in beat.tick_until(START + timedelta(minutes=65))}


def test_every_part_of_a_broadcast_is_run_and_is_one_tick(registry: Registry) -> None:
    registry.register(resize, every="1m", queues=["a", "b", "c"], route="broadcast")
    registry.register(load, follows="resize")
    beat = ManualBeat(START, registry=registry)
    (fired,) = beat.tick_until("1m")
    assert (fired.queues, list(fired.jobs.values())) == (("a", "b", "c"), ["a", "b", "c"])
    assert beat.run_jobs() == ["resize"] * 3 + ["load"]
    assert heard[:3] == ["resize 0 of 3", "resize 1 of 3", "resize 2 of 3"]
    beat.assert_fired("resize", at=START + MINUTE)
    beat.assert_fired("load", at=START + MINUTE)


def test_a_tick_says_where_it_went(registry: Registry) -> None:
    registry.register(extract, every="1m", queues=["a", "b"], route="round_robin")
    beat = ManualBeat(START, registry=registry)
    assert [each.queue for each in beat.tick_until("3m")] == ["a", "b", "a"]


def test_slow_runs_send_the_next_ones_to_the_slow_lane(registry: Registry) -> None:
    registry.register(extract, every="10s", slow_queue="slow", slow_times=2, slow_window="1h")
    beat = ManualBeat(START, registry=registry)
    queues = []
    for _ in range(4):
        beat.tick_until("10s")
        queues.append(beat.fired[-1].queue)
        slowly(beat)
    assert queues == ["default", "default", "slow", "slow"]


def slowly(beat: ManualBeat) -> None:
    """The job takes a second."""
    with mock.patch(f"{__name__}.extract", side_effect=lambda: beat.clock.advance("1s")):
        beat.run_jobs()
