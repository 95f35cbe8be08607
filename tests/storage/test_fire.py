"""Firing: a tick gets one verdict, in one step or not at all, and a bad item hurts no other."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis as RedisClient
from redis.exceptions import ResponseError

from beat.jobs import job_template
from beat.storage import store as store_module
from beat.storage.batches import counted
from beat.storage.messages import Item, Reply
from beat.storage.store import Store
from beat.timing import clock
from tests.support.builders import (
    LONG,
    OTHER,
    QUEUE,
    REV,
    TOKEN,
    Calls,
    changed,
    claim,
    everything,
    hash_of,
    put,
    put_and_claim,
    queued,
    registration,
    restricted,
    retried,
    score,
    second,
    shows,
    special,
    text,
    verdict,
)
from tests.support.facts import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable


SCHEDULE, TEMPLATE, LOCK = "beat:schedule:report", "beat:template:report", "beat:lock:report"
OK = Reply("OK")
SPOILED = "rq:queue:spoiled"


@pytest.fixture(autouse=True, params=["few words", "all words"])
def words(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain tick has a way of its own through the script: whatever is true there is true of the other."""
    if request.param == "all words":
        monkeypatch.setattr(store_module, "counted", lambda items: [(len(item), *item) for item in items])


def fire(store: Store, *items: Item, token: str = TOKEN) -> list[Reply]:
    return [*store.fire(items, token=token).replies]


def codes(store: Store, *items: Item) -> list[str]:
    return [reply.code for reply in fire(store, *items)]


def spoil(store: Store, key: str, *, ttl: int = LONG) -> None:
    """Makes the key something that nobody expects there: a stream."""
    store.client.delete(key)
    store.client.xadd(key, {"garbage": "1"})
    store.client.pexpire(key, ttl)


# --- done ------------------------------------------------------------------------------------------------------------


@shows("fire", "OK")
def test_a_tick_becomes_a_job_and_the_schedule_moves_on(store: Store) -> None:
    at = put_and_claim(store)
    before, was = everything(store), hash_of(store)
    decided = store.fire([verdict(at)], token=TOKEN)
    assert decided.replies == (OK,)
    job = f"beat_report_{at}"
    assert queued(store) == [job]
    assert store.client.smembers(job_template.QUEUES_KEY) == {QUEUE.encode()}
    is_now = hash_of(store)
    new = {name: value for name, value in is_now.items() if was.get(name) != value}
    entered = new.pop("last_enqueued")
    assert new == {
        "last_run": text(at),
        "next_run": text(at + 60),
        "due_at": text(at + 60),
        "run_count": "1",
        "last_job": job,
        "kept": "1",
    }
    assert was.keys() <= is_now.keys()
    assert clock.to_ms(clock.read(entered)) == decided.now
    assert score(store) == (at + 60) * 1000
    assert changed(before, store) == {
        f"rq:job:{job}", QUEUE, job_template.QUEUES_KEY, SCHEDULE, "beat:due", LOCK,
        "beat:runs:report", "beat:events", "beat:open", "beat:records",
    }  # fmt: skip
    assert not store.client.exists(LOCK)


def test_the_job_is_its_template_the_times_and_the_run(store: Store) -> None:
    at = put_and_claim(store)
    now = store.fire([item := verdict(at)], token=TOKEN).now
    job: Any = store.client.hgetall(f"rq:job:{item.job}")
    template: Any = store.client.hgetall(TEMPLATE)
    assert job.pop(b"meta") == template.pop(b"meta") + item.run
    created = job.pop(b"created_at")
    assert created == job.pop(b"enqueued_at")
    entered = datetime.strptime(created.decode() + "+0000", "%Y-%m-%dT%H:%M:%S.%fZ%z")
    assert clock.to_ms(entered) == now
    assert job == template
    assert store.client.ttl(f"rq:job:{item.job}") == -1


def test_a_plain_tick_leaves_what_the_same_tick_would_with_all_words(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = second(store) - 10
    store.register([registration(each, at) for each in ("tick_a", "tick_b")], beat="tests")
    assert len(claim(store).claims) == 2
    monkeypatch.setattr(store_module, "counted", lambda items: [*counted(items[:1]), (len(items[1]), *items[1])])
    assert fire(store, verdict(at, "tick_a"), verdict(at, "tick_b")) == [OK, OK]

    def left(each: str) -> str:
        client: Any = store.client
        found = [
            sorted(client.hgetall(f"beat:schedule:{each}").items()),
            sorted(client.hgetall(f"rq:job:beat_{each}_{at}").items()),
            client.lrange(f"beat:runs:{each}", 0, -1),
            client.hget("beat:records", f"beat_{each}_{at}"),
            client.zscore("beat:open", f"beat_{each}_{at}"),
            client.zscore("beat:due", each),
            [fields for _, fields in client.xrange("beat:events") if fields[b"schedule"] == each.encode()],
        ]
        return repr(found).replace(each, "it")

    assert left("tick_a") == left("tick_b")


@pytest.mark.parametrize(
    "garbage", ["", "8", "r1", "r1 ", "r1 xy", "r1 80 7d", "r1 80057D9", "r1 é", "80057d94", "r10 7d"]
)
def test_a_meta_that_somebody_garbled_is_read_from_the_template(garbage: str, store: Store) -> None:
    at = put_and_claim(store)
    store.client.hset(SCHEDULE, "job_meta", garbage)
    assert fire(store, item := verdict(at)) == [OK]
    template: Any = store.client.hget(TEMPLATE, "meta")
    assert store.client.hget(f"rq:job:{item.job}", "meta") == template + item.run


@pytest.mark.parametrize("field", ["ttl", "meta"])
def test_what_an_older_beat_made_of_the_template_counts(field: str, store: Store) -> None:
    """It knows nothing of the meta in the schedule's hash, and leaves it behind with another rev."""
    at = put_and_claim(store)
    store.client.hset(SCHEDULE, "rev", "r2")
    store.client.hset(TEMPLATE, field, 500)
    assert fire(store, item := verdict(at, rev="r2")) == [OK]
    assert (store.client.ttl(f"rq:job:{item.job}") > 0) == (field == "ttl")
    template: Any = store.client.hget(TEMPLATE, "meta")
    assert store.client.hget(f"rq:job:{item.job}", "meta") == template + item.run


def test_plain_ticks_and_others_are_enqueued_in_the_order_of_the_page(store: Store) -> None:
    ats = {each: put_and_claim(store, each) for each in ("a", "b", "c", "d", "e")}
    for each in ("b", "d"):
        special(store, each)
    store.client.hset("beat:template:b", "ttl", 500)
    of_others: dict[str, dict[str, Any]] = {"c": {"max_runs": 5}, "d": {"queue": job_template.queue_key("other")}}
    assert fire(store, *(verdict(at, each, **of_others.get(each, {})) for each, at in ats.items())) == [OK] * 5
    assert queued(store) == [f"beat_{each}_{ats[each]}" for each in ("a", "b", "c", "e")]
    assert store.client.lrange("rq:queue:other", 0, -1) == [f"beat_d_{ats['d']}".encode()]
    assert store.client.hget(f"rq:job:beat_d_{ats['d']}", "origin") == b"other"
    assert store.client.ttl(f"rq:job:beat_b_{ats['b']}") > 0


@pytest.mark.parametrize("job", ['beat"_report_1', "beat_report_\\1", "beat\n_report", "report", "by chance"])
def test_whatever_a_job_is_called_its_line_is_json(job: str, store: Store) -> None:
    at = put_and_claim(store)
    assert fire(store, verdict(at, job=job)) == [OK]
    line: Any = store.client.lindex("beat:runs:report", 0)
    record: Any = store.client.hget("beat:records", job)
    assert json.loads(line)["job"] == job
    assert json.loads(record)["schedule"] == "report"
    assert queued(store) == [job]


def test_a_job_with_a_ttl_expires_in_the_queue(store: Store) -> None:
    at = put_and_claim(store)
    special(store)
    store.client.hset(TEMPLATE, "ttl", 500)
    assert fire(store, item := verdict(at)) == [OK]
    assert 490 < store.client.ttl(f"rq:job:{item.job}") <= 500


@pytest.mark.parametrize(
    ("key", "field", "noted"),
    [
        (TEMPLATE, "retries_left", "retries"),
        (SCHEDULE, "result_ttl", "result_ttl"),
        (SCHEDULE, "failure_ttl", "failure_ttl"),
    ],
)
def test_what_is_to_be_known_when_the_run_ends_is_noted(key: str, field: str, noted: str, store: Store) -> None:
    at = put_and_claim(store)
    special(store)
    store.client.hset(key, field, 3)
    assert fire(store, verdict(at)) == [OK]
    record: Any = store.client.hget("beat:records", f"beat_report_{at}")
    assert json.loads(record)[noted] == 3


def test_a_tick_that_an_operator_has_put_off_since_it_was_claimed_does_not_fire(store: Store) -> None:
    at = put_and_claim(store)
    store.client.hset(SCHEDULE, mapping={"due_at": text(at + 1000), "moved": text(at)})
    assert fire(store, verdict(at)) == [Reply("CHANGED")]
    assert queued(store) == []


@pytest.mark.parametrize(("at_end", "order"), [("back", "another ours"), ("front", "ours another")])
def test_a_job_goes_to_the_end_of_the_queue_that_was_asked_for(at_end: str, order: str, store: Store) -> None:
    at = put_and_claim(store)
    store.client.rpush(QUEUE, "another")
    assert fire(store, verdict(at, at=at_end, job="ours")) == [OK]
    assert queued(store) == order.split()


def test_jobs_of_one_page_are_queued_as_if_one_after_the_other(store: Store) -> None:
    ends = {"a": "back", "b": "front", "c": "back", "d": "front"}
    store.client.rpush(QUEUE, "another")
    items = [verdict(put_and_claim(store, each), each, at=end, job=each) for each, end in ends.items()]
    assert fire(store, *items) == [OK] * 4
    assert queued(store) == ["d", "b", "another", "a", "c"]


def test_the_hash_of_an_old_job_with_that_id_is_replaced_whole(store: Store) -> None:
    at = put_and_claim(store)
    store.client.hset(f"rq:job:beat_report_{at}", mapping={"result": "old", "data": "old"})
    store.client.expire(f"rq:job:beat_report_{at}", 5)
    assert fire(store, verdict(at)) == [OK]
    assert not store.client.hexists(f"rq:job:beat_report_{at}", "result")
    assert store.client.ttl(f"rq:job:beat_report_{at}") == -1


def test_counters_that_are_missing_count_from_nothing(store: Store) -> None:
    at = put_and_claim(store)
    store.client.hdel(SCHEDULE, "run_count", "skip_count")
    skipped = verdict(at, kind="skip", number=4)
    assert fire(store, skipped, verdict(at + 60, due=0)) == [OK, OK]
    assert (hash_of(store)["run_count"], hash_of(store)["skip_count"]) == ("1", "4")


def test_what_went_wrong_before_is_written_with_the_verdict(store: Store) -> None:
    at = put_and_claim(store)
    assert fire(store, verdict(at, error="Redis was away")) == [OK]
    assert hash_of(store)["last_error"] == "Redis was away"


def test_the_last_tick_of_all_finishes_the_schedule(store: Store) -> None:
    at = put_and_claim(store)
    assert fire(store, verdict(at, following=None)) == [OK]
    assert queued(store) == [f"beat_report_{at}"]
    state = hash_of(store)
    assert (state["state"], state["last_run"], state["run_count"]) == ("finished", text(at), "1")
    assert not {"next_run", "due_at"} & state.keys()
    assert score(store) is None
    assert not store.client.exists(LOCK)


def test_due_at_keeps_the_milliseconds(store: Store) -> None:
    at = put_and_claim(store)
    assert fire(store, verdict(at, next_due=(at + 60) * 1000 + 250)) == [OK]
    assert hash_of(store)["due_at"] == text(at + 60).replace("Z", ".250Z")
    assert score(store) == (at + 60) * 1000 + 250


def test_a_page_of_a_hundred_is_fired_in_one_step(store: Store) -> None:
    at, ids = second(store) - 10, [f"s{n:02}" for n in range(100)]
    store.register([registration(each, at) for each in ids], beat="tests")
    assert len(claim(store).claims) == 100
    assert fire(store, *(verdict(at, each, queue=f"rq:queue:q{n % 3}") for n, each in enumerate(ids))) == [OK] * 100
    for n in range(3):
        assert queued(store, f"rq:queue:q{n}") == [f"beat_{each}_{at}" for each in ids[n::3]]
    assert store.client.smembers(job_template.QUEUES_KEY) == {f"rq:queue:q{n}".encode() for n in range(3)}
    assert store.client.zrange("beat:due", 0, -1, withscores=True) == [
        (each.encode(), (at + 60) * 1000) for each in ids
    ]
    assert not list(store.client.scan_iter("beat:lock:*"))


@pytest.mark.parametrize("full", [False, True], ids=["the first", "with a full ledger"])
def test_a_plain_fire_is_at_most_25_calls(full: bool, store: Store) -> None:  # noqa: FBT001 (a case)
    at = put_and_claim(store)
    if full:  # each verdict with its outcome, and the outcome of the verdict that went last
        pair = ['{"type":"succeeded"}', '{"type":"enqueued"}']
        store.client.rpush("beat:runs:report", *pair * 1000, pair[0])
        store.client.hset(SCHEDULE, "kept", 1000)
    calls = Calls(store)
    assert fire(store, verdict(at)) == [OK]
    counted = calls.count()
    assert {"copy": 1, "rpush": 1, "lpush": 1, "xadd": 1}.items() <= counted.items()
    assert counted.get("rpop", 0) == (2 if full else 0)
    assert sum(counted.values()) <= 25


def test_an_index_of_the_wrong_type_does_not_keep_a_tick_from_firing(store: Store) -> None:
    at = put_and_claim(store)
    spoil(store, "beat:due")
    before = everything(store)
    assert fire(store, verdict(at)) == [OK]
    assert queued(store) == [f"beat_report_{at}"]
    assert "beat:due" not in changed(before, store)


# --- skip, release, quarantine ---------------------------------------------------------------------------------------


def test_skipped_ticks_are_counted_and_make_no_job(store: Store) -> None:
    at = put_and_claim(store)
    before = everything(store)
    assert fire(store, verdict(at, kind="skip", number=7, following=420)) == [OK]
    state = hash_of(store)
    assert (state["skip_count"], state["run_count"]) == ("7", "0")
    assert (state["next_run"], state["due_at"]) == (text(at + 420), text(at + 420))
    assert not {"last_run", "last_job", "last_enqueued"} & state.keys()
    assert score(store) == (at + 420) * 1000
    assert changed(before, store) == {SCHEDULE, "beat:due", LOCK, "beat:runs:report", "beat:events"}


def test_misfired_ticks_are_skipped_and_the_latest_fires_in_one_chain(store: Store) -> None:
    at = put_and_claim(store, ago=600)
    assert fire(store, verdict(at, kind="skip", number=9, following=540), verdict(at + 540)) == [OK, OK]
    assert queued(store) == [f"beat_report_{at + 540}"]
    state = hash_of(store)
    assert (state["skip_count"], state["run_count"], state["next_run"]) == ("9", "1", text(at + 600))


def test_what_is_released_is_due_again_at_once(store: Store) -> None:
    at = put_and_claim(store)
    before, was = everything(store), hash_of(store)
    assert fire(store, Item("release", "report", "")) == [OK]
    assert score(store) == at * 1000
    assert changed(before, store) == {"beat:due", LOCK}
    assert hash_of(store) == was
    assert [each.tick for each in claim(store, token=OTHER).claims] == [text(at)]


def test_what_was_paused_meanwhile_is_released_out_of_the_index(store: Store) -> None:
    put_and_claim(store)
    store.client.hset(SCHEDULE, "state", "paused")
    assert fire(store, Item("release", "report", "")) == [OK]
    assert score(store) is None


def test_what_cannot_be_read_is_set_apart_with_the_reason(store: Store) -> None:
    at = put_and_claim(store)
    before = everything(store)
    assert fire(store, Item("quarantine", "report", REV, error="definition cannot be read")) == [OK]
    state = hash_of(store)
    assert (state["state"], state["last_error"]) == ("broken", "definition cannot be read")
    assert state["next_run"] == text(at)
    assert score(store) is None
    assert changed(before, store) == {SCHEDULE, "beat:due", LOCK, "beat:in:broken"}


@shows("fire", "CHANGED")
def test_what_has_another_definition_by_now_is_not_set_apart(store: Store) -> None:
    at = put_and_claim(store)
    was = hash_of(store)
    assert fire(store, Item("quarantine", "report", "r0", error="definition cannot be read")) == [Reply("CHANGED")]
    assert hash_of(store) == was
    assert score(store) == at * 1000


# --- chains ----------------------------------------------------------------------------------------------------------


def test_three_ticks_of_one_schedule_fire_in_one_call(store: Store) -> None:
    at = put_and_claim(store, ago=150)
    ticks = [at, at + 60, at + 120]
    calls = Calls(store)
    assert fire(store, *map(verdict, ticks)) == [OK, OK, OK]
    counted = calls.count()
    assert (counted["del"], counted["zadd"], counted["rpush"], counted["sadd"]) == (1, 2, 1, 1), "due, and open"
    assert queued(store) == [f"beat_report_{tick}" for tick in ticks]
    state = hash_of(store)
    assert (state["run_count"], state["last_run"], state["next_run"]) == ("3", text(at + 120), text(at + 180))
    assert score(store) == (at + 180) * 1000
    assert not store.client.exists(LOCK)


def test_a_chain_whose_last_tick_is_early_stays_ours(store: Store) -> None:
    at = put_and_claim(store, ago=90)
    early = second(store) + 2
    chain = [verdict(at), verdict(at + 60, following=early - at - 60), verdict(early)]
    expires, hidden = store.client.pexpiretime(LOCK), score(store)
    replies = fire(store, *chain)
    assert [reply.code for reply in replies] == ["OK", "OK", "EARLY"]
    assert (store.client.get(LOCK), store.client.pexpiretime(LOCK)) == (TOKEN.encode(), expires)
    assert score(store) == hidden
    assert hash_of(store)["next_run"] == text(early)
    assert queued(store) == [f"beat_report_{at}", f"beat_report_{at + 60}"]
    wait_until(lambda: fire(store, chain[2]) == [OK])
    assert len(queued(store)) == 3
    assert not store.client.exists(LOCK)


def test_a_chain_that_is_refused_in_the_middle_stops_there(store: Store) -> None:
    at = put_and_claim(store, ago=150)
    chain = [verdict(at), verdict(at + 60, rev="r0"), verdict(at + 120)]
    assert codes(store, *chain) == ["OK", "CHANGED", "STALE"]
    assert queued(store) == [f"beat_report_{at}"]
    assert score(store) == (at + 60) * 1000
    assert not store.client.exists(LOCK)


def test_after_the_last_tick_of_all_nothing_fires(store: Store) -> None:
    at = put_and_claim(store, ago=90)
    replies = fire(store, verdict(at, following=None), verdict(at + 60))
    assert replies == [OK, Reply("STALE", f"beat_report_{at}")]
    assert queued(store) == [f"beat_report_{at}"]
    assert score(store) is None


def test_the_same_chain_sent_again_makes_no_job(store: Store) -> None:
    at = put_and_claim(store, ago=150)
    chain = [*map(verdict, (at, at + 60, at + 120))]
    fire(store, *chain)
    take_all(store)
    store.client.set(LOCK, TOKEN, px=LONG)
    assert fire(store, *chain) == [Reply("STALE", f"beat_report_{at + 120}")] * 3
    assert queued(store) == []
    assert hash_of(store)["run_count"] == "3"


# --- refused ---------------------------------------------------------------------------------------------------------


def take_all(store: Store) -> None:
    """A worker that keeps no result: neither the queue nor the job's hash says that there was one."""
    for job in queued(store):
        store.client.delete(f"rq:job:{job}")
    store.client.delete(QUEUE)


@shows("fire", "STALE")
def test_the_same_fire_sent_twice_makes_one_job(store: Store) -> None:
    at = put_and_claim(store)
    assert fire(store, verdict(at)) == [OK]
    take_all(store)
    before = everything(store)
    for holder in (None, TOKEN, "another"):
        if holder:
            store.client.set(LOCK, holder, px=LONG)
            before = everything(store)
        assert fire(store, verdict(at)) == [Reply("STALE", f"beat_report_{at}")]
        assert not changed(before, store) - {LOCK}


@shows("fire", "OTHERS")
def test_what_a_live_beat_can_read_is_not_set_apart(store: Store) -> None:
    put_and_claim(store)
    store.announce({"report": REV}, digest="d1", ttl=LONG)
    before = hash_of(store)
    quarantine = Item("quarantine", "report", REV, error="definition cannot be read")
    assert fire(store, quarantine) == [Reply("OTHERS")]
    assert hash_of(store) == before
    assert not store.client.exists(LOCK)


def test_what_only_dead_beats_could_read_is_set_apart(store: Store) -> None:
    put_and_claim(store)
    store.announce({"report": "r0"}, digest="d1", ttl=LONG)
    store.announce({"report": REV}, digest="dead", ttl=1)
    wait_until(lambda: not store.client.exists("beat:announced:dead"))
    assert fire(store, Item("quarantine", "report", REV, error="definition cannot be read")) == [OK]
    assert hash_of(store)["state"] == "broken"


def test_who_may_not_take_a_job_back_writes_none(store: Store) -> None:
    at = put_and_claim(store)
    spoil(store, "beat:runs:report")
    before = everything(store)
    with restricted(store, "-del", "(+del ~beat:*)") as few:
        [reply] = few.fire([verdict(at)], token=TOKEN).replies
    assert (reply.code, "del with rq:job:" in reply.words) == ("BADTYPE", True)
    assert changed(before, store) == {"beat:due", LOCK, SCHEDULE}


@pytest.mark.parametrize("denied", ["%R~rq:queue:secret", "~rq:queue:default -rpush"], ids=["its key", "the command"])
def test_a_queue_that_this_user_may_not_fill_loses_nobodys_tick(denied: str, store: Store) -> None:
    ats = {each: put_and_claim(store, each) for each in ("good", "bad", "more")}
    admin: Any = store.client
    admin.execute_command(
        "ACL", "SETUSER", "few", "on", "nopass", "~beat:*", "~rq:job:*", "~rq:queues", "+@all", *denied.split()
    )
    admin.execute_command("ACL", "SETUSER", "few", "~rq:queue:default")
    kwargs = {**store.client.connection_pool.connection_kwargs, "username": "few", "password": "any"}
    pool = type(store.client.connection_pool)(connection_class=store.client.connection_pool.connection_class, **kwargs)
    with RedisClient(connection_pool=pool) as client:
        limited = Store(client, store.keys)
        queue = {"bad": "rq:queue:secret"}
        items = [verdict(at, each, queue=queue.get(each, QUEUE)) for each, at in ats.items()]
        codes = [reply.code for reply in limited.fire(items, token=TOKEN).replies]
    fired = {each for each, code in zip(ats, codes, strict=True) if code == "OK"}
    assert "bad" not in fired
    assert {job.rpartition("_")[0] for job in queued(store)} == {f"beat_{each}" for each in fired}
    for each in ats:
        assert hash_of(store, each)["run_count"] == str(int(each in fired))
        assert ("last_error" in hash_of(store, each)) == (each not in fired)
    admin.execute_command("ACL", "DELUSER", "few")


def test_a_tick_that_never_was_the_next_is_stale(store: Store) -> None:
    at = put_and_claim(store)
    before = everything(store)
    assert fire(store, verdict(at - 60)) == [Reply("STALE", "")]
    assert changed(before, store) == {"beat:due", LOCK}
    assert score(store) == at * 1000


def expire(store: Store) -> None:
    store.client.pexpire(LOCK, 1)
    wait_until(lambda: not store.client.exists(LOCK))


@pytest.mark.parametrize(
    "lose",
    [
        expire,
        lambda store: store.client.set(LOCK, "another", px=LONG),
        lambda store: store.client.delete(LOCK),
        lambda store: spoil(store, LOCK),
    ],
    ids=["ran out", "another's", "deleted", "no string"],
)
@pytest.mark.parametrize("kind", ["fire", "skip", "release", "quarantine"])
@shows("fire", "FENCED")
def test_who_has_no_lock_changes_nothing(kind: str, lose: Callable[[Store], None], store: Store) -> None:
    at = put_and_claim(store)
    lose(store)
    before = everything(store)
    assert fire(store, verdict(at, kind=kind, number=1)) == [Reply("FENCED")]
    assert not changed(before, store)


@shows("fire", "CHANGED")
def test_another_definition_has_the_schedule_claimed_again_at_once(store: Store) -> None:
    at = put_and_claim(store)
    store.client.hset(SCHEDULE, "rev", "r2")
    before = everything(store)
    assert fire(store, verdict(at)) == [Reply("CHANGED")]
    assert changed(before, store) == {"beat:due", LOCK}
    assert [each.rev for each in claim(store).claims] == ["r2"]


@pytest.mark.parametrize("state", ["paused", "disabled", "retired", "broken", ""])
@shows("fire", "INACTIVE")
def test_what_is_not_active_any_more_does_not_fire(state: str, store: Store) -> None:
    at = put_and_claim(store)
    store.client.hset(SCHEDULE, "state", state)
    before = everything(store)
    assert fire(store, verdict(at)) == [Reply("INACTIVE", state)]
    assert changed(before, store) == {"beat:due", LOCK}
    assert score(store) is None


@shows("fire", "EARLY")
def test_what_is_not_due_by_redis_clock_waits_and_stays_ours(store: Store) -> None:
    at = second(store) + 30
    put(store, "report", at)
    assert claim(store, lookahead=LONG).claims
    before = everything(store)
    decided = store.fire([verdict(at)], token=TOKEN)
    assert decided.replies == (Reply("EARLY", str(at * 1000 - decided.now)),)
    assert 0 < at * 1000 - decided.now <= 30_000
    assert not changed(before, store)


def test_a_tick_never_fires_before_it_is_due(store: Store) -> None:
    at = second(store) + 1
    put(store, "report", at)
    assert claim(store, lookahead=LONG).claims
    while (decided := store.fire([verdict(at)], token=TOKEN)).replies != (OK,):
        assert decided.replies[0].code == "EARLY"
        assert decided.now < at * 1000
    assert decided.now >= at * 1000


@shows("fire", "GONE")
def test_a_schedule_that_is_gone_leaves_the_index(store: Store) -> None:
    at = put_and_claim(store)
    store.client.delete(SCHEDULE)
    before = everything(store)
    assert fire(store, verdict(at)) == [Reply("GONE")]
    assert changed(before, store) == {"beat:due", LOCK}
    assert score(store) is None


BAD_STATES = [
    ("next_run", "abc", "next_run is not a time: abc"),
    ("next_run", "-1", "next_run is not a time: -1"),
    ("next_run", None, "next_run is missing"),
    ("due_at", "garbage", "due_at is not a time: garbage"),
    ("due_at", None, "due_at is missing"),
    ("run_count", "abc", "run_count is not a number: abc"),
    ("run_count", "1e5", "run_count is not a number: 1e5"),
    ("skip_count", "-7", "skip_count is not a number: -7"),
    ("rev", None, "rev is missing"),
]


@pytest.mark.parametrize("kind", ["fire", "skip", "release", "quarantine"])
@pytest.mark.parametrize(("field", "value", "words"), BAD_STATES)
@shows("fire", "BADSTATE")
def test_a_hash_that_cannot_be_used_is_retried_by_how_late_its_tick_is(
    field: str, value: str | None, words: str, kind: str, store: Store
) -> None:
    at = put_and_claim(store)
    if value is None:
        store.client.hdel(SCHEDULE, field)
    else:
        store.client.hset(SCHEDULE, field, value)
    before = everything(store)
    decided = store.fire([verdict(at, kind=kind, number=int(kind == "skip"))], token=TOKEN)
    assert decided.replies == (Reply("BADSTATE", words),)
    assert changed(before, store) == {"beat:due", LOCK}
    assert score(store) == retried(decided.now, at * 1000, (at + 60) * 1000)


@pytest.mark.parametrize(
    ("break_it", "words"),
    [
        (lambda store: store.client.delete(TEMPLATE), f"{TEMPLATE} is missing"),
        (lambda store: spoil(store, TEMPLATE), f"{TEMPLATE} is a stream"),
    ],
    ids=["missing", "no hash"],
)
def test_without_a_template_there_is_no_job(break_it: Callable[[Store], None], words: str, store: Store) -> None:
    at = put_and_claim(store)
    break_it(store)
    before = everything(store)
    decided = store.fire([verdict(at)], token=TOKEN)
    assert decided.replies == (Reply("BADSTATE", words),)
    assert changed(before, store) == {"beat:due", LOCK, "beat:schedule:report"}
    assert hash_of(store)["last_error"] == words
    assert score(store) == retried(decided.now, at * 1000, (at + 60) * 1000)


@pytest.mark.parametrize("ttl", ["1.5", "1e3", "nan", "9" * 20, "-1", "0", "00", "007"])
def test_a_template_whose_ttl_makes_no_sense_is_refused_before_any_write(ttl: str, store: Store) -> None:
    at, good = put_and_claim(store), put_and_claim(store, "good")
    special(store)
    store.client.hset(TEMPLATE, "ttl", ttl)
    replies = fire(store, verdict(good, "good"), verdict(at))
    assert [reply.code for reply in replies] == ["OK", "BADSTATE"]
    assert queued(store) == [f"beat_good_{good}"]
    assert hash_of(store)["next_run"] == text(at)


@shows("fire", "BADTYPE")
def test_a_schedule_that_is_no_hash_is_retried_by_how_late_its_tick_is(store: Store) -> None:
    at = put_and_claim(store)
    spoil(store, SCHEDULE)
    before = everything(store)
    decided = store.fire([verdict(at)], token=TOKEN)
    assert decided.replies == (Reply("BADTYPE", f"{SCHEDULE} is a stream"),)
    assert changed(before, store) == {"beat:due", LOCK}
    assert score(store) == retried(decided.now, at * 1000, (at + 60) * 1000)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("rq:job:ours", "rq:job:ours is a stream"),
        (QUEUE, f"{QUEUE} is a stream, not a queue"),
        (job_template.QUEUES_KEY, f"{job_template.QUEUES_KEY} is a stream, not a set"),
    ],
)
@shows("fire", "BADTYPE")
def test_a_key_of_rq_that_is_not_what_it_should_be_keeps_the_tick_due(key: str, words: str, store: Store) -> None:
    at = put_and_claim(store)
    spoil(store, key)
    before, was = everything(store), hash_of(store)
    decided = store.fire([item := verdict(at, job="ours")], token=TOKEN)
    assert decided.replies == (Reply("BADTYPE", words),)
    assert changed(before, store) == {SCHEDULE, "beat:due", LOCK}
    assert hash_of(store) == {**was, "last_error": words}
    assert score(store) == retried(decided.now, at * 1000, (at + 60) * 1000)
    store.client.delete(key)
    store.client.set(LOCK, TOKEN, px=LONG)
    assert fire(store, item) == [OK]
    assert queued(store) == ["ours"]


BAD_ITEMS: dict[str, dict[str, Any]] = {
    "an unknown kind": {"kind": "wait"},
    "no kind": {"kind": ""},
    "no tick": {"tick": ""},
    "a tick that is no time": {"tick": "abc"},
    "no due": {"due": ""},
    "a due that is no number": {"due": "abc"},
    "a next that is no time": {"next": "abc"},
    "a next that is the tick": {"next": "the tick"},
    "a next before the tick": {"next": "2001-01-01T00:00:00Z"},
    "no next_due": {"next_due": ""},
    "a next_due that is no number": {"next_due": "abc"},
    "no job": {"job": ""},
    "no queue": {"queue": ""},
    "neither front nor back": {"at": "middle"},
    "a skip of none": {"kind": "skip", "number": 0},
    "a skip of no number": {"kind": "skip", "number": "abc"},
    "a skip of fewer than none": {"kind": "skip", "number": -1},
    "a skip of a part": {"kind": "skip", "number": "1.5"},
    "a skip without end": {"kind": "skip", "number": "9" * 20},
    "a skip without a tick": {"kind": "skip", "number": 1, "tick": ""},
    "a skip backwards": {"kind": "skip", "number": 1, "next": "2001-01-01T00:00:00Z"},
    "a skip without a last": {"kind": "skip", "number": 1, "last": ""},
    "a skip whose last is no time": {"kind": "skip", "number": 1, "last": "abc"},
    "a skip that ends before it begins": {"kind": "skip", "number": 1, "last": "2001-01-01T00:00:00Z"},
}


@pytest.mark.parametrize("changes", BAD_ITEMS.values(), ids=BAD_ITEMS)
@shows("fire", "BADARG")
def test_an_item_that_makes_no_sense_is_refused(changes: dict[str, Any], store: Store) -> None:
    at = put_and_claim(store)
    if changes.get("next") == "the tick":
        changes = {"next": text(at)}
    before = everything(store)
    assert fire(store, verdict(at, **changes)) == [Reply("BADARG")]
    assert changed(before, store) <= {LOCK}


@pytest.mark.parametrize(
    "changes", [{"due": "nan"}, {"next_due": "nan"}, {"next_due": "inf"}, {"next_due": "1.5"}, {"next_due": -5}]
)
def test_a_time_that_is_no_count_of_milliseconds_is_refused(changes: dict[str, Any], store: Store) -> None:
    at = put_and_claim(store)
    before = everything(store)
    assert fire(store, verdict(at, **changes)) == [Reply("BADARG")]
    assert changed(before, store) <= {LOCK}


@pytest.mark.parametrize("parts", [1, 15, 17, 31])
def test_a_number_of_arguments_that_is_no_whole_number_of_items_does_nothing(parts: int, store: Store) -> None:
    at = put_and_claim(store)
    torn: Any = (verdict(at) * 2)[:parts]
    before = everything(store)
    assert fire(store, torn) == [Reply("BADARG", "not a whole number of items")]
    assert not changed(before, store)


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_crowd_that_is_torn_does_nothing(cut: int, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ats = [put_and_claim(store, each) for each in ("first", "report")]
    before, (shared, members) = everything(store), counted([verdict(ats[0], "first"), verdict(ats[0])])
    whole = (*shared, *members)
    assert len(whole) == 20
    monkeypatch.setattr(store_module, "counted", lambda _: [whole[:cut]])
    assert fire(store, verdict(ats[0])) == [Reply("BADARG", "not a whole number of items")]
    assert not changed(before, store)


@pytest.mark.parametrize("number", ["0", "-1", "1.5", "x", "", "9" * 15, 3])
def test_a_crowd_of_another_number_does_nothing(number: Any, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    ats = [put_and_claim(store, each) for each in ("first", "report")]
    before, (shared, members) = everything(store), counted([verdict(ats[0], "first"), verdict(ats[0])])
    monkeypatch.setattr(store_module, "counted", lambda _: [shared, (members[0], number, *members[2:])])
    assert fire(store, verdict(ats[0])) == [Reply("BADARG", "not a whole number of items")]
    assert not changed(before, store)


@pytest.mark.parametrize("crowd", ["-2", "-0.5", "x", "", "-", "--1", 1, 3])
def test_who_is_of_no_crowd_does_nothing(crowd: Any, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    at = put_and_claim(store)
    before, (shared, members) = everything(store), counted([verdict(at)])
    monkeypatch.setattr(store_module, "counted", lambda _: [shared, members, (crowd, *members[1:])])
    assert fire(store, verdict(at)) == [Reply("BADARG", "not a whole number of items")]
    assert not changed(before, store)


def test_who_shares_what_changes_no_order(store: Store) -> None:
    at = second(store) - 1
    for each in "abcde":
        put(store, each, at)
    assert len(claim(store).claims) == 5
    others: dict[str, Any] = {"b": {"queue": "rq:queue:other"}, "c": {"slot": "skip 1 1"}, "e": {"max_runs": 7}}
    assert set(codes(store, *(verdict(at, each, **others.get(each, {})) for each in "abcde"))) == {"OK"}
    assert queued(store) == [f"beat_{each}_{at}" for each in "acde"]
    assert queued(store, "rq:queue:other") == [f"beat_b_{at}"]


def test_no_items_are_no_trouble(store: Store) -> None:
    put_and_claim(store)
    before = everything(store)
    assert fire(store) == []
    assert not changed(before, store)


BETWEEN: dict[str, tuple[Callable[[Store], object], dict[str, Any], str]] = {
    "makes no sense": (lambda _: None, {"tick": "abc"}, "BADARG"),
    "is gone": (lambda store: store.client.delete("beat:schedule:bad"), {}, "GONE"),
    "is no hash": (lambda store: spoil(store, "beat:schedule:bad"), {}, "BADTYPE"),
    "has a queue that is none": (lambda store: spoil(store, SPOILED), {"queue": SPOILED}, "BADTYPE"),
    "has a job that is no hash": (lambda store: spoil(store, "rq:job:bad"), {"job": "bad"}, "BADTYPE"),
    "has a ledger that is none": (lambda store: spoil(store, "beat:runs:bad"), {}, "BADTYPE"),
    "cannot be counted": (lambda store: store.client.hset("beat:schedule:bad", "run_count", "abc"), {}, "BADSTATE"),
    "has no template": (lambda store: store.client.delete("beat:template:bad"), {}, "BADSTATE"),
    "has lost its lock": (lambda store: store.client.delete("beat:lock:bad"), {}, "FENCED"),
    "was decided before": (lambda _: None, {"tick": text(0), "next": text(60)}, "STALE"),
    "has another definition": (lambda store: store.client.hset("beat:schedule:bad", "rev", "r2"), {}, "CHANGED"),
    "is paused": (lambda store: store.client.hset("beat:schedule:bad", "state", "paused"), {}, "INACTIVE"),
    "is not due": (lambda _: None, {"due": 10**13}, "EARLY"),
}


@pytest.mark.parametrize(("spoil_it", "changes", "code"), BETWEEN.values(), ids=BETWEEN)
def test_a_bad_item_between_two_good_ones_does_not_hurt_them(
    spoil_it: Callable[[Store], object], changes: dict[str, Any], code: str, store: Store
) -> None:
    ats = {each: put_and_claim(store, each) for each in ("good1", "bad", "good2")}
    spoil_it(store)
    items = [verdict(at, each, **(changes if each == "bad" else {})) for each, at in ats.items()]
    assert codes(store, *items) == ["OK", code, "OK"]
    assert queued(store) == [f"beat_{each}_{ats[each]}" for each in ("good1", "good2")]
    for each in ("good1", "good2"):
        assert hash_of(store, each)["run_count"] == "1"
        assert score(store, each) == (ats[each] + 60) * 1000
        assert not store.client.exists(f"beat:lock:{each}")


def test_the_table_of_bad_items_knows_every_refusal() -> None:
    refusals = {"BADARG", "GONE", "BADTYPE", "BADSTATE", "FENCED", "STALE", "CHANGED", "INACTIVE", "EARLY"}
    assert {code for *_, code in BETWEEN.values()} == refusals


# --- Redis itself ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "refusing", "normal", "word"),
    [("maxmemory", 1, 0, "OOM|maxmemory"), ("min-replicas-to-write", 1, 0, "NOREPLICAS")],
)
def test_a_redis_that_refuses_to_write_refuses_the_page_as_a_whole(
    setting: str, refusing: int, normal: int, word: str, store: Store
) -> None:
    first, at = put_and_claim(store, "first"), put_and_claim(store)
    # What is no run is taken out of a slot before anything else: a deletion, which needs no memory, and would be done.
    store.client.zadd("beat:running:first", {"nobody": 1})
    page = [verdict(first, "first", slot="skip 1 0"), verdict(at)]
    fire(store)  # the script is known from here on
    before = everything(store)
    store.client.config_set(setting, refusing)
    try:
        with pytest.raises(ResponseError, match=word):
            fire(store, *page)
        assert not changed(before, store)
    finally:
        store.client.config_set(setting, normal)
    assert fire(store, *page) == [OK, OK]


def test_a_redis_that_forgot_the_scripts_is_told_them_again(store: Store) -> None:
    at = put_and_claim(store)
    store.client.script_flush()
    assert fire(store, verdict(at)) == [OK]
    assert queued(store) == [f"beat_report_{at}"]
    store.client.script_flush()
    assert claim(store).code == "OK"
