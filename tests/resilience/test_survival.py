"""It survives Redis: whatever befalls the server, a beat lives on, says so once, and every tick fires exactly once."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import BusyLoadingError, RedisError, ResponseError
from redis.retry import Retry

from beat.dev import embedded
from beat.storage import scripts
from tests.resilience import harm
from tests.resilience.proxy import Proxy
from tests.support.facts import wait_until
from tests.support.files import lay_out
from tests.support.schedulers import TASKS, Beat, Drain, exactly_once, seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.resilience.proxy import Command

ABSENCE_S = 60 if os.environ.get("LONG_TESTS") else 8
AWAY, BACK = "Redis does not work for us", "Redis works again"
SHORT = "?socket_timeout=1"
MANY = """
from beat import periodic, register

@periodic(every="1s")
def tick(): ...

def work(): ...

for each in ["queue", "key", "count", "next", "missing", "definition"]:
    register(work, every="1s", id=each, queue=each)
"""


class Witness(Drain):
    """A drain that keeps its notes in Redis: a job that it took is noted even if the reply to that was lost."""

    def __init__(self, url: str, queue: str = "default") -> None:
        super().__init__(url)
        self._queue = queue

    def ticks(self, schedule_id: str) -> list[int]:
        with client(self._url) as redis:
            self.jobs = Counter(redis.lrange(f"witnessed:{self._queue}", 0, -1))
        return super().ticks(schedule_id)

    def _run(self) -> None:
        while not self._ended.wait(0.02):
            with contextlib.suppress(RedisError, OSError), client(self._url) as redis:
                while not self._ended.is_set():
                    if job := redis.blmove(f"rq:queue:{self._queue}", f"witnessed:{self._queue}", 0.2):
                        redis.delete(f"rq:job:{job}")


class Scene:
    """A server of its own, which may be harmed."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.private = embedded.start(home / "redis")
        self.url = self.private.url
        self.redis: Any = client(self.url)

    @contextlib.contextmanager
    def beat(self, url: str = "", tasks: str = TASKS, **environment: str) -> Iterator[Beat]:
        """One that has fired; in its locks' time and with its patience, no tick of these tests is a misfire."""
        lay_out(self.home, {"tasks.py": tasks})
        settings = {"BEAT_LOCK_TTL": "1500ms", "BEAT_MISFIRE_AFTER": "5m", **environment}
        with Beat(self.home, url or self.url, **settings) as beat:
            beat.says("fired")
            yield beat

    def start(self, *options: str) -> None:
        """The server again, on the data that the last one left."""
        self.private = embedded.start(self.home / "redis", options=options)

    def call(self, command: str) -> None:
        self.redis.execute_command(*command.split())

    def lasts(self, seconds: int) -> None:
        """Waits until so many whole seconds have passed by the server's clock."""
        end = seconds_of(self.redis) + seconds
        wait_until(lambda: seconds_of(self.redis) > end)

    def goes_on(self, drain: Drain, schedule_id: str = "tick", seconds: float = 30) -> None:
        """Waits until a tick has fired that falls due after this."""
        newest = seconds_of(self.redis) + 1
        wait_until(lambda: newest in drain.ticks(schedule_id), seconds, lambda: f"for {schedule_id} to go on")

    def close(self) -> None:
        self.redis.close()
        self.private.stop()


@pytest.fixture
def scene(home: Path) -> Iterator[Scene]:
    with contextlib.closing(Scene(home)) as made:
        yield made


def client(url: str) -> Redis:
    made: Redis = Redis.from_url(url, decode_responses=True, retry=Retry(NoBackoff(), 0))
    return made


def proxy_of(scene: Scene) -> Proxy:
    return Proxy(scene.url, {scripts.script(name).sha: name for name in scripts.names()})


def survived(scene: Scene, drain: Drain, *beats: Beat, outages: int | None = 1) -> None:
    """Each lives on, has said so as often as Redis failed, missed nothing, and ends in order."""
    scene.goes_on(drain)
    for beat in beats:
        assert beat.process.poll() is None, beat.log
        wait_until(lambda: beat.log.count(AWAY) == beat.log.count(BACK), what=lambda: beat.log)  # noqa: B023 (called at once)
        assert outages in {None, beat.log.count(AWAY)}, beat.log
        assert "a bug" not in beat.log
        assert "skipped" not in beat.log
    assert [beat.end() for beat in beats] == [0 for _ in beats]
    exactly_once(scene.redis, drain)


def errors(beat: Beat, words: str) -> int:
    return sum(" ERROR " in line and words in line for line in beat.log.splitlines())


# The server goes, and comes back


def test_a_restart_of_redis(scene: Scene) -> None:
    with Witness(scene.url) as witness, scene.beat() as beat:
        scene.private.stop()
        beat.says(AWAY)
        scene.start()
        survived(scene, witness, beat)


def test_kill_9_of_redis_under_two_beats(scene: Scene) -> None:
    with Witness(scene.url) as witness, scene.beat() as one, scene.beat() as other:
        scene.private.kill()
        one.says(AWAY)
        other.says(AWAY)
        scene.start()
        survived(scene, witness, one, other)


def test_an_absence_of_redis(scene: Scene) -> None:
    with Witness(scene.url) as witness, scene.beat() as beat:
        scene.private.stop()
        time.sleep(ABSENCE_S)
        assert AWAY in beat.log
        scene.start()
        survived(scene, witness, beat)
    assert len(witness.ticks("tick")) > ABSENCE_S


SLOWLY = ("--key-load-delay", "200")
"""Microseconds for each command of its log; after a thousand of them the server answers whoever has asked something."""


def test_a_redis_that_loads_its_data(scene: Scene) -> None:
    with scene.redis.pipeline(transaction=False) as pipe:
        for n in range(20_000):
            pipe.set(f"data:{n}", n)
        pipe.execute()
    with Witness(scene.url) as witness, scene.beat() as beat:
        beat.freeze()
        scene.private.stop()
        loading = threading.Thread(target=scene.start, args=SLOWLY)
        loading.start()
        try:
            wait_until(lambda: is_loading(scene.url))
            beat.thaw()
            beat.says(f"{AWAY}, trying again until it does: BusyLoadingError")
        finally:
            scene.call("CONFIG SET key-load-delay 0")  # the rest at once
            loading.join()
        survived(scene, witness, beat)


def is_loading(url: str) -> bool:
    with client(url) as redis:
        try:
            redis.ping()
        except BusyLoadingError:
            return True
        except RedisError:
            pass
    return False


# It is there, and refuses

REFUSALS = {
    "READONLY": ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "ReadOnlyError: You can't write against a read only"),
    "OOM": ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "OutOfMemoryError: command not allowed when used"),
    "NOREPLICAS": (
        "CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0", "NOREPLICAS Not enough good",
    ),
}  # fmt: skip


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_redis_that_refuses_to_write(scene: Scene, refusal: str) -> None:
    harming, mending, words = REFUSALS[refusal]
    with Witness(scene.url) as witness, scene.beat() as beat:
        scene.call(harming)
        beat.says(AWAY)
        scene.lasts(1)
        assert words in next(line for line in beat.log.splitlines() if AWAY in line)
        scene.call(mending)
        survived(scene, witness, beat)
        [line] = [line for line in beat.log.splitlines() if "the tick stays due" in line]
        assert " ERROR   tick: tasks.tick " in line
        assert words in line
        assert words in scene.redis.hget("beat:schedule:tick", "last_error")


def test_a_redis_that_cannot_save_its_data(scene: Scene) -> None:
    scene.redis.config_set("save", "3600 1")
    in_the_way = scene.home / "redis" / "dump.rdb"
    with Witness(scene.url) as witness, scene.beat() as beat:
        in_the_way.mkdir()
        scene.call("BGSAVE")
        beat.says(AWAY)
        assert "MISCONF" in beat.log
        scene.lasts(1)
        in_the_way.rmdir()
        scene.call("BGSAVE")
        survived(scene, witness, beat)


def test_a_redis_that_forgets_its_scripts(scene: Scene) -> None:
    with Witness(scene.url) as witness, scene.beat() as beat:
        for _ in range(3):
            scene.redis.script_flush()
            scene.lasts(0)
        survived(scene, witness, beat, outages=0)


def test_a_redis_that_is_busy_with_a_script(scene: Scene) -> None:
    scene.call("CONFIG SET busy-reply-threshold 50")
    with Witness(scene.url) as witness, scene.beat() as beat:
        busy = threading.Thread(target=loop_for_ever, args=(scene.url,))
        busy.start()
        beat.says(f"{AWAY}, trying again until it does: ResponseError: BUSY")
        time.sleep(1)
        scene.redis.script_kill()
        busy.join()
        survived(scene, witness, beat)


def loop_for_ever(url: str) -> None:
    with client(url) as redis, pytest.raises(ResponseError, match="killed"):
        redis.eval("while true do end", 0)


# The wire fails


def test_a_wire_on_which_nothing_moves(scene: Scene) -> None:
    with proxy_of(scene) as proxy, Witness(scene.url) as witness, scene.beat(proxy.url + SHORT) as beat:
        proxy.freeze()
        beat.says(AWAY)
        assert "Timeout" in beat.log
        scene.lasts(1)
        proxy.thaw()
        survived(scene, witness, beat)


@pytest.mark.parametrize("script", ["claim", "fire"])
def test_a_reply_that_never_comes(scene: Scene, script: str) -> None:
    with proxy_of(scene) as proxy, Witness(scene.url) as witness, scene.beat(proxy.url + SHORT) as beat:
        swallowed = proxy.plan(f"evalsha {script}", harm.swallow_reply())
        assert swallowed.done.wait(30)
        beat.says(AWAY)
        survived(scene, witness, beat)


def test_every_third_reply_is_lost(scene: Scene) -> None:
    with proxy_of(scene) as proxy, Witness(scene.url) as witness, scene.beat(proxy.url) as beat:
        lost = proxy.plan(every_third(), harm.drop_reply(), times=math.inf)
        wait_until(lambda: lost.hits >= 5)
        lost.end()
        survived(scene, witness, beat, outages=None)
        assert AWAY in beat.log


def every_third() -> Callable[[Command], bool]:
    count = itertools.count(1)
    return lambda command: command.name.startswith("eval") and next(count) % 3 == 0


def test_connections_are_killed_again_and_again(scene: Scene) -> None:
    with Witness(scene.url) as witness, scene.beat() as beat:
        killed: set[str] = set()

        def kill() -> bool:
            found = {each["id"] for each in scene.redis.client_list(_type="normal") if is_beat(each)} - killed
            for each in found:
                scene.redis.client_kill_filter(_id=each)
            killed.update(found)
            return len(killed) > 4

        wait_until(kill)
        survived(scene, witness, beat, outages=None)


def is_beat(connection: dict[str, Any]) -> bool:
    return "eval" in connection["cmd"]


# What Redis holds is not what beat wrote


def replaced(redis: Any, key: str, *command: str) -> None:
    """The key, whatever it was, becomes something else; what it was is set aside."""
    with redis.pipeline() as pipe:
        pipe.rename(key, f"aside:{key}")
        pipe.execute_command(*command)
        pipe.execute()


def harm_all(redis: Any) -> None:
    """Each of the schedules in its own way; what was there is set aside."""
    wait_until(lambda: redis.set("rq:queue:queue", "in the way", nx=True))
    replaced(redis, "beat:schedule:key", "SET", "beat:schedule:key", "in the way")
    redis.eval(
        "redis.call('COPY', KEYS[1], KEYS[2]) return redis.call('HSET', KEYS[1], 'run_count', 'abc')",
        2,
        "beat:schedule:count",
        "aside:beat:schedule:count",
    )
    redis.hset("beat:schedule:next", "next_run", "abc")
    redis.hdel("beat:schedule:missing", "next_run")
    redis.hset("beat:schedule:definition", mapping={"rev": "zzz", "definition": "{"})


WORDS = {
    "queue": "tasks.work is not enqueued yet, the tick stays due: rq:queue:queue is a string, not a queue",
    "key": "cannot be used: BADTYPE: beat:schedule:key is a string",
    "count": "cannot be used: BADSTATE: run_count is not a number: abc",
    "next": "cannot be used: BADSTATE: next_run is not a time: abc",
    "missing": "cannot be used: BADSTATE: next_run is missing",
    "definition": "cannot be used: BADSTATE: definition ",
}


def test_what_cannot_be_used_is_named_once_and_the_others_go_on(scene: Scene) -> None:
    with Witness(scene.url) as witness, Witness(scene.url, "queue"), scene.beat(tasks=MANY) as beat:
        # The repair at the start has a voice of its own: let it end before there is something to say.
        wait_until(lambda: scene.redis.exists("beat:repaired") and not scene.redis.exists("beat:repairing"))
        harm_all(scene.redis)
        for each, words in WORDS.items():
            beat.says(f"{each}: {words}")
        fired = {each: beat.log.count(f"fired {each} ") for each in WORDS}
        scene.goes_on(witness)
        scene.goes_on(witness)
        assert {each: errors(beat, f" {each}: ") for each in WORDS} == dict.fromkeys(WORDS, 1)
        assert {each: beat.log.count(f"fired {each} ") for each in WORDS} == fired
        assert scene.redis.hget("beat:schedule:queue", "last_error") in WORDS["queue"]
        survived(scene, witness, beat, outages=0)


def test_what_is_mended_goes_on_where_it_was_within_seconds(scene: Scene) -> None:
    redis, mended = scene.redis, ["queue", "key", "count"]
    with contextlib.ExitStack() as stack:
        witnesses = [(each, stack.enter_context(Witness(scene.url, each))) for each in mended]
        beat = stack.enter_context(scene.beat(tasks=MANY))
        wait_until(lambda: all(witness.ticks(each) for each, witness in witnesses))
        harm_all(redis)
        for each in mended:
            beat.says(f"{each}: {WORDS[each]}")
        redis.delete("rq:queue:queue")
        redis.rename("aside:beat:schedule:key", "beat:schedule:key")
        redis.rename("aside:beat:schedule:count", "beat:schedule:count")
        for each, witness in witnesses:
            scene.goes_on(witness, each, seconds=15)
        assert beat.end() == 0
        for each, witness in witnesses:
            exactly_once(redis, witness, each, least=5)


def test_what_no_beat_can_read_is_mended_by_one_that_has_it_in_its_code(scene: Scene) -> None:
    with Witness(scene.url, "queue"), scene.beat(tasks=MANY) as beat:
        harm_all(scene.redis)
        beat.says("definition: cannot be used")
        assert scene.redis.hget("beat:schedule:definition", "state") == "broken"
        assert scene.redis.hget("beat:schedule:definition", "last_error").startswith("definition ")
        with scene.beat(tasks=MANY) as other:
            for each in ("definition", "next", "missing"):
                other.says(f"fired {each} ")
                assert scene.redis.hget(f"beat:schedule:{each}", "state") == "active"
            ticks = [job for job in scene.redis.lrange("rq:queue:next", 0, -1) if job.startswith("beat_next_")]
            assert len(set(ticks)) == len(ticks)


def test_an_index_that_is_a_list_is_named_once_and_rebuilt_when_it_is_gone(scene: Scene) -> None:
    with Witness(scene.url) as witness, scene.beat() as beat:
        replaced(scene.redis, "beat:due", "RPUSH", "beat:due", "in the way")
        beat.says("beat:due is a list")
        scene.lasts(1)
        assert errors(beat, "beat:due") == 1
        scene.redis.delete("beat:due")
        with scene.beat() as other:  # a beat that starts repairs; the others do once a minute
            survived(scene, witness, beat, other, outages=0)


def test_what_was_flushed_is_registered_again_and_that_is_said_aloud(scene: Scene) -> None:
    with Drain(scene.url) as drain, scene.beat() as beat:
        scene.redis.flushall()
        beat.says("state was lost: 1 schedule")
        scene.goes_on(drain)
        assert errors(beat, "state was lost") == 1
        assert len(set(drain.ticks("tick"))) == len(drain.ticks("tick"))
        assert int(scene.redis.hget("beat:schedule:tick", "run_count")) < len(drain.ticks("tick"))
        assert beat.end() == 0
