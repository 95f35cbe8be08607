"""What machines ask: /healthz, /readyz and /metrics."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from redis import Redis

from beat import Client
from beat.config.settings import load
from beat.dev import embedded
from beat.errors import NoRedis
from beat.telemetry.metrics import Metrics, Tally
from beat.web.auth import Access
from tests.support.scraping import free_port, samples
from tests.web.inhabited import alive
from tests.web.visitor import Visitor

if TYPE_CHECKING:
    from pathlib import Path

    from beat.dev.embedded import PrivateRedis
    from beat.engine.events import Event
    from beat.storage.store import Store
    from tests.support.schedulers_in_turn import Crew

GUARDED = Access(token="a-token-that-nobody-guesses")  # noqa: S106 (of a test)


def test_the_probes_are_open_and_name_nobody_while_metrics_are_for_those_who_may(
    store: Store, server: PrivateRedis
) -> None:
    alive(store, "web-1-secret-host")
    stranger = Visitor.of(server.url, access=GUARDED)
    for path in ("/healthz", "/readyz"):
        answer = stranger.get(path)
        assert (answer.status_code, answer.text) == (200, "ok\n")
    assert stranger.get("/metrics").status_code == 401
    assert stranger.get("/metrics", headers={"authorization": f"Bearer {GUARDED.token}"}).status_code == 200


def test_it_is_not_ready_before_a_beat_has_passed_lately(visitor: Visitor, store: Store) -> None:
    assert (visitor.get("/readyz").status_code, visitor.get("/readyz").text) == (503, "no scheduler is running\n")
    alive(store, "old", ago=31)
    assert (visitor.get("/readyz").status_code, visitor.get("/readyz").text) == (503, "no scheduler checked lately\n")
    alive(store, "young", ago=29)
    assert visitor.get("/readyz").status_code == 200


def test_without_redis_the_page_is_alive_and_not_ready(home: Path) -> None:
    with embedded.start(home / "redis") as private:
        visitor = Visitor.of(private.url)
        assert visitor.get("/readyz").status_code == 503
    answers = {path: visitor.get(path) for path in ("/healthz", "/readyz", "/metrics", "/api/v1/overview")}
    assert {path: answer.status_code for path, answer in answers.items()} == {
        "/healthz": 200, "/readyz": 503, "/metrics": 503, "/api/v1/overview": 503,
    }  # fmt: skip
    assert answers["/readyz"].text == "Redis does not answer\n"
    assert answers["/readyz"].headers["retry-after"] == answers["/api/v1/overview"].headers["retry-after"] == "2"
    assert answers["/api/v1/overview"].json()["status"] == 503
    with pytest.raises(NoRedis):
        Client(private.url).now()


def test_the_metrics_are_those_that_a_beat_serves(crew: Crew, program: Visitor) -> None:
    said: list[Event] = []
    settings, stopping = load({"metrics_port": free_port()}).settings, threading.Event()
    beat = Metrics(settings, crew.url, "web-1", said.append, Tally(), stopping=stopping)
    try:
        mine, theirs = program.get("/metrics"), beat.page()
    finally:
        stopping.set()
    assert mine.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert samples(mine.text) == samples(theirs)
    assert samples(mine.text)["beat_run_duration_seconds_count"] > 0


def test_a_page_that_only_shows_folds_nothing(crew: Crew) -> None:
    with Redis.from_url(crew.url) as redis:
        assert Visitor.of(crew.url, access=Access(read_only=True)).get("/metrics").status_code == 200
        assert not redis.exists("beat:metrics")
        assert Visitor.of(crew.url).get("/metrics").status_code == 200
        assert redis.exists("beat:metrics")
