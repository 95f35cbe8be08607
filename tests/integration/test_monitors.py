"""Services that watch over runs are told of each start and each end, in order, at least once, by one beat at a time."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, Self

import pytest

from beat import Client
from beat.client.add import Wanted
from beat.engine.registrar import Sync
from beat.errors import BadOption
from beat.notify import delivery, http, monitors
from beat.notify.monitors import Monitors, healthchecks, reader
from beat.notify.monitors.pings import Ping, Request
from beat.notify.monitors.reader import INDEX as MONITORED
from beat.notify.monitors.reader import Reading, Register, Round
from beat.storage.event_stream import Outbox
from beat.storage.keys import Keys
from beat.storage.lock import Lock
from tests.integration.test_control import FUNC, deploy
from tests.support.builders import Calls, restricted, schedule, shows
from tests.support.facts import wait_until
from tests.support.watching_service import Told, Watch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.engine.events import Event
    from beat.schedule.schedule import Schedule
    from beat.storage.store import Store

ERROR = {"type": "ValueError", "message": "bad day", "traceback": "File canary"}
INDEX = Keys().index(MONITORED)


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitors, "_TURN_S", 0.01)
    monkeypatch.setattr(monitors, "_REST_S", 0.01)
    monkeypatch.setattr(reader, "_LOOK_S", 0.0)
    monkeypatch.setattr(delivery, "_FIRST_S", 0.01)


class Beat:
    """The part of a beat that tells monitors."""

    def __init__(self, redis: Any, dsn: str | None = None, hosts: tuple[str, ...] = ()) -> None:
        self.events: list[Event] = []
        self._companion = Monitors(redis, prefix="beat:", dsn=dsn, emit=self.events.append, hosts=hosts)
        self._stopping = threading.Event()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self._companion.run(self._stopping)
        except BaseException as e:  # noqa: BLE001 (the test looks at it)
            self.error = e

    @property
    def said(self) -> list[str]:
        return [event.name for event in self.events]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()


class Turn:
    """One beat's time at telling, step by step."""

    def __init__(self, store: Store) -> None:
        keys, client = store.keys, store.client
        self.lock = Lock(client, keys.monitoring, 60_000)
        outbox = Outbox(client, keys.events, keys.monitoring)
        self.round = Round(Reading(outbox, self.lock.token), Register(client, keys), self._request, lambda _: None)

    @staticmethod
    def _request(ping: Ping) -> Request:
        assert ping.schedule.monitor
        return healthchecks.request(ping, ping.schedule.monitor.where)


@pytest.fixture
def service() -> Iterator[Watch]:
    with Watch() as made:
        yield made


def register(store: Store, *schedules: Schedule) -> None:
    Sync(store, schedules, beat="beat-1", emit=lambda _: None).register()


def monitored(service: Watch, schedule_id: str = "report", **given: Any) -> Schedule:
    return schedule(schedule_id, **{"monitor": f"http://{service.host}/{schedule_id}", **given})


def tell(redis: Redis, type_: str, job: str = "j1", schedule_id: str = "report", **entry: Any) -> None:
    """An event as the scripts write it."""
    line = json.dumps({"type": type_, "job": job, **entry})
    redis.xadd(
        "beat:events", {"type": type_, "schedule": schedule_id, "tick": "", "job": job, "by": "b", "entry": line}
    )


def pending(redis: Redis) -> int:
    """How many events were handed out and are not acknowledged; -1 before anybody has read one."""
    found: Any = redis.xinfo_groups("beat:events")
    return int(found[0]["pending"]) if found else -1


def settled(redis: Redis) -> bool:
    """Whether every event was read, and acknowledged."""
    groups: Any = redis.xinfo_groups("beat:events")
    about: Any = redis.xinfo_stream("beat:events")
    return pending(redis) == 0 and groups[0]["last-delivered-id"] == about["last-generated-id"]


def test_a_service_hears_of_the_start_and_of_the_end(
    store: Store, redis: Redis, server: PrivateRedis, service: Watch
) -> None:
    register(store, monitored(service), schedule("quiet"))
    with Beat(server.url):
        tell(redis, "enqueued")
        tell(redis, "enqueued", "q1", "quiet")
        redis.hset("rq:job:j1", "status", "started")
        wait_until(lambda: service.paths == ["/report/start"])
        tell(redis, "succeeded", duration=3.1)
        tell(redis, "succeeded", "q1", "quiet")
        tell(redis, "skipped", "")
        tell(redis, "failed", "j2", error=ERROR)
        tell(redis, "lost", "j3", reason="its worker died")
        wait_until(lambda: len(service.told) == 4)
        wait_until(lambda: settled(redis))
    assert service.paths == ["/report/start", "/report", "/report/fail", "/report/fail"]
    start, ok, failed, lost = service.told
    assert start.run == ok.run
    assert len({each.run for each in (ok, failed, lost)}) == 3
    assert failed.body.splitlines()[0] == "report: failed: ValueError: bad day"
    assert "canary" not in failed.body
    assert "its worker died" in lost.body


def test_sentry_hears_it_in_its_own_words(
    store: Store, redis: Redis, server: PrivateRedis, service: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENTRY_ENVIRONMENT", "staging")
    register(store, schedule(monitor="sentry:nightly grace=5m"))
    with Beat(server.url, dsn=f"http://key@{service.host}/42"):
        tell(redis, "enqueued")
        redis.hset("rq:job:j1", "status", "started")
        wait_until(lambda: service.told)
        tell(redis, "failed", duration=3.1, error=ERROR)
        wait_until(lambda: len(service.told) == 2)
    assert set(service.paths) == {"/api/42/envelope/"}
    first, second = (each.check_in for each in service.told)
    assert [first["status"], second["status"]] == ["in_progress", "error"]
    assert first["check_in_id"] == second["check_in_id"]
    assert (second["monitor_slug"], second["environment"]) == ("nightly", "staging")
    assert second["monitor_config"] == {
        "schedule": {"type": "interval", "value": 1, "unit": "minute"},
        "checkin_margin": 5,
    }


def test_of_a_run_that_has_ended_before_anybody_looked_only_the_end_is_told(
    store: Store, redis: Redis, server: PrivateRedis, service: Watch
) -> None:
    register(store, monitored(service))
    tell(redis, "enqueued")
    tell(redis, "succeeded")
    redis.hset("rq:job:j1", "status", "started")  # long ago
    with Beat(server.url):
        wait_until(lambda: service.told and settled(redis))
    assert service.paths == ["/report"]


def test_the_next_beat_goes_on_where_the_last_one_was(
    store: Store, redis: Redis, server: PrivateRedis, service: Watch
) -> None:
    register(store, monitored(service))
    tell(redis, "enqueued")
    with Beat(server.url):
        wait_until(lambda: pending(redis) == 1)
    redis.hset("rq:job:j1", "status", "started")
    with Beat(server.url):
        wait_until(lambda: service.paths == ["/report/start"] and settled(redis))


def test_one_beat_tells_and_the_others_wait(store: Store, redis: Redis, server: PrivateRedis, service: Watch) -> None:
    register(store, monitored(service))
    with Beat(server.url), Beat(server.url), Beat(server.url):
        for n in range(20):
            tell(redis, "succeeded", f"j{n}")
        wait_until(lambda: len(service.told) >= 20 and settled(redis))
    assert len({each.run for each in service.told}) == len(service.told) == 20


@shows("take", "FENCED")
def test_a_beat_that_wakes_when_another_has_the_lock_takes_nothing_from_it(
    store: Store, redis: Redis, service: Watch
) -> None:
    register(store, monitored(service))
    slept, leads = (Turn(store) for _ in range(2))
    assert slept.lock.acquire()
    slept.round.resume()
    redis.delete(Keys().monitoring)  # it has slept for longer than the lock lasts
    assert leads.lock.acquire()
    leads.round.resume()
    tell(redis, "succeeded")
    assert not slept.round.turn()
    assert leads.round.turn()
    wait_until(lambda: service.paths == ["/report"])
    redis.delete(Keys().monitoring)
    redis.lpush(Keys().monitoring, "no lock")
    tell(redis, "succeeded", "j2")
    assert not leads.round.turn()
    redis.delete(Keys().monitoring)
    for each in (slept, leads):
        each.round.stop()


def test_a_service_that_hangs_delays_no_other(store: Store, redis: Redis, server: PrivateRedis, service: Watch) -> None:
    goes_on = threading.Event()

    def hangs(_: Told) -> int:
        goes_on.wait(30)
        return 200

    with Watch(hangs) as hanging:
        register(store, monitored(service), monitored(hanging, "stuck"))
        with Beat(server.url):
            for n in range(5):
                tell(redis, "succeeded", f"s{n}", "stuck")
            tell(redis, "succeeded")
            wait_until(lambda: service.paths == ["/report"])
            wait_until(lambda: hanging.told)
            assert len(hanging.told) == 1  # one after the other
            assert pending(redis) >= 5  # none of them counts as told
            goes_on.set()
            wait_until(lambda: settled(redis))
        assert hanging.paths == ["/stuck"] * 5


def test_a_burst_is_told_whole_to_a_service_that_works(
    store: Store, redis: Redis, server: PrivateRedis, service: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "MOST", 20)
    register(store, monitored(service))
    for n in range(250):
        tell(redis, "succeeded", f"j{n}")
    with Beat(server.url) as beat:
        wait_until(lambda: settled(redis))
    assert [each.body.splitlines()[-1] for each in service.told] == [f"j{n}" for n in range(250)]
    assert beat.events == []


def test_a_service_that_fails_is_told_of_once_and_asked_again(store: Store, redis: Redis, server: PrivateRedis) -> None:
    answers = [503, 500, 429]
    with Watch(lambda _: answers.pop(0) if answers else 200) as service:
        register(store, monitored(service))
        with Beat(server.url) as beat:
            tell(redis, "succeeded")
            wait_until(lambda: "monitor_back" in beat.said and settled(redis))
    assert beat.said == ["monitor_failed", "monitor_back"]
    assert beat.events[0].schedule_id == "report"
    assert beat.events[0].fields == {"service": service.host, "error": "it answers 503 Service Unavailable"}
    assert len({each.run for each in service.told}) == 1


def test_nobody_at_home_is_no_reason_to_raise(store: Store, redis: Redis, server: PrivateRedis) -> None:
    with Watch() as service:
        made = monitored(service)
    register(store, made)
    with Beat(server.url) as beat:
        tell(redis, "succeeded")
        wait_until(lambda: beat.events)
    assert "refused" in beat.events[0].fields["error"]


def test_silence_is_a_failure() -> None:
    hanging = threading.Event()
    with Watch(lambda _: hanging.wait(30) * 200) as silent:
        request = Ping("ok", monitored(silent), "j1", ())
        found = http.send_ping(healthchecks.request(request, f"http://{silent.host}/x"), 0.05)
        hanging.set()
    assert found == ("no answer within 0.05 s", False, False)


def test_without_a_dsn_it_is_said_once_and_off_says_nothing(store: Store, redis: Redis, server: PrivateRedis) -> None:
    register(store, schedule(monitor="sentry"))
    with Beat(server.url) as beat:
        tell(redis, "succeeded")
        tell(redis, "succeeded", "j2")
        wait_until(lambda: beat.events and settled(redis))
    assert beat.said == ["monitor_failed"]
    with Beat(server.url, dsn="off") as beat:
        tell(redis, "succeeded", "j3")
        wait_until(lambda: settled(redis))
    assert beat.said == []


def test_where_no_schedule_has_a_monitor_the_outbox_is_not_read(
    store: Store, redis: Redis, server: PrivateRedis, service: Watch
) -> None:
    register(store, schedule("quiet"))
    with Beat(server.url):
        calls = Calls(store)
        wait_until(lambda: calls.count().get("exists", 0) > 5)
        assert redis.xinfo_groups("beat:events") == []
        assert redis.exists(Keys().monitoring) == 0
        register(store, monitored(service))
        tell(redis, "succeeded")  # at once
        wait_until(lambda: service.paths == ["/report"])


def test_what_happened_while_there_was_no_monitor_is_no_news_when_there_is_one_again(
    store: Store, redis: Redis, server: PrivateRedis, service: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_SINCE", "now")
    register(store, monitored(service))
    with Beat(server.url):
        wait_until(lambda: redis.xinfo_groups("beat:events"))
        tell(redis, "enqueued", "old")  # it has yet to start
        wait_until(lambda: pending(redis) == 1)
        register(store, schedule("report"))
        wait_until(lambda: redis.xinfo_groups("beat:events") == [])
        tell(redis, "succeeded", "old")
        register(store, monitored(service))
        wait_until(lambda: redis.xinfo_groups("beat:events"))
        tell(redis, "succeeded", "new")
        wait_until(lambda: service.told and settled(redis))
    assert [each.body.splitlines()[-1] for each in service.told] == ["new"]


def test_who_may_not_read_in_groups_is_not_told_so_where_nobody_has_a_monitor(store: Store, redis: Redis) -> None:
    redis.xgroup_create("beat:events", "monitors", mkstream=True)
    with restricted(store, "-xgroup") as barred, Beat(barred.client) as beat:
        calls = Calls(store)
        wait_until(lambda: calls.count().get("exists", 0) > 5)
    assert (beat.error, beat.events) == (None, [])


def test_garbage_is_passed_over(store: Store, redis: Redis, server: PrivateRedis, service: Watch) -> None:
    register(store, monitored(service), monitored(service, "broken"))
    redis.hset("beat:schedule:broken", "definition", "{")
    redis.sadd(INDEX, "nobody")
    with Beat(server.url) as beat:
        redis.xadd("beat:events", {"x": "y"})
        tell(redis, "succeeded", "b1", "broken")
        tell(redis, "succeeded", "n1", "nobody")
        tell(redis, "succeeded", "")
        redis.xadd("beat:events", {"type": "failed", "schedule": "report", "job": "j2", "entry": "[1"})
        tell(redis, "enqueued", "j3")
        redis.set("rq:job:j3", "no hash")
        tell(redis, "enqueued", "j4", shards=2)
        wait_until(lambda: service.told and pending(redis) == 1)
        redis.delete(INDEX)
        redis.set(INDEX, "no set")
        tell(redis, "succeeded", "j5")
        wait_until(lambda: pending(redis) == 1)
        redis.delete("beat:events", INDEX)
        redis.sadd(INDEX, "report")
        tell(redis, "succeeded", "j6")
        wait_until(lambda: service.paths == ["/report/fail", "/report"])
    assert (beat.error, beat.events) == (None, [])


def test_what_is_looked_at_for_its_start_is_bounded(
    store: Store, redis: Redis, server: PrivateRedis, service: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MOST_WAITING", 3)
    register(store, monitored(service))
    with Beat(server.url):
        for n in range(10):
            tell(redis, "enqueued", f"j{n}")
        wait_until(lambda: pending(redis) == 3)
        redis.hset("rq:job:j0", "status", "started")
        redis.hset("rq:job:j9", "status", "started")
        wait_until(lambda: service.told)
    assert [each.body for each in service.told] == ["j9"]


def test_who_may_not_read_as_one_of_a_group_says_so(store: Store, redis: Redis, service: Watch) -> None:
    register(store, monitored(service))
    tell(redis, "succeeded")
    with restricted(store, "-xreadgroup") as barred, Beat(barred.client) as beat:
        wait_until(lambda: beat.error)
    assert "Redis does not let user 'few' read the outbox as one of a group: " in str(beat.error)


# --- the index -------------------------------------------------------------------------------------------------------


def test_the_index_knows_who_has_a_monitor_and_redis_cli_sees_no_secret(
    store: Store, redis: Redis, service: Watch
) -> None:
    register(store, monitored(service), schedule("quiet"))
    assert redis.smembers(INDEX) == {"report"}
    assert redis.hget("beat:schedule:report", "monitor") == f"http://{service.host}/***"
    register(store, schedule("report"), monitored(service, "quiet"))
    assert redis.smembers(INDEX) == {"quiet"}
    assert redis.hget("beat:schedule:report", "monitor") is None


def test_the_index_follows_what_is_removed_and_is_put_right(
    store: Store, redis: Redis, server: PrivateRedis, service: Watch
) -> None:
    register(store, monitored(service))
    redis.sadd(INDEX, "another")
    redis.srem(INDEX, "report")
    store.repair(["report", "another"])
    assert redis.smembers(INDEX) == {"report"}
    Client(server.url).remove("report")
    assert redis.exists(INDEX) == 0


# --- what is gone ----------------------------------------------------------------------------------------------------


def test_what_was_trimmed_before_it_was_read_or_told_is_no_secret(
    store: Store, redis: Redis, server: PrivateRedis, service: Watch
) -> None:
    register(store, monitored(service))
    with Beat(server.url):
        tell(redis, "enqueued")  # and never starts
        wait_until(lambda: pending(redis) == 1)
    for n in range(4):
        tell(redis, "succeeded", f"j{n}")
    redis.xtrim("beat:events", maxlen=1, approximate=False)
    with Beat(server.url) as beat:
        wait_until(lambda: service.told and settled(redis))
    assert [(event.name, event.fields["count"]) for event in beat.events] == [
        ("monitor_missed", 1),
        ("monitor_missed", 3),
    ]


# --- schedules from data ---------------------------------------------------------------------------------------------


def test_the_monitor_of_a_schedule_from_data_goes_only_to_allowed_hosts(
    store: Store, redis: Redis, server: PrivateRedis, service: Watch
) -> None:
    register(store, monitored(service))
    redis.hset("beat:schedule:report", "source", "api")  # as anybody may write it
    host = service.host.partition(":")[0]
    with Beat(server.url, hosts=("hc-ping.com", f"{host}.example.com")) as beat:
        for job in ("j1", "j2"):
            tell(redis, "succeeded", job)
        wait_until(lambda: settled(redis) and beat.said == ["monitor_failed"])
    assert service.told == []
    assert beat.events[0].schedule_id == "report"
    assert beat.events[0].fields == {
        "service": service.host,
        "error": "the schedule comes from data, and monitor_hosts does not allow this host: set BEAT_MONITOR_HOSTS",
    }
    with Beat(server.url, hosts=("*.0.0.1",)) as beat:
        tell(redis, "enqueued", "j3")
        redis.hset("rq:job:j3", "status", "started")
        wait_until(lambda: service.paths == ["/report/start"])
    assert beat.said == []


@pytest.mark.parametrize("hosts", [("hc-ping.com",), (), ("*.example.com",)])
def test_a_schedule_whose_monitor_is_at_another_host_is_refused_when_it_is_added(
    store: Store, hosts: tuple[str, ...]
) -> None:
    deploy(store, functions=[FUNC])
    client = Client(store.client, monitor_hosts=hosts)
    url = "http://169.254.169.254/latest/canary"
    with pytest.raises(BadOption, match="the setting monitor_hosts does not allow") as refusal:
        client.add("stranger", func=FUNC, every="1h", monitor=url)
    assert "canary" not in str(refusal.value)
    assert [
        done.result for done in client.add_all([Wanted("stranger", FUNC, None, {"every": "1h", "monitor": url})])
    ] == ["refused"]
    client.add("sentry", func=FUNC, every="1h", monitor="sentry")


@pytest.mark.parametrize("url", ["https://hc-ping.com/x", "https://HC-PING.com:8443/x", "http://a.b.example.com/x"])
def test_a_schedule_whose_monitor_is_at_an_allowed_host_is_added(store: Store, url: str) -> None:
    deploy(store, functions=[FUNC])
    Client(store.client, monitor_hosts=("hc-ping.com", "*.Example.com")).add("x", func=FUNC, every="1h", monitor=url)
