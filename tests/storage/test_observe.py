"""Looking at runs: handed out is what there is something to decide about, with all that Redis knows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from beat.jobs.observation import Sighting
from beat.storage.runs import Runs
from tests.support.builders import QUEUE, Calls, changed, everything, restricted, second
from tests.support.facts import wait_until
from tests.support.hand_made import (
    ENDED,
    GONE,
    JOB,
    STARTED,
    closed_runs,
    not_yet,
    open_runs,
    put_closed,
    put_job,
    put_result,
    put_run,
    raised,
    record,
    records,
    returned,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from beat.storage.runs import Observed
    from beat.storage.store import Store

INTERVAL = 900
TAKEN, SCHEDULED = f"{QUEUE}:intermediate", "rq:scheduled:default"
FIVE = [f"job-{n}" for n in range(5)]
"""Of started runs one in five is looked at closely, another one each second."""


def look(store: Store, **options: Any) -> Observed:
    return Runs(store).observe(**{"limit": 500, "interval": INTERVAL, "closed_limit": 200, **options})


def handed(store: Store, **options: Any) -> list[str]:
    return [each.job for each in look(store, **options).sightings]


def spoil(store: Store, key: str) -> None:
    store.client.delete(key)
    store.client.set(key, "garbage")


# --- open runs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["queued", "scheduled", "deferred", "created"])
def test_a_run_that_waits_is_looked_at_again_later(status: str, store: Store) -> None:
    put_run(store, JOB, status)
    seen = look(store)
    assert (seen.looked, seen.sightings) == (1, [])
    assert open_runs(store) == {JOB: seen.now + INTERVAL}
    assert look(store).looked == 0, "it is not time to look again"


@pytest.mark.parametrize("status", ["finished", "failed", "stopped", "canceled", "no word of rq's"])
def test_a_run_that_has_ended_is_handed_out(status: str, store: Store) -> None:
    put_run(store, JOB, status)
    (seen,) = look(store).sightings
    assert (seen.job, seen.where, seen.status, seen.record) == (JOB, "open", status, record())


def test_all_that_rq_keeps_of_a_run_is_handed_out(store: Store) -> None:
    put_run(store, JOB, "failed", retries_left=2, number_of_retries=1, timeout=5, success_callback_timeout=60)
    put_result(store, JOB, type="1", return_value="of an earlier attempt")
    newest = put_result(
        store, JOB, type="2", worker_name="w2", exc_string=raised("ValueError: ½"), return_value=returned("½"),
        execution_started_at="1794819600.01", execution_ended_at="1794819603.12",
    )  # fmt: skip
    assert look(store).sightings == [
        Sighting(
            job=JOB, where="open", record=record(), status="failed", started_at=STARTED, ended_at=ENDED,
            worker_name="w1", origin="default", retries_left="2", number_of_retries="1", timeout="5",
            success_callback_timeout="60", failure_callback_timeout="", alive="", placed="",
            result_type="2", result_id=newest, result_worker="w2", result_started="1794819600.01",
            result_ended="1794819603.12", value=b"", error=raised("ValueError: ½"),
        )
    ]  # fmt: skip


def test_of_a_run_that_rq_has_forgotten_only_the_record_is_handed_out(store: Store) -> None:
    kept = put_run(store, JOB, GONE)
    put_result(store, JOB, type="1")
    assert look(store).sightings == [Sighting(JOB, "open", kept, *("",) * 17, b"", b"")]


def test_a_job_that_is_no_hash_is_none(store: Store) -> None:
    kept = put_run(store, JOB)
    spoil(store, f"rq:job:{JOB}")
    assert look(store).sightings == [Sighting(JOB, "open", kept, *("",) * 17, b"", b"")]


def test_results_that_are_no_stream_are_none(store: Store) -> None:
    put_run(store, JOB)
    spoil(store, f"rq:results:{JOB}")
    (seen,) = look(store).sightings
    assert (seen.status, seen.result_id, seen.result_type, seen.value, seen.error) == ("finished", "", "", b"", b"")


@pytest.mark.parametrize(
    ("status", "field", "most", "found"),
    [("finished", "return_value", 90_000, "value"), ("failed", "exc_string", 300_000, "error")],
)
def test_what_is_too_long_stays_where_it_is(status: str, field: str, most: int, found: str, store: Store) -> None:
    put_run(store, "just", status)
    put_run(store, "more", status)
    put_result(store, "just", **{field: "x" * most})
    put_result(store, "more", **{field: "x" * (most + 1)})
    seen = {each.job: getattr(each, found) for each in look(store).sightings}
    assert {job: len(value) for job, value in seen.items()} == {"just": most, "more": 0}


@pytest.mark.parametrize("status", ["finished", "failed", GONE])
def test_a_run_of_which_nobody_knows_what_it_was_is_dropped(status: str | None, store: Store) -> None:
    put_run(store, JOB, status)
    put_run(store, "other", status)
    store.client.hdel(store.keys.records, JOB)
    assert handed(store) == ["other"]
    assert list(open_runs(store)) == ["other"]


def test_a_run_is_handed_out_until_it_is_closed(store: Store) -> None:
    put_run(store, JOB)
    seen = look(store, interval=0)
    assert [each.job for each in seen.sightings] == [JOB]
    assert open_runs(store) == {JOB: seen.now}
    assert handed(store) == [JOB]


def test_looking_writes_nothing_but_when_to_look_again(store: Store) -> None:
    put_run(store, JOB)
    put_run(store, "waits", "queued")
    put_run(store, "gone", GONE)
    put_closed(store, "old", "failed")
    put_result(store, JOB)
    before = everything(store)
    look(store)
    assert changed(before, store) == {"beat:open"}


def test_the_earliest_are_looked_at_first_and_no_more_than_asked_for(store: Store) -> None:
    for n in range(7):
        put_run(store, f"job-{n}")
        store.client.zadd(store.keys.open, {f"job-{n}": 100 - n})
    assert handed(store, limit=3) == ["job-6", "job-5", "job-4"]
    assert handed(store, limit=3) == ["job-3", "job-2", "job-1"]
    assert handed(store, limit=3) == ["job-0"]
    assert handed(store, limit=3) == []


def test_what_is_not_to_be_looked_at_yet_is_not(store: Store) -> None:
    put_run(store, JOB)
    store.client.zadd(store.keys.open, {JOB: look(store).now + 5_000})
    assert look(store).looked == 0


@pytest.mark.parametrize(("backlog", "wait"), [(10, 900), (4500, 900), (5000, 1000), (20_000, 4000)])
def test_the_longer_the_backlog_the_less_often_each_of_it_is_looked_at(backlog: int, wait: int, store: Store) -> None:
    put_run(store, JOB, "queued")
    not_yet(store, (f"other-{n}" for n in range(backlog - 1)))
    seen = look(store)
    assert open_runs(store)[JOB] == seen.now + wait


def test_a_run_that_ends_does_not_wait_for_the_backlog(store: Store) -> None:
    """What has started is looked at as often as ever: only who waits in the queue waits for a look."""
    put_run(store, JOB, "started")
    not_yet(store, (f"other-{n}" for n in range(20_000)))
    seen = look(store)
    assert open_runs(store)[JOB] == seen.now + INTERVAL


def test_a_thousand_runs_are_looked_at_in_one_step(store: Store) -> None:
    for n in range(1000):
        put_run(store, f"job-{n}", "queued" if n % 2 else "finished")
    seen = look(store, limit=1000)
    assert (seen.looked, len(seen.sightings)) == (1000, 500)


@pytest.mark.parametrize("status", ["queued", "started", "finished"])
def test_ids_that_nobody_would_give_are_no_trouble(status: str, store: Store) -> None:
    for job in ("", "é", "a b", '"', "%s", "x" * 1000):
        put_run(store, job, status)
    store.client.zadd(store.keys.open, {b"\xff\xfe": 0})
    look(store)


# --- signs of life ---------------------------------------------------------------------------------------------------


def put_five(store: Store, status: str = "started", **fields: Any) -> None:
    for job in FIVE:
        put_run(store, job, status, **fields)


def live(store: Store, job: str, *executions: str) -> None:
    """RQ's executions of a job: those in capitals show life."""
    store.client.zadd(f"rq:executions:{job}", dict.fromkeys(executions, 1))
    for each in executions:
        if each.isupper():
            store.client.hset(f"rq:execution:{job}:{each}", "id", each)


def test_of_the_started_each_is_looked_at_closely_once_in_five_seconds(store: Store) -> None:
    put_five(store)
    (one,) = look(store).sightings
    assert (one.status, one.alive) == ("started", "0")
    assert len(open_runs(store)) == 5


def test_of_many_each_is_looked_at_closely_once_in_ten(store: Store) -> None:
    for n in range(10):
        put_run(store, f"job-{n}", "started")
    not_yet(store, (f"later-{n}" for n in range(10)))
    assert len(look(store, limit=20, interval=0).sightings) == 2
    assert len(look(store, limit=19, interval=0).sightings) == 1


def test_each_of_the_started_has_its_turn(store: Store) -> None:
    put_five(store)
    seen: set[str] = set()

    def all_seen() -> bool:
        seen.update(handed(store, interval=0))
        return len(seen) == 5

    wait_until(all_seen)


@pytest.mark.parametrize(
    ("executions", "alive"),
    [(("A",), True), (("a",), False), (("a", "B"), True), (("a", "b"), False), ((), False)],
    ids=["alive", "dead", "one of two", "both dead", "none"],
)
def test_a_run_is_alive_while_one_of_its_executions_is(
    executions: tuple[str, ...],
    alive: bool,  # noqa: FBT001 (a case)
    store: Store,
) -> None:
    put_five(store)
    for job in FIVE if executions else ():
        live(store, job, *executions)
    seen = look(store).sightings
    assert [each.alive for each in seen] == ([] if alive else ["0"])


def test_executions_that_are_no_set_show_no_life(store: Store) -> None:
    put_five(store)
    for job in FIVE:
        spoil(store, f"rq:executions:{job}")
    assert [each.alive for each in look(store).sightings] == ["0"]


def test_a_run_that_was_missing_and_shows_life_is_handed_out(store: Store) -> None:
    put_five(store, record=record(missing=5, missing_as="started"))
    for job in FIVE:
        live(store, job, "A")
    assert [each.alive for each in look(store).sightings] == ["1"]


@pytest.mark.parametrize(
    ("worker", "found"),
    [
        ({"state": "busy"}, []), ({"state": "idle"}, ["left"]), ({}, []), (None, []),
        ({"state": "idle", "birth": "2026-11-16T09:00:01.000000Z"}, ["0"]),
    ],
    ids=["busy", "at nothing", "in no state", "without a hash", "at nothing, and younger than the run"],
)  # fmt: skip
def test_a_worker_that_listens_is_alive_unless_it_is_at_nothing(
    worker: dict[str, str] | None, found: list[str], store: Store
) -> None:
    """One that runs jobs itself sends no heartbeats meanwhile."""
    put_five(store, worker_name="w9", started_at=STARTED)
    if worker is not None:
        fields: dict[Any, Any] = {"birth": "2026-11-16T08:00:00.000000Z", **worker}
        store.client.hset("rq:worker:w9", mapping=fields)
    client: Any = store.client
    with client.pubsub() as listening:
        listening.subscribe("rq:pubsub:w9")
        listening.get_message(timeout=5)
        assert [each.alive for each in look(store).sightings] == found
    store.client.delete("rq:worker:w9")


@pytest.mark.parametrize("name", ["", "w9"])
def test_a_worker_that_does_not_listen_shows_no_life(name: str, store: Store) -> None:
    put_five(store, worker_name=name)
    store.client.hset("rq:worker:w9", "state", "busy")
    assert [each.alive for each in look(store).sightings] == ["0"]


def test_who_is_cancelled_while_it_runs_is_not_handed_out_before_it_ends(store: Store) -> None:
    put_run(store, JOB, "canceled")
    live(store, JOB, "A")
    seen = look(store, interval=0)
    assert (seen.looked, seen.sightings) == (1, [])
    store.client.delete(f"rq:execution:{JOB}:A")
    (one,) = look(store).sightings
    assert (one.status, one.alive) == ("canceled", "0")


# --- closed runs -----------------------------------------------------------------------------------------------------


def test_a_closed_run_that_looks_as_it_did_is_not_handed_out(store: Store) -> None:
    put_closed(store, JOB, "failed")
    seen = look(store)
    assert seen.sightings == []
    assert closed_runs(store) == {JOB: 1}


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        ("queued", {}), ("started", {}), ("finished", {}), ("failed", {"ended_at": "2026-11-16T09:05:00.000000Z"}),
        ("failed", {"ended_at": ""}),
    ],
)  # fmt: skip
def test_a_closed_run_that_looks_otherwise_is_handed_out(status: str, fields: dict[str, Any], store: Store) -> None:
    kept = put_closed(store, JOB, status, **fields)
    (seen,) = look(store).sightings
    assert (seen.job, seen.where, seen.record, seen.status) == (JOB, "closed", kept, status)
    assert seen.ended_at == fields.get("ended_at", ENDED if status in {"finished", "failed"} else "")


def test_a_closed_run_of_a_lost_worker_is_watched_for_its_return(store: Store) -> None:
    put_closed(store, JOB, "started", record=record(outcome="lost", sign="started||"))
    assert handed(store) == []
    put_job(store, JOB, "finished")
    assert handed(store) == [JOB]


def test_a_closed_run_that_rq_has_forgotten_is_forgotten(store: Store) -> None:
    put_closed(store, JOB, GONE)
    put_closed(store, "other", "failed")
    put_closed(store, "unknown", "failed")
    store.client.hdel(store.keys.records, "unknown")
    assert handed(store) == []
    assert list(closed_runs(store)) == list(records(store)) == ["other"]


def test_the_closed_are_looked_at_page_by_page_whoever_looks(store: Store) -> None:
    """Which page it is says Redis' clock, so that many beats together are as quick as one."""
    for n in range(10):
        put_closed(store, f"job-{n}", "queued", since=n)
    pages = (("job-9", "job-8", "job-7", "job-6"), ("job-5", "job-4", "job-3", "job-2"), ("job-1", "job-0"))
    seen: set[tuple[str, ...]] = set()

    def all_of_them() -> bool:
        seen.add(tuple(each.job for each in look(store, interval=7, closed_limit=4).sightings))
        return seen >= set(pages)

    wait_until(all_of_them)
    assert seen == set(pages)


def test_who_does_not_ask_for_the_closed_is_not_told_of_them(store: Store) -> None:
    put_closed(store, JOB, "queued")
    seen = look(store, closed_limit=0)
    assert seen.sightings == []


# --- search ----------------------------------------------------------------------------------------------------------


def search(store: Store, *found: str) -> list[tuple[str, str]]:
    seen = Runs(store).observe([(job, QUEUE, SCHEDULED, "0") for job in found or [JOB]])
    assert seen.looked == 0
    return [(each.job, each.placed) for each in seen.sightings]


def moved(store: Store) -> None:
    """By `Queue("slow").enqueue_job(job)`."""
    store.client.hset(f"rq:job:{JOB}", "origin", "slow")
    store.client.rpush("rq:queue:slow", "other", JOB)


PLACES: dict[str, tuple[Callable[[Store], object], str]] = {
    "in its queue": (lambda store: store.client.rpush(QUEUE, "other", JOB), "1"),
    "in another queue": (moved, "1"),
    "taken by a worker that never started it": (lambda store: store.client.rpush(TAKEN, "other", JOB), "0"),
    "waiting for a retry": (lambda store: store.client.zadd(SCHEDULED, {"other": 1, JOB: 2}), "1"),
    "nowhere": (lambda store: store.client.rpush(QUEUE, "other"), "0"),
    "nowhere at all": (lambda _: None, "0"),
    "nowhere, for the queue is none": (lambda store: spoil(store, QUEUE), "0"),
    "nowhere, for what waits is none": (lambda store: spoil(store, SCHEDULED), "0"),
}


@pytest.mark.parametrize("status", ["queued", "scheduled"])
@pytest.mark.parametrize(("place", "placed"), PLACES.values(), ids=PLACES)
def test_a_run_that_waits_is_looked_for(
    place: Callable[[Store], object], placed: str, status: str, store: Store
) -> None:
    put_run(store, JOB, status)
    place(store)
    before = everything(store)
    assert search(store) == [(JOB, placed)]
    assert not changed(before, store)


@pytest.mark.parametrize("status", ["started", "finished", "failed", "deferred", GONE])
def test_what_does_not_wait_any_more_is_not_looked_for(status: str | None, store: Store) -> None:
    put_run(store, JOB, status)
    assert search(store) == []


def test_what_nobody_remembers_is_not_looked_for(store: Store) -> None:
    put_run(store, JOB, "queued")
    store.client.hdel(store.keys.records, JOB)
    put_run(store, "other", "queued")
    assert search(store, JOB, "other") == [("other", "0")]


def test_only_what_waits_and_is_in_no_list_is_looked_for(store: Store) -> None:
    """The lists are read once, and only who is in none of them is asked for one by one."""
    for job in ("queued", "missing", "young", "elsewhere"):
        put_run(store, job, "queued")
    put_run(store, "young", "queued", record=record(enqueued="2026-11-16T09:59:59Z"))
    put_run(store, "elsewhere", "queued", record=record(queue="rq:queue:other"))
    store.client.hset(store.keys.records, "garbage", "garbage")
    store.client.zadd(store.keys.open, {"garbage": 0, "unknown": 0})
    store.client.rpush(QUEUE, *(f"x{n}" for n in range(10_050)), "queued")
    put_run(store, "back", "queued", record=record(missing=1, missing_as="queued"))
    store.client.rpush(QUEUE, "back")
    found = [each for page in Runs(store).search(before="2026-11-16T09:30:00Z", now="2027") for each in page]
    assert sorted(found) == [
        ("back", QUEUE, SCHEDULED, "1"),
        ("elsewhere", "rq:queue:other", "rq:scheduled:other", "0"),
        ("missing", QUEUE, SCHEDULED, "0"),
    ]


def test_of_a_long_queue_what_was_read_in_pages_is_believed(store: Store) -> None:
    """Looking through it would keep Redis for too long."""
    put_run(store, JOB, "queued")
    for _ in range(11):
        store.client.rpush(QUEUE, *(f"x{n}" for n in range(10_000)))
    store.client.rpush(QUEUE, JOB)
    for seen in "10":
        (one,) = Runs(store).observe([(JOB, QUEUE, SCHEDULED, seen)]).sightings
        assert one.placed == seen


def test_a_queue_that_is_no_list_holds_nobody(store: Store) -> None:
    put_run(store, JOB, "queued")
    spoil(store, QUEUE)
    assert list(Runs(store).search(before="2027", now="2027")) == [[(JOB, QUEUE, SCHEDULED, "0")]]


def test_many_that_are_missing_are_looked_for_in_pages(store: Store) -> None:
    for n in range(1100):
        put_run(store, f"job-{n}", "queued")
    assert [len(page) for page in Runs(store).search(before="2027", now="2027")] == [500, 500, 100]


# --- keys that are not what they should be ---------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["beat:open", "beat:closed", "beat:records"])
def test_a_key_that_is_not_what_it_should_be_hides_what_it_holds_and_nothing_breaks(key: str, store: Store) -> None:
    put_run(store, "open")
    put_closed(store, "closed", "queued")
    spoil(store, key)
    before = everything(store)
    expected = {"beat:open": ["closed"], "beat:closed": ["open"], "beat:records": []}
    assert handed(store) == expected[key]
    assert not changed(before, store) - {"beat:open"}
    store.client.delete(key)


def test_where_nothing_was_fired_there_is_nothing_to_see(store: Store) -> None:
    seen = look(store)
    assert (seen.looked, seen.sightings) == (0, [])
    assert not everything(store)


# --- how much it costs -----------------------------------------------------------------------------------------------


def test_many_who_wait_cost_a_few_commands(store: Store) -> None:
    for n in range(500):
        put_run(store, f"job-{n}", "queued")
    calls = Calls(store)
    assert look(store).looked == 500
    assert sum(calls.count().values()) < 10


def test_the_closed_cost_a_command_each(store: Store) -> None:
    for n in range(200):
        put_closed(store, f"job-{n}", "failed")
    calls = Calls(store)
    assert handed(store) == []
    assert sum(calls.count().values()) < 210


FEW = {"all but some keys": [], "no sorting": ["-sort_ro"], "as the manual says": ["-@dangerous", "+info"]}


@pytest.mark.parametrize("rules", FEW.values(), ids=FEW)
def test_for_who_may_not_read_any_key_who_waits_costs_one_command(rules: list[str], store: Store) -> None:
    for n in range(500):
        put_run(store, f"job-{n}", "queued")
    with restricted(store, *rules) as other:
        calls = Calls(store)
        assert look(other).looked == 500
        counted = calls.count()
    assert counted["hget"] == 500
    assert sum(counted.values()) < 513


@pytest.mark.parametrize("rules", FEW.values(), ids=FEW)
@pytest.mark.parametrize("backlog", [1, 20_000])
def test_who_may_not_read_any_key_sees_the_same(rules: list[str], backlog: int, store: Store) -> None:
    for status in ("queued", "scheduled", "finished", "failed", "canceled", "no word of rq's", GONE):
        put_run(store, f"job-{status}", status, **{} if status is GONE else {"enqueued_at": "2020-01-01T00:00:00Z"})
    put_run(store, "strange")
    spoil(store, "rq:job:strange")
    not_yet(store, (f"other-{n}" for n in range(backlog)))
    admin: Any = store.client
    admin.execute_command("ACL", "LOG", "RESET")
    seen, waits = [], []
    with restricted(store, *rules) as other:
        for each in (store, other):
            found = look(each, limit=50)
            seen.append(found.sightings)
            waits.append({job: at - found.now for job, at in open_runs(store).items() if not job.startswith("other")})
            store.client.zadd(store.keys.open, dict.fromkeys(waits[-1], 0))
    assert seen[0] == seen[1]
    assert len(seen[0]) == 6
    assert waits[0] == waits[1]
    assert admin.execute_command("ACL", "LOG") == [], "nobody is told of an attack"


# --- signs of life ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("current", "handed_out"), [(None, []), (JOB, []), ("another", ["0"])])
def test_a_worker_that_is_busy_with_another_job_is_no_sign_of_life(
    current: str | None, handed_out: list[str], store: Store
) -> None:
    put_run(store, JOB, "canceled", worker_name="w9")  # its life is asked for with every look
    store.client.hset("rq:worker:w9", "state", "busy")
    if current:
        store.client.hset("rq:worker:w9", "current_job", current)
    with store.client.pubsub() as listener:  # type: ignore[no-untyped-call]
        listener.subscribe("rq:pubsub:w9")
        wait_until(lambda: dict(store.client.pubsub_numsub("rq:pubsub:w9"))[b"rq:pubsub:w9"] == 1)
        assert [each.alive for each in look(store, interval=0).sightings] == handed_out


@pytest.mark.parametrize(("ago", "handed_out"), [(0, []), (50, []), (70, ["0"]), (-3600, [])])
def test_an_execution_counts_for_as_long_as_its_worker_sends_heartbeats(
    ago: int, handed_out: list[str], store: Store
) -> None:
    """RQ keeps that of a worker without work-horses until the time-out of its job."""
    put_run(store, JOB, "canceled")
    live(store, JOB, "A")
    store.client.hset(f"rq:execution:{JOB}:A", "last_heartbeat", second(store) - ago)
    assert [each.alive for each in look(store, interval=0).sightings] == handed_out


def test_a_page_carries_no_more_than_about_a_megabyte(store: Store) -> None:
    for n in range(20):
        put_run(store, f"job-{n}", "failed")
        put_result(store, f"job-{n}", exc_string="x" * 200_000)
    seen = look(store, limit=10, interval=0)
    assert 1_000_000 <= sum(len(each.error) for each in seen.sightings) <= 1_300_000
    assert seen.looked == 10, "as if the page were full: the next one follows at once"
    assert len(look(store, limit=10, interval=0).sightings) > 0
