"""The slow lane: a schedule that was slow too often goes to another queue, and comes back when it is not any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from beat import Client
from tests.support.builders import shows
from tests.support.many_schedules import Town, following, periodic

if TYPE_CHECKING:
    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

SLOW = "beat:slow:a"


def town(store: Store, **options: Any) -> Town:
    """A schedule `a` whose jobs go elsewhere after two runs of half a second or more within a minute."""
    given = {"slow_queue": "slow", "slow_times": 2, **options}
    return Town(store, periodic("a", **given))


def runs(place: Town, seconds: float, times: int = 1, status: str = "finished") -> None:
    for _ in range(times):
        [item] = place.chain("a")
        assert place.fire("a").code == "OK"
        place.end(item.job, status=status, seconds=seconds)
        place.close()


def goes(place: Town) -> str:
    """Where the next tick goes."""
    [item] = place.chain("a")
    assert place.fire("a").code == "OK"
    [queue] = [each for each in ("default", "slow", "x", "y") if item.job in place.queued(each)]
    assert place.client.hget(f"rq:job:{item.job}", "origin") == queue.encode()
    return queue


def test_after_so_many_slow_runs_it_goes_to_the_slow_queue_and_the_line_says_why(store: Store) -> None:
    place = town(store)
    runs(place, 0.5)
    assert goes(place) == "default"
    runs(place, 0.6)
    assert goes(place) == "slow"
    line = place.lines("a", "enqueued")[-1]
    assert (line["queue"], line["why"]) == ("slow", "slow: 2 runs over 500ms within 1m")
    assert "queue" not in place.lines("a", "enqueued")[0]
    assert place.client.zcard(SLOW) == 2


def test_quick_runs_are_not_remembered(store: Store) -> None:
    place = town(store)
    runs(place, 0.499, 3)
    assert not place.client.exists(SLOW)
    assert goes(place) == "default"


def test_runs_that_failed_were_slow_as_well(store: Store) -> None:
    place = town(store)
    runs(place, 3, 2, status="failed")
    assert goes(place) == "slow"


def test_no_more_are_remembered_than_matter_and_not_for_longer(store: Store) -> None:
    place = town(store, slow_window="30s")
    runs(place, 1, 4)
    assert place.client.zcard(SLOW) == 2
    assert 0 < place.client.pttl(SLOW) <= 30_000


def test_it_comes_back_when_they_are_long_ago(store: Store) -> None:
    place = town(store)
    runs(place, 1, 2)
    for each, score in place.client.zrange(SLOW, 0, 0, withscores=True):
        place.client.zadd(SLOW, {each: score - 61_000})
    assert goes(place) == "default"
    place.client.delete(SLOW)
    assert goes(place) == "default"


def test_one_run_that_ends_twice_is_one(store: Store) -> None:
    place = town(store)
    runs(place, 1, status="failed")
    job = place.job("a")
    place.client.hset(f"rq:job:{job}", "status", "queued")
    place.look_again()
    place.end(job, seconds=1)
    place.close()
    assert place.client.zcard(SLOW) == 1


def test_the_slow_queue_comes_before_any_route(store: Store) -> None:
    place = town(store, queues=("x", "y"), route="round_robin")
    runs(place, 1, 2)
    assert goes(place) == "slow"
    place.client.delete(SLOW)
    assert [goes(place), goes(place)] == ["x", "y"]  # as if it had not been away


def test_what_somebody_asks_for_and_what_follows_goes_there_too(store: Store, server: PrivateRedis) -> None:
    place = Town(store, periodic("p"), following("a", "p", slow_queue="slow", slow_times=1))
    for n in range(2):
        place.fire("p")
        place.succeed(place.job("p", n))
        place.turn()
        for job in place.queued():
            place.end(job, seconds=2)
        place.close()
    assert len(place.queued("slow")) == 1
    assert Client(server.url).trigger("a").job_id in place.queued("slow")


@shows("close", "BADTYPE")
def test_runs_are_closed_when_the_key_is_what_it_should_be_again(store: Store) -> None:
    place = town(store)
    place.client.set(SLOW, "garbage", px=60_000)
    runs(place, 1)
    assert place.lines("a", "succeeded") == []
    assert goes(place) == "default"
    place.client.delete(SLOW)
    place.close()
    assert len(place.lines("a", "succeeded")) == 1


GARBLED = [
    "",
    "x",
    "500 2",
    "500 2 60000 1",
    "-1 2 3",
    f"500 {'9' * 30} 60000",
    f"500 2 {'9' * 30}",
    f"{'9' * 400} 2 3",
]


@pytest.mark.parametrize("garbled", GARBLED, ids=lambda text: text[:20])
def test_a_lane_that_somebody_wrote_by_hand_breaks_nothing(store: Store, garbled: str) -> None:
    place = town(store)
    place.client.hset("beat:schedule:a", "slow", garbled)
    runs(place, 1, 2)
    assert len(place.lines("a", "succeeded")) == 2
    assert place.state("a")["success_count"] == "2"
