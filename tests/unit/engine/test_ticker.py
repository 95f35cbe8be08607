"""Claim → prepare → fire at a desk that answers as it was told."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any, Self

import pytest
from redis import exceptions

from beat.engine import ticker
from beat.engine.clock_guard import HOLD_MS, Guard, Mark
from beat.engine.replies import LONGEST_WAIT_MS
from beat.storage.clock_setback import DECIDED, Setback
from beat.storage.messages import Reply
from beat.timing import clock
from tests.support.facts import wait_until
from tests.support.ticker_backend import NINE, Bench, World, claim, codes, schedule, written

LOST = exceptions.ConnectionError("Connection closed by server.")
HOURLY = schedule()
GOES_ON = threading.Event()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World.of(monkeypatch)


def wakes_at(bench: Bench) -> float:
    return bench.ticker._wakes_at()  # noqa: SLF001 (between two passes `run` sleeps until then)


def many(number: int) -> list[Any]:
    return [schedule(f"s{n}") for n in range(number)]


# --- a pass ----------------------------------------------------------------------------------------------------------


def test_what_is_due_fires_in_the_pass_that_claims_it(world: World) -> None:
    bench = Bench(world, [HOURLY])
    bench.desk.pages.append([claim(HOURLY)])
    bench.ticker.turn(GOES_ON)
    assert [item.job for item in bench.desk.all_sent()] == [f"beat_report_{NINE // 1000}"]
    assert [event.schedule_id for event in bench.told("fired")] == ["report"]


def test_a_pass_takes_page_after_page(world: World) -> None:
    some = many(5)
    bench = Bench(world, some, page_size=2)
    bench.desk.pages += [[claim(each) for each in some[n : n + 2]] for n in (0, 2, 4)]
    bench.ticker.turn(GOES_ON)
    assert [item.id for item in bench.desk.all_sent()] == ["s0", "s1", "s2", "s3", "s4"]
    assert [asked["limit"] for asked in bench.desk.asked] == [2, 2, 2, 2, 2], "with every page that is fired, the next"


def test_a_pass_ends_between_two_pages_when_it_is_time_to_stop(world: World) -> None:
    some, stopping = many(4), threading.Event()
    bench = Bench(world, some, page_size=2)
    bench.desk.pages += [[claim(some[0]), claim(some[1])], [claim(some[2]), claim(some[3])]]

    def stop(items: Any) -> list[Reply]:
        stopping.set()
        return [Reply("OK") for _ in items]

    bench.desk.answers.append(stop)
    bench.ticker.turn(stopping)
    assert len(bench.desk.all_sent()) == 2


def test_a_chain_is_never_torn_and_a_batch_stays_small(world: World) -> None:
    some = [schedule(f"s{n}", "1s") for n in range(4)]
    bench = Bench(world, some, page_size=10)
    bench.desk.pages.append([claim(each, NINE - 6000) for each in some])
    bench.ticker.turn(GOES_ON)
    assert [len(items) for items in bench.desk.sent] == [7, 7, 7, 7]
    assert all(len({item.id for item in items}) == 1 for items in bench.desk.sent)


def test_troubles_of_a_claim_are_told(world: World) -> None:
    bench = Bench(world)
    bench.desk.troubles = (("a", Reply("LOCKED", "5")), ("b", Reply("BADSTATE", "run_count is not a number: x")))
    bench.ticker.turn(GOES_ON)
    assert [(event.name, event.schedule_id) for event in bench.events] == [("locked", "a"), ("broken", "b")]


def test_it_wakes_when_the_lock_of_another_beat_runs_out(world: World) -> None:
    bench = Bench(world)
    bench.desk.troubles = (("a", Reply("LOCKED", "400")), ("b", Reply("LOCKED", "5")))
    bench.ticker.turn(GOES_ON)
    assert wakes_at(bench) == NINE + 6
    bench.ticker.turn(GOES_ON)
    assert wakes_at(bench) == NINE + 1000


def test_ticker_with_a_long_interval_wakes_sooner_while_redis_rejects_ticks(world: World) -> None:
    bench = Bench(world, [HOURLY], interval=60_000)
    limit = bench.ticker._pace.misfire_limit  # noqa: SLF001 (what the bench was built with)
    bench.desk.pages.append([claim(HOURLY)])
    bench.desk.answers.append(codes(("BADTYPE", "rq:queue:default is a string, not a queue")))
    bench.ticker.turn(GOES_ON)
    assert wakes_at(bench) <= NINE + limit // 4
    bench.desk.pages.append([claim(HOURLY)])
    bench.ticker.turn(GOES_ON)
    assert [event.name for event in bench.events] == ["enqueue_failed", "fired", "recovered"]
    assert wakes_at(bench) == NINE + 60_000


# --- what is claimed ahead -------------------------------------------------------------------------------------------


def test_what_is_claimed_ahead_is_held_until_it_is_due(world: World) -> None:
    bench = Bench(world, [HOURLY])
    bench.desk.pages.append([claim(HOURLY, NINE + 800)])
    bench.ticker.turn(GOES_ON)
    world.passes(799)
    bench.ticker.turn(GOES_ON)
    assert not bench.desk.sent
    world.passes(2)
    bench.ticker.turn(GOES_ON)
    assert [item.tick for item in bench.desk.all_sent()] == ["2026-11-16T09:00:00.800Z"]


def test_the_ticker_wakes_on_whole_intervals_or_when_something_is_due(world: World) -> None:
    bench = Bench(world, [HOURLY])
    world.passes(250)
    bench.ticker.turn(GOES_ON)
    assert wakes_at(bench) == NINE + 1000
    bench.desk.pages.append([claim(HOURLY, NINE + 600)])
    bench.ticker.turn(GOES_ON)
    assert wakes_at(bench) == NINE + 600


def test_who_is_told_to_wait_sends_the_rest_when_it_is_due(world: World) -> None:
    every_second = schedule(every="1s")
    bench = Bench(world, [every_second])
    bench.desk.pages.append([claim(every_second, NINE - 2000)])
    bench.desk.answers.append(codes("OK", ("EARLY", "40"), ("STALE", "")))
    bench.ticker.turn(GOES_ON)
    assert len(bench.told("fired")) == 1
    world.passes(39)
    bench.ticker.turn(GOES_ON)
    assert len(bench.desk.sent) == 1
    world.passes(2)
    bench.ticker.turn(GOES_ON)
    first, second = bench.desk.sent
    assert second == first[1:]
    assert len(bench.told("fired")) == 3


def test_who_is_told_to_wait_for_long_gives_the_schedule_back(world: World) -> None:
    bench = Bench(world, [HOURLY])
    bench.desk.pages.append([claim(HOURLY)])
    bench.desk.answers.append(codes(("EARLY", str(LONGEST_WAIT_MS + 1))))
    bench.ticker.turn(GOES_ON)
    bench.ticker.turn(GOES_ON)
    assert [item.id for item in bench.desk.all_sent("release")] == ["report"]


def test_a_beat_holds_what_it_can_fire_while_its_locks_last_and_still_takes_what_is_due(world: World) -> None:
    some = many(1050)
    bench = Bench(world, some, page_size=400, lock_ttl=1500, lookahead=1000)
    ahead = [claim(each, NINE + 900) for each in some]
    bench.desk.pages += [ahead[:400], ahead[400:800], ahead[800:1000], [claim(each) for each in some[1000:]]]
    bench.ticker.turn(GOES_ON)
    assert [(each["limit"], each["lookahead"]) for each in bench.desk.asked] == [
        (400, 1000), (400, 1000), (200, 1000), (400, 0), (400, 0),
    ]  # fmt: skip
    assert [item.id for item in bench.desk.all_sent()] == [each.id for each in some[1000:]]


def with_claims_ahead(world: World, number: int) -> Bench:
    """A beat that holds so many, due in 900 ms, in pages of two."""
    some = many(number)
    bench = Bench(world, some, page_size=2)
    ahead = [claim(each, NINE + 900) for each in some]
    bench.desk.pages += [ahead[n : n + 2] for n in range(0, number, 2)]
    bench.ticker.turn(GOES_ON)
    return bench


def test_what_was_claimed_ahead_is_sent_page_after_page_and_nothing_is_claimed_meanwhile(world: World) -> None:
    bench = with_claims_ahead(world, 7)
    assert not bench.desk.sent
    claimed = len(bench.desk.asked)
    world.passes(900)
    bench.ticker.turn(GOES_ON)
    assert [[item.id for item in items] for items in bench.desk.sent] == [
        ["s0", "s1"],
        ["s2", "s3"],
        ["s4", "s5"],
        ["s6"],
    ]
    assert len(bench.desk.asked) == claimed + 1, "once, when all of it is fired"


def test_what_was_held_in_vain_is_asked_for_again_in_the_same_pass(world: World) -> None:
    bench = with_claims_ahead(world, 8)
    claimed = len(bench.desk.asked)
    world.passes(900)
    bench.desk.answers += [codes("FENCED", "FENCED") for _ in range(4)]
    bench.ticker.turn(GOES_ON)
    assert len(bench.desk.sent) == 4
    assert len(bench.desk.asked) == claimed + 1


def test_a_page_that_was_sent_too_early_is_sent_again_in_its_order(world: World) -> None:
    some = many(3)
    bench = Bench(world, some)
    bench.desk.pages.append([claim(each) for each in some])
    bench.desk.answers.append(codes(("EARLY", "2"), ("EARLY", "2"), ("EARLY", "2")))
    bench.ticker.turn(GOES_ON)
    world.passes(2)
    bench.ticker.turn(GOES_ON)
    assert [[item.id for item in items] for items in bench.desk.sent] == [["s0", "s1", "s2"]] * 2


# --- lost replies and refusals ---------------------------------------------------------------------------------------


def test_after_a_lost_reply_the_same_items_are_sent_again_and_count_once(world: World) -> None:
    every_second = schedule(every="1s")
    bench = Bench(world, [every_second])
    bench.desk.pages.append([claim(every_second, NINE - 40_000)])
    bench.desk.answers.append(LOST)
    with pytest.raises(exceptions.ConnectionError):
        bench.ticker.turn(GOES_ON)
    newest = bench.desk.sent[0][-1].job
    bench.desk.answers.append(lambda items: [Reply("STALE", newest) for _ in items])
    bench.ticker.turn(GOES_ON)
    first, second = bench.desk.sent
    assert [item._replace(error="") for item in second] == first
    assert len(bench.told("fired")) == 22
    assert [event.fields["count"] for event in bench.told("skipped")] == [19]
    bench.ticker.turn(GOES_ON)
    assert len(bench.desk.sent) == 2, "it is not sent a third time"


def test_all_batches_after_the_lost_one_are_sent_too_and_in_order(world: World) -> None:
    some = many(6)
    bench = Bench(world, some, page_size=2)
    bench.desk.pages.append([claim(each) for each in some])
    bench.desk.answers += [codes("OK", "OK"), LOST]
    with pytest.raises(exceptions.ConnectionError):
        bench.ticker.turn(GOES_ON)
    bench.ticker.turn(GOES_ON)
    assert [[item.id for item in items] for items in bench.desk.sent] == [
        ["s0", "s1"], ["s2", "s3"], ["s0", "s1"], ["s2", "s3"], ["s4", "s5"],
    ], "the answer to the first had not been read, either"  # fmt: skip
    assert sorted(event.schedule_id for event in bench.told("fired")) == [each.id for each in some]


def test_a_refusal_is_told_once_for_each_schedule_and_written_with_the_next_fire(world: World) -> None:
    bench = Bench(world, [HOURLY])
    bench.desk.pages.append([claim(HOURLY)])
    bench.desk.answers += [exceptions.OutOfMemoryError("OOM command not allowed\n when used > 'maxmemory'")] * 3
    for _ in range(3):
        with pytest.raises(exceptions.OutOfMemoryError):
            bench.ticker.turn(GOES_ON)
    (event,) = bench.told("enqueue_failed")
    assert (event.schedule_id, event.fields["func"]) == ("report", "app.tasks.report")
    assert event.fields["error"] == "OutOfMemoryError: OOM command not allowed when used > 'maxmemory'"
    bench.ticker.turn(GOES_ON)
    assert bench.desk.sent[-1][0].error == event.fields["error"]


def test_a_redis_that_lets_nothing_be_claimed_is_told_for_what_is_due(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(world, [HOURLY])
    bench.desk.pages.append([claim(HOURLY)])

    def full(_: Any, **__: Any) -> Any:
        raise exceptions.OutOfMemoryError("OOM")

    with monkeypatch.context() as refusing:
        refusing.setattr(bench.desk, "claim", full)
        for _ in range(3):
            with pytest.raises(exceptions.OutOfMemoryError):
                bench.ticker.turn(GOES_ON)
    (event,) = bench.events
    assert (event.name, event.schedule_id, event.fields["func"]) == ("enqueue_failed", "report", "app.tasks.report")
    bench.ticker.turn(GOES_ON)
    assert [item.error for item in bench.desk.all_sent()] == ["OutOfMemoryError: OOM"]


def test_what_changed_meanwhile_is_claimed_again_in_the_same_pass(world: World) -> None:
    changed = schedule(queue="other")
    bench = Bench(world, [HOURLY])
    bench.shelf.kept["report"] = written(changed)
    bench.desk.pages += [[claim(HOURLY)], [claim(changed)]]
    bench.desk.answers.append(codes("CHANGED"))
    bench.ticker.turn(GOES_ON)
    assert [(item.rev, item.queue) for item in bench.desk.all_sent()] == [
        (HOURLY.rev, "rq:queue:default"),
        (changed.rev, "rq:queue:other"),
    ]
    assert len(bench.told("fired")) == 1


@pytest.mark.parametrize("code", ["FENCED", "GONE", "STALE", "INACTIVE", "BADTYPE", "BADSTATE", "BADARG"])
def test_what_somebody_else_decides_is_let_go(world: World, code: str) -> None:
    bench = Bench(world, [HOURLY])
    bench.desk.pages.append([claim(HOURLY)])
    bench.desk.answers.append(codes((code, "words")))
    bench.ticker.turn(GOES_ON)
    bench.ticker.turn(GOES_ON)
    assert len(bench.desk.sent) == 1
    assert not bench.told("fired")


def test_an_unreadable_definition_is_set_apart_and_the_others_fire(world: World) -> None:
    bench = Bench(world, [HOURLY])
    bench.shelf.kept["bad"] = ("rev", "{")
    bench.desk.pages.append([claim(schedule("bad"), rev="rev"), claim(HOURLY)])
    bench.ticker.turn(GOES_ON)
    assert [(item.id, item.rev) for item in bench.desk.all_sent("quarantine")] == [("bad", "rev")]
    assert [item.id for item in bench.desk.all_sent()] == ["report"]


@pytest.mark.parametrize(
    "tick", ["2026-02-31T00:00:00Z", "2026-11-16T25:00:00Z", "2026-11-16T08:59:60Z", "0000-01-01T00:00:00Z"]
)
def test_a_tick_that_is_no_time_does_not_starve_its_page(world: World, tick: str) -> None:
    """The claim script hands these out: it knows the shape of an instant, not the calendar."""
    bench = Bench(world, [HOURLY, schedule("bad")])
    bench.desk.pages.append([claim(schedule("bad"), NINE - 1, tick=tick), claim(HOURLY)])
    bench.ticker.turn(GOES_ON)
    assert [item.id for item in bench.desk.all_sent()] == ["report"]


# --- Redis' clock ----------------------------------------------------------------------------------------------------

HOUR = 3_600_000


def ahead(world: World) -> Bench:
    """A ticker that has claimed something ahead; then Redis' clock jumps by an hour, and more is handed out."""
    bench = Bench(world, [HOURLY, schedule("held")])
    bench.desk.pages.append([claim(schedule("held"), NINE + 900)])
    bench.ticker.turn(GOES_ON)
    world.redis_ms += HOUR
    bench.desk.pages.append([claim(HOURLY, NINE + HOUR)])
    return bench


def test_after_a_jump_forward_nothing_fires_and_everything_is_given_back(world: World) -> None:
    bench = ahead(world)
    bench.ticker.turn(GOES_ON)
    assert bench.desk.holds == [(NINE + HOUR, NINE + HOUR + HOLD_MS)]
    bench.ticker.turn(GOES_ON)
    assert not bench.desk.all_sent()
    assert sorted(item.id for item in bench.desk.all_sent("release")) == ["held", "report"]
    assert [event.fields for event in bench.told("clock_forward")] == [{"seconds": 3600, "hold_seconds": 60}]


def test_what_was_asked_for_before_the_jump_was_noticed_goes_back_too(world: World) -> None:
    some = many(6)
    bench = Bench(world, some, page_size=2)
    bench.ticker.turn(GOES_ON)  # the clock is known

    def jump(items: Any) -> list[Reply]:
        world.redis_ms += HOUR
        return [Reply("OK") for _ in items]

    bench.desk.pages += [[claim(each) for each in some[:2]], [claim(each) for each in some[2:4]],
                         [claim(each, NINE + HOUR) for each in some[4:]]]  # fmt: skip
    bench.desk.answers.append(jump)
    bench.ticker.turn(GOES_ON)
    assert [item.id for item in bench.desk.all_sent()] == ["s0", "s1"], "what was due before"
    assert sorted(item.id for item in bench.desk.all_sent("release")) == ["s2", "s3", "s4", "s5"]
    assert len(bench.desk.holds) == 1


def test_what_was_given_back_goes_out_at_once(world: World) -> None:
    bench = ahead(world)
    bench.ticker.turn(GOES_ON)
    assert sorted(item.id for item in bench.desk.all_sent("release")) == ["held", "report"]


def test_a_hold_that_could_not_be_written_is_not_forgotten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ahead(world)
    held: list[tuple[int, int]] = []

    def hold(since: int, until: int) -> None:
        held.append((since, until))
        if len(held) == 1:
            raise LOST

    monkeypatch.setattr(bench.desk, "hold", hold)
    with pytest.raises(exceptions.ConnectionError):
        bench.ticker.turn(GOES_ON)
    bench.desk.pages.append([claim(HOURLY, NINE + HOUR)])
    world.passes(100)
    bench.ticker.turn(GOES_ON)
    assert not bench.desk.all_sent(), "the new time has not proved itself"
    assert len(held) == 2


def test_a_small_jump_forward_holds_nothing(world: World) -> None:
    bench = Bench(world, [HOURLY])
    bench.ticker.turn(GOES_ON)
    world.redis_ms += 119_000
    bench.desk.pages.append([claim(HOURLY, world.redis_ms)])
    bench.ticker.turn(GOES_ON)
    assert len(bench.told("fired")) == 1
    assert not bench.desk.holds


def test_a_jump_backward_is_told_and_holds_nothing(world: World) -> None:
    bench = Bench(world, [HOURLY])
    bench.ticker.turn(GOES_ON)
    world.redis_ms -= HOUR
    bench.desk.pages.append([claim(HOURLY, world.redis_ms)])
    bench.ticker.turn(GOES_ON)
    assert [event.fields for event in bench.told("clock_backward")] == [{"seconds": 3600, "words": DECIDED}]
    assert len(bench.told("fired")) == 1
    assert not bench.desk.holds


def went_back(world: World) -> Setback:
    now = clock.from_ms(world.redis_ms)
    return Setback(now, now + timedelta(hours=1), now + timedelta(hours=2))


def test_a_jump_backward_is_told_with_until_when_nothing_fires(world: World) -> None:
    bench = Bench(world, [HOURLY])
    bench.ticker.turn(GOES_ON)
    world.redis_ms -= HOUR
    bench.desk.went_back = went_back(world)
    for _ in range(2):
        bench.desk.pages.append([claim(HOURLY, NINE + HOUR)])
        bench.ticker.turn(GOES_ON)
    words = f"{DECIDED}, so nothing fires until 2026-11-16T10:00:00Z"
    assert [event.fields for event in bench.told("clock_backward")] == [{"seconds": 3600, "words": words}]


def test_a_beat_that_starts_after_a_jump_backward_says_so_once(world: World) -> None:
    bench = Bench(world, [HOURLY])
    bench.desk.went_back = went_back(world)
    for _ in range(2):
        bench.desk.pages.append([claim(HOURLY, NINE + HOUR)])
        bench.ticker.turn(GOES_ON)
    [event] = bench.told("clock_backward")
    assert event.fields["seconds"] == 3600
    assert event.fields["words"].endswith("so nothing fires until 2026-11-16T11:00:00Z")


def test_a_jump_backward_is_told_though_redis_does_not_say_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost() -> None:
        raise LOST

    bench = Bench(world, [HOURLY])
    bench.ticker.turn(GOES_ON)
    world.redis_ms -= HOUR
    monkeypatch.setattr(bench.desk, "setback", lost)
    bench.desk.pages.append([claim(HOURLY, world.redis_ms)])
    bench.ticker.turn(GOES_ON)
    assert [event.fields for event in bench.told("clock_backward")] == [{"seconds": 3600, "words": DECIDED}]
    assert len(bench.told("fired")) == 1


def test_a_machine_that_slept_is_no_jump(world: World) -> None:
    bench = Bench(world, [HOURLY])
    bench.ticker.turn(GOES_ON)
    world.passes(10 * HOUR)
    bench.desk.pages.append([claim(HOURLY, world.redis_ms)])
    bench.ticker.turn(GOES_ON)
    assert len(bench.told("fired")) == 1
    assert not bench.desk.holds


def test_a_beat_that_was_stopped_before_it_read_a_reply_sees_no_jump(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time in the reply is old then: it is not Redis' clock that went back, nor forward with the next reply."""
    bench = Bench(world, [HOURLY])
    bench.ticker.turn(GOES_ON)
    answer = bench.desk.claim

    def late(unread: Any, **asked: Any) -> Any:
        claimed = answer(unread, **asked)
        world.passes(300_000)
        return claimed

    with monkeypatch.context() as stopped:
        stopped.setattr(bench.desk, "claim", late)
        bench.ticker.turn(GOES_ON)
    bench.ticker.turn(GOES_ON)
    assert [event.name for event in bench.events if event.name.startswith("clock")] == []
    assert not bench.desk.holds


def test_a_jump_that_an_earlier_process_would_have_seen_is_seen(world: World) -> None:
    bench = Bench(world, [HOURLY])
    bench.ticker.timekeeper.guard = Guard()
    bench.ticker.timekeeper.guard.accept(Mark("boot", world.uptime_ms, world.uptime_ms, world.redis_ms - HOUR))
    bench.desk.pages.append([claim(HOURLY)])
    bench.ticker.turn(GOES_ON)
    assert len(bench.desk.holds) == 1
    assert not bench.told("fired")


# --- run -------------------------------------------------------------------------------------------------------------


class Running:
    """`run()` in a thread, on the real clocks."""

    def __init__(self, bench: Bench) -> None:
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=bench.ticker.run, args=(self.stopping,), daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.thread.join(10)
        assert not self.thread.is_alive()


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("a bug"), LOST, OSError("no route"), exceptions.BusyLoadingError()]
)
def test_no_error_ends_the_loop(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(World(), [HOURLY], interval=100)
    claims = bench.desk.claim
    troubles = [error, error]

    def failing(unread: Any, **asked: Any) -> Any:
        if troubles:
            raise troubles.pop()
        return claims(unread, **asked)

    monkeypatch.setattr(bench.desk, "claim", failing)
    bench.desk.pages.append([claim(HOURLY)])
    with Running(bench):
        wait_until(lambda: bench.told("fired"))
    names = [event.name for event in bench.events]
    if isinstance(error, ZeroDivisionError):
        assert names == ["failed", "failed", "fired"]
        assert bench.events[0].fields["exception"] is error
    else:
        assert names == ["redis_away", "fired", "redis_back"]


def test_it_shows_that_it_goes_on_even_when_every_pass_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, seen = Bench(World(), [HOURLY], interval=100), set[float]()

    def failing(*_: Any, **__: Any) -> Any:
        seen.add(bench.ticker.awake_at)
        raise LOST

    monkeypatch.setattr(bench.desk, "claim", failing)
    with Running(bench):
        wait_until(lambda: len(seen) >= 3)


def test_it_shows_until_when_it_sleeps() -> None:
    bench = Bench(World(), [HOURLY], interval=60_000)
    with Running(bench):
        wait_until(lambda: 50 < bench.ticker.awake_at - time.monotonic() <= 60.1)


def test_stopping_gives_back_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World.of(monkeypatch)
    some = many(3)
    bench = Bench(world, some)
    bench.desk.pages.append([claim(each, NINE + 900_000) for each in some])
    with Running(bench):
        wait_until(lambda: len(bench.desk.asked) > 1)
    assert sorted(item.id for item in bench.desk.all_sent("release")) == ["s0", "s1", "s2"]
    assert not bench.desk.all_sent()


def test_stopping_while_redis_is_away_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World.of(monkeypatch)
    bench = Bench(world, [HOURLY])
    bench.desk.pages.append([claim(HOURLY, NINE + 900_000)])
    bench.desk.answers += [LOST] * 10
    with Running(bench):
        wait_until(lambda: len(bench.desk.asked) > 1)
    assert len(bench.desk.sent) == 1


def test_a_machine_that_stood_still_holds_nobody(world: World) -> None:
    bench = Bench(world, [HOURLY])
    bench.ticker.turn(GOES_ON)
    world.redis_ms += 300_000  # and the uptime did not go on
    bench.desk.sound = clock.text(clock.from_ms(world.redis_ms - 5_000))
    bench.desk.pages.append([claim(HOURLY)])
    bench.ticker.turn(GOES_ON)
    assert not bench.desk.holds
    assert [event.name for event in bench.events if event.name != "skipped"] == ["stood_still", "fired"]


def test_a_page_that_leads_nowhere_does_not_keep_the_pass_busy(world: World) -> None:
    bench = Bench(world, [HOURLY])
    bench.desk.pages.extend([claim(HOURLY)] for _ in range(100))
    bench.desk.answers.extend(codes("STALE") for _ in range(100))
    bench.ticker.turn(GOES_ON)
    assert len(bench.desk.sent) == ticker.IN_VAIN


def test_what_another_beat_can_read_is_passed_over_from_then_on(world: World) -> None:
    bench = Bench(world)
    bench.desk.pages.append([claim(HOURLY, rev="unreadable")])
    bench.desk.answers.append(codes("OTHERS"))
    bench.ticker.turn(GOES_ON)
    assert [item.kind for items in bench.desk.sent for item in items] == ["quarantine"]
    assert bench.desk.unread == [HOURLY.id]
    assert [event.name for event in bench.events] == ["unread"]
