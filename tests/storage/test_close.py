"""Closing: what became of a run is written once, in one step or not at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from redis.exceptions import NoPermissionError

from beat.history import ledger as lines
from beat.storage import runs as watched
from beat.storage.keys import Keys
from beat.storage.messages import Reply
from beat.storage.runs import Runs
from beat.storage.store import Store
from beat.timing import clock
from tests.support.builders import changed, everything, hash_of, restricted, shows
from tests.support.hand_made import (
    ENDED,
    GONE,
    JOB,
    SIGN,
    STARTED,
    TICK,
    close,
    closed_runs,
    closing,
    ledger,
    newest_line,
    open_runs,
    put_closed,
    put_job,
    put_result,
    put_run,
    put_schedule,
    record,
    records,
    told,
)

if TYPE_CHECKING:
    from beat.storage.messages import Closing

OK, STALE, CHANGED, BADARG = Reply("OK"), Reply("STALE"), Reply("CHANGED"), Reply("BADARG")
SCHEDULE, RUNS = "beat:schedule:report", "beat:runs:report"
COUNTERS = ("success_count", "failure_count", "stopped_count", "consecutive_failures")
CLOSED = record(outcome="failed", sign=f"failed|{STARTED}|{ENDED}", ended=ENDED, attempts=1)
"""What `put_closed` remembers."""


@pytest.fixture
def runs(store: Store) -> Runs:
    put_schedule(store)
    return Runs(store)


def counts(store: Store) -> tuple[int, ...]:
    state = hash_of(store)
    return tuple(int(state.get(name, 0)) for name in COUNTERS)


def reopening(job: str = JOB, /, **changes: Any) -> Closing:
    """A run that had failed, as `put_closed` makes it, is queued again."""
    entry = f'{{"type":"reopened","tick":"{TICK}","job":"{job}","was":"failed","attempts":1'
    given = {"kind": "reopen", "seen": CLOSED, "record": record(requeued=1), "sign": "queued||", "outcome": "reopened",
             "entry": entry, "was": "failed", "was_ended": ENDED, "ended": "", "duration": ""}  # fmt: skip
    return closing(job, **{**given, **changes})


def spoil(store: Store, key: str) -> None:
    store.client.delete(key)
    store.client.set(key, "garbage")


# --- OK --------------------------------------------------------------------------------------------------------------


@shows("close", "OK")
def test_a_run_that_has_succeeded_is_closed_in_one_step(runs: Runs, store: Store) -> None:
    put_run(store)
    before, was = everything(store), hash_of(store)
    assert close(runs, closing()) == [OK]
    assert changed(before, store) == {SCHEDULE, RUNS, "beat:events", "beat:open", "beat:records"}
    new = {name: value for name, value in hash_of(store).items() if was.get(name) != value}
    assert new == {
        "success_count": "1",
        "failure_count": "0",
        "stopped_count": "0",
        "consecutive_failures": "0",
        "last_success": "2026-11-16T09:00:03.120Z",
        "last_duration": "3.1",
        "ends": "succeeded 1",
    }
    assert (open_runs(store), closed_runs(store), records(store)) == ({}, {}, {})
    line, _ = ledger(store)
    assert (line.pop("at")[:2], line) == ("20", {"type": "succeeded", "job": JOB, "beat": "ours"})
    event = told(store)[-1]
    assert event.pop("entry") == newest_line(store)
    assert event == {"type": "succeeded", "schedule": "report", "tick": TICK, "job": JOB, "by": "ours"}


@pytest.mark.parametrize("outcome", ["failed", "lost"])
def test_a_failure_says_when_and_why_and_is_watched(outcome: str, runs: Runs, store: Store) -> None:
    put_run(store)
    kept = record(outcome=outcome, sign=SIGN)
    assert close(runs, closing(outcome=outcome, record=kept, error="KeyError: 'x'", duration="")) == [OK]
    state = hash_of(store)
    assert (state["last_failure"], state["last_error"]) == ("2026-11-16T09:00:03.120Z", "KeyError: 'x'")
    assert not {"last_success", "last_duration"} & state.keys()
    assert (open_runs(store), records(store)) == ({}, {JOB: json.loads(kept)})
    assert closed_runs(store) == {JOB: pytest.approx(store.time().timestamp() * 1000, abs=60_000)}


def test_a_stop_is_neither_success_nor_failure(runs: Runs, store: Store) -> None:
    put_run(store)
    assert close(runs, closing(outcome="stopped", error="it was cancelled")) == [OK]
    assert not {"last_success", "last_failure", "last_error"} & hash_of(store).keys()
    assert counts(store) == (0, 0, 1, 0)


def test_an_end_that_nobody_knows_is_now(runs: Runs, store: Store) -> None:
    put_run(store)
    before = store.time()
    assert close(runs, closing(outcome="lost", ended="", duration="")) == [OK]
    at = ledger(store)[0]["at"]
    assert hash_of(store)["last_failure"] == at
    assert before.isoformat()[:19] <= at <= store.time().isoformat()[:19] + "~"


def test_several_runs_are_closed_in_one_step(runs: Runs, store: Store) -> None:
    put_schedule(store, "other")
    for n in range(3):
        put_run(store, f"a{n}")
        put_run(store, f"b{n}", record=record("other"))
    items = [closing(f"a{n}") for n in range(3)]
    items += [closing(f"b{n}", id="other", seen=record("other"), outcome="failed", error="e") for n in range(3)]
    assert close(runs, *items) == [OK] * 6
    assert counts(store) == (3, 0, 0, 0)
    assert hash_of(store, "other")["failure_count"] == "3"
    assert [line["job"] for line in ledger(store)[:3]] == ["a2", "a1", "a0"]


def test_a_mark_changes_what_is_remembered_and_nothing_else(runs: Runs, store: Store) -> None:
    put_run(store, JOB, "queued")
    before, marked = everything(store), record(missing=5, missing_as="queued")
    assert close(runs, closing(kind="mark", sign="queued||", record=marked)) == [OK]
    assert changed(before, store) == {"beat:records"}
    assert records(store) == {JOB: json.loads(marked)}


def test_what_makes_no_sense_is_forgotten(runs: Runs, store: Store) -> None:
    put_run(store, JOB, record="garbage")
    put_closed(store, "old", record="garbage")
    before = everything(store)
    items = [closing(job, kind="forget", seen="garbage", id="", tick="", outcome="") for job in (JOB, "old")]
    assert close(runs, *items) == [OK, OK]
    assert changed(before, store) == {"beat:open", "beat:closed", "beat:records"}
    assert not store.client.exists("beat:open", "beat:closed", "beat:records")


def test_what_rq_starts_again_is_open_again(runs: Runs, store: Store) -> None:
    put_schedule(store, "x")
    store.client.hset(SCHEDULE, mapping={"failure_count": 3, "run_count": 3, "consecutive_failures": 2})
    put_closed(store, JOB, "queued")
    assert close(runs, reopening()) == [OK]
    assert counts(store) == (0, 2, 0, 1)
    assert closed_runs(store) == {}
    assert list(open_runs(store)) == [JOB]
    assert open_runs(store)[JOB] <= store.time().timestamp() * 1000
    assert records(store)[JOB] == json.loads(record(requeued=1))
    assert (ledger(store)[0]["type"], ledger(store)[0]["was"]) == ("reopened", "failed")
    assert (told(store)[-1]["type"], told(store)[-1]["job"]) == ("reopened", JOB)


# --- counters --------------------------------------------------------------------------------------------------------

S, F, L, X, SUCCEEDED = "succeeded", "failed", "lost", "stopped", "2026-11-16T09:00:00Z"
LATER, EARLIER = "2026-11-16T09:30:00Z", "2026-11-16T08:30:00Z"
COUNTING: dict[str, tuple[tuple[int, ...], str, str, str, tuple[int, ...]]] = {
    # before: success, failure, stopped, in a row; was; when that was; is; after
    "a first success": ((0, 0, 0, 0), "", "", S, (1, 0, 0, 0)),
    "a first failure": ((0, 0, 0, 0), "", "", F, (0, 1, 0, 1)),
    "a first loss": ((0, 0, 0, 0), "", "", L, (0, 1, 0, 1)),
    "a first stop": ((0, 0, 0, 0), "", "", X, (0, 0, 1, 0)),
    "another failure": ((5, 2, 1, 2), "", "", F, (5, 3, 1, 3)),
    "a success after failures": ((5, 2, 1, 2), "", "", S, (6, 2, 1, 0)),
    "a stop after failures": ((5, 2, 1, 2), "", "", X, (5, 2, 2, 2)),
    "a failure that is a success after all": ((5, 2, 1, 2), F, LATER, S, (6, 1, 1, 0)),
    "a failure that is a stop after all": ((5, 2, 1, 2), F, LATER, X, (5, 1, 2, 1)),
    "a failure that is another failure": ((5, 2, 1, 2), F, LATER, F, (5, 2, 1, 2)),
    "a loss that is a success after all": ((5, 2, 1, 2), L, LATER, S, (6, 1, 1, 0)),
    "a loss that is a failure after all": ((5, 2, 1, 2), L, LATER, F, (5, 2, 1, 2)),
    "a stop that is a failure after all": ((5, 2, 1, 2), X, LATER, F, (5, 3, 0, 3)),
    "a stop that is a success after all": ((5, 2, 1, 2), X, LATER, S, (6, 2, 0, 0)),
    "a failure before the last success that is a stop": ((5, 2, 1, 1), F, EARLIER, X, (5, 1, 2, 1)),
    "a failure that runs again": ((5, 2, 1, 2), F, LATER, "reopened", (5, 1, 1, 1)),
    "a failure before the last success that runs again": ((5, 2, 1, 1), F, EARLIER, "reopened", (5, 1, 1, 1)),
    "a loss that runs again": ((5, 2, 1, 2), L, LATER, "reopened", (5, 1, 1, 1)),
    "a stop that runs again": ((5, 2, 1, 2), X, LATER, "reopened", (5, 2, 0, 2)),
    "a count that was too low": ((0, 0, 0, 0), F, LATER, S, (1, 0, 0, 0)),
}


@pytest.mark.parametrize("case", COUNTING.values(), ids=COUNTING)
def test_the_counters_say_how_every_run_ended(case: tuple[Any, ...], runs: Runs, store: Store) -> None:
    before, was, was_ended, outcome, after = case
    fields: dict[Any, Any] = {**dict(zip(COUNTERS, before, strict=True)), "last_success": SUCCEEDED}
    store.client.hset(SCHEDULE, mapping=fields)
    put_run(store)
    kind = "reopen" if outcome == "reopened" else "close"
    assert close(runs, closing(kind=kind, outcome=outcome, was=was, was_ended=was_ended)) == [OK]
    assert counts(store) == after


def test_counters_that_are_no_numbers_count_from_nothing(runs: Runs, store: Store) -> None:
    garbage: dict[Any, Any] = dict(zip(COUNTERS, ("abc", "-1", "9" * 40, "1.5"), strict=True))
    store.client.hset(SCHEDULE, mapping={**garbage, "last_success": "garbage"})
    put_run(store)
    assert close(runs, closing(outcome="failed", was="stopped", error="e")) == [OK]
    assert counts(store) == (0, 1, 0, 1)


def test_of_a_run_that_is_amended_the_newest_outcome_counts(runs: Runs, store: Store) -> None:
    """A worker that was given up finishes its job after all."""
    put_run(store, JOB, "started")
    lost, ended = record(outcome="lost", sign="started||", attempts=1), clock.text(store.time())
    assert close(runs, closing(outcome="lost", sign="started||", record=lost, ended="", error="no life")) == [OK]
    put_job(store)
    assert close(runs, closing(seen=lost, was="lost", was_ended=ended)) == [OK]
    assert counts(store) == (1, 0, 0, 0)
    assert (closed_runs(store), records(store)) == ({}, {})


# --- STALE, CHANGED: once, and only what was seen --------------------------------------------------------------------


@shows("close", "STALE")
def test_a_run_is_closed_once(runs: Runs, store: Store) -> None:
    put_run(store)
    assert close(runs, closing(), closing()) == [OK, STALE]
    before = everything(store)
    assert close(runs, closing()) == [STALE]
    assert not changed(before, store)


@pytest.mark.parametrize("kind", ["close", "reopen", "mark", "forget"])
@pytest.mark.parametrize("kept", [None, "{}", record(missing=1)])
@shows("close", "STALE")
def test_what_somebody_else_has_changed_is_left_alone(kept: str | None, kind: str, runs: Runs, store: Store) -> None:
    put_run(store)
    if kept is None:
        store.client.hdel("beat:records", JOB)
    else:
        store.client.hset("beat:records", JOB, kept)
    before = everything(store)
    assert close(runs, closing(kind=kind)) == [STALE]
    assert not changed(before, store)


def test_records_that_are_none_make_everything_stale(runs: Runs, store: Store) -> None:
    put_run(store)
    spoil(store, "beat:records")
    before = everything(store)
    assert close(runs, closing()) == [STALE]
    assert not changed(before, store)
    store.client.delete("beat:records")


@pytest.mark.parametrize("kind", ["close", "reopen", "mark"])
@pytest.mark.parametrize(
    ("status", "fields"),
    [("started", {}), ("finished", {"ended_at": "later"}), ("finished", {"ended_at": ""}), (GONE, {})],
)
@shows("close", "CHANGED")
def test_what_rq_has_changed_meanwhile_is_to_be_looked_at_again(
    status: str | None, fields: dict[str, str], kind: str, runs: Runs, store: Store
) -> None:
    put_run(store, JOB, status, **fields)
    before = everything(store)
    assert close(runs, closing(kind=kind, record=record(missing=1))) == [CHANGED]
    assert not changed(before, store)


@pytest.mark.parametrize("there", ["gone", "no hash"])
def test_what_rq_has_forgotten_is_closed_as_it_was_seen(there: str, runs: Runs, store: Store) -> None:
    put_run(store, JOB, GONE)
    if there == "no hash":
        spoil(store, f"rq:job:{JOB}")
    assert close(runs, closing(outcome="lost", sign="", error="gone")) == [OK]
    assert counts(store) == (0, 1, 0, 1)


def test_a_hash_without_a_status_is_no_record_of_a_job(runs: Runs, store: Store) -> None:
    put_run(store, JOB, "queued")
    store.client.hdel(f"rq:job:{JOB}", "status")
    assert close(runs, closing(kind="mark", sign="", record=record(missing=1))) == [OK]


# --- BADARG, BADTYPE: nothing is changed -----------------------------------------------------------------------------

BAD: dict[str, dict[str, Any]] = {
    "an unknown kind": {"kind": "end"},
    "no kind": {"kind": ""},
    "an unknown outcome": {"outcome": "won"},
    "no outcome": {"outcome": ""},
    "reopened is no outcome": {"outcome": "reopened"},
    "a time that is no number": {"ttl": "abc"},
    "a time before now": {"ttl": "-1"},
    "a part of a millisecond": {"ttl": "1.5"},
    "a time without end": {"ttl": "9" * 16},
}


@pytest.mark.parametrize("changes", BAD.values(), ids=BAD)
@shows("close", "BADARG")
def test_what_makes_no_sense_is_refused(changes: dict[str, Any], runs: Runs, store: Store) -> None:
    put_run(store)
    put_run(store, "good")
    before = everything(store)
    assert close(runs, closing(**changes)) == [BADARG]
    assert not changed(before, store)
    assert close(runs, closing(**changes), closing("good")) == [BADARG, OK]


@pytest.mark.parametrize("parts", [1, 16, 18])
def test_a_number_of_arguments_that_is_no_whole_number_of_items_does_nothing(
    parts: int, runs: Runs, store: Store
) -> None:
    put_run(store)
    torn: Any = (closing() * 2)[:parts]
    before = everything(store)
    assert close(runs, torn) == [Reply("BADARG", "not a whole number of items")]
    assert not changed(before, store)


def test_no_items_are_no_trouble(runs: Runs, store: Store) -> None:
    before = everything(store)
    assert close(runs) == []
    assert not changed(before, store)


@pytest.mark.parametrize("kind", ["close", "reopen", "mark", "forget"])
@pytest.mark.parametrize(
    ("key", "wanted"),
    [("beat:open", "zset"), ("beat:closed", "zset"), ("beat:events", "stream"), (RUNS, "list"), (SCHEDULE, "hash")],
)
@shows("close", "BADTYPE")
def test_a_key_that_is_not_what_it_should_be_is_named_and_nothing_is_changed(
    key: str, wanted: str, kind: str, runs: Runs, store: Store
) -> None:
    put_run(store)
    spoil(store, key)
    before = everything(store)
    assert close(runs, closing(kind=kind)) == [Reply("BADTYPE", f"{key} is a string, not a {wanted}")]
    assert not changed(before, store)
    store.client.delete(key)


def test_a_bad_item_between_two_good_ones_does_not_hurt_them(runs: Runs, store: Store) -> None:
    put_schedule(store, "bad")
    for job in ("good1", "bad", "good2"):
        put_run(store, job)
    spoil(store, "beat:runs:bad")
    items = [closing("good1"), closing("bad", id="bad"), closing("good2")]
    assert [reply.code for reply in close(runs, *items)] == ["OK", "BADTYPE", "OK"]
    assert counts(store) == (2, 0, 0, 0)
    assert list(records(store)) == list(open_runs(store)) == ["bad"]
    store.client.delete("beat:runs:bad")


def test_a_schedule_that_is_gone_gets_no_ledger_and_the_event_is_told(runs: Runs, store: Store) -> None:
    put_run(store)
    store.client.delete(SCHEDULE, RUNS)
    assert close(runs, closing()) == [OK]
    assert not store.client.exists(SCHEDULE, RUNS)
    assert (open_runs(store), records(store)) == ({}, {})
    assert (told(store)[-1]["type"], told(store)[-1]["job"]) == ("succeeded", JOB)


@pytest.mark.parametrize(
    ("rules", "changes"),
    [
        (["-lpush"], {}), (["-xadd"], {}), (["-hset"], {}), (["-zrem"], {}), (["-hdel"], {}),
        (["-zadd"], {"record": CLOSED, "outcome": "failed"}), (["-del"], {"ttl": "0"}), (["-pexpire"], {"ttl": "5000"}),
        (["resetkeys", "~beat:*", "~rq:job:*", "%R~rq:*"], {"ttl": "0"}),
        (["resetkeys", "~beat:*", "~rq:job:*", "%R~rq:*"], {"ttl": "5000"}),
    ],
)  # fmt: skip
def test_a_user_who_may_not_do_all_of_it_does_nothing(rules: list[str], changes: dict[str, Any], store: Store) -> None:
    put_schedule(store)
    put_kept(store)
    before = everything(store)
    with restricted(store, *rules) as other, pytest.raises(NoPermissionError):
        close(Runs(other), closing(registry=FINISHED, error="e", **changes))
    assert not changed(before, store)


def test_an_outbox_that_takes_no_more_does_not_keep_a_run_open(runs: Runs, store: Store) -> None:
    put_run(store)
    store.client.xadd("beat:events", {"type": "last"}, id=f"{2**64 - 1}-{2**64 - 1}")
    assert close(runs, closing()) == [OK]
    assert (counts(store), ledger(store)[0]["type"]) == ((1, 0, 0, 0), "succeeded")


# --- how long RQ keeps it --------------------------------------------------------------------------------------------

FINISHED, JOB_KEY, RESULTS = "rq:finished:default", f"rq:job:{JOB}", f"rq:results:{JOB}"


def put_kept(store: Store) -> None:
    put_run(store)
    put_result(store)
    store.client.expire(JOB_KEY, 500)
    store.client.zadd(FINISHED, {JOB: 9_999_999_999, "other": 9_999_999_999})


def test_a_job_that_nobody_wants_is_gone_at_once(runs: Runs, store: Store) -> None:
    put_kept(store)
    assert close(runs, closing(ttl="0", registry=FINISHED)) == [OK]
    assert not store.client.exists(JOB_KEY, RESULTS)
    assert store.client.zrange(FINISHED, 0, -1) == [b"other"]


def test_a_job_stays_for_as_long_as_was_asked(runs: Runs, store: Store) -> None:
    put_kept(store)
    now = store.time().timestamp()
    assert close(runs, closing(ttl="7000", registry=FINISHED)) == [OK]
    for key in (JOB_KEY, RESULTS):
        assert 0 < store.client.pttl(key) <= 7000
    assert store.client.zscore(FINISHED, JOB) == pytest.approx(now + 7, abs=30)
    assert store.client.zscore(FINISHED, "other") == 9_999_999_999


def test_what_rq_has_seen_to_is_left_to_it(runs: Runs, store: Store) -> None:
    put_kept(store)
    before = everything(store)
    assert close(runs, closing(ttl="", registry=FINISHED)) == [OK]
    assert not changed(before, store) & {JOB_KEY, RESULTS, FINISHED}


@pytest.mark.parametrize("ttl", ["0", "7000"])
def test_a_registry_that_does_not_know_the_job_does_not_get_it(ttl: str, runs: Runs, store: Store) -> None:
    put_run(store)
    store.client.zadd(FINISHED, {"other": 1})
    assert close(runs, closing(ttl=ttl, registry=FINISHED)) == [OK]
    assert store.client.zrange(FINISHED, 0, -1) == [b"other"]


@pytest.mark.parametrize("ttl", ["0", "7000"])
def test_a_registry_that_is_none_is_no_trouble(ttl: str, runs: Runs, store: Store) -> None:
    put_run(store)
    spoil(store, FINISHED)
    assert close(runs, closing(ttl=ttl, registry=FINISHED)) == [OK]
    assert store.client.get(FINISHED) == b"garbage"


# --- what is watched -------------------------------------------------------------------------------------------------


def test_of_the_closed_the_newest_are_watched(runs: Runs, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "WATCHED_LIMIT", 3)
    for n in range(5):
        put_closed(store, f"old-{n}", since=n + 1)
    put_run(store)
    assert close(runs, closing(outcome="failed", record=CLOSED, error="e")) == [OK]
    assert list(closed_runs(store)) == ["old-3", "old-4", JOB]
    assert records(store).keys() == closed_runs(store).keys()


def test_a_limit_that_was_lowered_is_reached_a_hundred_at_a_time(
    runs: Runs, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched, "WATCHED_LIMIT", 10)
    for n in range(250):
        put_closed(store, f"old-{n}", since=n + 1)
    left = []
    for n in range(3):
        put_run(store, f"job-{n}")
        assert close(runs, closing(f"job-{n}", outcome="failed", record=CLOSED, error="e")) == [OK]
        left.append(len(closed_runs(store)))
    assert left == [151, 52, 10]
    assert records(store).keys() == closed_runs(store).keys()


def test_a_run_that_is_amended_keeps_its_place(runs: Runs, store: Store) -> None:
    put_closed(store, JOB, since=5)
    stopped = record(outcome="stopped", sign=f"failed|{STARTED}|{ENDED}")
    item = closing(seen=CLOSED, sign=f"failed|{STARTED}|{ENDED}", outcome="stopped", record=stopped, was="failed")
    assert close(runs, item) == [OK]
    assert closed_runs(store) == {JOB: 5}
    assert records(store) == {JOB: json.loads(stopped)}


# --- the line --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ['web "2"', "back\\slash", "tab\tand\nline", "nul\x00", "é 🎉", "x" * 300, ""])
def test_whatever_a_beat_is_called_the_line_is_json(name: str, runs: Runs, store: Store) -> None:
    put_run(store)
    assert close(runs, closing(), token=name) == [OK]
    line, event = ledger(store)[0], told(store)[-1]
    assert line["beat"] == name
    assert json.loads(event["entry"]) == line
    assert event["by"] == name


def test_every_line_is_read_by_the_reader(runs: Runs, store: Store) -> None:
    put_run(store)
    entry = json.dumps(
        {"type": "failed", "tick": TICK, "job": JOB, "started": None, "ended": None, "duration": None, "worker": "wö",
         "attempts": 2, "error": {"type": "E", "message": 'a "quoted" \\ é\n\x00', "traceback": "t"}}
    )[:-1]  # fmt: skip
    assert close(runs, closing(outcome="failed", entry=entry, record=CLOSED, error="e")) == [OK]
    put_job(store, JOB, "queued")
    assert close(runs, reopening()) == [OK]
    found: Any = store.client.lrange(RUNS, 0, -1)
    reopened, failed, _ = map(lines.read, found)
    assert isinstance(reopened, lines.Reopened)
    assert isinstance(failed, lines.Outcome)
    assert (reopened.was, reopened.job, reopened.beat) == ("failed", JOB, "ours")
    assert failed.error == lines.Error("E", 'a "quoted" \\ é\n\x00', "t")
    assert (failed.attempts, failed.worker) == (2, "wö")


@pytest.mark.parametrize("limit", [1, 3])
def test_outcomes_without_end_do_not_make_the_ledger_grow_without_end(limit: int, store: Store) -> None:
    """A job that somebody requeues for ever."""
    put_schedule(store)
    small = Runs(Store(store.client, Keys(), history_limit=limit))
    for n in range(60):
        put_run(store, f"job-{n}")
        assert close(small, closing(f"job-{n}")) == [OK]
    found = ledger(store)
    assert len(found) == 4 * limit + 20
    assert found[0]["job"] == "job-59"


def test_the_events_are_bounded(store: Store) -> None:
    put_schedule(store)
    small = Runs(Store(store.client, Keys(), events_limit=100))
    with store.client.pipeline(transaction=False) as pipe:
        for _ in range(2_000):
            pipe.xadd(store.keys.events, {"type": "old"})
        pipe.execute()
    put_run(store)
    assert close(small, closing()) == [OK]
    assert 100 <= store.client.xlen(store.keys.events) < 300
    assert told(store)[-1]["type"] == "succeeded"


# --- runs are not closed in the order in which they ended ------------------------------------------------------------

EARLY, LATE = "2026-11-16T08:00:00.000Z", "2026-11-16T10:00:00.000Z"


def closed_as(runs: Runs, store: Store, job: str, outcome: str, ended: str, **changes: Any) -> None:
    put_run(store, job)
    item = closing(job, outcome=outcome, ended=ended, error="KeyError: 'x'", **changes)
    assert close(runs, item) == [OK]


def test_an_older_success_sets_nothing_back(runs: Runs, store: Store) -> None:
    closed_as(runs, store, "b", "succeeded", LATE, duration="2")
    closed_as(runs, store, "a", "succeeded", EARLY, duration="1")
    found = hash_of(store)
    assert (found["last_success"], found["last_duration"], found["success_count"]) == (LATE, "2", "2")


def test_a_failure_before_the_last_success_is_no_streak(runs: Runs, store: Store) -> None:
    closed_as(runs, store, "b", "succeeded", LATE)
    closed_as(runs, store, "a", "failed", EARLY)
    assert counts(store) == (1, 1, 0, 0)


def test_a_success_before_the_last_failure_ends_no_streak(runs: Runs, store: Store) -> None:
    closed_as(runs, store, "b", "failed", LATE)
    closed_as(runs, store, "a", "succeeded", EARLY)
    assert counts(store) == (1, 1, 0, 1)


def test_a_run_of_an_earlier_life_of_its_schedule_is_told_and_not_counted(runs: Runs, store: Store) -> None:
    """Somebody removed the schedule, and it came again."""
    closed_as(runs, store, "a", "succeeded", LATE, life="2020-01-01T00:00:00.000Z")
    assert counts(store) == (0, 0, 0, 0)
    assert ledger(store)[0]["type"] == told(store)[-1]["type"] == "succeeded"
    closed_as(runs, store, "b", "succeeded", LATE, life=hash_of(store)["created_at"])
    assert counts(store) == (1, 0, 0, 0)


def test_why_a_schedule_is_broken_is_not_overwritten(runs: Runs, store: Store) -> None:
    store.client.hset(SCHEDULE, mapping={"state": "broken", "last_error": "definition cannot be read"})
    closed_as(runs, store, "a", "failed", LATE)
    assert hash_of(store)["last_error"] == "definition cannot be read"
    assert counts(store) == (0, 1, 0, 1)
