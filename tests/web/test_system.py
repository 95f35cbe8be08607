"""The system page, without a browser: beats, Redis, queues, groups, incidents, and who did what."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from beat.config import settings
from beat.config.groups import Group
from beat.timing import clock
from beat.web.security import Access
from tests.support.builders import schedule
from tests.support.facts import wait_until
from tests.support.lines import MINUTE
from tests.support.schedulers_in_turn import NAME, Crew
from tests.web.test_overview import HOSTILE, alive, section
from tests.web.visitor import Visitor, text

if TYPE_CHECKING:
    from redis import Redis

    from beat import Client
    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store


def shown(visitor: Visitor, path: str = "/system", *, until: str = "") -> Any:
    """The page, once it says that."""

    def look() -> Any:
        answer = visitor.get(path)
        assert answer.status_code == 200, text(answer)
        return answer if until in text(answer) else None

    return wait_until(look, 10)


def test_an_empty_installation_says_so_everywhere(visitor: Visitor) -> None:
    answer = shown(visitor, until="No schedule uses a queue yet.")
    assert "No scheduler is running: nothing fires" in text(answer)
    assert "beat run app.tasks" in section(answer, "beats")
    assert "None is open." in section(answer, "alerts")
    assert "No operator has changed anything yet." in section(answer, "audit")
    assert "Groups" not in text(answer)


def test_beats_with_their_clocks_and_what_differs(visitor: Visitor, client: Client, redis: Redis) -> None:
    alive(redis, client, "web-1", version="1.0", tzdata="2025b", app="shop", schedules="7", clock_offset_ms="3")
    alive(redis, client, "web-2", version="1.1", tzdata="2026a", app="shop", schedules="8", clock_offset_ms="-4200")
    redis.zadd("beat:instances", {"web-3": clock.to_ms(client.now() - MINUTE)})
    answer = shown(visitor)
    told = section(answer, "beats")
    assert "web-1 pid 7 on vm running" in told
    assert "shop 7" in told
    assert "+3 ms" in told
    assert "-4,200 ms" in told
    assert "warning schedulers of different versions: 1.0 (web-1); 1.1 (web-2)" in told
    assert "warning time zone data differ" in told
    assert "the clock of web-2 is 4.2 s behind Redis'" in told
    assert "web-3 missing" in told
    assert "2 schedulers running, 1 missing" in text(answer)


def test_redis_in_words(visitor: Visitor) -> None:
    told = section(shown(visitor), "redis")
    for each in ("version", "role master", "latency PING takes", "persistence appendonly is", "memory", "eviction"):
        assert each in told
    assert "format no scheduler has written here yet" in told


@pytest.mark.parametrize(("queue", "argument"), [("a; id", "'a; id'"), ("--burst", "-- --burst")])
def test_the_command_for_a_queue_without_a_worker_is_quoted(
    store: Store, server: PrivateRedis, queue: str, argument: str
) -> None:
    crew = Crew(store, server, schedule("report", queue=queue))
    crew.client.trigger("report")
    answer = shown(Visitor.of(server.url), until="no worker reads it")
    assert f"rq worker {argument}" in section(answer, "queues")


def test_queues_workers_groups_and_findings(store: Store, server: PrivateRedis, redis: Redis) -> None:
    crew = Crew(store, server, schedule("report", queue="mail", group="smtp"), groups=[Group("smtp", 2)])
    crew.client.trigger("report")
    visitor = Visitor.of(server.url)
    answer = shown(visitor, until="no worker reads it")
    assert re.search(r"mail ! ?no worker|mail no worker reads it.* rq worker mail 1 0 0", section(answer, "queues"))
    assert "smtp" in section(answer, "groups")
    assert "of 2" in section(answer, "groups")
    found = section(shown(visitor, until="→ rq worker mail"), "doctor")
    assert found.startswith("What beat doctor says problem"), "the worst first"
    assert redis.exists("beat:groups")


def test_open_incidents_are_told_and_link_to_their_schedule(visitor: Visitor, redis: Redis) -> None:
    state = {"event": "failed", "count": 3, "since": "2026-11-16T09:00:00Z", "last": "2026-11-16T09:02:00Z"}
    state |= {"error": f"ValueError: {HOSTILE}", "incident": "r1.run.report.1", "told": ["ops"]}
    key = f"beat:incidents:{settings.load().settings.app}"
    redis.hset(key, "r1:run:report", json.dumps(state))
    redis.hset(key, "r1:run:garbled", "{")
    answer = shown(visitor)
    assert "report r1 → ops failed 3×" in section(answer, "alerts")
    assert 'href="/schedules/report"' in answer.text
    assert "<script>alert" not in answer.text


def test_who_did_what_newest_first_and_by_one_alone(store: Store, server: PrivateRedis) -> None:
    crew = Crew(store, server, schedule("report"), schedule("other"))
    crew.client.pause("report", reason=f"it is loud {HOSTILE}")
    run = crew.client.named("web:bob").trigger("other")
    visitor = Visitor.of(server.url)
    answer = shown(visitor)
    told = section(answer, "audit")
    assert told.index("triggered other") < told.index("paused report") < told.index("registered")
    assert f'href="/schedules/other/runs/{run.job_id}"' in answer.text
    assert "until an operator resumes it: it is loud" in told
    assert "<script>alert" not in answer.text
    assert re.search(rf"{NAME} registered (report , other|other , report)", told), "alike ones are one line"
    alone = section(shown(visitor, "/system?who=web%3Abob"), "audit")
    assert "triggered other" in alone
    assert "paused report" not in alone
    assert 'href="/system?who=web%3Abob#audit" aria-current="true"' in shown(visitor, "/system?who=web%3Abob").text


def test_nothing_by_somebody_who_is_nobody(visitor: Visitor) -> None:
    answer = shown(visitor, f"/system?who={HOSTILE}")
    assert "Nothing by" in section(answer, "audit")
    assert "<script>alert" not in answer.text


def test_it_is_the_same_where_the_page_only_shows(server: PrivateRedis, redis: Redis) -> None:  # noqa: ARG001
    assert "· read-only ·" in text(shown(Visitor.of(server.url, access=Access(read_only=True))))
