"""What the doctor makes of what it has read: facts, and the lines that follow from them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from beat.doctor.checks import acl, growth, keys, queues, schedulers, schedules, server
from beat.doctor.facts import (  # fmt: skip
    Beats,
    Case,
    Census,
    Far,
    Growth,
    Index,
    Kept,
    Late,
    Ledger,
    Queue,
    Queues,
    Rights,
    Server,
    Unfit,
    Unseen,
)
from beat.doctor.findings import LEVELS, counted, size, some, span
from beat.storage.clock_setback import Setback
from beat.storage.heartbeat import Instance
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from beat.doctor.findings import Finding

NOW = datetime(2026, 11, 17, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MB = 1024 * 1024
WELL: dict[str, Any] = {
    "redis_version": "7.2.4", "redis_mode": "standalone", "role": "master", "connected_slaves": 0,
    "maxmemory_policy": "noeviction", "aof_enabled": 1, "aof_last_write_status": "ok", "evicted_keys": 0,
    "rdb_last_bgsave_status": "ok", "rdb_last_save_time": int(NOW.timestamp()) - 7200,
    "rdb_changes_since_last_save": 1234, "used_memory": 10 * MB, "maxmemory": 100 * MB,
    "total_system_memory": 1000 * MB,
}  # fmt: skip


class Expected(NamedTuple):
    """A line: its check and level, words that it says, and words of its remedy."""

    check: str
    level: str
    what: str
    remedy: str


def ok(check: str, what: str = "") -> Expected:
    return Expected(check, "ok", what, "")


def note(check: str, what: str = "", remedy: str = "") -> Expected:
    return Expected(check, "note", what, remedy)


def warning(check: str, what: str = "", remedy: str = "") -> Expected:
    return Expected(check, "warning", what, remedy)


def problem(check: str, what: str = "", remedy: str = "") -> Expected:
    return Expected(check, "problem", what, remedy)


def says(found: Iterable[Finding], *expected: Expected) -> None:
    """Those lines, in any order and with no other of these checks that is not well."""
    lines = list(found)
    for finding in lines:
        assert finding.level in LEVELS
        assert finding.level in {"ok", "note"} or finding.remedy, f"{finding} says not what to do"
        assert finding.level != "ok" or not finding.remedy, f"{finding} is well, and has a remedy"
    for check, level, what, remedy in expected:
        fitting = [each for each in lines if each.check == check and each.level == level]
        assert any(what in each.what and remedy in each.remedy for each in fitting), (check, level, what, remedy, lines)
    ill = {(each.check, each.level) for each in lines if each.level != "ok"}
    assert ill == {each[:2] for each in expected if each.level != "ok"}


# --- Redis -----------------------------------------------------------------------------------------------------------


def without(name: str) -> dict[str, Any]:
    return {name: ...}


SERVERS: dict[str, tuple[dict[str, Any], list[Expected]]] = {
    "well": ({}, [ok("version", "Redis 7.2.4 at redis://host"), ok("role", "master"),
                  ok("persistence"), ok("eviction"), ok("memory", "10 MB used of 100 MB")]),
    "with replicas": ({"connected_slaves": 2}, [ok("role", "master of 2 replicas")]),
    "old": ({"redis_version": "6.2.14"}, [problem("version", "beat needs 7.0", "Valkey")]),
    "a cluster": ({"cluster_enabled": 1}, [problem("role", "RQ cannot work", "single Redis")]),
    "a replica": ({"role": "slave", "master_host": "db", "master_port": 6379},
                  [problem("role", "a replica of db:6379", "master's URL")]),
    "no log": ({"aof_enabled": 0}, [warning("persistence", "snapshot is 2h old, with 1,234 changes",
                                             "CONFIG SET appendonly yes")]),
    "the log cannot be written": ({"aof_last_write_status": "err"}, [problem("saving", "append-only")]),
    "the log cannot be rewritten": ({"aof_last_bgrewrite_status": "err"}, [warning("saving", "rewrite")]),
    "no snapshot": ({"rdb_last_bgsave_status": "err"}, [problem("saving", "refuse every write", "disk")]),
    "evicting": ({"maxmemory_policy": "allkeys-lru"},
                 [warning("eviction", "allkeys-lru", "CONFIG SET maxmemory-policy noeviction")]),
    "has evicted": ({"maxmemory_policy": "volatile-ttl", "evicted_keys": 3},
                    [problem("eviction", "thrown away 3 keys", "noeviction")]),
    "evicted before it was set right": ({"evicted_keys": 3}, []),
    "almost full": ({"used_memory": 80 * MB}, [warning("memory", "almost full", "CONFIG SET maxmemory 200mb")]),
    "full": ({"used_memory": 95 * MB}, [problem("memory", "nothing fires", "CONFIG SET maxmemory 200mb")]),
    "no limit": ({"maxmemory": 0}, [ok("memory", "of 1000 MB, the memory of its machine")]),
    "no limit, the machine is full": ({"maxmemory": 0, "used_memory": 990 * MB}, [problem("memory")]),
    "does not say what it keeps": (without("aof_enabled"), [note("persistence", "appendonly")]),
    "does not say what it throws away": (without("maxmemory_policy"), [note("eviction", "maxmemory-policy")]),
    "nobody knows the machine": ({"maxmemory": 0, "total_system_memory": 0},
                                 [note("memory", "no limit", "maxmemory")]),
}  # fmt: skip


@pytest.mark.parametrize("case", SERVERS)
def test_a_server_is_judged(case: str) -> None:
    changed, expected = SERVERS[case]
    info = {name: value for name, value in {**WELL, **changed}.items() if value is not ...}
    says(server.judge(Server("redis://host", info, NOW, (0.2,) * 20)), *expected)


def test_a_server_that_hides_what_it_is_is_said_to() -> None:
    found = server.judge(Server("redis://host", Unseen("+info"), NOW, (0.2, 0.4)))
    says(found, note("version", "lacks +info", "--acl"), ok("latency", "0.3 ms, at worst 0.4 ms"))


@pytest.mark.parametrize(
    ("pings", "level", "remedy"),
    [
        ((0.1, 0.2, 0.3), "ok", ""),
        ((1.0, 1.0, 199.0), "ok", ""),
        ((1.0, 1.0, 200.0), "warning", "SLOWLOG"),
        ((20.0,) * 20, "warning", "near Redis"),
        ((30.0, 30.0, 900.0), "warning", "near Redis"),
    ],
)
def test_latency_is_judged(pings: tuple[float, ...], level: str, remedy: str) -> None:
    says(server.latency(pings), Expected("latency", level, "at worst", remedy))


# --- how it grows ----------------------------------------------------------------------------------------------------

GROWTH = Growth(ledgers=0, sample=(), history_limit=1000, events=0, events_size=100, events_limit=10_000)
GROWING = Ledger(50_000, 100, 24.0)
FULL = Ledger(480_000, 1000, 24.0)
STILL = Ledger(50_000, 100, 0.0)
YOUNG = Ledger(200, 1, 1.0)


@pytest.mark.parametrize(
    ("sample", "ledgers", "expected"),
    [
        ([GROWING], 1, (50_000, 12_000, 500_000)),
        ([GROWING], 10, (500_000, 120_000, 5_000_000)),
        ([FULL], 1, (480_000, 0, 480_000)),
        ([STILL], 1, (50_000, 0, 50_000)),
        ([YOUNG], 1, (200, 480, 480_000)),
        ([GROWING, FULL], 2, (530_000, 12_000, 980_000)),
        ([Ledger(None, 100, 24.0)], 1, (48_000, 24 * 480, 480_000)),
        ([Ledger(499_000, 998, 24.0)], 1, (499_000, 1000, 500_000)),
    ],
    ids=["grows", "of many", "is full", "has stopped", "too young to tell", "some of each", "unseen", "is full today"],
)
def test_growth_is_estimated(sample: list[Ledger], ledgers: int, expected: tuple[float, ...]) -> None:
    assert growth.estimate(sample, ledgers, 1000) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (GROWTH, ok("ledgers", "no ledgers yet")),
        (replace(GROWTH, ledgers=2, sample=(GROWING, FULL)),
         ok("ledgers", "518 KB in 2 ledgers; about 12 KB more a day, and 957 KB in the end, for each keeps 1,000")),
        (replace(GROWTH, ledgers=1, sample=(FULL,)), ok("ledgers", "469 KB in 1 ledger; they grow no more")),
        (replace(GROWTH, ledgers=900, sample=(FULL,)), ok("ledgers", "(by 1 of them)")),
        (replace(GROWTH, ledgers=1, sample=(Ledger(None, 9, 1.0),)), note("sizes", "+memory|usage", "--acl")),
        (replace(GROWTH, events=500), ok("events", "500 events, 100 bytes; it grows to about 10,000")),
        (replace(GROWTH, events=10_050), ok("events", "it grows no more")),
        (replace(GROWTH, events=90_000), note("events", "more than about 10,000")),
        (replace(GROWTH, events=5, events_size=None), ok("events", "5 events; it")),
    ],
    ids=["none", "some", "full", "sampled", "hidden", "short", "trimmed", "too long", "size hidden"],
)  # fmt: skip
def test_growth_is_told(found: Growth, expected: Expected) -> None:
    says(growth.judge(found), expected)


# --- beats -----------------------------------------------------------------------------------------------------------


def instance(name: str, **other: Any) -> Instance:
    passed = NOW - 2 * SECOND
    told = Instance(name, "web", 7, "1.0", "2026b", "default", 3, 5, NOW - 900 * SECOND, NOW - 2 * SECOND, passed, 4)
    return told._replace(**other)


def living(*alive: Instance, schedules: int = 3) -> Beats:
    return Beats(alive, NOW, "1.0", 30 * SECOND, schedules)


BEATS: dict[str, tuple[Beats, list[Expected]]] = {
    "two": (living(instance("a"), instance("b")), [
        ok("alive", "2 schedulers running: a, b"), ok("passes", "2s ago"), ok("versions", "1.0"),
        ok("tzdata", "2026b"), ok("clocks", "within 4 ms")]),
    "none": (living(), [problem("alive", "nothing fires", "beat run")]),
    "none, and nothing to do": (living(schedules=0), [note("alive")]),
    "one": (living(instance("a")), [note("alive", "one scheduler running: a")]),
    "a stuck one": (living(instance("a"), instance("b", last_pass=NOW - 45 * SECOND)),
                    [problem("passes", "b has not looked for due ticks for 45s", "pid 7 on web")]),
    "one that never looked": (living(instance("a"), instance("b", last_pass=None)), [problem("passes", "15m")]),
    "one that has just started": (living(instance("a"), instance("b", last_pass=None, started_at=NOW - SECOND)),
                                  [ok("passes")]),
    "two versions": (living(instance("a"), instance("b", version="1.1")),
                     [warning("versions", "1.0 (a); 1.1 (b)", "deploy")]),
    "another version than ours": (living(instance("a", version="2.0"), instance("b", version="2.0")),
                                  [note("versions", "this command is 1.0", "rq-beat==2.0")]),
    "two releases of tzdata": (living(instance("a"), instance("b", tzdata="2025a")),
                               [warning("tzdata", "2025a (b); 2026b (a)", "tzdata")]),
    "a clock that is ahead": (living(instance("a"), instance("b", clock_offset_ms=4200)),
                              [warning("clocks", "b is 4.2 s ahead of Redis'", "chrony")]),
    "a clock that is behind": (living(instance("a"), instance("b", clock_offset_ms=-1000)),
                               [warning("clocks", "b is 1.0 s behind Redis'")]),
    "a clock that nobody knows": (living(instance("a"), instance("b", clock_offset_ms=None)), [ok("clocks")]),
}  # fmt: skip


@pytest.mark.parametrize("case", BEATS)
def test_beats_are_judged(case: str) -> None:
    found, expected = BEATS[case]
    says(schedulers.judge(found), *expected)


# --- schedules -------------------------------------------------------------------------------------------------------


def with_a(kind: str, number: int = 1, words: str = "") -> Census:
    states = {"active": 2, kind: number} if kind in schedules.STATES else {"active": 2}
    return Census(total=2 + number, states=states, kinds={kind: number}, cases={kind: (Case("report", words),)})


UNFIT = Unfit("a", "It could not be imported.", "Start it.")
SCHEDULES: dict[str, tuple[Census, list[Expected]]] = {
    "none": (Census(), [note("number", "no schedule", "beat run")]),
    "some": (Census(total=1200, states={"active": 1100, "paused": 100}),
             [ok("number", "1,200 schedules: 1,100 active, 100 paused"), ok("late"),
              ok("broken"), ok("failing")]),
    "late": (Census(total=4, late=4, latest=(Late("a", 720, "no queue"), Late("b", 90, ""), Late("c", 50, ""))),
             [problem("late", "4 schedules late: a by 12m (no queue), b by 2m, c by 50s and 1 more", "beat show a")]),
    "broken": (with_a("broken", 2, "next_run is not a time"),
               [problem("broken", "report (next_run is not a time) and 1 more", "beat show report")]),
    "failing": (with_a("failing", 1, "5 in a row"),
                [warning("failing", "report (5 in a row)", "beat history report --failed")]),
    "functions that workers cannot call": (
        replace(with_a("active", 2), unfit=(UNFIT, UNFIT._replace(id="b"), Unfit("c", "It is old.", "Deploy it."))),
        [problem("code", "2 schedules fail before the function begins: a, b: It could not be imported", "Start it."),
         problem("code", "1 schedule fails before the function begins: c: It is old", "Deploy it.")]),
    "many of them": (
        replace(with_a("active", 2), unfit=tuple(UNFIT._replace(problem=str(n)) for n in range(7))),
        [*(problem("code", f"begins: a: {n}") for n in range(5)),
         problem("code", "2 other problems of this kind", "beat history --failed")]),
    "paused": (with_a("paused", 1, "by ann: until Monday"),
               [note("paused", "report (by ann: until Monday)", "beat resume report")]),
    "overridden": (with_a("overridden"), [note("overridden", "by an operator", "beat reschedule report --reset")]),
    "retired": (with_a("retired", 3), [note("retired", "3 schedules", "beat remove --retired")]),
    "unannounced": (with_a("unannounced"), [note("unannounced", "about to be retired", "beat run")]),
    "unknown": (with_a("unknown"), [warning("unknown", "does not know", "beat show report")]),
}  # fmt: skip


@pytest.mark.parametrize("case", SCHEDULES)
def test_schedules_are_judged(case: str) -> None:
    found, expected = SCHEDULES[case]
    says(schedules.judge(found), *expected)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (Index(looked=1200), ok("index", "agrees with 1,200 schedules")),
        (Index(no_hash=("a",)), warning("index", "1 without a hash (a)", "beat run")),
        (Index(no_entry=("a", "b")), warning("index", "2 not indexed (a, b)")),
        (Index(unlisted=("a",)), warning("index", "1 not in the set of their state (a)")),
        (Index(not_active=("a",)), warning("index", "1 indexed and not active")),
        (
            Index(elsewhere=tuple("abcdef")),
            warning("index", "6 indexed for another time (a, b, c and 3 more)"),
        ),
    ],
    ids=["agrees", "no hash", "no entry", "unlisted", "not active", "elsewhere"],
)
def test_the_index_is_judged(found: Index, expected: Expected) -> None:
    says(schedules.index(found), expected)


# --- queues ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        (Queue("mail", 3, NOW, 0, 2), ok("workers", "mail (2 workers, 0 queued)")),
        (Queue("mail", 3, NOW, 12, 0), problem("workers", "mail: 12 jobs wait, and no worker", "rq worker mail")),
        (Queue("mail", 0, None, 1, 0), problem("workers", "1 job waits, and")),
        (Queue("mail", 0, None, 1, 0, "", NOW), problem("workers", f"no worker listens since {clock.text(NOW)}")),
        (Queue("mail", 3, NOW, 0, 0, "", NOW), warning("workers", f"listens since {clock.text(NOW)}, and 3 schedules")),
        (Queue("mail", 3, NOW + 90 * SECOND, 0, 0), warning("workers", "3 schedules will put", "rq worker mail")),
        (Queue("mail", 3, NOW + 90 * SECOND, 0, 0), warning("workers", "jobs there, the next due in 2m")),
        (Queue("mail", 1, NOW - SECOND, 0, 0), warning("workers", "the next due now")),
        (Queue("mail", 1, None, 0, 0), warning("workers", "1 schedule will put")),
        (Queue("mail", 3, NOW, None, None), note("workers", "mail", "--acl")),
        (Queue("mail", 3, NOW, None, 1, "q"), problem("types", "q is no queue", "beat redis -- RENAME q q.old")),
    ],
    ids=["served", "jobs wait", "jobs of nobody wait", "jobs wait since", "alone since", "to come", "to come, when",
         "due", "no tick", "hidden", "no queue"],
)  # fmt: skip
def test_a_queue_is_judged(queue: Queue, expected: Expected) -> None:
    says(queues.judge(Queues((queue,), suspended=False, now=NOW)), expected)


def test_a_queue_that_nobody_uses_is_not_worth_a_word() -> None:
    assert list(queues.judge(Queues((Queue("old", 0, None, 0, 0),), suspended=False, now=NOW))) == []


def test_workers_that_are_suspended_are_told() -> None:
    says(queues.judge(Queues((), suspended=True, now=NOW)), warning("suspended", "suspended", "rq resume"))


# --- what stands in Redis --------------------------------------------------------------------------------------------

KEPT = Kept((), "1", 1, None, 17, 17, {}, (), NOW)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (KEPT, ok("format", "format 1")),
        (replace(KEPT, format=""), ok("format", "no scheduler has written")),
        (replace(KEPT, format="2"), problem("format", "of format 2", "upgrade")),
        (replace(KEPT, format="abc"), problem("format", "of format abc")),
        (KEPT, ok("types")),
        (replace(KEPT, strange=("due is a list, not a zset",)),
         problem("types", "due is a list", "beat redis -- RENAME due due.old")),
        (replace(KEPT, strange=Unseen("+type")), note("types", "lacks +type")),
        (KEPT, ok("scripts", "all 17 scripts")),
        (replace(KEPT, loaded=15), ok("scripts", "2 of them for the first time")),
        (replace(KEPT, loaded=Unseen("+script|load")), note("scripts", "lacks +script|load")),
        (replace(KEPT, refused={"fire": "ERR compiling"}), problem("scripts", "fire: ERR compiling", "report")),
        (replace(KEPT, hold_until=NOW + 42 * SECOND), warning("clock", "nothing fires for 42s", "chronyd")),
        (replace(KEPT, hold_until=NOW - SECOND), ok("format")),
        (replace(KEPT, setback=Setback(NOW, NOW + 600 * SECOND, NOW + 601 * SECOND)),
         problem("clock", "so nothing fires until 2026-11-17T09:10:01Z", "chronyd")),
        (replace(KEPT, setback=Setback(NOW, NOW + 600 * SECOND, NOW + SECOND)),
         warning("clock", "the next one is due at 2026-11-17T09:00:01Z", "chronyd")),
        (replace(KEPT, far=(Far("beat:watching", 590_000, 450), Far("beat:lock:x", -1, 10_000))),
         problem("ahead", "beat:watching by 10m, not 450 ms, beat:lock:x by no end, not 10s", "beat run")),
        (replace(KEPT, far=Unseen("+pttl")), note("ahead", "lacks +pttl")),
        (replace(KEPT, unexposed=(Case("c42", "app.tasks.report"),)),
         warning("functions", "c42 (app.tasks.report)", "@schedulable")),
    ],
    ids=["format", "no format", "newer", "garbled", "types", "a strange type", "types hidden", "scripts", "new scripts",
         "scripts hidden", "a script refused", "held", "was held", "went back", "went back, some fire", "too far",
         "hidden", "unexposed"],
)  # fmt: skip
def test_what_stands_in_redis_is_judged(found: Kept, expected: Expected) -> None:
    says(keys.judge(found), expected)


# --- rights ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (Rights("beat", (), probed=("KEYS", "CONFIG")),
         [ok("lacking"), ok("excess", "user beat may do none of: KEYS, CONFIG")]),
        (Rights("default", (), excess=("FLUSHALL",)), [note("excess", "FLUSHALL", "beat doctor --acl | redis-cli")]),
        (Rights("few", ("+rpush on ~rq:queue:*",)), [problem("lacking", "+rpush on ~rq:queue:*", "--acl")]),
        (Rights("few", (), lacks_asking=("+scan",)), [warning("lacking", "+scan", "--acl")]),
        (Rights("few", Unseen("+evalsha")), [note("lacking", "lacks +evalsha", "--acl")]),
    ],
    ids=["just enough", "too much", "too little", "too little to ask", "nobody knows"],
)  # fmt: skip
def test_rights_are_judged(found: Rights, expected: list[Expected]) -> None:
    says(acl.judge(found), *expected)


# --- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KB"), (12_345, "12 KB"), (3.1 * MB, "3.1 MB"),
     (5 * 1024 * MB, "5.0 GB"), (3000 * 1024 * 1024 * MB, "3000 TB")],
)  # fmt: skip
def test_sizes_in_words(number: float, words: str) -> None:
    assert size(number) == words


@pytest.mark.parametrize(("seconds", "words"), [(0, "0s"), (59, "59s"), (60, "1m"), (7200, "2h"), (200_000, "2d")])
def test_spans_in_words(seconds: float, words: str) -> None:
    assert span(seconds) == words


def test_a_few_of_many_in_words() -> None:
    assert some(["a", "b"]) == "a, b"
    assert some(list("abcde")) == "a, b, c and 2 more"
    assert some(["a"], 1200) == "a and 1,199 more"
    assert (counted(1, "job"), counted(1200, "job")) == ("1 job", "1,200 jobs")


# --- names that a shell would run ------------------------------------------------------------------------------------

HOSTILE = [
    "two words",
    "$(touch owned)",
    "`touch owned`",
    "a'b; touch owned",
    'a" && touch owned',
    "a\ntouch owned",
    "--x",
]


def pasted(remedy: str, home: Path) -> list[str]:
    """The arguments with which a shell starts the command that somebody pastes."""
    show = "import json, sys; print(json.dumps(sys.argv[1:]))"
    line = f"f() {{ '{sys.executable}' -c '{show}' \"$@\"; }}; f {remedy}"
    done = subprocess.run(["bash", "-c", line], cwd=home, capture_output=True, text=True, check=True, timeout=60)  # noqa: S607
    assert list(home.iterdir()) == []
    words: list[str] = json.loads(done.stdout)
    return [word for word in words if word != "--"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_remedy_is_pasted_with_its_name_as_one_word(name: str, tmp_path: Path) -> None:
    alone, strange = Queue(name, 3, NOW, 2, 0), Queue("q", 3, NOW, None, 1, name)
    lonely = queues.judge(Queues((alone, strange), suspended=False, now=NOW))
    remedies = [each.remedy for each in lonely if each.remedy]
    kinds = ("broken", "failing", "paused")
    cases = dict.fromkeys(kinds, (Case(name),))
    found = schedules.judge(Census(1, {"broken": 1}, dict.fromkeys(kinds, 1), cases, 1, (Late(name, 9.0),)))
    remedies += [each.remedy for each in found if each.remedy]
    remedies += [
        each.remedy for each in schedulers.judge(living(instance("a", version=name))) if each.check == "versions"
    ]
    assert len(remedies) == 7
    for remedy in remedies:
        assert "\n" not in remedy
        words = pasted(remedy, tmp_path)
        assert {name, f"rq-beat=={name}"} & {*words}, (remedy, words)
