"""Deploys with real beats: versions side by side, killed and restarted; retirement, rollbacks.

The beats of these tests show their heartbeat every second, and what they announce lapses after eight: else each test
would wait for minutes.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from beat import Client
from beat.timing import clock
from tests.support.facts import wait_until
from tests.support.files import lay_out
from tests.support.schedulers import Beat, Drain, seconds_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from redis import Redis

    from beat.dev.embedded import PrivateRedis

HASTY = """
from beat import periodic
from beat.engine import housekeeper, registrar, retirement

housekeeper.HEARTBEAT_S, housekeeper.LINGER_MS, retirement.LOOK_S = 1, 2_000, 1
housekeeper.ANNOUNCED_MS = registrar.ANNOUNCED_MS = 8_000

@periodic(every="1s")
def steady(): ...
"""
V1 = """
@periodic(every="1s", kwargs={"n": 1})
def args(n): ...

@periodic(every="2s")
def rule(): ...

@periodic(every="1s")
def leaving(): ...

@periodic(every="1s")
def old(): ...
"""
V2 = """
@periodic(every="1s", kwargs={"n": 2})
def args(n): ...

@periodic(every="3s")
def rule(): ...

@periodic(every="1s")
def arriving(): ...

@periodic(every="1s", id="old")
def new(): ...
"""
SETTINGS = {"BEAT_APP": "shop", "BEAT_LOCK_TTL": "1500ms", "BEAT_MISFIRE_AFTER": "5m", "BEAT_RETIRE_AFTER": "10s"}
CHANGES = {"updated", "moved", "rescheduled", "reset"}


class Fleet:
    """Beats of any version, all ended with the block."""

    def __init__(self, home: Path, url: str) -> None:
        self._home, self._url, self._stack = home, url, contextlib.ExitStack()
        lay_out(home, {"v1/tasks.py": HASTY + V1, "v2/tasks.py": HASTY + V2})

    def start(self, version: str, *arguments: str, url: str = "", **environment: str) -> Beat:
        given = {**SETTINGS, **environment}
        return self._stack.enter_context(Beat(self._home / version, url or self._url, *arguments, **given))

    def ready(self, version: str, *arguments: str, **environment: str) -> Beat:
        beat = self.start(version, *arguments, **environment)
        beat.says("registered")
        return beat

    @property
    def logs(self) -> str:
        return "\n".join(path.read_text(encoding="utf-8") for path in sorted(self._home.glob("*/beat-*.log")))

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def fleet(home: Path, server: PrivateRedis) -> Iterator[Fleet]:
    with contextlib.closing(Fleet(home, server.url)) as made:
        yield made
    warned = [words for words in ("live schedulers declare", "no schedule in common") if words in made.logs]
    assert warned == [], "a deploy is no conflict"


def state(redis: Any, schedule_id: str) -> dict[str, str]:
    found: dict[str, str] = redis.hgetall(f"beat:schedule:{schedule_id}")
    return found


def ledger(redis: Any, schedule_id: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in redis.lrange(f"beat:runs:{schedule_id}", 0, -1)]


def changes(redis: Any, *ids: str) -> dict[str, Counter[str]]:
    """How often each was changed, by the word for it."""
    return {each: Counter(line["type"] for line in ledger(redis, each) if line["type"] in CHANGES) for each in ids}


def all_sound(server: PrivateRedis) -> None:
    """One verdict for each tick of each schedule."""
    for each in Client(server.url).verify():
        assert each.sound, each


def no_tick_twice(drain: Drain, *ids: str) -> list[int]:
    """The ticks that became jobs by any of these ids; each one did so once."""
    ticks = sorted(tick for each in ids for tick in drain.ticks(each))
    assert [tick for tick, number in Counter(ticks).items() if number > 1] == []
    return ticks


def goes_on(redis: Any, drain: Drain, schedule_id: str, ticks: int = 3) -> None:
    """So many ticks from now on became jobs."""
    newest = seconds_of(redis) + ticks
    wait_until(lambda: max(drain.ticks(schedule_id), default=0) >= newest, 30, lambda: f"for {schedule_id}")


# --- a rolling deploy and its rollback -------------------------------------------------------------------------------


UNREST_S = 15 if os.environ.get("LONG_TESTS") else 6


def unrest(fleet: Fleet, running: dict[str, list[Beat]], seconds: float, seed: int) -> None:
    """Beats of both versions are killed or stopped, and others start, for so long; one of each lives on."""
    dice, end = random.Random(seed), time.monotonic() + seconds  # noqa: S311 (the same dice every time)
    while time.monotonic() < end:
        version = dice.choice(sorted(running))
        beats = running[version]
        if len(beats) > 1:
            gone = beats.pop(dice.randrange(len(beats)))
            if dice.random() < 0.7:
                gone.kill()
            else:
                assert gone.end() == 0
        beats.append(fleet.ready(version))


def test_a_rolling_deploy_neither_flaps_nor_loses_nor_doubles_and_a_rollback_undoes_it(
    fleet: Fleet, server: PrivateRedis, redis: Redis
) -> None:
    with Drain(server.url) as drain:
        running = {"v1": [fleet.ready("v1"), fleet.ready("v1")]}
        goes_on(redis, drain, "old")
        created = state(redis, "old")["created_at"]

        # v2 comes, and both live side by side
        running["v2"] = [fleet.ready("v2"), fleet.ready("v2")]
        assert state(redis, "old")["func"] == "tasks.new", "an explicit id survives a rename of the function"
        settled = changes(redis, "steady", "args", "rule", "leaving", "old", "arriving")
        assert settled["old"] == {"updated": 1}
        assert settled["args"] == {"updated": 1}
        assert settled["rule"].total() == 1
        unrest(fleet, running, UNREST_S, seed=7)
        goes_on(redis, drain, "old")
        goes_on(redis, drain, "leaving")
        assert changes(redis, *settled) == settled, "they flap"
        assert state(redis, "old")["created_at"] == created

        # v1 goes: what only it declared is held, and then retired
        for beat in running["v1"]:
            assert beat.end() == 0
        wait_until(lambda: "unannounced_at" in state(redis, "leaving"), 15)
        ticks = len(drain.ticks("leaving"))
        wait_until(lambda: state(redis, "leaving")["state"] == "retired", 30)
        assert len(drain.ticks("leaving")) <= ticks + 2, "what was claimed, and nothing more"
        [skipped] = [line for line in ledger(redis, "leaving") if line["type"] == "skipped"]
        assert skipped["reason"] == "retired"
        assert skipped["count"] >= 9
        assert [line["type"] for line in ledger(redis, "leaving")].count("retired") == 1
        goes_on(redis, drain, "old")
        all_sound(server)

        # a rollback, with both side by side again; then v2 goes
        before = state(redis, "old")
        running["v1"] = [fleet.ready("v1")]
        running["v1"][0].says("leaving: it was retired, and is declared again")
        goes_on(redis, drain, "leaving")
        settled = changes(redis, "steady", "args", "rule", "leaving", "old", "arriving")
        unrest(fleet, running, UNREST_S / 2, seed=8)
        assert changes(redis, *settled) == settled, "they flap"
        for beat in running["v2"]:
            assert beat.end() == 0
        wait_until(lambda: state(redis, "old")["func"] == "tasks.old", 30)
        wait_until(lambda: "unannounced_at" in state(redis, "arriving"), 15)
        after = state(redis, "old")
        assert after["created_at"] == created
        assert int(after["run_count"]) >= int(before["run_count"])
        wait_until(lambda: state(redis, "rule")["every"] == "2s")
        goes_on(redis, drain, "old")
        assert [beat.end() for beat in running["v1"]] == [0] * len(running["v1"])
        all_sound(server)
        ticks_of_one = no_tick_twice(drain, "old")
        wait_until(lambda: len(drain.ticks("old")) == int(state(redis, "old")["run_count"]))
        assert ticks_of_one == list(range(ticks_of_one[0], ticks_of_one[-1] + 1)), "ticks are lost"
        for each in ("steady", "args", "rule", "leaving", "arriving"):
            no_tick_twice(drain, each)
        steady = drain.ticks("steady")
        assert steady == list(range(steady[0], steady[-1] + 1))


# --- who retires nothing ---------------------------------------------------------------------------------------------

IDLE = """
from beat import periodic
from beat.engine import housekeeper

housekeeper.HEARTBEAT_S = 1
"""


@pytest.mark.parametrize("who", ["only", "another application", "no schedules", "failed import"])
def test_who_does_not_know_all_of_the_code_retires_nothing(
    who: str, home: Path, fleet: Fleet, server: PrivateRedis, redis: Redis
) -> None:
    """And fires what nobody declares: any beat fires any schedule."""
    lay_out(home, {"idle/tasks.py": IDLE, "broken/tasks.py": HASTY + "import nowhere"})
    with Drain(server.url) as drain:
        first = fleet.ready("v1")
        goes_on(redis, drain, "leaving", 1)
        assert first.end() == 0
        wait_until(lambda: not list(redis.scan_iter("beat:announced:*")), 20)
        if who == "failed import":
            broken = fleet.start("broken")
            assert broken.process.wait(20) == 78
            assert "unannounced_at" not in state(redis, "leaving")
            return
        if who == "only":
            other = fleet.start("v2", "--only", "steady")
        elif who == "another application":
            other = fleet.start("v2", BEAT_APP="billing")
        else:
            other = fleet.start("idle")
        wait_until(lambda: redis.zcard("beat:instances"), 20, lambda: other.log)
        [name] = map(str, redis.zrange("beat:instances", 0, -1))
        seen = state(redis, "leaving")["next_run"]
        begun = clock.to_ms(clock.read(str(redis.hget(f"beat:instance:{name}", "seen_at"))))

        def has_beaten() -> bool:
            at = redis.hget(f"beat:instance:{name}", "seen_at")
            return clock.to_ms(clock.read(str(at))) >= begun + 4_000

        wait_until(has_beaten, 30, lambda: other.log)
        assert "unannounced_at" not in state(redis, "leaving")
        if who != "only":
            goes_on(redis, drain, "leaving", 1)
            assert state(redis, "leaving")["next_run"] > seen
        assert other.end() == 0
        assert "held" not in other.log


# --- overrides and flushes -------------------------------------------------------------------------------------------


def test_an_override_outlives_the_deploy_and_the_beat_says_so(fleet: Fleet, server: PrivateRedis, redis: Redis) -> None:
    old = fleet.ready("v1")
    Client(server.url, by="ann@desk").reschedule("rule", "0 4 * * *")
    new = fleet.ready("v2")
    new.says("rule: its code is new, but the rule of ann@desk stays in force: 0 4 * * *, not every 3s; ")
    new.says("to return to the code: beat reschedule rule --reset")
    assert state(redis, "rule")["cron"] == "0 4 * * *"
    assert [old.end(), new.end()] == [0, 0]
    assert "stays in force" not in old.log
    all_sound(server)


def test_after_a_flush_the_code_is_there_again_and_the_beat_says_what_is_not(
    fleet: Fleet, server: PrivateRedis, redis: Redis
) -> None:
    beat = fleet.ready("v1")
    client = Client(server.url, by="ann")
    client.pause("leaving", reason="not now")
    client.reschedule("rule", every="1h")
    wait_until(lambda: redis.zcard("beat:instances"))
    redis.flushall()
    beat.says("state was lost: 5 schedules had vanished from Redis, with pauses and overrides; registered again")
    assert (state(redis, "leaving")["state"], state(redis, "rule")["every"]) == ("active", "2s")
    assert beat.end() == 0
    all_sound(server)
