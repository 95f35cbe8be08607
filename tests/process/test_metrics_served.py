"""Metrics of real beats: each answers the same, whoever is asked, and a new one goes on where the others were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat import Client
from beat.dev import embedded
from tests.process.commands import called
from tests.support.facts import wait_until
from tests.support.files import lay_out
from tests.support.rq_worker import SIMPLE, Steps, Worker
from tests.support.schedulers import Beat
from tests.support.scraping import Page, free_port, get, samples

if TYPE_CHECKING:
    from pathlib import Path

    from redis import Redis

    from beat.dev.embedded import PrivateRedis

TASKS = """
    from beat import periodic

    @periodic(every="1s", max_runs=2)
    def works(): ...

    @periodic(every="1s", max_runs=2)
    def fails():
        raise ValueError("as it should")

    @periodic(every="1s", overlap="skip", queue="nobody")
    def waits_for_nobody(): ...
"""
MOVING = ("beat_pass_", "beat_last_pass_", "beat_clock_", "beat_lock_", "beat_instances")
"""What changes while nothing fires: beats come, go and look."""


def stage(home: Path) -> Path:
    return lay_out(home, {"tasks.py": TASKS, "pyproject.toml": ""})


def settled(port: int) -> Page:
    """What a beat tells of things that are over."""
    return {name: value for name, value in samples(get(port).text).items() if not name.startswith(MOVING)}


def test_any_beat_answers_the_same_and_a_restart_costs_nothing(home: Path, server: PrivateRedis, redis: Redis) -> None:
    stage(home)
    ports = [free_port() for _ in range(3)]
    with (
        Worker(server.url, Steps(home / "steps.log"), options=SIMPLE),
        Beat(home, server.url, "--metrics-port", str(ports[0])) as first,
        Beat(home, server.url, "--metrics-port", str(ports[1])) as second,
    ):
        first.says(f"metrics are served at http://127.0.0.1:{ports[0]}/metrics")
        second.says(f"metrics are served at http://127.0.0.1:{ports[1]}/metrics")
        _everything_happens(ports[0], first)
        Client(server.url).pause("waits_for_nobody")
        wait_until(lambda: settled(ports[0]) == settled(ports[1]), what=lambda: first.log + second.log)
        page, before = samples(get(ports[1]).text), settled(ports[0])
        assert page["beat_instances"] == 2
        assert page["beat_pass_duration_seconds_count"] > 0
        taken = called("run", "tasks", "--metrics-port", str(ports[0]), cwd=home, BEAT_REDIS_URL=server.url)
        assert (first.end(), second.end()) == (0, 0)
        with Beat(home, server.url, "--metrics-port", str(ports[2])) as third:
            third.says("metrics are served")
            wait_until(lambda: settled(ports[2]) == before, what=lambda: f"{settled(ports[2])} {before}")
            assert third.end() == 0
    assert (taken.returncode, b"another process is there" in taken.stderr, b"Traceback" in taken.stderr) == (
        78,
        True,
        False,
    )
    assert not [each for each in redis.scan_iter("beat:tally:*") if redis.ttl(each) < 0]


def _everything_happens(port: int, beat: Beat) -> None:
    for sample, least in (
        ('beat_runs_total{schedule="works",status="succeeded"}', 2),
        ('beat_runs_total{schedule="fails",status="failed"}', 2),
        ('beat_consecutive_failures{schedule="fails"}', 2),
        ('beat_skips_total{reason="overlap",schedule="waits_for_nobody"}', 1),
        ('beat_schedules{state="finished"}', 2),
        ("beat_run_duration_seconds_count", 4),
        ("beat_queue_wait_seconds_count", 4),
        ("beat_enqueue_lateness_seconds_count", 5),
        ("beat_open_runs", 1),
    ):
        _counts(port, sample, least, beat)


def _page(port: int) -> Page:
    answer = get(port)
    return samples(answer.text) if answer.status == 200 else {}


def _counts(port: int, sample: str, least: int, beat: Beat) -> None:
    wait_until(lambda: _page(port).get(sample, 0) >= least, what=lambda: f"for {sample}\n{beat.log}")


def test_while_redis_restarts_the_page_says_so_and_afterwards_counts_it(home: Path) -> None:
    stage(home)
    port = free_port()
    with embedded.start(home / "redis") as private, Beat(home, private.url, "--metrics-port", str(port)) as beat:
        beat.says("metrics are served")
        wait_until(lambda: get(port).status == 200, what=lambda: beat.log)
        private.stop()
        wait_until(lambda: get(port).status == 503, what=lambda: beat.log)
        assert get(port).text.startswith("Redis cannot be asked for metrics now: ")
        beat.says("Redis does not work for us")
        with embedded.start(home / "redis"):
            beat.says("Redis works again")
            _counts(port, "beat_redis_errors_total", 1, beat)
            assert beat.end() == 0
    assert "Traceback" not in beat.log
