"""The client on a real Redis: histories, runs, answers, verifications, and whatever else may lie in the keys."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from redis import Redis

import beat
from beat import Client
from beat.client import reader
from beat.errors import BadDuration, BadInstant, BadOption, BeatError, ConfigError, NoRedis, UnknownSchedule
from beat.history import ledger
from beat.history.history import Change, Fired, Passed
from beat.jobs.job_template import job_key, run_block
from beat.jobs.run import Run
from beat.timing import clock
from tests.support.builders import Calls, everything
from tests.support.lines import MINUTE, MINUTELY, NINE, SECOND, Ledger

if TYPE_CHECKING:
    from datetime import datetime

    from beat.dev.embedded import PrivateRedis
    from beat.history.history import Line
    from beat.storage.store import Store

ERROR = ledger.Error("KeyError", "'x'", "Traceback …")


@pytest.fixture
def client(redis: Redis, server: PrivateRedis) -> Client:  # noqa: ARG001 (it empties the server)
    return Client(server.url)


def minutely(schedule_id: str = "report", runs: int = 3, first: datetime = NINE) -> Ledger:
    """So many ticks, fired and ended well."""
    book = Ledger(schedule_id).registered(first - 30 * SECOND, first)
    for n in range(runs):
        book.fired(first + n * MINUTE).ended(first + n * MINUTE)
    return book


def jobs(lines: list[Line]) -> list[str]:
    return [line.job_id for line in lines if isinstance(line, Fired)]


def rq_job(redis: Redis, book: Ledger, tick: datetime, **fields: Any) -> str:
    """The hash of a job, with the meta that beat gives it."""
    job_id = book.job(tick)
    told: dict[Any, Any] = {"meta": b"\x80\x05}" + run_block(Run(book.id, tick, "scheduler"), "pickle"), **fields}
    redis.hset(job_key(job_id), mapping=told)
    return job_id


# Which Redis


def test_the_client_is_what_users_import() -> None:
    assert beat.Client is Client


def test_a_client_of_somebody_else_shows_which_redis(redis: Redis) -> None:
    minutely().keep(redis)
    assert len(Client(redis).history("report")) == 4


def test_the_settings_say_which_redis_and_which_prefix(
    redis: Redis, server: PrivateRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    minutely().keep(redis, "app:")
    monkeypatch.setenv("BEAT_REDIS_URL", server.url)
    assert Client(prefix="app:").get("report").run_count == 3
    assert Client().history() == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.now(),
        lambda client: client.history(),
        lambda client: client.get_run("beat_report_1"),
        lambda client: client.why("report", NINE),
        lambda client: client.verify(),
        lambda client: client.show("report"),
        lambda client: client.timeline(),
    ],
)
def test_without_a_redis_every_question_is_answered_in_one_sentence(ask: Any, tmp_path: Any) -> None:
    nowhere = f"unix://joe:hunter2@{tmp_path}/none.sock"
    with pytest.raises(NoRedis) as refusal:
        ask(Client(nowhere))
    assert str(refusal.value).startswith(f"no Redis answers at unix://joe:***@{tmp_path}/none.sock: ")
    assert "hunter2" not in str(refusal.value)


def test_a_url_that_redis_py_cannot_use_is_configuration() -> None:
    with pytest.raises(ConfigError, match=r"cannot be used: .*colour"):
        Client("redis://localhost/0?colour=red")


@pytest.mark.parametrize(
    ("rules", "lacks"),
    [({"keys": ["*"], "commands": ["+time"]}, "'multi' command"), ({"categories": ["+@all"]}, "key")],
    ids=["a command", "keys"],
)
@pytest.mark.parametrize("connected", [str, Redis.from_url], ids=["a URL", "a client"])
def test_a_user_who_may_not_read_is_told_so(
    rules: dict[str, Any], lacks: str, connected: Any, redis: Redis, server: PrivateRedis
) -> None:
    redis.acl_setuser("joe", enabled=True, passwords=["+hunter2"], **rules)
    try:
        with pytest.raises(NoRedis, match=rf"refuses user 'joe': .*{lacks}") as refusal:
            Client(connected(server.url.replace("unix://", "unix://joe:hunter2@"))).show("report")
    finally:
        redis.acl_deluser("joe")
    assert "hunter2" not in str(refusal.value)


def test_no_question_writes_anything(client: Client, store: Store, redis: Redis) -> None:
    book = minutely().keep(redis)
    rq_job(redis, book, NINE)
    before = everything(store)
    client.history()
    client.history("report", outcome="failed")
    client.get_run(book.job(NINE))
    client.why("report", NINE)
    client.verify()
    client.show("report")
    assert everything(store) == before


# Histories


def test_a_history_is_newest_first_with_runs_skips_and_changes(client: Client, redis: Redis) -> None:
    minutely().skipped(NINE + 3 * MINUTE, NINE + 4 * MINUTE, 2).keep(redis)
    lines = client.history("report")
    assert [type(line) for line in lines] == [Passed, Fired, Fired, Fired, Change]
    assert [line.tick for line in lines if isinstance(line, Fired)] == [NINE + n * MINUTE for n in (2, 1, 0)]


def test_a_history_has_as_many_lines_as_are_wanted(client: Client, redis: Redis) -> None:
    book = minutely().keep(redis)
    assert jobs(client.history("report", limit=2)) == [book.job(NINE + 2 * MINUTE), book.job(NINE + MINUTE)]
    assert client.history("report", limit=0) == []


def test_a_history_longer_than_a_page_is_read_whole(client: Client, redis: Redis) -> None:
    minutely(runs=1200).keep(redis)
    assert len(client.history("report")) == 1201


def test_a_history_is_read_no_further_than_asked(client: Client, redis: Redis, store: Store) -> None:
    minutely(runs=1200).keep(redis)
    calls = Calls(store)
    assert len(client.history("report", limit=40)) == 40
    assert calls.count()["lrange"] == 2  # a look at the newest line, and one page


@pytest.mark.parametrize("page", [2, 3, 5, 7, 100])
def test_a_ledger_that_grows_while_it_is_read_shows_every_line_once(client: Client, redis: Redis, page: int) -> None:
    book = minutely(runs=20).keep(redis)
    expected = client.history("report")
    with mock.patch.object(reader, "_PAGE", page):
        seen = []
        for number, lines in enumerate(client._archive.pages("report")):  # noqa: SLF001 (one page at a time)
            seen += lines
            for _ in range(number % 4):
                book.fired(NINE + 60 * MINUTE)
                redis.lpush("beat:runs:report", json.dumps(ledger.plain(book.entries[-1])))
    redis.delete("beat:runs:report")
    redis.rpush("beat:runs:report", *seen)
    assert client.history("report") == expected


def test_a_ledger_that_is_trimmed_while_it_is_read_ends_early(client: Client, redis: Redis) -> None:
    minutely(runs=20).keep(redis)
    with mock.patch.object(reader, "_PAGE", 5):
        pages = client._archive.pages("report")  # noqa: SLF001
        next(pages)
        redis.ltrim("beat:runs:report", 0, 2)
        assert list(pages) == []


@pytest.mark.parametrize("page", [2, 3, 100])
def test_the_end_of_a_run_is_known_however_far_it_lies_from_its_beginning(
    client: Client, redis: Redis, page: int
) -> None:
    book = Ledger().registered(NINE - MINUTE, NINE)
    for n in range(6):
        book.fired(NINE + n * MINUTE)
    book.ended(NINE, "failed").ended(NINE + 3 * MINUTE).keep(redis)
    with mock.patch.object(reader, "_PAGE", page):
        states = [line.state for line in client.history("report") if isinstance(line, Fired)]
    assert states == ["open", "open", "succeeded", "open", "open", "failed"]


def test_what_was_trimmed_of_a_run_leaves_its_end(client: Client, redis: Redis) -> None:
    book = minutely().keep(redis)
    redis.ltrim("beat:runs:report", 0, 4)  # the last one left is the outcome of 9:00
    oldest = client.history("report")[-1]
    assert isinstance(oldest, Fired)
    assert (oldest.job_id, oldest.enqueued_at, oldest.state) == (book.job(NINE), None, "succeeded")


@pytest.mark.parametrize("since", [NINE + MINUTE, NINE + MINUTE + 3 * SECOND])
def test_since_counts_the_last_word(client: Client, redis: Redis, since: datetime) -> None:
    book = minutely().keep(redis)  # the run of 9:01 ended after 9:01:05
    assert jobs(client.history("report", since=since)) == [book.job(NINE + n * MINUTE) for n in (2, 1)]


@pytest.mark.parametrize("page", [2, 3, 100])
def test_a_run_that_began_before_and_ended_since_is_found(client: Client, redis: Redis, page: int) -> None:
    book = Ledger().registered(NINE - MINUTE, NINE)
    for n in range(9):
        book.fired(NINE + n * MINUTE)
    book.ended(NINE + MINUTE, "failed", at=NINE + 20 * MINUTE).keep(redis)
    with mock.patch.object(reader, "_PAGE", page):
        assert jobs(client.history("report", since=NINE + 19 * MINUTE)) == [book.job(NINE + MINUTE)]
        assert jobs(client.history(since=NINE + 19 * MINUTE)) == [book.job(NINE + MINUTE)]


def test_until_leaves_out_what_came_later(client: Client, redis: Redis) -> None:
    book = minutely().keep(redis)
    assert jobs(client.history("report", until=NINE + MINUTE)) == [book.job(NINE)]


def test_a_length_of_time_counts_back_from_redis_own_now(client: Client, redis: Redis) -> None:
    now = client.now().replace(microsecond=0)
    book = minutely(first=now - timedelta(minutes=10)).keep(redis)
    for since in ("9m30s", timedelta(seconds=570)):
        assert jobs(client.history("report", since=since)) == [book.job(now - n * MINUTE) for n in (8, 9)]


@pytest.mark.parametrize(
    ("outcome", "ticks"),
    [("failed", [1]), (("failed", "lost"), [2, 1]), ("succeeded", [0]), ("open", [4]), ("stopped", [3])],
)
def test_only_the_outcomes_that_are_wanted(client: Client, redis: Redis, outcome: Any, ticks: list[int]) -> None:
    book = Ledger().registered(NINE - MINUTE, NINE)
    for n in range(5):
        book.fired(NINE + n * MINUTE)
    for n, kind in enumerate(("succeeded", "failed", "lost", "stopped")):
        book.ended(NINE + n * MINUTE, kind)
    book.keep(redis)
    for schedule_id in ("report", None):
        assert jobs(client.history(schedule_id, outcome=outcome)) == [book.job(NINE + n * MINUTE) for n in ticks]


def test_what_was_skipped_can_be_asked_for(client: Client, redis: Redis) -> None:
    minutely().skipped(NINE + 3 * MINUTE, NINE + 3 * MINUTE, 1).keep(redis)
    assert [type(line) for line in client.history(outcome="skipped")] == [Passed]


def test_the_histories_of_all_schedules_are_one(client: Client, redis: Redis) -> None:
    books = [minutely(name, first=NINE + n * SECOND).keep(redis) for n, name in enumerate(("a", "b", "c"))]
    lines = client.history()
    assert [line.at for line in lines] == sorted((line.at for line in lines), reverse=True)
    assert len(lines) == sum(4 for _ in books)
    assert jobs(client.history(limit=4)) == [
        books[n].job(NINE + m * MINUTE + n * SECOND) for n, m in ((2, 2), (1, 2), (0, 2), (2, 1))
    ]


def test_only_the_ledgers_that_can_have_the_next_line_are_opened(client: Client, redis: Redis) -> None:
    for n in range(30):
        minutely(f"s{n}", first=NINE + 100 * n * MINUTE).keep(redis)
    with mock.patch.object(client._archive, "pages", wraps=client._archive.pages) as pages:  # noqa: SLF001
        client.history(limit=4)
        assert {call.args[0] for call in pages.call_args_list} <= {"s29", "s28"}
        pages.reset_mock()
        client.history(since=NINE + 2850 * MINUTE)
        assert {call.args[0] for call in pages.call_args_list} == {"s29"}
        pages.reset_mock()
        client.history(outcome="failed")
        assert pages.call_args_list == []


def test_a_run_on_its_way_says_how_far_it_is(client: Client, redis: Redis) -> None:
    book = Ledger().registered(NINE - MINUTE, NINE)
    for n in range(5):
        book.fired(NINE + n * MINUTE)
    book.keep(redis)
    rq_job(redis, book, NINE, status="started", started_at="2026-11-16T09:00:02.004000Z", worker_name="x")
    rq_job(redis, book, NINE + MINUTE, status="queued")
    rq_job(redis, book, NINE + 2 * MINUTE, status="scheduled", started_at="2026-11-16T09:02:02.000000Z")
    rq_job(redis, book, NINE + 3 * MINUTE, status="finished")
    runs = [line for line in client.history("report") if isinstance(line, Fired)]
    assert [run.state for run in runs] == ["open", "open", "scheduled", "queued", "started"]
    assert (runs[-1].worker, runs[-1].wait, runs[2].started_at) == ("x", 2.0, None)


# Histories of what is not as it should be


GARBAGE = [
    b"",
    b"\xff\xfe",
    b"{",
    b"[]",
    b"null",
    b"7",
    b'{"type": "enqueued"}',
    b'{"type": "from the future", "at": 3}',
]


def test_foreign_lines_are_passed_over(client: Client, redis: Redis, store: Store) -> None:
    minutely().keep(redis)
    expected = client.history("report"), client.why("report", NINE), client.verify("report")
    raw: Any = store.client
    for line in GARBAGE:
        raw.lpush("beat:runs:report", line)
        raw.rpush("beat:runs:report", line)
        raw.linsert("beat:runs:report", "AFTER", raw.lindex("beat:runs:report", 4), line)
    assert client.history("report") == client.history() == expected[0]
    assert client.why("report", NINE) == expected[1]
    assert client.verify("report") == expected[2]
    assert client.show("report").statistics.runs == 3


def test_nothing_but_garbage_is_an_empty_history(client: Client, redis: Redis, store: Store) -> None:
    Ledger().keep(redis)
    store.client.lpush("beat:runs:report", *GARBAGE)
    assert client.history() == client.history("report") == []
    assert client.why("report", NINE).answer == "trimmed"


def test_a_ledger_that_is_no_list_is_an_empty_one_and_verify_says_so(client: Client, redis: Redis) -> None:
    Ledger().keep(redis)
    minutely("other").keep(redis)
    redis.set("beat:runs:report", "x")
    assert client.history("report") == []
    assert len(client.history()) == 4
    assert [found.problems[:1] for found in client.verify()] == [(), ("beat:runs:report is no list",)]
    assert client.show("report").statistics.runs == 0


def test_a_schedule_that_is_no_hash_concerns_itself_alone(client: Client, redis: Redis) -> None:
    minutely("other").keep(redis)
    redis.sadd("beat:schedules", "report")
    redis.set("beat:schedule:report", "x")
    assert len(client.history()) == 4
    assert [found.problems for found in client.verify()] == [(), ("beat:schedule:report is no hash",)]
    for ask in (client.show, client.get, client.verify):
        with pytest.raises(BeatError, match="beat:schedule:report is no hash"):
            ask("report")


def test_the_ledger_of_a_schedule_that_is_gone_can_be_read(client: Client, redis: Redis) -> None:
    minutely().keep(redis)
    redis.delete("beat:schedule:report")
    assert len(client.history("report")) == 4
    with pytest.raises(UnknownSchedule):
        client.why("report", NINE)


def test_shared_keys_of_another_type_harm_no_question(client: Client, redis: Redis) -> None:
    book = minutely().keep(redis)
    redis.set("beat:records", "x")
    redis.set("beat:open", "x")
    found = client.get_run(book.job(NINE))
    assert found is not None
    assert client.verify("report")[0].problems == ("beat:open is no sorted set",)


# Refusals


def test_an_unknown_schedule_is_refused_with_the_nearest(client: Client, redis: Redis) -> None:
    minutely().keep(redis)
    for ask in (client.history, client.show, client.verify, client.get):
        with pytest.raises(UnknownSchedule, match=r"schedule 'reprt'\. Did you mean 'report'\?") as refusal:
            ask("reprt")
        assert refusal.value.exit_code == 3
    with pytest.raises(UnknownSchedule, match=r"there is no schedule 'x y'\.$"):
        client.why("x y", NINE)


@pytest.mark.parametrize(
    ("asked", "refusal", "words"),
    [
        ({"outcome": "faild"}, BadOption, "Did you mean 'failed'"),
        ({"outcome": 7}, BadOption, "outcome 7 must be one of"),
        ({"outcome": ["failed", None]}, BadOption, "outcome None must be one of"),
        ({"limit": -1}, BadOption, "limit -1 must be a whole number"),
        ({"limit": "20"}, BadOption, "limit '20' must be a whole number"),
        ({"limit": True}, BadOption, "limit True must be a whole number"),
        ({"since": "yesterday"}, BadDuration, "since 'yesterday' is not a length of time"),
        ({"since": NINE.replace(tzinfo=None)}, BadInstant, "since .* has no time zone"),
        ({"until": timedelta.max}, BadInstant, "lies before the calendar"),
    ],
)
def test_a_wrong_question_is_refused(client: Client, asked: Any, refusal: Any, words: str) -> None:
    with pytest.raises(refusal, match=words):
        client.history(**asked)


# One run


def test_a_run_is_found_by_its_job(client: Client, redis: Redis) -> None:
    book = minutely().keep(redis)
    run = client.get_run(book.job(NINE + MINUTE))
    assert run is not None
    assert (run.schedule_id, run.tick, run.state) == ("report", NINE + MINUTE, "succeeded")


def test_schedules_whose_ids_begin_alike_are_told_apart(client: Client, redis: Redis) -> None:
    names = ("a", "a_1", "a_1_2", "a-1", "_", "a_")
    books = [minutely(name).keep(redis) for name in names]
    for name, book in zip(names, books, strict=True):
        run = client.get_run(book.job(NINE))
        assert run is not None
        assert run.schedule_id == name


def test_a_run_of_another_installation_is_found_there(redis: Redis, server: PrivateRedis) -> None:
    book = minutely().keep(redis, "app:x:")
    client = Client(server.url, prefix="app:x:")
    assert client.get_run(book.job(NINE)) is None  # its id begins with another prefix
    redis.lpush("app:x:runs:report", json.dumps({**ledger.plain(book.entries[1]), "job": "app_x_report_1"}))
    run = client.get_run("app_x_report_1")
    assert run is not None
    assert run.tick == NINE


def test_a_run_whose_verdict_was_trimmed_while_it_is_open_is_known_by_its_record(client: Client, redis: Redis) -> None:
    book = minutely().keep(redis)
    record = {"schedule": "report", "tick": clock.text(NINE), "by": "scheduler", "enqueued": clock.text(NINE), "n": 7}
    redis.hset("beat:records", "beat_report_odd", json.dumps(record))
    rq_job(redis, book, NINE, status="queued")
    run = client.get_run("beat_report_odd")
    assert run is not None
    assert (run.schedule_id, run.tick, run.number, run.triggered_by) == ("report", NINE, 7, "scheduler")


@pytest.mark.parametrize(
    "record", ["", "x", "[]", '{"schedule": 7}', '{"schedule": "gone", "enqueued": "x"}', "[" * 9999]
)
def test_a_record_that_nobody_can_read_harms_no_question(client: Client, redis: Redis, record: str) -> None:
    book = minutely().keep(redis)
    redis.hset("beat:records", book.job(NINE), record)
    assert client.get_run(book.job(NINE)) is not None
    assert client.verify("report")[0].sound


@pytest.mark.parametrize(
    "job_id", ["", "x", "beat_", "beat_report", "beat_report_", "beat_" + "_" * 5000, "\0", "report"]
)
def test_a_job_that_is_no_run_is_none(client: Client, redis: Redis, job_id: str) -> None:
    minutely().keep(redis)
    assert client.get_run(job_id) is None


# Why


def test_why_tells_of_the_run(client: Client, redis: Redis) -> None:
    minutely().fired(NINE + 3 * MINUTE).ended(NINE + 3 * MINUTE, "failed", error=ERROR).keep(redis)
    told = client.why("report", NINE + 3 * MINUTE)
    assert (told.answer, told.runs[0].state, told.runs[0].error) == ("enqueued", "failed", ERROR)


def test_why_tells_how_far_a_run_is(client: Client, redis: Redis) -> None:
    book = Ledger().registered(NINE - MINUTE, NINE).fired(NINE).keep(redis)
    rq_job(redis, book, NINE, status="queued")
    assert [run.state for run in client.why("report", NINE).runs] == ["queued"]


def test_why_tells_who_is_at_work_on_what_is_due(client: Client, redis: Redis) -> None:
    tick = client.now().replace(microsecond=0) - timedelta(seconds=90)
    Ledger(rule={"every": "1s", "tz": "UTC"}).registered(tick - SECOND, tick).keep(redis)
    redis.set("beat:lock:report", "web-1", px=60_000)
    redis.zadd("beat:instances", {"web-1": 9e12, "dead": 1})
    told = client.why("report", tick)
    assert (told.answer, told.holder, told.beats) == ("due", "web-1", 1)
    assert told.late is not None
    assert 90 <= told.late < 200


@pytest.mark.parametrize("instant", [NINE.replace(tzinfo=None), NINE.replace(year=9995), NINE.replace(year=1)])
def test_why_refuses_what_can_be_no_tick(client: Client, instant: datetime) -> None:
    with pytest.raises(BadInstant):
        client.why("report", instant)


# Verifications


def verified(client: Client) -> list[str]:
    (found,) = client.verify("report")
    return list(found.problems)


def test_a_sound_ledger_is_accounted_for(client: Client, redis: Redis) -> None:
    minutely(runs=5).skipped(NINE + 5 * MINUTE, NINE + 9 * MINUTE, 5).keep(redis)
    (found,) = client.verify("report")
    assert (found.expected, found.accounted, found.missing, found.double, found.sound) == (10, 10, (), (), True)


def test_a_missing_tick_is_found(client: Client, redis: Redis) -> None:
    book = minutely(runs=5)
    del book.entries[3:5]  # 9:01 and its outcome
    book.keep(redis)
    (found,) = client.verify("report")
    assert [(gap.first, gap.count) for gap in found.missing] == [(NINE + MINUTE, 1)]
    assert not found.sound


def test_counters_that_are_off_are_found(client: Client, redis: Redis) -> None:
    minutely().keep(redis, success_count="4")
    assert verified(client) == ["success_count is 4, and the ledger says 3"]


def test_only_what_came_since_is_verified(client: Client, redis: Redis) -> None:
    minutely(runs=5).keep(redis)
    assert client.verify("report", since=NINE + 3 * MINUTE)[0].expected == 2


def test_all_schedules_are_verified_in_the_order_of_their_ids(client: Client, redis: Redis) -> None:
    for name in ("b", "a", "c"):
        minutely(name).keep(redis)
    redis.sadd("beat:schedules", "gone")
    assert [(found.schedule_id, found.accounted) for found in client.verify()] == [("a", 3), ("b", 3), ("c", 3)]


def test_a_job_that_the_ledger_does_not_know_is_found(client: Client, redis: Redis) -> None:
    book = minutely().keep(redis)
    rq_job(redis, book, NINE)
    assert verified(client) == []
    stranger = rq_job(redis, book, NINE + 7 * SECOND)
    assert verified(client) == [f"job {stranger} of 2026-11-16T09:00:07Z exists, and no line says so"]
    assert [list(found.problems) for found in client.verify()] == [verified(client)]


def test_a_job_is_of_the_schedule_that_its_meta_says(client: Client, redis: Redis) -> None:
    minutely("a").keep(redis)
    other = minutely("a_1").keep(redis)
    rq_job(redis, other, NINE)
    assert all(found.sound for found in client.verify())
    assert all(found.sound for found in client.verify("a"))


def test_a_job_with_json_and_meta_of_its_own_is_known(client: Client, redis: Redis) -> None:
    book = minutely().keep(redis)
    tick = NINE + 7 * SECOND
    meta: Any = b'{"user": [1], "beat": ' + run_block(Run("report", tick, "scheduler"), "json")
    redis.hset(job_key(book.job(tick)), mapping={"meta": meta})
    assert len(verified(client)) == 1


@pytest.mark.parametrize("meta", [b"", b"\xff", b"{", b"cos\nsystem\n(S'true'\ntR.", b"\x80\x05N.", b"{}"])
def test_jobs_of_others_and_hostile_ones_harm_no_verification(client: Client, redis: Redis, meta: bytes) -> None:
    book = minutely().keep(redis)
    hostile: Any = meta
    redis.hset("rq:job:beat_report_666", mapping={"meta": hostile})
    redis.hset("rq:job:beat_report_667", mapping={"status": "queued"})
    redis.sadd("rq:job:beat_report_1:dependents", "x")
    redis.set("rq:job:beat_report_x", "x")
    redis.hset("rq:job:somebody-elses", mapping={"meta": hostile})
    assert verified(client) == []
    assert book.counts["run_count"] == 3


def test_a_job_of_another_installation_is_not_ours(client: Client, redis: Redis, server: PrivateRedis) -> None:
    minutely("x_report").keep(redis)
    tick = NINE + 7 * SECOND
    meta: Any = b"\x80\x05}" + run_block(Run("report", tick, "scheduler"), "pickle")
    redis.hset(job_key(f"beat_x_report_{clock.floor(tick)}"), mapping={"meta": meta})  # of the prefix beat:x:
    assert all(found.sound for found in client.verify())
    minutely("report").keep(redis, "beat:x:")
    assert not Client(server.url, prefix="beat:x:").verify("report")[0].sound
    redis.delete("beat:x:schedules", "beat:x:schedule:report", "beat:x:runs:report")


def test_an_open_run_must_be_waited_for(client: Client, redis: Redis) -> None:
    tick = NINE + 3 * MINUTE
    book = minutely().fired(tick).keep(redis)
    assert verified(client) == [f"job {book.job(tick)} has no outcome, and nobody waits for one"]
    redis.zadd("beat:open", {book.job(tick): 1, "beat_another_1": 1})
    assert verified(client) == []


def test_what_is_waited_for_must_be_open(client: Client, redis: Redis) -> None:
    book = minutely().keep(redis)
    redis.zadd("beat:open", {book.job(NINE): 1, "beat_report_m7": 1})
    redis.hset("beat:records", "beat_report_m7", '{"schedule":"report"}')
    assert len(verified(client)) == 2


# Show


def test_a_schedule_is_shown_with_its_statistics(client: Client, redis: Redis) -> None:
    book = minutely(runs=3).fired(NINE + 3 * MINUTE).ended(NINE + 3 * MINUTE, "failed").fired(NINE + 4 * MINUTE)
    book.skipped(NINE + 5 * MINUTE, NINE + 6 * MINUTE, 2).keep(redis)
    rq_job(redis, book, NINE + 4 * MINUTE, status="queued")
    found = client.show("report")
    assert (found.standing.run_count, found.standing.open_count, found.standing.rule) == (5, 1, MINUTELY)
    told = found.statistics
    assert (told.runs, told.succeeded, told.failed, told.open, told.skipped) == (5, 3, 1, 1, {"misfire": 2})
    assert (told.success_rate, told.duration and told.duration.p95) == (0.75, 3.1)
    assert [(run.job_id, run.state) for run in found.open_runs] == [(book.job(NINE + 4 * MINUTE), "queued")]
