"""A beat runs, an operator does all that operators do, and afterwards every tick is accounted for and explained."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from beat import Client
from beat.history.history import Action, Change, Passed
from beat.timing import clock
from tests.cli.test_command_line import beat, document
from tests.support.facts import wait_until
from tests.support.files import lay_out
from tests.support.schedulers import Beat, Drain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from redis import Redis

    from beat.dev.embedded import PrivateRedis

TASKS = """
from beat import periodic

@periodic(every="2s")
def tick(): ...
"""
SECOND = timedelta(seconds=1)


@pytest.fixture
def here(home: Path) -> Path:
    (home / "pyproject.toml").write_text("", encoding="utf-8")
    return lay_out(home, {"tasks.py": TASKS})


def more_runs(client: Client, number: int = 1) -> None:
    """Waits until so many more ticks became jobs."""
    before = client.get("tick").ticked
    wait_until(lambda: client.get("tick").ticked >= before + number)


def moved_by_a_second(client: Client) -> Any:
    found = client.get("tick")
    assert found.next_run
    return client.reschedule("tick", at=found.next_run + SECOND)


DONE: dict[str, Callable[[Client], Any]] = {
    "paused": lambda client: client.pause("tick", until="5s", reason="the warehouse moves"),
    "instead": lambda client: client.trigger("tick", skip_next=True),
    "rescheduled": lambda client: client.reschedule("tick", every="3s"),
    "reset": lambda client: client.reschedule("tick", reset=True),
    "deferred": moved_by_a_second,
    "asked": lambda client: client.trigger("tick"),
}


def played(here: Path, url: str) -> Client:
    """One thing after the other, with a run or two between them; the beat has ended."""
    client = Client(url, by="ann@ops")
    with Beat(here, url) as running:
        running.says("fired tick")
        for step in DONE.values():
            step(client)
            wait_until(lambda: client.get("tick").state == "active")
            more_runs(client, 2)
        assert running.end() == 0
    return client


def test_what_operators_do_leaves_every_tick_accounted_for(here: Path, server: PrivateRedis, redis: Redis) -> None:
    with Drain(server.url):
        client = played(here, server.url)
    [found] = client.verify("tick")
    assert (found.problems, found.missing, found.double) == ((), (), ())
    lines = client.history("tick")
    acted = {line.type: line for line in lines if isinstance(line, Action | Change)}
    assert {*acted} == {"registered", "paused", "resumed", "rescheduled", "reset", "deferred"}
    assert {line.beat for name, line in acted.items() if name not in {"registered", "resumed"}} == {"ann@ops"}
    skipped = {line.reason: line for line in lines if isinstance(line, Passed)}
    assert {*skipped} == {"paused", "instead"}

    def told(at: Any) -> str:
        return beat("why", "tick", clock.text(at), "--redis-url", server.url, cwd=here).stdout

    assert re.search(
        r"paused: ann@ops had paused the schedule until .* \(the warehouse moves\)", told(skipped["paused"].first)
    )
    asked = rf"ann@ops asked for a run in its place, at .* UTC: {skipped['instead'].behind}"
    assert re.search(asked, told(skipped["instead"].first))
    deferred = acted["deferred"]
    assert isinstance(deferred, Action)
    assert deferred.tick
    assert re.search(r"enqueued by .*; ann@ops had moved it to .* UTC", told(deferred.tick))
    assert redis.exists("beat:schedule:tick")


def test_show_has_both_rules_the_pause_and_who_did_it(here: Path, server: PrivateRedis, redis: Redis) -> None:
    client = Client(server.url, by="ann@ops")
    with Drain(server.url), Beat(here, server.url) as running:
        running.says("fired tick")
        client.reschedule("tick", "0 9 * * *", tz="Europe/Berlin")
        moved = client.get("tick").next_run
        assert moved
        client.reschedule("tick", at=moved + SECOND)
        running.end()
    asked = ("show", "tick", "--redis-url", server.url)
    told = beat(*asked, cwd=here).stdout
    assert re.search(r"^when +at 09:00, every day, Europe/Berlin time$", told, re.MULTILINE)
    assert re.search(r"^code says +every 2 seconds", told, re.MULTILINE)
    assert re.search(r"^overridden +by ann@ops since .*; beat reschedule tick --reset ends it$", told, re.MULTILINE)
    assert re.search(r"^next +.* \(in .*\), moved to 09:00:01 Berlin = 0.:00:01Z by ann@ops$", told, re.MULTILINE)
    assert re.search(r"^then +.*09:00 Berlin = .*, .*09:00 Berlin", told, re.MULTILINE)
    assert re.search(r"^source +the code of the application default$", told, re.MULTILINE)
    client.pause("tick", until="2d", reason="the warehouse moves")
    told = beat(*asked, cwd=here).stdout
    assert re.search(r"^paused +by ann@ops since .*, until .* \(the warehouse moves\)$", told, re.MULTILINE)
    found = document(*asked, cwd=here)["schedule"]
    assert (found["pause"]["by"], found["pause"]["reason"]) == ("ann@ops", "the warehouse moves")
    assert (found["override"]["rule"]["cron"], found["declared"]["every"]) == ("0 9 * * *", "2s")
    assert (found["source"], found["app"], len(found["next_ticks"])) == ("code", "default", 3)
    assert found["version"] == client.get("tick").version
    client.pause("tick")
    assert re.search(r"^next +none until an operator resumes it$", beat(*asked, cwd=here).stdout, re.MULTILINE)
    assert redis.exists("beat:schedule:tick")


def test_of_what_nobody_declares_show_says_that_it_is_held(here: Path, server: PrivateRedis, redis: Redis) -> None:
    with Drain(server.url), Beat(here, server.url) as running:
        running.says("fired tick")
        running.end()
    redis.hset("beat:schedule:tick", "unannounced_at", "2026-11-16T09:00:00.000Z")
    told = beat("show", "tick", "--redis-url", server.url, cwd=here).stdout
    assert re.search(
        r"^held +no running scheduler declares it since Mon 2026-11-16 09:00 UTC: its ticks", told, re.MULTILINE
    )
    listed = beat("list", "--redis-url", server.url, cwd=here).stdout
    assert re.search(r"^tick +every 2s +held +.*active, held", listed, re.MULTILINE)


def test_what_a_list_prints_a_client_takes_back(here: Path, server: PrivateRedis, redis: Redis) -> None:
    """`beat list --json`, `beat remove`, `beat add --file`: the same schedules again."""
    client = Client(server.url, by="ann@ops")
    with Drain(server.url), Beat(here, server.url) as running:
        running.says("fired tick")
        running.end()
    given: dict[str, Any] = {"func": "tasks.tick", "queue": "low", "retry": 3, "exclude": ["2026-12-25"]}
    client.add("customer_42", cron="0 9 * * mon-fri", tz="Europe/Berlin", jitter="5m", overlap="skip", **given)
    client.add("customer_43", every="15m", start=clock.read("2026-11-16T09:00:00Z"), max_runs=9, **given)
    listing = ("list", "customer_*", "--redis-url", server.url, "--json")
    before = beat(*listing, cwd=here).stdout
    (here / "schedules.json").write_text(before, encoding="utf-8")
    known = [client.get(each).definition for each in ("customer_42", "customer_43")]
    for each in ("customer_42", "customer_43"):
        client.remove(each)
    done = beat("add", "--file", "schedules.json", "--redis-url", server.url, cwd=here)
    assert done.returncode == 0, done.stderr
    assert "Did you mean" not in done.stderr
    assert [client.get(each).definition for each in ("customer_42", "customer_43")] == known
    assert redis.exists("beat:schedule:tick")
