"""Routes are pure: the same facts send a tick the same way, for every beat, and a queue more moves few."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beat.engine.fact_reader import _uses
from beat.policies import routing
from beat.policies.facts import Facts, Staff
from beat.schedule.options import Route
from beat.schedule.schedule import Schedule
from beat.timing import clock
from beat.timing.interval import Every

QUEUES = ("a", "b", "c")
NAMES = st.lists(st.text("abcdefgh", min_size=1, max_size=3), min_size=2, max_size=8, unique=True)
TICKS = st.integers(0, 2**31).map(clock.at)
USES = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", "gone"]), st.integers(-5, 100)), unique_by=lambda each: each[0]
).map(tuple)
STAFF = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.builds(
        Staff, st.integers(0, 5), st.one_of(st.none(), st.integers(0, 2)), st.one_of(st.none(), st.integers(0, 2))
    ),
)
ROUTES: list[Any] = [each for each in Route.__args__ if each != "broadcast"]  # type: ignore[attr-defined]  # a Literal
TICK = clock.at(1_794_819_600)


def made(route: Any, queues: Any = QUEUES, schedule_id: str = "report", **options: Any) -> Schedule:
    rest = {"func": "app.report", "timing": Every("1m"), **options}
    return Schedule(id=schedule_id, queues=tuple(queues), route=route, **rest)


def go(route: Any, facts: Facts | None = None, number: int = 1, queues: Any = QUEUES) -> list[str]:
    """Where so many ticks go, one after the other."""
    found, facts = list[str](), facts or Facts()
    for n in range(number):
        way = routing.route(made(route, queues), clock.at(1_794_819_600 + n), facts)
        facts = routing.taken(facts, way)
        found += way.queues
    return found


# --- each ------------------------------------------------------------------------------------------------------------


def test_without_a_route_there_is_one_queue() -> None:
    way = routing.route(Schedule(id="report", func="app.report", timing=Every("1m"), queue="q"), TICK, Facts())
    assert way == routing.Way(("q",))


def test_first_and_last_stay() -> None:
    assert (go("first", number=3), go("last", number=3)) == (["a"] * 3, ["c"] * 3)


def test_round_robin_goes_on_where_it_was() -> None:
    assert go("round_robin", number=7) == list("abcabca")
    assert go("round_robin", Facts(uses=(("c", 5), ("a", 9), ("b", 1)))) == ["c"]
    assert go("round_robin", Facts(uses=(("a", 1), ("gone", 9)))) == ["b"]  # which was a queue before a deploy


def test_least_used_goes_where_the_fewest_went() -> None:
    assert go("least_used", Facts(uses=(("a", 5), ("b", 3), ("c", 4))), 5) == list("bbcab")


def test_least_recent_goes_where_none_has_gone_for_longest() -> None:
    assert go("least_recent", Facts(uses=(("b", 5), ("a", 9))), 4) == list("cbac")


def test_shortest_counts_those_whom_it_sends() -> None:
    staff = {"a": Staff(2, 1, 1), "b": Staff(0, 1, 1), "c": Staff(1, 1, 1)}
    assert go("shortest", Facts(staff=staff), 6) == list("bbcabc")


def test_first_idle_takes_who_has_nothing_to_do_and_then_who_works() -> None:
    staff = {"a": Staff(0, 0, 0), "b": Staff(0, 1, 1), "c": Staff(0, 2, 2)}
    assert go("first_idle", Facts(staff=staff), 5) == list("bccbb")


def test_failover_goes_to_the_first_at_which_somebody_works() -> None:
    staff = {"a": Staff(0, 0, 0), "b": Staff(9, 1, 0), "c": Staff(0, 1, 1)}
    way = routing.route(made("failover"), TICK, Facts(staff=staff))
    assert (way.queues, way.why) == (("b",), "failover: nobody works at a")
    nobody = {each: Staff(0, 0, 0) for each in QUEUES}
    way = routing.route(made("failover"), TICK, Facts(staff=nobody))
    assert (way.queues, way.why) == (("a",), "failover: nobody works at any of them")


def test_where_nobody_lets_us_look_somebody_may_work() -> None:
    unknown = {each: Staff(0, None, None) for each in QUEUES}
    assert go("failover", Facts(staff=unknown)) == go("first_idle", Facts(staff=unknown)) == ["a"]


@pytest.mark.parametrize("route", ["failover", "first_idle"])
def test_failover_takes_an_unknown_queue_before_one_with_a_worker(route: str) -> None:
    staff = {"a": Staff(0, 0, 0), "b": Staff(0, None, None), "c": Staff(0, 1, 0)}
    way = routing.route(made(route), TICK, Facts(staff=staff))
    assert (way.queues, way.why) == (("b",), f"{route}: nobody works at a")


def test_broadcast_goes_everywhere() -> None:
    assert routing.route(made("broadcast"), TICK, Facts()).queues == QUEUES


# --- whatever the facts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ROUTES)
@given(uses=USES, staff=STAFF, tick=TICKS, slow=st.integers(0, 20))
def test_every_route_names_one_of_its_queues_and_always_the_same(
    route: Any, uses: Any, staff: Any, tick: Any, slow: int
) -> None:
    facts = Facts(uses, slow, {}, staff)
    way = routing.route(made(route), tick, facts)
    assert len(way.queues) == 1
    assert way.queues[0] in QUEUES
    assert way == routing.route(made(route), tick, Facts(uses, slow, {}, dict(staff)))
    assert way.why.startswith(route)
    assert {queue for queue, _ in way.uses} <= set(QUEUES)
    assert len(way.uses) <= len(QUEUES)
    assert bool(way.uses) == routing.remembers(made(route))
    assert not way.uses or way.uses[-1][0] == way.queues[0]


@given(queues=NAMES, uses=USES, number=st.integers(1, 30))
def test_round_robin_strictly_alternates_whatever_was(queues: list[str], uses: Any, number: int) -> None:
    found = go("round_robin", Facts(uses=uses), number, queues)
    for before, after in itertools.pairwise(found):
        assert queues.index(after) == (queues.index(before) + 1) % len(queues)


@given(queues=NAMES, cut=st.integers(1, 19))
def test_round_robin_goes_on_in_another_beat(queues: list[str], cut: int) -> None:
    """What one has written, the other reads."""
    alone, facts, found = go("round_robin", number=20, queues=queues), Facts(), list[str]()
    for n in range(20):
        if n == cut:
            facts = Facts(uses=_uses(json.dumps(facts.uses)))
        way = routing.route(made("round_robin", queues), clock.at(n), facts)
        facts = routing.taken(facts, way)
        found += way.queues
    assert found == alone


@given(queues=NAMES, number=st.integers(1, 40))
def test_least_used_and_least_recent_leave_nobody_out(queues: list[str], number: int) -> None:
    for route in ("least_used", "least_recent"):
        counts = Counter(go(route, number=number, queues=queues))
        assert max(counts[each] for each in queues) - min(counts[each] for each in queues) <= 1


@given(tick=TICKS, name=st.text("abcxyz", min_size=1, max_size=9))
def test_random_is_the_same_for_every_beat(tick: Any, name: str) -> None:
    first = routing.route(made("random", schedule_id=name), tick, Facts(uses=(("a", 1),), slow=3))
    assert first == routing.route(made("random", schedule_id=name), tick, Facts(staff={"a": Staff(1, 1, 1)}))


def test_random_gives_each_its_share() -> None:
    counts = Counter(go("random", number=3000))
    assert all(850 < counts[each] < 1150 for each in QUEUES)


def test_random_differs_from_schedule_to_schedule() -> None:
    ways = {tuple(_ways("random", f"s{n}")) for n in range(20)}
    assert len(ways) == 20


def _ways(route: str, schedule_id: str) -> list[str]:
    return [routing.route(made(route, schedule_id=schedule_id), clock.at(n), Facts()).queues[0] for n in range(40)]


@given(queues=NAMES, new=st.text("xyz", min_size=1, max_size=3), name=st.text("abcdef012", min_size=1, max_size=8))
def test_a_queue_more_moves_a_schedule_there_or_nowhere(queues: list[str], new: str, name: str) -> None:
    def home(among: list[str]) -> str:
        return routing.route(made("hash", among, name), TICK, Facts()).queues[0]

    assert home([*queues, new]) in {home(queues), new}
    assert home(list(reversed(queues))) == home(queues)  # whatever their order


@pytest.mark.parametrize("number", [2, 4, 9])
def test_a_queue_more_moves_about_its_share(number: int) -> None:
    queues, many = [f"q{n}" for n in range(number)], 1000

    def homes(among: list[str]) -> list[str]:
        return [routing.route(made("hash", among, f"s{n}"), TICK, Facts()).queues[0] for n in range(many)]

    before, after = homes(queues), homes([*queues, "new"])
    moved = sum(a != b for a, b in zip(before, after, strict=True))
    assert 0.7 < moved / (many / (number + 1)) < 1.3
    assert max(Counter(before).values()) < 1.3 * many / number


GARBLED = [
    b"", b"garbage", b"{}", b"5", b"[5]", b"[[1]]", b'[["a"]]', b'[["a",1e999]]', b'[["a",NaN]]', b'[["a",null]]',
    b"\xff", b"[" * 100_000, b'[["a","b"]]', b'{"ab":1}', RuntimeError("WRONGTYPE"), None,
]  # fmt: skip


@pytest.mark.parametrize("garbled", GARBLED, ids=lambda value: ascii(value)[:20])
def test_what_somebody_wrote_by_hand_is_as_if_nothing_was(garbled: Any) -> None:
    assert _uses(garbled) == ()


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=15))
def test_whatever_json_stands_there_a_tick_finds_its_way(value: Any) -> None:
    uses = _uses(json.dumps(value))
    assert len({queue for queue, _ in uses}) == len(uses)
    for route in ("round_robin", "least_used", "least_recent"):
        way = routing.route(made(route), TICK, Facts(uses=uses))
        assert way.queues[0] in QUEUES


# --- the slow lane ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", [None, *ROUTES])
@given(slow=st.integers(0, 20))
def test_the_slow_lane_is_taken_after_so_many(route: Any, slow: int) -> None:
    queues: Any = QUEUES if route else ()
    schedule = made(route, queues, slow_queue="slow", slow_times=7)
    way = routing.route(schedule, TICK, Facts(slow=slow))
    assert (way.queues == ("slow",)) is (slow >= 7)
    assert way.uses == () or slow < 7
