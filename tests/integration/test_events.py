"""The outbox: what is read and what is told as missed is all there was, whatever is trimmed, deleted, killed or cut."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import random
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

import pytest
from redis import Redis

from beat import events
from beat.dev import embedded
from beat.errors import BadDuration, BadInstant, BadOption, BeatError, ConfigError, NoRedis
from beat.events import Missed, Notice
from beat.storage import connection, scripts
from beat.timing import clock
from tests.resilience import harm
from tests.resilience.proxy import Proxy
from tests.support.builders import TOKEN, put_and_claim, shows, text, verdict
from tests.support.facts import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

KEY = "beat:events"
TICK = datetime(2026, 11, 16, 9, tzinfo=UTC)
LINE = {"type": "enqueued", "tick": "2026-11-16T09:00:00Z", "job": "j", "by": "scheduler", "n": 1}


def tell(redis: Any, *jobs: str, trim: int | None = None) -> None:
    """Events as the scripts write them, one for each job; then all but the newest so many are taken away."""
    with redis.pipeline(transaction=False) as pipe:
        for job in jobs:
            line = json.dumps({**LINE, "job": job})
            pipe.xadd(
                KEY,
                {"type": "enqueued", "schedule": "report", "tick": LINE["tick"], "job": job, "by": "b1", "entry": line},
            )
        if trim is not None:
            pipe.xtrim(KEY, maxlen=trim, approximate=False)
        pipe.execute()


def short(event: Notice | Missed) -> str | tuple[str, int | None]:
    """The job of an event; how many were missed."""
    return ("missed", event.count) if isinstance(event, Missed) else event.job_id or ""


def read(server: PrivateRedis | str, **options: Any) -> list[str | tuple[str, int | None]]:
    """All there is to read now."""
    url = server if isinstance(server, str) else server.url
    return [short(event) for event in events.read(**{"redis": url, "follow": False, **options})]


def pending(redis: Any, group: str = "g") -> int:
    return int(redis.xpending(KEY, group)["pending"])


class Follower:
    """Somebody who follows the outbox in a thread, and notes what he is told."""

    def __init__(self, url: str, **options: Any) -> None:
        self.told: list[str | tuple[str, int | None]] = []
        self.raised: BaseException | None = None
        self.stopping = threading.Event()
        self._options = {"redis": url, "stopping": self.stopping, **options}
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def _follow(self) -> None:
        try:
            for event in events.read(**self._options):
                self.told.append(short(event))
        except BaseException as e:  # noqa: BLE001 (the test looks at it)
            self.raised = e

    def has(self, *jobs: str, seconds: float = 30) -> None:
        """Waits until he has been told of all of these."""
        wait_until(lambda: {*jobs} <= {*self.told}, seconds, lambda: f"for {jobs} in {self.told}, {self.raised!r}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._thread.join(10)
        assert not self._thread.is_alive()


def blocked(redis: Any) -> bool:
    """Somebody waits for events."""
    return bool(redis.info("clients")["blocked_clients"])


def waits(redis: Any) -> int:
    """How often somebody has waited for events to the end."""
    return int(redis.info("commandstats").get("cmdstat_xread", {}).get("calls", 0))


# --- an event --------------------------------------------------------------------------------------------------------


def test_an_event_has_its_parts(redis: Any, server: PrivateRedis) -> None:
    tell(redis, "beat_report_1")
    (event,) = events.read(redis=server.url, follow=False)
    assert isinstance(event, Notice)
    ((event_id, _),) = redis.xrange(KEY)
    at = clock.from_ms(int(event_id.partition("-")[0]))
    entry = {**LINE, "job": "beat_report_1"}
    assert event == Notice(event_id, "enqueued", "report", TICK, "beat_report_1", "b1", at, entry)
    assert json.loads(json.dumps(event.plain())) == {
        "id": event_id, "type": "enqueued", "schedule": "report", "tick": "2026-11-16T09:00:00Z",
        "job": "beat_report_1", "by": "b1", "at": clock.text(at), "entry": entry,
    }  # fmt: skip


def test_the_verdict_on_a_tick_is_an_event(store: Store, server: PrivateRedis) -> None:
    at = put_and_claim(store)
    store.fire([verdict(at)], token=TOKEN)
    event = list(events.read(redis=server.url, follow=False))[-1]
    assert isinstance(event, Notice)
    assert (event.type, event.schedule_id, event.job_id, event.by) == ("enqueued", "report", f"beat_report_{at}", TOKEN)
    assert event.tick == clock.at(at)
    assert (event.entry["tick"], event.entry["job"]) == (text(at), f"beat_report_{at}")


def test_what_a_newer_beat_writes_is_passed_on(redis: Any, server: PrivateRedis) -> None:
    redis.xadd(KEY, {"type": "paused", "schedule": "a", "by": "anna", "why": "holidays", "entry": '{"x": [1]}'})
    (event,) = events.read(redis=server.url, follow=False)
    assert isinstance(event, Notice)
    assert (event.type, event.tick, event.job_id, event.by) == ("paused", None, None, "anna")
    assert (event.more, event.entry) == ({"why": "holidays"}, {"x": [1]})
    assert event.plain()["why"] == "holidays"


FOREIGN: list[dict[Any, Any]] = [
    {"garbage": "1"},
    {"type": ""},
    {b"\xff\xfe": b"\x00"},
    {"event": "moved", "schedule_id": "a"},
]
CORRUPT: list[bytes] = [
    b"", b"{", b"[1]", b"null", b"\xff\xff", b'{"a": NaN}', b'{"a": 1e999}', b'{"a": ' + b"9" * 5000 + b"}",
    b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
]  # fmt: skip


@pytest.mark.parametrize("group", [None, "g"])
@pytest.mark.parametrize("fields", FOREIGN)
def test_what_is_no_event_is_passed_over(
    redis: Any, server: PrivateRedis, fields: dict[Any, Any], group: str | None
) -> None:
    redis.xadd(KEY, fields)
    tell(redis, "j1")
    assert read(server, group=group) == ["j1"]
    assert group is None or pending(redis) == 0


@pytest.mark.parametrize("entry", CORRUPT, ids=lambda entry: repr(entry[:20]))
def test_an_event_whose_line_cannot_be_read_has_none(redis: Any, server: PrivateRedis, entry: bytes) -> None:
    redis.xadd(KEY, {"type": "failed", "schedule": "a", "tick": "tomorrow", "job": b"\xff", "entry": entry})
    (event,) = events.read(redis=server.url, follow=False)
    assert isinstance(event, Notice)
    assert (event.type, event.tick, event.job_id, event.entry) == ("failed", None, "\N{REPLACEMENT CHARACTER}", {})
    json.dumps(event.plain(), allow_nan=False)


def test_an_id_outside_the_calendar_is_passed_over(redis: Any, server: PrivateRedis) -> None:
    tell(redis, "j1")
    redis.xadd(KEY, {"type": "enqueued"}, id=f"{2**63}-1")
    assert read(server) == ["j1"]
    assert read(server, group="g") == ["j1"]


# --- from where, until when ------------------------------------------------------------------------------------------


def at(redis: Any, seconds_ago: int, job: str) -> datetime:
    """An event of so long ago; when that was."""
    ms = int(redis.time()[0]) * 1000 - seconds_ago * 1000
    redis.xadd(KEY, {"type": "enqueued", "job": job}, id=f"{ms}-0")
    return clock.from_ms(ms)


@pytest.mark.parametrize("group", [None, "g"])
def test_since_says_where_to_begin(redis: Any, server: PrivateRedis, group: str | None) -> None:
    at(redis, 7200, "old")
    hour_ago = at(redis, 3600, "hour")
    at(redis, 60, "new")
    everything, nothing = ["old", "hour", "new"], list[str]()
    wanted: list[tuple[Any, list[str]]] = [
        (None, everything), ("all", everything), ("now", nothing), ("1d", everything), ("90m", ["hour", "new"]),
        (timedelta(minutes=5), ["new"]), (300, ["new"]), (hour_ago, ["hour", "new"]),
        (hour_ago + timedelta(milliseconds=1), ["new"]), (clock.text(hour_ago), ["hour", "new"]),
        (clock.from_ms(0), everything), ("5000w", everything), (datetime(9999, 1, 1, tzinfo=UTC), nothing),
    ]  # fmt: skip
    for n, (since, expected) in enumerate(wanted):
        assert read(server, since=since, group=group and f"g{n}") == expected, since


@pytest.mark.parametrize("since", ["now", "1h", datetime(9999, 1, 1, tzinfo=UTC)])
@pytest.mark.parametrize("group", [None, "g"])
def test_what_comes_after_the_beginning_is_read_whatever_it_was(
    redis: Any, server: PrivateRedis, since: Any, group: str | None
) -> None:
    at(redis, 7200, "old")
    with Follower(server.url, since=since, group=group) as follower:
        wait_until(lambda: blocked(redis))
        tell(redis, "j1")
        follower.has("j1")
    assert follower.told == ["j1"]


def test_after_goes_on_behind_an_event(redis: Any, server: PrivateRedis) -> None:
    tell(redis, "j1", "j2", "j3")
    second = redis.xrange(KEY)[1][0]
    assert read(server, after=second) == ["j3"]
    assert read(server, after="0-0") == ["j1", "j2", "j3"]
    assert read(server, after=second, group="g") == ["j3"]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"since": "yesterday"}, BadDuration, "since 'yesterday' is not a length of time"),
        ({"since": "2026-13-01"}, BadInstant, "is not a time"),
        ({"since": datetime(2026, 1, 1)}, BadInstant, "has no time zone"),  # noqa: DTZ001 (that is what is wrong)
        ({"since": [1]}, BadDuration, "since must be a length of time"),
        ({"since": "-5m"}, BadDuration, "since '-5m'"),
        ({"since": timedelta(-1)}, BadDuration, "since must be at least 0s"),
        ({"after": "7"}, BadOption, "after must be the id of an event"),
        ({"after": "1-99999999999999999999"}, BadOption, "after must be the id of an event"),
        ({"after": "1-0", "since": "1h"}, BadOption, "give one of them"),
        ({"consumer": "c"}, BadOption, "is of no group"),
        ({"group": ""}, BadOption, "group must be a name"),
        ({"group": 7}, BadOption, "group must be a name"),
        ({"group": "g", "consumer": ""}, BadOption, "consumer must be a name"),
        ({"block": "soon"}, BadDuration, "block 'soon'"),
        ({"claim_after": 0}, BadDuration, "claim_after must be at least 100ms"),
        ({"redis": "localhost"}, ConfigError, "redis .* has no scheme"),
        ({"prefix": "x"}, ConfigError, "prefix"),
        ({"colour": "red"}, ConfigError, "is not a setting"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_read(
    options: dict[str, Any], error: type[BeatError], words: str
) -> None:
    with pytest.raises(error, match=words):
        events.read(**options)


def test_it_ends_when_nothing_has_come_for_so_long(redis: Any, server: PrivateRedis) -> None:
    tell(redis, "j1")
    assert read(server, follow=True, block="200ms") == ["j1"]
    assert read(server, follow=True, block="1200ms", group="g") == ["j1"]
    assert read(server, follow=True, block=0) == ["j1"]


def test_a_reader_leaves_no_connection(redis: Any, server: PrivateRedis) -> None:
    before = len(redis.client_list())
    tell(redis, "j1", "j2")
    with Redis.from_url(server.url, decode_responses=True) as given:
        for source in (server.url, given):
            reading = events.read(redis=source)
            assert isinstance(next(reading), Notice)
            assert len(redis.client_list()) == before + 1
            reading.close()
            wait_until(lambda: len(redis.client_list()) == before)


@pytest.mark.parametrize("options", [{"socket_timeout": 0.8}, {"decode_responses": True}, {"protocol": 3}])
def test_anybodys_client_says_where_redis_is(
    redis: Any, server: PrivateRedis, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    given = Redis.from_url(server.url, **options)
    with Follower(given, group="g") as follower:  # type: ignore[arg-type]  # a client instead of a URL
        wait_until(lambda: blocked(redis))
        before = waits(redis)
        wait_until(lambda: waits(redis) > before + 1)
        tell(redis, "j1")
        follower.has("j1")
    assert (follower.told, caplog.messages) == (["j1"], [])  # however short its patience


def test_the_settings_say_where_the_outbox_is(
    redis: Any, server: PrivateRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.xadd("app:events", {"type": "enqueued", "job": "j1"})
    tell(redis, "not ours")
    monkeypatch.setenv("BEAT_REDIS_URL", server.url)
    assert read(server, redis=None, prefix="app:") == ["j1"]
    redis.delete("app:events")


# --- alone: what was missed ------------------------------------------------------------------------------------------


def test_who_begins_with_what_is_there_has_missed_nothing(redis: Any, server: PrivateRedis) -> None:
    tell(redis, *map(str, range(50)), trim=3)
    for since in ("all", "1h", "now"):
        assert ("missed", None) not in read(server, since=since)
        assert ("missed", None) not in read(server, since=since, group=since)
    assert read(server) == ["47", "48", "49"]


def test_a_follower_who_falls_behind_is_told_how_many_he_missed(redis: Any, server: PrivateRedis) -> None:
    tell(redis, "j1", "j2")
    reading = events.read(redis=server.url)
    assert [short(next(reading)), short(next(reading))] == ["j1", "j2"]
    last = redis.xrevrange(KEY, count=1)[0][0]
    tell(redis, *map(str, range(300)), trim=5)
    missed = next(reading)
    assert missed == Missed(295, last, redis.xrange(KEY)[0][0])
    assert missed.plain() == {"type": "missed", "count": 295, "after": last, "before": redis.xrange(KEY)[0][0]}
    assert [short(next(reading)) for _ in range(5)] == ["295", "296", "297", "298", "299"]
    reading.close()


def test_who_resumes_after_an_event_that_is_gone_is_told_that_he_may_have_missed_some(
    redis: Any, server: PrivateRedis
) -> None:
    tell(redis, "j1", "j2", "j3")
    first, second, _ = (each[0] for each in redis.xrange(KEY))
    redis.xtrim(KEY, maxlen=1, approximate=False)
    assert read(server, after=first) == [("missed", None), "j3"]
    redis.delete(KEY)
    tell(redis, "j4")
    assert read(server, after=second) == [("missed", None), "j4"]
    redis.delete(KEY)
    assert read(server, after=second) == [("missed", None)]


@pytest.mark.parametrize("first_id", ["*", "1-1"])
@pytest.mark.parametrize("group", [None, "g"])
def test_when_the_outbox_is_deleted_under_a_reader_he_is_told_and_goes_on(
    redis: Any, server: PrivateRedis, group: str | None, first_id: str
) -> None:
    tell(redis, "j1", "j2")
    with Follower(server.url, group=group) as follower:
        follower.has("j1", "j2")
        with redis.pipeline() as pipe:
            pipe.delete(KEY)
            pipe.xadd(KEY, {"type": "enqueued", "job": "j3"}, id=first_id)
            pipe.xadd(KEY, {"type": "enqueued", "job": "j4"}, id="1-2" if first_id == "1-1" else "*")
            pipe.xadd(KEY, {"type": "enqueued", "job": "j5"}, id="1-3" if first_id == "1-1" else "*")
            pipe.execute()
        follower.has("j3", "j4", "j5")
        redis.delete(KEY)
        wait_until(lambda: follower.told.count(("missed", None)) == 2)
        tell(redis, "j6")
        follower.has("j6")
    assert follower.told == ["j1", "j2", ("missed", None), "j3", "j4", "j5", ("missed", None), "j6"]


# --- a group ---------------------------------------------------------------------------------------------------------


@shows("take", "NEW")
def test_a_group_goes_on_where_it_was(redis: Any, server: PrivateRedis) -> None:
    assert read(server, group="g") == []
    tell(redis, "j1", "j2")
    assert read(server, group="g") == ["j1", "j2"]
    assert read(server, group="g", since="all") == []
    tell(redis, "j3")
    assert read(server, group="g", consumer="another") == ["j3"]
    assert read(server, group="g2") == ["j1", "j2", "j3"]
    assert pending(redis) == 0


def test_a_group_may_be_called_anything(redis: Any, server: PrivateRedis) -> None:
    tell(redis, "j1")
    for name in ("a b", "$", "0", "Grüße", "\n"):
        assert read(server, group=name, consumer=name) == ["j1"]
        assert read(server, group=name, consumer=name) == []


@shows("take", "HAD")
def test_an_event_is_acknowledged_when_the_next_one_is_asked_for(redis: Any, server: PrivateRedis) -> None:
    tell(redis, "j1", "j2", "j3")
    reading = events.read(redis=server.url, group="g")
    assert short(next(reading)) == "j1"
    assert short(next(reading)) == "j2"
    assert pending(redis) == 2
    reading.close()
    assert read(server, group="g") == ["j2", "j3"]
    assert pending(redis) == 0


def test_more_than_a_page_that_was_left_comes_back(redis: Any, server: PrivateRedis) -> None:
    jobs = [f"j{n}" for n in range(250)]
    tell(redis, *jobs)
    redis.xgroup_create(KEY, "g", "0")
    redis.xreadgroup("g", "me", {KEY: ">"}, count=240)
    assert read(server, group="g", consumer="me") == jobs


def test_consumers_share_the_events(redis: Any, server: PrivateRedis) -> None:
    jobs = [f"j{n}" for n in range(200)]
    with contextlib.ExitStack() as stack:
        followers = [stack.enter_context(Follower(server.url, group="g", consumer=f"c{n}")) for n in range(3)]
        wait_until(lambda: redis.info("clients")["blocked_clients"] == 3)
        for job in jobs:
            tell(redis, job)
        wait_until(lambda: sum(len(each.told) for each in followers) >= 200)
        wait_until(lambda: pending(redis) == 0)
    told = [job for each in followers for job in each.told]
    assert Counter(told) == Counter(jobs)
    assert all(each.told == [job for job in jobs if job in each.told] for each in followers)


def test_what_a_dead_consumer_left_goes_to_another_after_a_while(redis: Any, server: PrivateRedis) -> None:
    tell(redis, "j1", "j2")
    dead = events.read(redis=server.url, group="g", consumer="dead")
    assert short(next(dead)) == "j1"
    dead.close()
    tell(redis, "j3")
    assert read(server, group="g", consumer="alive", claim_after="1m") == ["j3"]
    with Follower(server.url, group="g", consumer="alive", claim_after="300ms") as follower:
        follower.has("j1", "j2")
    assert follower.told == ["j1", "j2"]
    assert pending(redis) == 0


def test_what_another_has_taken_over_from_a_slow_consumer_is_not_handed_to_him(
    redis: Any, server: PrivateRedis
) -> None:
    tell(redis, "j1", "j2", "j3")
    slow = events.read(redis=server.url, group="g", consumer="slow", claim_after="200ms", follow=False)
    assert short(next(slow)) == "j1"
    with Follower(server.url, group="g", consumer="quick", claim_after="200ms") as quick:
        quick.has("j1", "j2", "j3")
        wait_until(lambda: pending(redis) == 0)
    assert list(slow) == []


def test_what_a_slow_consumer_still_holds_is_handed_to_him_in_time(redis: Any, server: PrivateRedis) -> None:
    tell(redis, "j1", "j2", "j3")
    slow = events.read(redis=server.url, group="g", consumer="slow", claim_after="200ms", follow=False)
    told = []
    for event in slow:
        told.append(short(event))
        stamp = time.monotonic()
        wait_until(lambda: time.monotonic() > stamp + 0.15)  # noqa: B023 (called at once)
    assert told == ["j1", "j2", "j3"]


def test_a_consumer_that_is_forgotten_leaves_the_group(
    redis: Any, server: PrivateRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(redis, "j1", "j2")
    assert read(server, group="g", consumer="tidy") == ["j1", "j2"]
    tell(redis, "j3")
    next(events.read(redis=server.url, group="g", consumer="busy"))
    script = scripts.script("take")
    day, moment = "local forgotten = 24 * 60 * 60 * 1000", "local forgotten = 20"
    assert script.text.count(day) == 1
    hasty = dataclasses.replace(script, text=script.text.replace(day, moment))
    monkeypatch.setattr(scripts, "script", lambda name: hasty if name == "take" else pytest.fail(name))

    def others() -> set[str]:  # whether who asks is noted where there is nothing to be had, servers differ
        read(server, group="g", consumer="new")
        return {each["name"] for each in redis.xinfo_consumers(KEY, "g")} - {"new"}

    wait_until(lambda: others() == {"busy"})
    wait_until(lambda: min(each["idle"] for each in redis.xinfo_consumers(KEY, "g")) > 20)
    assert others() == {"busy"}  # it holds an event


# --- a group: what was missed ----------------------------------------------------------------------------------------


@shows("take", "MISSED")
def test_a_group_that_fell_behind_the_cap_is_told_how_many_events_it_missed(redis: Any, server: PrivateRedis) -> None:
    tell(redis, "j1", "j2")
    assert read(server, group="g") == ["j1", "j2"]
    last = redis.xrevrange(KEY, count=1)[0][0]
    tell(redis, *map(str, range(300)), trim=3)
    first, *rest = events.read(redis=server.url, group="g", follow=False)
    assert first == Missed(297, last, redis.xrange(KEY)[0][0])
    assert [short(event) for event in rest] == ["297", "298", "299"]
    assert read(server, group="g") == []


def test_the_cap_is_about_so_many_and_the_count_is_exact(redis: Any, server: PrivateRedis) -> None:
    tell(redis, "j0")
    assert read(server, group="g") == ["j0"]
    for _ in range(2000):
        redis.xadd(KEY, {"type": "enqueued", "job": "x"}, maxlen=500, approximate=True)
    there = redis.xlen(KEY)
    assert there > 500
    assert read(server, group="g") == [("missed", 2000 - there), *["x"] * there]


def test_a_group_is_told_again_until_it_has_taken_notice(redis: Any, server: PrivateRedis) -> None:
    assert read(server, group="g") == []
    tell(redis, "j1", "j2", "j3", trim=1)
    for consumer in ("dies", "dies", "dies, too"):
        reading = events.read(redis=server.url, group="g", consumer=consumer)
        assert short(next(reading)) == ("missed", 2)
        reading.close()
    tell(redis, "j4", trim=1)
    assert read(server, group="g", consumer="lives") == [("missed", 3), "j4"]
    assert read(server, group="g", consumer="dies") == []


def test_what_is_trimmed_while_a_group_is_told_is_told_next(redis: Any, server: PrivateRedis) -> None:
    assert read(server, group="g") == []
    tell(redis, "j1", "j2", "j3", trim=1)
    reading = events.read(redis=server.url, group="g", follow=False)
    assert short(next(reading)) == ("missed", 2)
    tell(redis, "j4", "j5", "j6", trim=1)
    assert [short(event) for event in reading] == [("missed", 3), "j6"]


def test_a_consumer_that_was_told_does_not_move_a_group_that_went_on(redis: Any, server: PrivateRedis) -> None:
    assert read(server, group="g") == []
    tell(redis, "j1", "j2", "j3", trim=1)
    late = events.read(redis=server.url, group="g", consumer="late", follow=False)
    assert short(next(late)) == ("missed", 2)
    assert read(server, group="g", consumer="quick") == [("missed", 2), "j3"]
    tell(redis, "j4")
    assert [short(event) for event in late] == ["j4"]
    assert read(server, group="g") == []


def test_a_group_that_is_put_back_while_it_is_told_is_told_anew(redis: Any, server: PrivateRedis) -> None:
    assert read(server, group="g") == []
    tell(redis, "j1")
    assert read(server, group="g") == ["j1"]
    tell(redis, "j2", "j3", "j4", trim=1)
    reading = events.read(redis=server.url, group="g", follow=False)
    assert short(next(reading)) == ("missed", 2)
    redis.xgroup_setid(KEY, "g", "0")
    assert [short(event) for event in reading] == [("missed", None), "j4"]


def test_an_event_that_was_trimmed_before_it_was_acknowledged_is_told_as_missed(
    redis: Any, server: PrivateRedis
) -> None:
    tell(redis, "j1", "j2", "j3")
    reading = events.read(redis=server.url, group="g", consumer="c")
    assert short(next(reading)) == "j1"
    reading.close()
    tell(redis, "j4", "j5", trim=2)
    again = events.read(redis=server.url, group="g", consumer="c")
    assert short(next(again)) == ("missed", 3)
    again.close()  # it takes no notice
    assert read(server, group="g", consumer="c") == [("missed", 3), "j4", "j5"]
    assert pending(redis) == 0


def test_an_outbox_that_is_trimmed_to_nothing_is_told_as_missed(redis: Any, server: PrivateRedis) -> None:
    assert read(server, group="g") == []
    tell(redis, "j1")
    alone = events.read(redis=server.url)
    assert short(next(alone)) == "j1"
    tell(redis, "j2", "j3", trim=0)
    assert short(next(alone)) == ("missed", 2)
    alone.close()
    assert read(server, group="g") == [("missed", 3)]
    assert read(server, group="new") == []
    assert read(server, group="g") == []


def test_a_group_that_somebody_made_by_hand_is_told_without_a_number(redis: Any, server: PrivateRedis) -> None:
    tell(redis, *(f"j{n}" for n in range(10)))
    redis.xgroup_create(KEY, "zero", "0")
    redis.xgroup_create(KEY, "middle", redis.xrange(KEY)[4][0])
    for group in ("zero", "middle"):
        assert redis.xinfo_groups(KEY)[0]["entries-read"] is None
        reading = events.read(redis=server.url, group=group, follow=False)
        assert short(next(reading)) == ("j0" if group == "zero" else "j5")
        reading.close()
    redis.xgroup_create(KEY, "left", redis.xrange(KEY)[4][0])
    tell(redis, *(f"k{n}" for n in range(10)), trim=5)
    assert read(server, group="left") == [("missed", None), *(f"k{n}" for n in range(5, 10))]
    tell(redis, "l1", "l2", "l3", trim=1)
    assert read(server, group="left") == [("missed", 2), "l3"]


def test_a_group_that_begins_in_the_middle_is_counted_from_when_it_was_at_the_end(
    redis: Any, server: PrivateRedis
) -> None:
    tell(redis, *(f"j{n}" for n in range(10)))
    assert len(read(server, group="g", after=redis.xrange(KEY)[4][0])) == 5
    tell(redis, *(f"k{n}" for n in range(10)), trim=4)
    assert read(server, group="g") == [("missed", 6), "k6", "k7", "k8", "k9"]


def test_the_count_is_right_where_a_server_counts_on_over_a_gap(redis: Any, server: PrivateRedis) -> None:
    """Redis 7.0 does when somebody reads past one; ours is written down with every step."""
    tell(redis, *map(str, range(10)))
    assert len(read(server, group="g")) == 10
    last = redis.xrevrange(KEY, count=1)[0][0]
    redis.execute_command("XGROUP", "SETID", KEY, "g", last, "ENTRIESREAD", 4)  # as after a reload
    assert read(server, group="g") == []
    tell(redis, "j1")
    assert read(server, group="g") == ["j1"]
    assert redis.xinfo_groups(KEY)[0]["entries-read"] == 11


@shows("take", "LOST")
def test_a_group_that_is_destroyed_under_a_reader_goes_on_after_what_it_had(redis: Any, server: PrivateRedis) -> None:
    tell(redis, "j1", "j2")
    with Follower(server.url, group="g") as follower:
        follower.has("j1", "j2")
        wait_until(lambda: pending(redis) == 0)
        redis.xgroup_destroy(KEY, "g")
        tell(redis, "j3")
        follower.has("j3")
    assert follower.told == ["j1", "j2", ("missed", None), "j3"]


class Trouble:
    """Events come, in bursts, and now and then most of them are trimmed; the same for the same seed."""

    def __init__(self, redis: Any, seed: int) -> None:
        self.made = 0
        self.dice = random.Random(seed)  # noqa: S311 (the same dice every time)
        self._redis = redis

    def strike(self) -> None:
        new = [str(self.made + n) for n in range(self.dice.choice([1, 5, 50, 250]))]
        self.made += len(new)
        tell(self._redis, *new, trim=self.dice.choice([None, None, 3, 100]))


def accounted(heard: Iterable[Any]) -> int:
    """How many events somebody knows about: each that he had, and those that he knows he missed."""
    had, missed = set(), 0
    for each in heard:
        if isinstance(each, tuple):
            missed += each[1]
        else:
            had.add(each)
    return len(had) + missed


@pytest.mark.parametrize("seed", range(5))
def test_what_a_follower_has_and_what_he_misses_is_all_there_was(redis: Any, server: PrivateRedis, seed: int) -> None:
    trouble, reading = Trouble(redis, seed), events.read(redis=server.url)
    tell(redis, "first")
    assert short(next(reading)) == "first"
    heard: list[Any] = []
    for n in range(60):
        trouble.strike()
        wanted = trouble.dice.choice([0, 1, 7, 500]) if n < 59 else trouble.made
        while wanted and accounted(heard) < trouble.made:
            heard.append(short(next(reading)))
            wanted -= 1
    reading.close()
    assert accounted(heard) == trouble.made
    assert [each for each, times in Counter(heard).items() if times > 1 and isinstance(each, str)] == []


@pytest.mark.parametrize("seed", range(5))
def test_what_a_group_has_and_what_it_misses_is_all_there_was(redis: Any, server: PrivateRedis, seed: int) -> None:
    trouble, heard = Trouble(redis, seed), list[Any]()
    assert read(server, group="g") == []
    for _ in range(25):
        trouble.strike()
        consumer = events.read(
            redis=server.url, group="g", consumer=trouble.dice.choice("abc"), follow=False, claim_after="300ms"
        )
        for event in consumer:
            heard.append(short(event))
            if isinstance(event, Notice) and trouble.dice.random() < 0.02:
                consumer.close()  # it dies, with this in hand
    for name in "abc":
        heard += read(server, group="g", consumer=name)
    # What it had in hand when it died may be trimmed before it comes back: had, and told as missed.
    assert trouble.made <= accounted(heard) <= trouble.made + 25
    assert {str(n) for n in range(trouble.made - 3, trouble.made)} <= {*heard}
    assert pending(redis) == 0


# --- when Redis is in trouble ----------------------------------------------------------------------------------------


@pytest.fixture
def proxy(redis: Any, server: PrivateRedis) -> Iterator[Proxy]:  # noqa: ARG001 (it empties the server)
    with Proxy(server.url, {scripts.script("take").sha: "take"}) as made:
        yield made


@pytest.mark.parametrize("command", ["evalsha take", "XACK", "XREAD"])
@pytest.mark.parametrize("fault", [harm.drop_reply, harm.cut])
def test_no_event_is_lost_with_a_reply(redis: Any, proxy: Proxy, command: str, fault: Any) -> None:
    jobs = [f"j{n}" for n in range(20)]
    with Follower(proxy.url, group="g") as follower:
        wait_until(lambda: blocked(redis))
        struck = proxy.plan(command, fault(), times=3)
        for job in jobs:
            tell(redis, job)
        follower.has(*jobs)
        assert struck.done.wait(30)
        wait_until(lambda: pending(redis) == 0)
    assert follower.told == jobs


def test_no_event_is_lost_alone_when_a_reply_is(redis: Any, proxy: Proxy) -> None:
    with Follower(proxy.url) as follower:
        wait_until(lambda: blocked(redis))
        struck = proxy.plan("EXEC", harm.drop_reply(), times=3)
        tell(redis, "j1")
        assert struck.done.wait(30)
        tell(redis, "j2")
        follower.has("j1", "j2")
    assert follower.told == ["j1", "j2"]


@pytest.mark.parametrize("group", [None, "g"])
def test_a_follower_waits_for_a_redis_that_is_away(
    home: Path, group: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "beat.events")
    private = embedded.start(home / "redis")
    with contextlib.closing(Redis.from_url(private.url)) as client, Follower(private.url, group=group) as follower:
        tell(client, "j1")
        follower.has("j1")
        private.kill()
        wait_until(lambda: len(caplog.messages) == 1)
        with embedded.start(home / "redis") as again, contextlib.closing(Redis.from_url(again.url)) as anew:
            wait_until(lambda: len(caplog.messages) == 2)
            tell(anew, "j2")
            follower.has("j2")
            follower.stopping.set()
    away, back, *_ = caplog.messages
    assert away.startswith("Redis does not work for us, trying again until it does: ConnectionError")
    assert back == "Redis works again"
    assert [each for each in follower.told if isinstance(each, str)][-1:] == ["j2"]


def test_while_redis_is_away_it_is_not_asked_all_the_time(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[float] = []

    def refuse(*_: Any, **__: Any) -> None:
        tries.append(time.monotonic())
        raise ConnectionRefusedError

    monkeypatch.setattr(connection, "run", refuse)
    with Follower(proxy.url, group="g"):
        wait_until(lambda: len(tries) == 5)
    assert tries[-1] - tries[0] > 1.4  # 0.1 + 0.2 + 0.4 + 0.8


def test_a_reader_that_is_stopped_does_not_wait_for_redis(home: Path) -> None:
    with Follower(f"unix://{home}/nobody.sock", group="g") as follower:
        follower.stopping.set()
    assert (follower.told, follower.raised) == ([], None)


def test_who_does_not_follow_hears_that_redis_is_away(home: Path) -> None:
    with pytest.raises(NoRedis, match="the outbox cannot be read: ConnectionError"):
        read(f"unix://{home}/nobody.sock")


@shows("take", "BADTYPE")
def test_an_outbox_that_is_no_stream_is_refused(redis: Any, server: PrivateRedis) -> None:
    redis.set(KEY, "1")
    with pytest.raises(NoRedis, match="beat:events is a string, not a stream: rename it, or delete it"):
        read(server, group="g", follow=True)
    with pytest.raises(NoRedis, match="beat:events is not a stream: rename it, or delete it"):
        read(server, follow=True)


@pytest.mark.parametrize("group", [None, "g"])
def test_who_may_not_read_is_told_so(redis: Any, server: PrivateRedis, group: str | None) -> None:
    redis.execute_command("ACL", "SETUSER", "guest", "on", "nopass", "+@all", "~other:*")
    try:
        with pytest.raises(NoRedis, match="Redis does not let user 'guest' read the outbox: "):
            read(server.url.replace("unix://", "unix://guest:x@"), group=group, follow=True)
    finally:
        redis.execute_command("ACL", "DELUSER", "guest")
