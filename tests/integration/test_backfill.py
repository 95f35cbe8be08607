"""Backfills: ticks of the past become runs, oldest first, a few at a time, and none of them twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from rq.job import Job

from beat import Client
from beat.errors import BadInstant, BadOption, UnknownSchedule
from beat.jobs.run import Run
from beat.timing import clock
from beat.timing.cron import Cron
from beat.timing.interval import Every
from tests.integration.test_control import deploy, late, sound
from tests.resilience import harm
from tests.resilience.proxy import Proxy
from tests.resilience.test_commands import SCRIPTS
from tests.resilience.test_overlap import SlowWorker
from tests.support.builders import queued, schedule
from tests.support.facts import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.client.backfill import Step
    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

DAY = timedelta(days=1)
FIRST, LAST = datetime(2026, 3, 2, 9, tzinfo=UTC), datetime(2026, 3, 8, 9, tzinfo=UTC)  # Monday to Sunday
WEEK = [FIRST + n * DAY for n in range(7)]
NINE = Cron("0 9 * * *")


@pytest.fixture
def client(server: PrivateRedis, store: Store) -> Client:  # noqa: ARG001 (it empties the server)
    return Client(server.url, by="ann")


@pytest.fixture
def worker(server: PrivateRedis, store: Store) -> Iterator[SlowWorker]:  # noqa: ARG001 (it empties the server)
    with SlowWorker(server.url, takes=0.01, runs=0.02) as worker:
        yield worker


def ended(steps: list[Step]) -> list[Step]:
    return [step for step in steps if step.run and step.run.closed_at]


def ticks_run(worker: SlowWorker) -> list[int]:
    """The ticks for which a job was run, as often as one was."""
    return sorted(int(job.rpartition("_")[2]) for job in worker.jobs.elements())


SECONDS = [clock.floor(tick) for tick in WEEK]


def test_every_tick_becomes_a_run_oldest_first_and_both_ends_count(
    client: Client, store: Store, worker: SlowWorker
) -> None:
    deploy(store, schedule(timing=NINE))
    steps = list(client.backfill("report", FIRST, LAST))
    done = ended(steps)
    assert sorted(step.tick for step in done) == WEEK
    assert [step.tick for step in steps if step not in done] == WEEK
    assert ticks_run(worker) == SECONDS
    assert {step.run and step.run.state for step in done} == {"succeeded"}
    assert [(step.ended, step.total) for step in done] == [(n, 7) for n in range(1, 8)]
    found = client.get("report")
    assert (found.run_count, found.manual_count, found.success_count) == (7, 7, 7)
    sound(client)


def test_a_run_knows_its_tick_and_who_asked_for_it(client: Client, store: Store) -> None:
    deploy(store, schedule(timing=NINE))
    step = next(client.backfill("report", FIRST, LAST))
    assert step.job_id.startswith("beat_report_b")
    assert step.job_id.endswith(f"_{SECONDS[0]}")
    job = Job.fetch(step.job_id, connection=store.client)
    assert Run.read(job.meta["beat"]) == Run("report", FIRST, "backfill")
    run = client.get_run(step.job_id)
    assert run is not None
    assert (run.tick, run.triggered_by, run.beat, run.late_ms) == (FIRST, "backfill", "ann", None)
    told = client.why("report", FIRST)
    assert (told.answer, [each.job_id for each in told.runs]) == ("enqueued", [step.job_id])


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_go_on_at_a_time_than_were_asked_for(client: Client, store: Store, most: int) -> None:
    deploy(store, schedule(timing=NINE))
    steps = client.backfill("report", FIRST, LAST, max_parallel=most)
    for number in range(most):
        assert next(steps).tick == WEEK[number]
    assert len(queued(store)) == most
    store.client.hset(f"rq:job:{queued(store)[0]}", "status", "finished")
    step = next(steps)  # waits for that
    assert step.run is not None
    assert (step.tick, step.run.state) == (FIRST, "succeeded")
    assert next(steps).tick == WEEK[most]
    assert store.client.zcard("beat:open") == most


@pytest.mark.parametrize("overlap", ["skip", "wait", "replace"])
def test_where_runs_may_not_overlap_each_waits_for_the_one_before(
    client: Client, store: Store, worker: SlowWorker, overlap: Any
) -> None:
    deploy(store, schedule(timing=NINE, overlap=overlap))
    for _ in client.backfill("report", FIRST, LAST, max_parallel=3):
        jobs: Any = store.client.zrange("beat:open", 0, -1)
        states = [store.client.hget(f"rq:job:{job.decode()}", "status") for job in jobs]
        assert sum(state in {b"queued", b"started"} for state in states) <= 1
    assert ticks_run(worker) == SECONDS
    sound(client)


def test_the_same_call_goes_on_where_it_was(client: Client, store: Store, worker: SlowWorker) -> None:
    deploy(store, schedule(timing=NINE))
    first = client.backfill("report", FIRST, LAST, max_parallel=1)
    for _ in range(5):  # three were enqueued, and two of them have ended
        next(first)
    first.close()
    plan = client.plan_backfill("report", FIRST, LAST)
    assert (plan.done, plan.ticks) == (tuple(WEEK[:3]), tuple(WEEK[3:]))
    steps = list(client.backfill("report", FIRST, LAST, max_parallel=1))
    assert {step.tick for step in ended(steps)} <= set(WEEK[2:])
    assert {step.total for step in steps} <= {4, 5}
    assert ticks_run(worker) == SECONDS
    assert list(client.backfill("report", FIRST, LAST)) == []
    sound(client)


def test_two_at_once_do_what_one_would(client: Client, store: Store, server: PrivateRedis, worker: SlowWorker) -> None:
    deploy(store, schedule(timing=NINE))
    one, other = (each.backfill("report", FIRST, LAST) for each in (client, Client(server.url, by="bob")))
    assert next(one).job_id != next(other).job_id  # the other goes on where the first one is
    assert len(ended([*one, *other])) >= 7
    assert ticks_run(worker) == SECONDS


@pytest.mark.parametrize("fault", [harm.drop_reply, harm.cut], ids=["the reply is lost", "the command is lost"])
def test_a_tick_is_never_run_twice_by_what_is_lost_on_the_wire(
    store: Store, server: PrivateRedis, worker: SlowWorker, fault: Any
) -> None:
    deploy(store, schedule(timing=NINE))
    with Proxy(server.url, SCRIPTS) as proxy:
        lost = proxy.plan(lambda command: command.name == "evalsha fire" and command.number % 2 == 1, fault(), times=3)
        list(Client(proxy.url).backfill("report", FIRST, LAST))
        assert lost.done.is_set()
    assert ticks_run(worker) == SECONDS
    sound(Client(server.url))


def test_what_has_a_run_is_left_out_unless_it_is_to_run_again(client: Client, store: Store, worker: SlowWorker) -> None:
    deploy(store, schedule(timing=NINE))
    list(client.backfill("report", FIRST, WEEK[1]))
    plan = client.plan_backfill("report", FIRST, LAST)  # another end: another backfill
    assert (plan.ran, plan.done, plan.ticks) == (2, (), tuple(WEEK[2:]))
    again = client.plan_backfill("report", FIRST, LAST, again=True)
    assert (again.ran, again.ticks) == (0, tuple(WEEK))
    list(client.backfill("report", FIRST, LAST, again=True))
    assert ticks_run(worker) == sorted([*SECONDS, *SECONDS[:2]])
    assert client.plan_backfill("report", FIRST, LAST, again=True).ticks == ()


def test_days_of_rest_are_left_out(client: Client, store: Store) -> None:
    deploy(store, schedule(timing=NINE, exclude=["2026-03-04"]))
    plan = client.plan_backfill("report", FIRST, LAST)
    assert (plan.excluded, len(plan.ticks)) == (1, 6)
    assert datetime(2026, 3, 4, 9, tzinfo=UTC) not in plan.ticks


@pytest.mark.parametrize("state", ["active", "paused"])
def test_what_is_not_decided_yet_is_left_to_the_schedule(client: Client, store: Store, state: str) -> None:
    first = late(store, schedule(timing=Every("1m")), ticks=5)
    if state == "paused":
        client.pause("report")
    plan = client.plan_backfill("report", first - timedelta(minutes=10), client.now())
    assert plan.ticks == tuple(first - timedelta(minutes=n) for n in range(10, 0, -1))
    assert plan.undecided in {5, 6}  # the clock may have struck meanwhile


def test_of_what_ticks_no_more_all_that_is_past_can_be_made_up_for(client: Client, store: Store) -> None:
    first = late(store, schedule(timing=Every("1m")), ticks=5)
    store.client.hset("beat:schedule:report", "state", "retired")
    plan = client.plan_backfill("report", first, client.now())
    assert (plan.undecided, plan.ticks[0]) == (0, first)
    assert len(plan.ticks) in {5, 6}


def test_of_what_the_ledger_no_longer_holds_nothing_is_claimed(client: Client, store: Store) -> None:
    deploy(store, schedule(timing=NINE))
    assert client.plan_backfill("report", FIRST, LAST).untold == 0  # it was not there: they had no run
    store.client.ltrim("beat:runs:report", 1, 0)
    assert client.plan_backfill("report", FIRST, LAST).untold == 0  # nor could they have had one
    store.client.hset("beat:schedule:report", "created_at", "2026-03-05T00:00:00Z")
    assert client.plan_backfill("report", FIRST, LAST).untold == 4


def test_what_comes_is_not_past(client: Client, store: Store) -> None:
    deploy(store, schedule(timing=Every("1h")))
    now = client.now()
    assert len(client.plan_backfill("report", now - timedelta(hours=3), now + DAY).ticks) == 3
    with pytest.raises(BadInstant, match="lies ahead: a backfill is for the past"):
        client.plan_backfill("report", now + DAY, now + 2 * DAY)


def test_what_makes_no_sense_is_refused(client: Client, store: Store) -> None:
    deploy(store, schedule(timing=Every("1s")))
    with pytest.raises(BadInstant, match="must not lie after end"):
        client.plan_backfill("report", LAST, FIRST)
    with pytest.raises(
        BadOption, match=r"there are 15,\d{3},\d{3} ticks from start to end, and 1,000,000 are the most"
    ):
        client.plan_backfill("report", FIRST - 180 * DAY, FIRST)
    for most in (0, 101, True, "2"):
        with pytest.raises(BadOption, match="max_parallel must be a whole number from 1 to 100"):
            next(client.backfill("report", FIRST, LAST, max_parallel=most))  # type: ignore[arg-type]
    with pytest.raises(UnknownSchedule, match="Did you mean 'report'"):
        next(client.backfill("reprot", FIRST, LAST))


def test_another_definition_on_the_way_is_taken_as_it_comes(client: Client, store: Store, worker: SlowWorker) -> None:
    deploy(store, schedule(timing=NINE))
    steps = client.backfill("report", FIRST, LAST, max_parallel=1)
    next(steps)
    deploy(store, schedule(timing=NINE, kwargs={"a": 1}))
    list(steps)
    assert ticks_run(worker) == SECONDS


def test_a_schedule_that_is_removed_on_the_way_ends_it(client: Client, store: Store) -> None:
    deploy(store, schedule(timing=NINE))
    steps = client.backfill("report", FIRST, LAST, max_parallel=2)
    next(steps)
    store.client.delete("beat:announcements")
    client.remove("report")
    with pytest.raises(UnknownSchedule):
        next(steps)


def test_requests_lapse_after_a_month(client: Client, store: Store) -> None:
    deploy(store, schedule(timing=NINE))
    step = next(client.backfill("report", FIRST, LAST))
    lasts = store.client.ttl(f"beat:request:{step.job_id}")
    assert 29 * 86_400 < lasts <= 30 * 86_400
    wait_until(lambda: queued(store) == [step.job_id])
