"""Real beats and a real worker: a service hears of each run, also from the beat that takes over from a killed one."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import pytest
from redis import Redis
from rq.job import Job

from beat import Client
from tests.process.commands import called
from tests.support.facts import wait_until
from tests.support.rq_worker import Steps, Worker
from tests.support.schedulers import Beat
from tests.support.watching_service import Told, Watch

if TYPE_CHECKING:
    from pathlib import Path

    from beat.dev.embedded import PrivateRedis

TOKEN = "0f63-canary-8a1e"  # noqa: S105 (nobody's)
TASKS = """
import pathlib, time
from beat import periodic
from beat.notify import monitors

monitors.LOCK_MS, monitors._TURN_S, monitors._REST_S = 500, 0.05, 0.05

@periodic(every="1h", monitor="http://{host}/works/{token}")
def works(go):
    while not pathlib.Path(go).exists():
        time.sleep(0.01)

@periodic(every="1h", monitor="http://{host}/fails/{token}")
def fails():
    raise ValueError("bad day")

@periodic(every="1h")
def quiet(): ...
"""


def lay_out(home: Path, service: Watch) -> None:
    text = TASKS.format(host=service.host, token=TOKEN).replace("def works(go)", f"def works(go={str(home / 'go')!r})")
    (home / "tasks.py").write_text(text)


@pytest.mark.usefixtures("redis")
def test_a_service_hears_of_starts_successes_and_failures(server: PrivateRedis, home: Path) -> None:
    steps = Steps(home / "steps")
    with Watch() as service:
        lay_out(home, service)
        with Beat(home, server.url) as beat, Worker(server.url, steps, "default"):
            beat.says("3 schedules registered")
            client = Client(server.url)
            for each in ("works", "quiet", "fails"):
                client.trigger(each)
            wait_until(lambda: service.paths == [f"/works/{TOKEN}/start"], what=lambda: beat.log)
            (home / "go").touch()
            wait_until(lambda: len(service.told) >= 3, what=lambda: f"{service.told} {beat.log}")
            assert TOKEN not in beat.log
    start, ok, failed = sorted(service.told, key=lambda each: "fails" in each.path)
    assert (ok.path, start.run) == (f"/works/{TOKEN}", ok.run)
    assert failed.path == f"/fails/{TOKEN}/fail"
    assert "ValueError: bad day" in failed.body
    assert Job.fetch(ok.body.splitlines()[-1], connection=Redis.from_url(server.url)).meta.keys() == {"beat"}


def test_a_beat_that_is_killed_between_sending_and_acknowledging_is_followed_by_one_that_sends_it_again(
    server: PrivateRedis, redis: Redis, home: Path
) -> None:
    beats: list[Beat] = []

    def kills(_: Told) -> int:
        if len(beats) == 1:
            os.kill(beats[0].pid, signal.SIGKILL)
            beats[0].process.wait()
            beats.append(Beat(home, server.url))
        return 200

    with Watch(kills) as service:
        lay_out(home, service)
        with Beat(home, server.url) as first:
            beats.append(first)
            first.says("3 schedules registered")
            entry = json.dumps({"type": "failed", "job": "j1", "error": {"type": "ValueError", "message": "bad day"}})
            redis.xadd("beat:events", {"type": "failed", "schedule": "fails", "job": "j1", "by": "b", "entry": entry})
            wait_until(lambda: len(service.told) == 2, what=lambda: beats[-1].log)
        with beats[1]:
            wait_until(lambda: not redis.xpending("beat:events", "monitors")["pending"])
    once, again = service.told
    assert once == again


def test_no_command_shows_the_url_of_a_monitor(server: PrivateRedis, redis: Redis, home: Path) -> None:
    with Watch() as service:
        lay_out(home, service)
        with Beat(home, server.url) as beat:
            beat.says("3 schedules registered")
        shown, environ = f"http://{service.host}/***", {"BEAT_REDIS_URL": server.url, "BEAT_MONITOR_HOSTS": "127.0.0.1"}
        monitor = f"monitor={service.host}/{TOKEN}"
        add = ["add", "data", "--func", "tasks.quiet", "--every", "1h", "--option"]
        refused = called(*add, monitor, cwd=home, **environ)
        assert b"must be 'https://hc-ping.com/<uuid>'" in refused.stderr
        added = called(*add, monitor.replace("=", "=http://"), cwd=home, **environ)
        assert (added.returncode, redis.smismember("beat:in:monitored", ["works", "quiet", "data"])) == (0, [1, 0, 1])
        (home / "tasks.py").write_text((home / "tasks.py").read_text().replace("/works/", "/other/"))
        said = [refused, added]
        for command in (["show", "works"], ["show", "data", "--json"], ["list", "--json"], ["plan", "tasks"]):
            found = called(*command, cwd=home, **environ)
            assert shown in found.stdout.decode(), command
            said.append(found)
    assert not [each for each in said if TOKEN.encode() in each.stdout + each.stderr]


def test_where_there_is_no_dsn_a_beat_with_monitors_at_sentry_says_so_and_does_not_start(
    server: PrivateRedis, home: Path
) -> None:
    (home / "tasks.py").write_text(
        "from beat import periodic\n\n@periodic(every='1h', monitor='sentry')\ndef x(): ...\n"
    )
    ended = called("run", "tasks", cwd=home, BEAT_REDIS_URL=server.url)
    assert ended.returncode == 2
    assert b"there is no DSN: set BEAT_SENTRY_DSN (or SENTRY_DSN), or BEAT_SENTRY_DSN=off" in ended.stderr
    checked = called("check", "tasks", cwd=home)
    assert (checked.returncode, b"there is no DSN" in checked.stdout + checked.stderr) == (0, True)
