"""What the real scripts write of ticks that wait is told whole: by histories, answers and verifications."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from beat import Client
from beat.client import reader
from beat.history.history import Fired, Passed, Waits
from beat.history.verify import Stretch
from beat.schedule import serialize
from beat.timing import clock
from beat.timing.interval import Every
from tests.storage.test_slots import OK, REPLACE, RUNNING, WAIT, WAITING, Place, job
from tests.support.builders import claim, everything, registration, schedule, second

if TYPE_CHECKING:
    from datetime import datetime

    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.history.history import Line
    from beat.storage.store import Store

RUNS = "beat:runs:report"


class Seconds(Place):
    """The same, with a rule that ticks every second, as it is decided."""

    def __init__(self, store: Store, slot: str) -> None:
        self.store, self.slot, self.changes, self.jobs = store, slot, {}, []
        self.first = self.at = second(store) - 50
        rule = serialize.ticks(schedule(timing=Every("1s")))
        replies = store.register([registration(at=self.at, rule=rule)], beat="tests")
        assert [reply.code for reply in replies] == ["NEW"]
        claim(store)

    def tick(self, number: int) -> datetime:
        return clock.at(self.first + number)


@pytest.fixture
def client(redis: Redis, server: PrivateRedis) -> Client:  # noqa: ARG001 (it empties the server)
    return Client(server.url)


@pytest.fixture
def place(store: Store) -> Seconds:
    """The first tick runs, the second waits, the third was skipped."""
    made = Seconds(store, WAIT)
    assert [made.fire().code for _ in range(3)] == ["OK", "WAITS", "SKIPPED"]
    return made


def admitted(place: Seconds) -> Seconds:
    """The first has ended, and the second runs."""
    place.end(place.jobs[0])
    place.close()
    assert place.admit(place.first + 1) == OK
    return place


def told(lines: list[Line]) -> list[tuple[type, Any]]:
    ticks = {Fired: "tick", Waits: "tick", Passed: "first"}
    return [(type(line), getattr(line, ticks[type(line)])) for line in lines if type(line) in ticks]


def test_a_tick_that_waits_is_shown_with_whom_it_waits_for(place: Seconds, client: Client) -> None:
    lines = client.history("report")
    assert told(lines) == [(Passed, place.tick(2)), (Waits, place.tick(1)), (Fired, place.tick(0))]
    passed, waits, _ = lines[:3]
    assert isinstance(passed, Passed)
    assert isinstance(waits, Waits)
    assert passed.behind == waits.behind == job(place.first)
    assert waits.job_id == job(place.first + 1)


def test_a_tick_that_had_waited_is_shown_once(place: Seconds, client: Client) -> None:
    lines = client.history("report")
    admitted(place)
    told_after = client.history("report")
    assert told(told_after) == [(Fired, place.tick(1)), (Passed, place.tick(2)), (Fired, place.tick(0))]
    run = told_after[0]
    assert isinstance(run, Fired)
    assert run.waited == lines[1]


@pytest.mark.parametrize("page", [2, 3, 4, 5, 100])
def test_however_a_ledger_is_read_it_tells_the_same(store: Store, client: Client, page: int) -> None:
    place = Seconds(store, "wait 1 3")
    for number in range(12):
        place.fire()
        if number % 3 == 2:
            place.end(place.running[0])
            place.close()
            place.admit(int(clock.floor(clock.read(place.waiting[0].split(" ")[1]))))
    place.end(place.running[0])
    place.close()
    expected = client.history("report")
    assert {type(line) for line in expected} >= {Fired, Passed, Waits}
    assert any(isinstance(line, Fired) and line.waited for line in expected)
    with mock.patch.object(reader, "_PAGE", page):
        assert client.history("report") == client.history() == expected
        for since in {line.at for line in expected}:
            wanted = [line for line in client.history("report", since=since) if not isinstance(line, Fired)]
            assert wanted == [line for line in expected if not isinstance(line, Fired) and line.at >= since]


def test_why_says_who_is_in_the_way(place: Seconds, client: Client, store: Store) -> None:
    began = "2026-11-16T09:00:00.000000Z"
    store.client.hset(f"rq:job:{place.jobs[0]}", mapping={"status": "started", "started_at": began, "worker_name": "w"})
    waits, skipped = client.why("report", place.tick(1)), client.why("report", place.tick(2))
    assert (waits.answer, skipped.answer) == ("waiting", "skipped")
    for told_of in (waits, skipped):
        assert told_of.behind
        assert (told_of.behind.job_id, told_of.behind.state, told_of.behind.worker) == (place.jobs[0], "started", "w")
    admitted(place)
    assert client.why("report", place.tick(1)).answer == "enqueued"


def test_who_took_the_place_is_named(store: Store, client: Client) -> None:
    place = Seconds(store, REPLACE)
    assert [place.fire().code for _ in range(3)] == ["OK", "WAITS", "WAITS"]
    told_of = client.why("report", place.tick(1))
    assert told_of.passed
    assert (told_of.passed.reason, told_of.instead, told_of.passed.behind) == ("replaced", place.tick(2), place.jobs[2])
    assert client.verify("report")[0].sound


def test_verify_follows_who_waits_and_who_is_let_in(place: Seconds, client: Client) -> None:
    [found] = client.verify("report")
    assert (found.problems, found.missing, found.expected, found.waiting) == ((), (), 2, 1)
    admitted(place)
    [found] = client.verify("report")
    assert (found.problems, found.missing, found.expected, found.waiting) == ((), (), 3, 0)


def test_verify_misses_who_was_taken_out_of_the_line(place: Seconds, client: Client, store: Store) -> None:
    store.client.delete(WAITING)
    tick = place.tick(1)
    assert client.verify("report")[0].missing == (Stretch(tick, tick, 1),)
    assert client.why("report", tick).answer == "missing"


def test_verify_notices_who_was_let_in_twice(place: Seconds, client: Client, store: Store) -> None:
    admitted(place)
    raw: Any = store.client
    raw.lpush(RUNS, raw.lindex(RUNS, 0))
    tick = place.tick(1)
    assert client.verify("report")[0].double == (Stretch(tick, tick, 1),)


def test_show_counts_who_runs_and_who_waits(place: Seconds, client: Client) -> None:
    found = client.show("report")
    assert ([run.job_id for run in found.open_runs], found.waiting) == ([place.jobs[0]], (place.tick(1),))


def test_a_line_of_another_type_harms_no_question(place: Seconds, client: Client, store: Store) -> None:
    for key in (WAITING, RUNNING):
        store.client.delete(key)
        store.client.set(key, "x", px=60_000)
    [found] = client.verify("report")
    assert found.problems[:2] == (f"{RUNNING} is no sorted set", f"{WAITING} is no sorted set")
    assert client.show("report").waiting == ()
    assert len(client.history("report")) == 4
    assert client.why("report", place.tick(1)).answer == "missing"


def test_garbage_in_the_line_waits_for_nothing(place: Seconds, client: Client, store: Store) -> None:
    store.client.zadd(WAITING, {"garbage": 0, "report never scheduler": 0, "": 0})
    assert client.show("report").waiting == (place.tick(1),)
    assert client.verify("report")[0].sound


def test_no_question_writes_anything(place: Seconds, client: Client, store: Store) -> None:
    before = everything(store)
    client.history("report", outcome="waiting")
    client.why("report", place.tick(1))
    client.verify()
    client.show("report")
    assert everything(store) == before


def test_a_schedule_that_is_gone_leaves_what_its_ledger_says(place: Seconds, client: Client, store: Store) -> None:
    store.client.delete("beat:schedule:report")
    assert [type(line) for line in client.history("report")[:2]] == [Passed, Waits]
    newest: Any = store.client.lindex(RUNS, 0)
    assert json.loads(newest)["behind"] == place.jobs[0]
    assert timedelta(0) <= client.now() - place.tick(0) < timedelta(minutes=5)
