"""Alerts of real beats: one incident, one alert, however many beats there are and whoever is killed while sending."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from redis import Redis

from beat.dev import embedded
from tests.cli.test_command_line import beat, document
from tests.support.facts import wait_until
from tests.support.rq_worker import Steps, Worker
from tests.support.schedulers import Beat
from tests.support.scraping import free_port, get, samples
from tests.support.stand_in import Request, StandIn

if TYPE_CHECKING:
    from pathlib import Path

    from beat.dev.embedded import PrivateRedis

HASTE = """
import os, time
from datetime import timedelta
from beat import on_event, periodic
from beat.engine import housekeeper, unserved_queues
from beat.notify import channels
from beat.notify.alerts import evaluator, rules

housekeeper.HEARTBEAT_S, unserved_queues.GRACE_S = 0, 0.5
channels.MARGIN = timedelta(milliseconds=200)
evaluator.LEASE_MS, evaluator.LOOK_S, rules.LEAST_NO_BEAT = 2000, 0.2, timedelta(0)
"""
TASKS = """
@periodic(every="1s")
def fails():
    if os.path.exists("broken"):
        raise KeyError("no such user")

@periodic(every="1s", queue="slow", overlap="skip")
def hangs(): time.sleep(600)

@periodic(every="1s", queue="mail")
def unread(): ...

@on_event("failed", schedules="fails", times=2)
def page(alert):
    with open("paged", "a") as file:
        file.write(alert["incident"] + "\\n")
"""


def alerts(url: str, *rules: dict[str, Any]) -> str:
    ops, hung = {"url": f"{url}/secret-path", "timeout": "1s"}, {"command": ["sleep", "600"], "timeout": "1s"}
    return json.dumps({"channels": {"ops": ops, "hung": hung}, "rules": [{"channel": "ops", **each} for each in rules]})


def heard(stand_in: StandIn) -> Counter[tuple[str, str, str]]:
    """How often the channel was told which state of which event of what."""
    told = [request.json for request in stand_in.requests]
    return Counter((each["event"], each["schedule"] or each["queue"] or "", each["state"]) for each in told)


LINES = {
    " WARNING fails: the run for ": 2,
    " INFO    skipped 1 tick of hangs from ": 1,
    " WARNING ticks go to the queue mail, and no live worker reads it: rq worker mail": 1,
}
"""What is said of each, and by how many beats at least; only one says it of the same run, tick or queue."""


def is_measured(port: int) -> bool:
    """Whether whoever looks at the metrics of this beat sees what is wrong."""
    found = samples(get(port).text)
    wrong = {
        'beat_runs_total{schedule="fails",status="failed"}': 2,
        'beat_skips_total{reason="overlap",schedule="hangs"}': 1,
        "beat_open_runs": 2,
        "beat_unread_queues": 1,
        "beat_instances": 3,
    }
    return all(found.get(name, 0) >= least for name, least in wrong.items())


def has_met_errors(port: int) -> bool:
    return samples(get(port).text).get("beat_redis_errors_total", 0) >= 3  # one of each beat


def test_a_stopped_worker_a_failure_a_hang_and_a_restart_are_one_alert_each_of_three_beats(home: Path) -> None:
    (home / "tasks.py").write_text(HASTE + TASKS)
    (home / "broken").touch()
    wanted: list[dict[str, Any]] = [
        {"on": ["failed", "recovered"], "times": 2},
        {"on": "late_end", "schedules": "hangs", "after": "1s"},
        {"on": "no_worker"},
        {"on": "failed", "channel": "hung"},
        {"on": "no_beat", "after": "3s"},
    ]
    steps = Steps(home / "steps.log")
    with ExitStack() as stack:
        private = stack.enter_context(embedded.start(home / "redis"))
        ops = stack.enter_context(StandIn())
        told = {"BEAT_ALERTS": alerts(ops.url, *wanted)}
        ports = [free_port() for _ in range(3)]
        beats = [stack.enter_context(Beat(home, private.url, "--metrics-port", str(each), **told)) for each in ports]
        for queue in ("default", "slow"):
            stack.enter_context(Worker(private.url, steps, queue))
        stack.enter_context(Worker(private.url, steps, "mail")).kill(signal.SIGTERM)

        def logs() -> str:
            return "\n".join([str(heard(ops)), *(each.log for each in beats)])

        first = {("failed", "fails", "opened"), ("late_end", "hangs", "opened"), ("no_worker", "mail", "opened")}
        wait_until(lambda: first <= set(heard(ops)), what=logs)
        wait_until(lambda: all(map(is_measured, ports)), what=lambda: get(ports[0]).text)
        for line, least in LINES.items():
            said = [each for one in beats for each in one.log.splitlines() if line in each]
            assert len(said) >= least, logs()
            assert len({each.partition(line)[2] for each in said}) == len(said), said
        (home / "broken").unlink()
        wait_until(lambda: ("failed", "fails", "closed") in heard(ops), what=logs)

        def listed() -> Any:
            return document("alerts", "--redis-url", private.url, cwd=home, BEAT_ALERTS=alerts(ops.url, *wanted[:-1]))

        # Of two runs that end at once the one that failed may be heard of last: until the next has succeeded.
        wait_until(lambda: {each["subject"] for each in listed()["incidents"]} == {"hangs", "mail"}, what=logs)
        assert [each["waiting"] for each in listed()["channels"] if each["channel"] == "hung"] in ([1], [2])
        private.stop()
        stopped = time.monotonic()
        for each in beats:
            each.says("Redis does not work for us")
        wait_until(lambda: time.monotonic() - stopped > 3)  # so long nobody can work
        with embedded.start(home / "redis") as again, Redis.from_url(again.url) as redis:
            wait_until(lambda: ("no_beat", "", "opened") in heard(ops), what=logs)
            wait_until(lambda: not redis.exists("beat:deliveries:default.ops"), what=logs)
            wait_until(lambda: all(map(has_met_errors, ports)), what=logs)
            for each in beats:
                each.says("Redis works again, after ")
                assert each.log.count("Redis does not work for us, trying again until it does") == 1
        assert set(heard(ops).values()) == {1}, logs()
        assert set(heard(ops)) == {*first, ("failed", "fails", "closed"), ("no_beat", "", "opened")}, logs()
        assert len((home / "paged").read_text().splitlines()) == 1
        assert "secret-path" not in logs()
        assert "the channel hung does not take alerts, trying again for a day: took longer than 1 s" in logs()
        assert sum(each.log.count("the channel ops was told of ") for each in beats) == 5


def test_a_beat_that_is_killed_while_it_sends_leaves_the_alert_to_another(
    server: PrivateRedis, redis: Redis, home: Path
) -> None:
    (home / "tasks.py").write_text(HASTE + '\n@periodic(every="1h")\ndef report(): ...\n')
    with ExitStack() as stack:
        ops = stack.enter_context(StandIn())
        told = {"BEAT_ALERTS": alerts(ops.url, {"on": "failed", "name": "r"})}
        beats = [stack.enter_context(Beat(home, server.url, **told)) for _ in range(2)]

        def kill_all(_: Request) -> int:
            for each in beats:
                os.kill(each.pid, signal.SIGKILL)
            return 0  # nobody is there to be answered

        ops.answer = kill_all
        wait_until(lambda: redis.exists("beat:events") and redis.xinfo_groups("beat:events"))
        fields: Any = {"type": "failed", "schedule": "report", "job": "j", "entry": '{"error": {"type": "KeyError"}}'}
        event = str(redis.xadd("beat:events", fields))
        wait_until(lambda: ops.requests)
        wait_until(lambda: all(each.process.poll() is not None for each in beats))
        ops.answer = lambda _: 200
        another = stack.enter_context(Beat(home, server.url, **told))
        another.says(f"the channel ops was told of r.run.report.{event}")
        assert [each.headers["X-Beat-Incident"] for each in ops.requests] == [f"r.run.report.{event}"] * 2
        assert not redis.keys("beat:deliveries:*")

        def stop_it(_: Request) -> int:
            os.kill(another.pid, signal.SIGTERM)
            time.sleep(0.5)  # a slow answer
            return 200

        ops.answer = stop_it
        redis.xadd("beat:events", {**fields, "schedule": "other"})
        assert another.process.wait(30) == 0
        assert not redis.keys("beat:deliveries:*"), "who is stopped while it sends hears the answer"
        assert not redis.keys("beat:alerting:*"), "and leaves the lock to the next"


def test_the_test_says_what_came_back_and_ends_with_1_if_a_channel_fails(home: Path) -> None:
    (home / "pyproject.toml").write_text("")
    with StandIn() as ops:
        told = alerts(ops.url)
        fine = beat("alerts", "test", "ops", cwd=home, BEAT_ALERTS=told)
        assert (fine.returncode, fine.stdout) == (0, "✓ ops: answered 200\n")
        assert ops.requests[0].json["text"] == "a test of the channel ops: beat can reach you"
        ops.answer = lambda _: 503
        bad = beat("alerts", "test", "ops", "--json", cwd=home, BEAT_ALERTS=told)
        assert (bad.returncode, json.loads(bad.stdout)["channels"][0]["said"]) == (1, "answered 503")
        none = beat("alerts", "test", "opps", cwd=home, BEAT_ALERTS=told)
        assert (none.returncode, none.stderr) == (2, "error: no channel is called 'opps'. Did you mean 'ops'?\n")
