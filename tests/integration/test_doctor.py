"""The doctor at a real Redis: what is wrong there, and only that, is found."""

from __future__ import annotations

import contextlib
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest

from beat._version import __version__
from beat.doctor import Doctor, collect, indexes, schedule_counts
from beat.doctor.facts import Index, Unseen
from beat.errors import NoRedis
from beat.storage.lifetimes import HEARTBEAT_MS
from beat.timing import clock
from tests.support.builders import another_client
from tests.support.lines import MINUTE, Ledger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.doctor import Finding
    from beat.storage.store import Store

EVERYTHING = ["~*", "&*", "+@all"]


@pytest.fixture
def doctor(redis: Redis, server: PrivateRedis) -> Doctor:  # noqa: ARG001 (it empties the server)
    return Doctor(server.url)


def now_of(store: Store) -> datetime:
    return store.time()


def schedule(redis: Redis, store: Store, name: str = "report", *, due: timedelta = MINUTE, **fields: Any) -> datetime:
    """A schedule as a beat would have left it, with its entry in the index; when it is due."""
    at = now_of(store).replace(microsecond=0) + due
    book = Ledger(name).registered(at - 3 * MINUTE, at - 2 * MINUTE).fired(at - 2 * MINUTE).ended(at - 2 * MINUTE)
    book.next = at
    book.keep(redis, **{"queue": "default", "kept": "1", **fields})
    if fields.get("state", "active") == "active":
        redis.zadd("beat:due", {name: clock.to_ms(at)})
    return at


def a_beat(redis: Redis, store: Store, name: str = "web-1", **fields: str) -> None:
    """Its heartbeat."""
    now = now_of(store)
    told = {"host": "web", "pid": "7", "version": __version__, "tzdata": "2026b", "clock_offset_ms": "3"}
    told |= {"started_at": clock.text(now), "seen_at": clock.text(now), "last_pass": clock.text(now), **fields}
    redis.hset(f"beat:instance:{name}", mapping=told)  # type: ignore[arg-type]
    redis.pexpire(f"beat:instance:{name}", HEARTBEAT_MS)
    redis.zadd("beat:instances", {name: clock.to_ms(now) + HEARTBEAT_MS})


def a_worker(redis: Redis, *queues: str, name: str = "w1") -> None:
    for queue in queues:
        redis.sadd(f"rq:workers:{queue}", f"rq:worker:{name}")
    redis.hset(f"rq:worker:{name}", "birth", "now")


def found(doctor: Doctor, check: str) -> list[tuple[str, str]]:
    return [(each.level, each.what) for each in doctor.examine() if each.check == check]


def ill(doctor: Doctor) -> dict[str, Finding]:
    """What is worth a person's look, beside the rights."""
    return {each.check: each for each in doctor.examine() if each.level in {"warning", "problem"}}


def changes(redis: Redis) -> int:
    """How often Redis has written something."""
    return int(redis.info("persistence")["rdb_changes_since_last_save"])


@pytest.fixture
def healthy(redis: Redis, store: Store) -> None:
    """Two beats, a schedule and a worker."""
    a_beat(redis, store, "web-1")
    a_beat(redis, store, "web-2")
    schedule(redis, store)
    a_worker(redis, "default")
    redis.hset("beat:meta", "format", "1")


# --- nothing is wrong ------------------------------------------------------------------------------------------------


def test_an_empty_redis_has_no_problem(doctor: Doctor) -> None:
    assert ill(doctor) == {}


@pytest.mark.usefixtures("healthy")
def test_where_all_is_well_nothing_is_said_to_be_ill(doctor: Doctor) -> None:
    assert ill(doctor) == {}
    groups = [each.group for each in doctor.examine()]
    assert list(dict.fromkeys(groups)) == ["redis", "memory", "beats", "schedules", "queues", "state", "rights"]


@pytest.mark.usefixtures("healthy")
def test_the_doctor_writes_nothing(doctor: Doctor, redis: Redis) -> None:
    before = changes(redis)
    doctor.examine()
    doctor.rule()
    assert changes(redis) == before
    redis.set("beat:mark", 1)
    redis.delete("beat:mark")
    assert changes(redis) == before + 2


def test_without_redis_there_is_one_sentence(tmp_path: Any) -> None:
    with pytest.raises(NoRedis, match="no Redis answers"):
        Doctor(f"unix://{tmp_path}/none.sock").examine()


def test_the_password_is_in_no_line(redis: Redis, server: PrivateRedis) -> None:
    redis.acl_setuser("joe", enabled=True, passwords=["+hunter2"], keys=["*"], categories=["+@all"])
    try:
        lines = Doctor(server.url.replace("unix://", "unix://joe:hunter2@")).examine()
    finally:
        redis.acl_deluser("joe")
    assert "hunter2" not in repr(lines)
    assert any("joe:***@" in each.what for each in lines)


# --- schedules -------------------------------------------------------------------------------------------------------


KINDS: dict[str, tuple[dict[str, str], str, str]] = {
    "broken": (
        {"state": "broken", "last_error": "next_run is not a time"},
        "problem",
        "other (next_run is not a time)",
    ),
    "failing": ({"consecutive_failures": "3"}, "warning", "other (3 in a row)"),
    "paused": ({"state": "paused", "paused_by": "ann", "pause_reason": "Monday"}, "note", "other (by ann: Monday)"),
    "overridden": ({"override": "{}", "overridden_by": "ann"}, "note", "other (by ann)"),
    "retired": ({"state": "retired"}, "note", "other"),
    "unannounced": ({"unannounced_at": "2026-11-17T09:00:00Z"}, "note", "since 2026-11-17T09:00:00Z"),
    "unknown": ({"state": "asleep"}, "warning", "other (asleep)"),
}


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize("kind", KINDS)
def test_a_schedule_of_a_kind_is_found(kind: str, doctor: Doctor, redis: Redis, store: Store) -> None:
    fields, level, words = KINDS[kind]
    schedule(redis, store, "other", **cast("Any", fields))
    ((found_level, what),) = found(doctor, kind)
    assert found_level == level
    assert words in what


@pytest.mark.usefixtures("healthy")
def test_what_is_due_for_longer_than_misfire_after_is_late(doctor: Doctor, redis: Redis, store: Store) -> None:
    schedule(redis, store, "a_little", due=timedelta(seconds=-15))
    assert found(doctor, "late") == [("ok", "none is late")]
    schedule(redis, store, "stuck", due=timedelta(minutes=-5), last_error="rq:queue:default is a string")
    ((level, what),) = found(doctor, "late")
    assert (level, what) == ("problem", "1 schedule late: stuck by 5m (rq:queue:default is a string)")


@pytest.mark.usefixtures("healthy")
def test_what_a_beat_is_at_work_on_is_not_late(doctor: Doctor, redis: Redis, store: Store) -> None:
    schedule(redis, store, "claimed", due=timedelta(minutes=-5))
    redis.set("beat:lock:claimed", "web-1", px=60_000)
    assert found(doctor, "late") == [("ok", "none is late")]
    redis.delete("beat:lock:claimed")


@pytest.mark.usefixtures("healthy")
def test_many_late_ones_are_counted_and_the_latest_named(doctor: Doctor, redis: Redis, store: Store) -> None:
    for n in range(10):
        schedule(redis, store, f"s{n}", due=timedelta(hours=-1 - n))
    ((_, what),) = found(doctor, "late")
    assert what == "10 schedules late: s9 by 10h, s8 by 9h, s7 by 8h and 7 more"


# --- the index -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("healthy")
def test_an_index_that_does_not_agree_is_found(doctor: Doctor, redis: Redis, store: Store) -> None:
    schedule(redis, store, "lost")
    redis.zrem("beat:due", "lost")
    schedule(redis, store, "early")
    redis.zadd("beat:due", {"early": 5})
    schedule(redis, store, "paused", state="paused")
    redis.zadd("beat:due", {"nobody": 1, "paused": 1})
    redis.sadd("beat:schedules", "empty")
    ((level, what),) = found(doctor, "index")
    assert level == "warning"
    assert "2 without a hash (empty, nobody)" in what or "2 without a hash (nobody, empty)" in what
    assert "1 not indexed (lost)" in what
    assert "1 indexed and not active (paused)" in what
    assert "1 indexed for another time (early)" in what


@pytest.mark.usefixtures("healthy")
def test_a_pause_with_an_end_is_indexed_by_its_end(doctor: Doctor, redis: Redis, store: Store) -> None:
    until = now_of(store).replace(microsecond=0) + timedelta(hours=1)
    schedule(redis, store, "paused", state="paused", pause_until=clock.text(until))
    redis.sadd("beat:in:paused", "paused")
    assert found(doctor, "index")[0][1] == "the index does not agree: 1 not indexed (paused)"
    redis.zadd("beat:due", {"paused": clock.to_ms(until)})
    assert [level for level, _ in found(doctor, "index")] == ["ok"]


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize("name", ["paused", "disabled", "finished", "retired", "broken", "failing", "overridden"])
def test_a_set_of_a_state_that_does_not_agree_is_found(name: str, doctor: Doctor, redis: Redis, store: Store) -> None:
    fields = {"failing": {"consecutive_failures": "2"}, "overridden": {"override": "{}"}}.get(name, {"state": name})
    schedule(redis, store, "other", **cast("Any", fields))
    unlisted = ("warning", "the index does not agree: 1 not in the set of their state (other)")
    assert found(doctor, "index") == [unlisted]
    redis.sadd(f"beat:in:{name}", "other")
    assert [level for level, _ in found(doctor, "index")] == ["ok"]
    redis.sadd(f"beat:in:{name}", "report")
    assert found(doctor, "index")[0][1].endswith("1 not in the set of their state (report)")
    redis.delete(f"beat:in:{name}")
    redis.set(f"beat:in:{name}", "of another type")
    assert found(doctor, "index") == [unlisted]


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize("hidden_s", [0, 10, 29])
def test_what_is_hidden_for_a_while_is_as_it_should_be(
    hidden_s: int, doctor: Doctor, redis: Redis, store: Store
) -> None:
    schedule(redis, store, "claimed", due=timedelta(seconds=-2))
    redis.zadd("beat:due", {"claimed": clock.to_ms(now_of(store)) + hidden_s * 1000})
    assert [level for level, _ in found(doctor, "index")] == ["ok"]


@pytest.mark.usefixtures("healthy")
def test_what_a_beat_puts_right_meanwhile_is_no_finding(store: Store, redis: Redis) -> None:
    at = schedule(redis, store, "fired")
    redis.zadd("beat:due", {"fired": 5})
    taken = schedule_counts.take(store, now_of(store), MINUTE)
    assert taken.suspects == ["fired"]
    redis.zadd("beat:due", {"fired": clock.to_ms(at)})
    assert indexes.look(store, taken.looked, taken.suspects, taken.kinds) == Index(looked=2)


@pytest.mark.parametrize("key", ["beat:due", "beat:schedules", "beat:events", "beat:open", "beat:meta"])
def test_a_key_of_the_wrong_type_is_named_with_a_remedy(key: str, doctor: Doctor, redis: Redis) -> None:
    redis.set(key, "x")
    try:
        wrong = [each for each in doctor.examine() if each.check == "types"]
        assert [each.level for each in wrong] == ["problem"]
        assert wrong[0].what.startswith(f"{key} is a string, not a ")
        assert wrong[0].remedy == f"beat redis -- RENAME {key} {key}.old"
    finally:
        redis.delete(key)


@pytest.mark.usefixtures("healthy")
def test_a_schedule_that_is_no_hash_stops_nothing(doctor: Doctor, redis: Redis) -> None:
    redis.set("beat:schedule:odd", "x")
    redis.sadd("beat:schedules", "odd")
    assert [each.check for each in doctor.examine() if each.level == "warning"] == ["unknown"]


@pytest.mark.usefixtures("healthy")
def test_a_newer_format_is_a_problem(doctor: Doctor, redis: Redis) -> None:
    redis.hset("beat:meta", "format", "99")
    assert [level for level, _ in found(doctor, "format")] == ["problem"]


@pytest.mark.usefixtures("healthy")
def test_a_clock_that_jumped_is_told(doctor: Doctor, redis: Redis, store: Store) -> None:
    now = clock.to_ms(now_of(store))
    redis.hset("beat:meta", "hold_until", now + 60_000)
    assert [level for level, _ in found(doctor, "clock")] == ["warning"]
    redis.hset("beat:meta", "hold_from", now + 30_000)
    assert found(doctor, "clock") == [], "the clock has gone back to before the jump"


@pytest.mark.usefixtures("healthy")
def test_a_function_that_nobody_exposes_is_found(doctor: Doctor, redis: Redis, store: Store) -> None:
    schedule(redis, store, "c1", source="api", func="app.tasks.report")
    schedule(redis, store, "c2", source="api", func="app.tasks.gone")
    redis.zadd("beat:functions", {"app.tasks.report": 1})
    try:
        ((level, what),) = found(doctor, "functions")
    finally:
        redis.delete("beat:functions")
    assert level == "warning"
    assert "1 schedule" in what
    assert "c2 (app.tasks.gone)" in what


# --- beats -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("healthy")
def test_no_beat_alive_is_a_problem(doctor: Doctor, redis: Redis) -> None:
    redis.delete("beat:instances", "beat:instance:web-1", "beat:instance:web-2")
    assert found(doctor, "alive") == [("problem", "no scheduler is running: nothing fires")]


@pytest.mark.usefixtures("healthy")
def test_a_beat_that_is_different_is_found(doctor: Doctor, redis: Redis, store: Store) -> None:
    long_ago = clock.text(now_of(store) - 5 * MINUTE)
    a_beat(redis, store, "web-3", version="0.0.1", tzdata="2020a", clock_offset_ms="-90000", last_pass=long_ago)
    unwell = ill(doctor)
    assert sorted(unwell) == ["clocks", "passes", "tzdata", "versions"]
    assert all("web-3" in each.what for each in unwell.values())


@pytest.mark.parametrize(("interval", "level"), [("60s", "ok"), ("30s", "problem")])
def test_a_scheduler_is_stuck_after_the_same_time_as_for_beat_health(
    server: PrivateRedis, redis: Redis, store: Store, interval: str, level: str
) -> None:
    a_beat(redis, store, "web-1", last_pass=clock.text(now_of(store) - timedelta(seconds=75)))
    vitals = Doctor(server.url, interval=interval).vitals()
    assert [each.level for each in vitals if each.check == "passes"] == [level]


# --- queues ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("healthy")
def test_a_queue_without_a_worker_is_found(doctor: Doctor, redis: Redis, store: Store) -> None:
    schedule(redis, store, "mail", queue="mail")
    assert [each.what.partition(",")[0] for each in ill(doctor).values()] == ["mail: no worker listens"]
    redis.rpush("rq:queue:mail", "a", "b")
    assert ill(doctor)["workers"].what == "mail: 2 jobs wait, and no worker listens"
    assert ill(doctor)["workers"].remedy == "rq worker mail"
    redis.hset("beat:unread", "mail", "2026-11-16T08:00:00.123Z 2026-11-16T09:00:00Z")
    assert ill(doctor)["workers"].what == "mail: 2 jobs wait, and no worker listens since 2026-11-16T08:00:00Z"
    a_worker(redis, "mail", name="w2")
    assert ill(doctor) == {}


@pytest.mark.usefixtures("healthy")
def test_a_queue_that_is_none_is_found(doctor: Doctor, redis: Redis) -> None:
    redis.set("rq:queue:default", "x")
    assert ill(doctor)["types"].remedy == "beat redis -- RENAME rq:queue:default rq:queue:default.old"


@pytest.mark.usefixtures("healthy")
def test_a_key_that_nobody_thought_of_is_a_problem_and_not_the_end(doctor: Doctor, redis: Redis) -> None:
    redis.delete("beat:instances")
    redis.set("beat:instances", "x")
    assert ill(doctor)["looking"].what.startswith("could not look at beats: WRONGTYPE")


@pytest.mark.usefixtures("healthy")
def test_a_worker_that_died_does_not_count(doctor: Doctor, redis: Redis) -> None:
    redis.delete("rq:worker:w1")
    assert ill(doctor)["workers"].level == "warning"


@pytest.mark.usefixtures("healthy")
def test_workers_that_are_suspended_are_told(doctor: Doctor, redis: Redis) -> None:
    redis.set("rq:suspended", 1)
    assert ill(doctor)["suspended"].remedy == "rq resume"


# --- how it grows ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("healthy")
def test_ledgers_and_events_are_measured(doctor: Doctor, redis: Redis) -> None:
    for n in range(5):
        redis.xadd("beat:events", {"n": str(n)})
    ((_, ledgers),) = found(doctor, "ledgers")
    assert "in 1 ledger; about" in ledgers
    assert "more a day" in ledgers
    ((_, events),) = found(doctor, "events")
    assert events.startswith("5 events, ")


def test_of_many_ledgers_some_are_measured(store: Store, redis: Redis) -> None:
    for n in range(1000):
        schedule(redis, store, f"s{n}")
    taken = schedule_counts.take(store, now_of(store), MINUTE)
    grown = collect.growth(store, Doctor(store.client).settings, taken, now_of(store))
    assert len(grown.sample) == schedule_counts.SAMPLE
    assert grown.ledgers == 1000
    assert all(each.size and each.verdicts == 1 and each.per_day == 1440 for each in grown.sample)


def test_many_schedules_are_read_in_pages(store: Store, redis: Redis) -> None:
    with redis.pipeline(transaction=False) as pipe:
        at = clock.text(now_of(store) + MINUTE)
        for n in range(5000):
            pipe.hset(f"beat:schedule:s{n}", mapping={"state": "active", "due_at": at, "queue": "default"})
            pipe.sadd("beat:schedules", f"s{n}")
            pipe.zadd("beat:due", {f"s{n}": clock.to_ms(clock.read(at))})
        pipe.execute()
    heard: list[int] = []
    redis.config_resetstat()
    taken = schedule_counts.take(store, now_of(store), MINUTE, heard.append)
    stats: Any = redis.info("commandstats")
    calls = {name.removeprefix("cmdstat_"): told["calls"] for name, told in stats.items()}
    assert taken.states == {"active": 5000}
    assert heard[-1] == 5000
    assert len(heard) == 10
    assert calls["hmget"] == 5000
    assert sum(calls.values()) - calls["hmget"] < 200
    assert taken.suspects == []


# --- rights ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def user(server: PrivateRedis, redis: Redis, *rules: str) -> Iterator[Doctor]:
    """The doctor as a user who has these rights."""
    admin: Any = redis
    admin.execute_command("ACL", "SETUSER", "few", "reset", "on", ">any", *rules)
    try:
        yield Doctor(server.url.replace("unix://", "unix://few:any@"))
    finally:
        admin.execute_command("ACL", "DELUSER", "few")


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize(
    ("denied", "check", "right"),
    [
        ("-info", "version", "+info"),
        ("-memory", "sizes", "+memory|usage"),
        ("-script|load", "scripts", "+script|load"),
        ("-script|exists", "scripts", "+script|exists"),
    ],
)
def test_what_could_not_be_looked_at_is_said_with_the_right(
    denied: str, check: str, right: str, server: PrivateRedis, redis: Redis
) -> None:
    with user(server, redis, *EVERYTHING, denied) as doctor:
        (told,) = [each for each in doctor.examine() if "could not look" in each.what]
    assert (told.check, told.level) == (check, "note")
    assert right in told.what
    assert told.remedy == "beat doctor --acl"


@pytest.mark.usefixtures("healthy")
def test_who_may_not_ask_what_an_administrator_asks_is_told_all_else(server: PrivateRedis, redis: Redis) -> None:
    denied = ["-info", "-config", "-memory", "-acl", "-slowlog", "-latency"]
    with user(server, redis, *EVERYTHING, *denied) as doctor:
        told = doctor.examine()
    assert [each.what for each in told if each.level in {"problem", "warning"} and each.group != "rights"] == []
    assert {each.group for each in told} == {"redis", "memory", "beats", "schedules", "queues", "state", "rights"}


@pytest.mark.usefixtures("healthy")
def test_who_may_read_nothing_is_told_what_is_lacking(server: PrivateRedis, redis: Redis) -> None:
    with user(server, redis, "+ping", "+time", "+eval", "+evalsha") as doctor:
        told = {each.check: each for each in doctor.examine()}
    assert "could not look at the schedules: this user lacks +scard" in told["number"].what
    assert told["lacking"].level == "problem"


@pytest.mark.usefixtures("healthy")
def test_a_command_that_a_script_may_not_call_is_no_matter_of_keys(server: PrivateRedis, redis: Redis) -> None:
    with user(server, redis, *EVERYTHING, "-hmget") as doctor:
        told = {each.check: each.what for each in doctor.examine()}
    assert told["number"].startswith("could not look at the schedules: this user lacks ")
    assert told["number"].endswith((" +hmget", " a right that Redis does not name"))  # the latter before 7.2
    assert "+hmget on ~beat:*" in told["lacking"]


@pytest.mark.usefixtures("healthy")
def test_who_may_run_no_script_is_told_so(server: PrivateRedis, redis: Redis) -> None:
    with user(server, redis, *EVERYTHING, "-evalsha") as doctor:
        told = {each.check: each for each in doctor.examine()}
    assert "lacks +evalsha" in told["lacking"].what


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize(
    ("rules", "level", "words"),
    [
        (["-rpush"], "problem", "+rpush on ~rq:queue:*"),
        (["resetkeys", "~beat:*", "~rq:job:*"], "problem", "~rq:queues"),
        (["-scan"], "warning", "+scan"),
        ([], "ok", "may do all"),
    ],
    ids=["a command", "keys", "a question", "nothing"],
)
def test_what_a_user_lacks_is_found(
    rules: list[str], level: str, words: str, server: PrivateRedis, redis: Redis
) -> None:
    with user(server, redis, *EVERYTHING, *rules) as doctor:
        ((found_level, what),) = found(doctor, "lacking")
    assert found_level == level
    assert words in what


@pytest.mark.usefixtures("healthy")
def test_what_a_user_has_too_much_is_found(server: PrivateRedis, redis: Redis) -> None:
    with user(server, redis, *EVERYTHING, "-@dangerous", "+info") as doctor:
        ((level, what),) = found(doctor, "excess")
    assert level == "note"
    assert what.endswith("read any key, change any key, delete queues, read jobs of others")


@pytest.mark.usefixtures("healthy")
def test_the_least_rights_are_enough_and_not_too_much(doctor: Doctor, server: PrivateRedis, redis: Redis) -> None:
    rule, left_out = doctor.rule()
    assert len(left_out) == 3
    with user(server, redis, *rule.words()) as little:
        told = {each.check: each.level for each in little.examine() if each.group == "rights"}
    assert told == {"lacking": "ok", "excess": "ok"}


# --- which features are in use ---------------------------------------------------------------------------------------


def test_where_there_is_nothing_to_tell_by_the_rule_is_for_everything(doctor: Doctor) -> None:
    assert doctor.rule()[1] == ["a database other than 0"]
    assert doctor.rule(every_feature=True)[1] == []


@pytest.mark.usefixtures("healthy")
def test_features_that_are_in_use_are_seen(doctor: Doctor, redis: Redis, store: Store) -> None:
    assert len(doctor.rule()[1]) == 3
    schedule(redis, store, "other", overlap="replace")
    assert len(doctor.rule()[1]) == 2
    redis.xgroup_create("beat:events", "mail", mkstream=True)
    assert doctor.rule()[1] == ["a database other than 0"]
    other = Doctor(f"{store.client.connection_pool.connection_kwargs['path']}".join(["unix://", "?db=3"]))
    assert "a database other than 0" not in other.rule()[1]


def test_a_right_that_redis_does_not_name_is_not_made_up(store: Store) -> None:
    admin: Any = store.client
    admin.execute_command("ACL", "SETUSER", "few", "reset", "on", "nopass", "~other:*", "+@all")
    try:
        client: Any = another_client(store)
        client.execute_command("AUTH", "few", "any")
        assert collect.tried(lambda: client.get("beat:due")) == Unseen("the right to these keys")
    finally:
        admin.execute_command("ACL", "DELUSER", "few")


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("this user has no permissions to run the 'xinfo|stream' command", "+xinfo|stream"),
        ("ACL failure in script: User few has no permissions to run the 'hmget' command script: on", "+hmget"),
        ("The user executing the script can't run this command or subcommand script: 1, on @user_script:1.",
         "a right that Redis does not name"),
        ("No permissions to access a key", "the right to these keys"),
        ("this user has no permissions to access one of the keys used as arguments", "the right to these keys"),
        ("The user executing the script can't access at least one of the keys mentioned in the command arguments",
         "the right to these keys"),
    ],
)  # fmt: skip
def test_the_right_is_told_from_the_words_of_every_server(said: str, right: str) -> None:
    assert collect.lacking(Exception(said)) == right


def test_plain_findings_can_be_written_as_json(doctor: Doctor) -> None:
    assert json.loads(json.dumps([each._asdict() for each in doctor.examine()]))


# --- Redis' clock ----------------------------------------------------------------------------------------------------


def test_what_lies_too_far_ahead_is_named(redis: Redis, store: Store, doctor: Doctor) -> None:
    schedule(redis, store)
    a_beat(redis, store)
    assert "ahead" not in names(doctor.examine())
    now_ms, day_ms = clock.to_ms(now_of(store)), 86_400_000
    for key in ("beat:watching", "beat:lock:report"):
        redis.set(key, "dead", px=day_ms)
    redis.set("beat:repaired", "dead")
    for index in ("open", "waiting", "announcements"):
        redis.zadd(f"beat:{index}", {"x": now_ms + day_ms})
    [found] = [each for each in doctor.examine() if each.check == "ahead"]
    assert found.level == "problem"
    assert "beat:watching by 24h, not 450 ms" in found.what
    assert " and 3 more" in found.what
    assert "beat run" in found.remedy
    far = collect.far(store, "default")
    assert {each.key: each.ms < 0 for each in far} == {
        "beat:watching": False, "beat:repaired": True, "beat:open": False, "beat:waiting": False,
        "beat:announcements": False,
    }  # fmt: skip
    taken = schedule_counts.take(store, now_of(store), MINUTE)
    assert [each.key for each in taken.far_locks] == ["beat:lock:report"]
    for key in ("beat:repaired", "beat:open", "beat:waiting", "beat:announcements", "beat:lock:report"):
        redis.delete(key)


def test_an_index_of_another_type_lies_nowhere(redis: Redis, store: Store) -> None:
    redis.rpush("beat:open", "garbage")
    assert collect.far(store, "default") == ()


def test_a_clock_that_went_back_is_a_problem_with_its_end(redis: Redis, store: Store, doctor: Doctor) -> None:
    at = schedule(redis, store, due=11 * MINUTE)
    a_beat(redis, store)
    redis.hset("beat:meta", mapping={"format": "1", "time": clock.text(now_of(store) + 10 * MINUTE)})
    [found] = [each for each in doctor.examine() if each.check == "clock"]
    assert found.level == "problem"
    assert found.what.startswith("Redis' clock went back: it shows ")
    assert found.what.endswith(f"so nothing fires until {clock.text(at)}")


def names(found: list[Finding]) -> set[str]:
    return {each.check for each in found}
