"""A beat under the least rights, exactly as `beat doctor --acl` prints them: all of it works, and nothing else does.

The worker is a stock one with rights of its own: what RQ needs is not for beat to say.
"""

from __future__ import annotations

import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from redis import Redis, exceptions

from beat import Client, events
from beat.client.ordering import ORDERS
from beat.dev import embedded
from beat.doctor import acl
from beat.errors import NoRedis
from beat.history.history import Fired
from beat.storage import connection
from beat.storage.keys import Keys
from beat.web.api import ENDPOINTS
from beat.web.auth import Access
from tests.cli.test_command_line import beat, document
from tests.support.facts import wait_until
from tests.support.files import lay_out
from tests.support.rq_worker import SIMPLE, Steps, Worker
from tests.support.schedulers import Beat
from tests.support.scraping import free_port, get, samples
from tests.web.visitor import Visitor, crawled

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSWORD = "hunter2"  # noqa: S105 (of a server that lives as long as these tests)
ALERTS = """{"channels": {"ops": {"command": ["true"]}}, "rules": [{"channel": "ops", "after": "1s", "on":
    ["failed", "lost", "recovered", "late_fire", "late_start", "late_end", "no_worker", "broken"]}]}"""
TASKS = """
    import time
    from datetime import timedelta

    from beat import Requires, group, periodic
    from beat.engine import housekeeper, run_tracker, unserved_queues
    from beat.jobs import outcomes

    housekeeper.HEARTBEAT_S, unserved_queues.GRACE_S = 1, 0
    # Jobs that vanished are looked for at once, and are lost soon.
    run_tracker.SEARCH_S, run_tracker.SEARCH_MS, run_tracker.AGE, outcomes.MISSING_MS = 1, 900, timedelta(0), 1000

    @periodic(every="1s")
    def tick(): ...

    @periodic("0 3 * * *")
    def nightly(): ...

    @periodic(every="2s", result_ttl=0)
    def leaves_nothing(): ...

    @periodic(every="2s", failure_ttl=90)
    def fails():
        raise ValueError("as it should")

    @periodic(every="2s", retry={"max": 1, "interval": 1}, queue="again")
    def fails_again():
        raise ValueError("twice")

    @periodic(every="1s", overlap="replace", queue="slow")
    def replaced():
        time.sleep(60)

    @periodic(every="1s", overlap="replace", queue="nobody")
    def replaced_in_its_queue(): ...

    @periodic(every="1s", overlap="wait", max_runs=2)
    def waits(): ...

    @periodic(every="1s", queue="lost", overlap="skip")
    def vanishes(): ...

    group("few", max_running=1)

    @periodic(every="2s", group="few", id="in_group_one", queue="simple")
    @periodic(every="2s", group="few", id="in_group_two", queue="simple")
    def in_group(): ...

    @periodic(every="2s", queues=["simple", "other"], route="round_robin", slow_queue="late", slow_after="1ms")
    def in_turn(): ...

    @periodic(every="2s", queues=["simple", "other"], route="shortest")
    def shortest(): ...

    @periodic(every="2s", queues=["simple", "other"], route="broadcast")
    def everywhere(): ...

    @periodic(every="2s", requires=Requires("everywhere", within="1h"), queue="simple")
    def requires_it(): ...

    @periodic(follows="everywhere", queue="simple")
    def follows_it(): ...
"""


class Stage(NamedTuple):
    """A server, and who may do everything there; the URL of who may do little; a directory with an application."""

    admin: Any
    url: str
    everybody: str
    here: Path

    def number(self, schedule_id: str, counter: str) -> int:
        return int(self.admin.hget(f"beat:schedule:{schedule_id}", counter) or 0)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """With a user made by the line that `beat doctor --acl` prints, pasted word for word."""
    here = lay_out(Path(tempfile.mkdtemp(prefix="beat-")), {"tasks.py": TASKS, "pyproject.toml": ""})
    with embedded.start(here / "redis") as private, Redis.from_url(private.url, decode_responses=True) as admin:
        printed = beat("doctor", "--acl", "--redis-url", private.url, cwd=here)
        assert printed.returncode == 0
        assert "ACL SETUSER beat >PASSWORD" in printed.stderr
        assert admin.execute_command(*printed.stdout.split()) == "OK"
        admin.execute_command("ACL", "SETUSER", "beat", f">{PASSWORD}")
        yield Stage(admin, private.url.replace("unix://", f"unix://beat:{PASSWORD}@"), private.url, here)
    shutil.rmtree(here)


def attacks(stage: Stage) -> list[Any]:
    """What Redis noted as tried in vain."""
    noted: Any = stage.admin.execute_command("ACL", "LOG")
    return [{name: entry[name] for name in ("reason", "object", "username")} for entry in map(_mapping, noted)]


def _mapping(entry: Any) -> dict[str, Any]:
    return entry if isinstance(entry, dict) else dict(zip(entry[::2], entry[1::2], strict=True))


def test_a_beat_does_all_its_work(stage: Stage) -> None:
    stage.admin.execute_command("ACL", "LOG", "RESET")
    stage.admin.sadd("beat:schedules", "a_stranger")
    steps, port = Steps(stage.here / "steps.log"), free_port()
    with (
        Worker(stage.everybody, steps, "default", "again", options=["--with-scheduler"]) as worker,
        Worker(stage.everybody, steps, "slow") as slow,
        Worker(stage.everybody, steps, "simple", "other", "late", options=SIMPLE),
        Beat(stage.here, stage.url, "--metrics-port", str(port), BEAT_ALERTS=ALERTS) as first,
    ):
        first.says("the channel ops was told of ")
        _everything_happens(stage, first, f"{worker.log}\n{slow.log}")
        assert samples(get(port).text)["beat_enqueue_lateness_seconds_count"] > 0
        with Beat(stage.here, stage.url) as second:
            second.says("registered")
            wait_until(lambda: len(Client(stage.url).beats()) == 2, what=lambda: second.log)
            assert first.end() == 0
            before = stage.number("tick", "run_count")
            wait_until(lambda: stage.number("tick", "run_count") > before, what=lambda: second.log)
            assert second.end() == 0
        for each in (first, second):
            errors = [line for line in each.log.splitlines() if " ERROR " in line]
            assert [line for line in errors if "vanishes: the run" not in line] == []
    assert attacks(stage) == []


def _everything_happens(stage: Stage, beat: Beat, workers: str) -> None:
    def happened(schedule_id: str, counter: str) -> None:
        wait_until(
            lambda: stage.number(schedule_id, counter),
            60,
            lambda: f"for {counter} of {schedule_id}\n{beat.log}\n{workers}",
        )

    beat.says("put right")
    beat.says("no live worker reads it: rq worker nobody")
    assert stage.admin.hexists("beat:unread", "nobody")
    happened("tick", "success_count")
    happened("leaves_nothing", "success_count")
    happened("fails", "failure_count")
    happened("fails_again", "failure_count")
    happened("replaced", "stopped_count")
    happened("replaced_in_its_queue", "stopped_count")
    happened("waits", "success_count")
    for each in ("in_group_one", "in_group_two", "in_turn", "shortest", "everywhere", "requires_it", "follows_it"):
        happened(each, "success_count")
    wait_until(lambda: stage.admin.hget("beat:schedule:waits", "state") == "finished", what=lambda: beat.log)
    job = wait_until(lambda: stage.admin.lpop("rq:queue:lost"), what=lambda: beat.log)
    happened("vanishes", "failure_count")  # that job is lost
    assert str(job).startswith("beat_vanishes_")


def test_the_questions_are_answered(stage: Stage) -> None:
    stage.admin.execute_command("ACL", "LOG", "RESET")
    with Beat(stage.here, stage.url, "--only", "tick") as running:
        wait_until(lambda: stage.number("tick", "run_count"), what=lambda: running.log)
        listings = [["list", "--sort", order, "--after", "tick"] for order in ORDERS]
        listings += [["list"], ["list", "--failing"], ["list", "ti*"], ["list", "--func", "tasks.*", "--sort", "next"]]
        told = [["history"], ["history", "tick"], ["show", "tick"], ["timeline"], ["why", "tick", "1s ago"]]
        for question in (*told, *listings):
            asked = beat(*question, "--redis-url", stage.url, cwd=stage.here)
            assert (asked.returncode, asked.stderr) == (0, "")
            assert asked.stdout
        assert document("verify", "--redis-url", stage.url, cwd=stage.here)["schedules"]
        found = document("doctor", "--redis-url", stage.url, cwd=stage.here)["findings"]
    rights = [each for each in found if each["group"] == "rights"]
    assert {each["level"] for each in rights} == {"ok"}, rights
    assert not [each for each in found if "could not look" in each["what"]]
    assert attacks(stage) == []


def test_the_page_shows_all_of_it_and_changes_what_it_is_told_to(stage: Stage) -> None:
    stage.admin.execute_command("ACL", "LOG", "RESET")
    with Beat(stage.here, stage.url, "--only", "tick") as running:
        running.says("fired tick")
        visitor = Visitor.of(stage.url)
        seen = dict(crawled(visitor))
        asked = _questions(stage.url)
        assert {path: visitor.get(path).status_code for path in asked} == dict.fromkeys(asked, 200)
    assert {path: status for path, status in seen.items() if status not in {200, 303}} == {}
    assert attacks(stage) == []


def _questions(url: str) -> list[str]:
    """What programs may ask, each once."""
    job = next(line.job_id for line in Client(url).history("tick") if isinstance(line, Fired))
    more = {"why": "?time=00:00", "preview": "?every=15m", "schedules": "?runs=5"}
    asked = [
        f"/api/v1{each.path.format(schedule_id='tick', job_id=job)}{more.get(each.name, '')}"
        for each in ENDPOINTS
        if each.method == "GET"
    ]
    return [*asked, "/metrics"]


def test_a_page_that_only_shows_has_a_user_who_can_only_read(stage: Stage) -> None:
    printed = beat("doctor", "--acl", "--user", "web", "--read-only", "--redis-url", stage.everybody, cwd=stage.here)
    assert stage.admin.execute_command(*printed.stdout.split()) == "OK"
    stage.admin.execute_command("ACL", "SETUSER", "web", f">{PASSWORD}")
    stage.admin.execute_command("ACL", "LOG", "RESET")
    url = stage.everybody.replace("unix://", f"unix://web:{PASSWORD}@")
    visitor = Visitor.of(url, access=Access(read_only=True))
    with Beat(stage.here, stage.url, "--only", "tick") as running:
        running.says("fired tick")
        seen = dict(crawled(visitor))
        asked = [*_questions(url), "/metrics", "/healthz", "/readyz"]
        seen |= {path: visitor.get(path).status_code for path in asked}
    assert {path: status for path, status in seen.items() if status not in {200, 303}} == {}
    assert attacks(stage) == []
    before = stage.admin.hgetall("beat:schedule:tick")
    with pytest.raises(NoRedis, match="refuses"):
        Client(url).pause("tick")
    with pytest.raises(NoRedis, match="refuses"):
        Client(url).trigger("tick", force=True)
    assert stage.admin.hgetall("beat:schedule:tick") == before
    with Redis.from_url(url) as client:
        for words in (
            ["SET", "beat:x", "1"],
            ["DEL", "beat:due"],
            ["LPUSH", "rq:queue:default", "x"],
            ["GET", "secret"],
        ):
            with pytest.raises(exceptions.NoPermissionError):
                client.execute_command(*words)


def test_what_only_reads_has_no_command_that_writes(stage: Stage) -> None:
    names = {name for grant in acl.rule(Keys(), version=(7, 2)).reading().grants for name in grant.commands}
    assert names & {*stage.admin.acl_cat("write")} == set()
    assert {"hset", "zadd", "lpush"} <= {*stage.admin.acl_cat("write")}


def test_an_operator_changes_what_she_likes(stage: Stage) -> None:
    stage.admin.execute_command("ACL", "LOG", "RESET")
    with Beat(stage.here, stage.url) as running:
        running.says("registered")
        client = Client(stage.url, by="ann@ops")
        run = client.trigger("tick", force=True)
        assert client.get_run(run.job_id)
        assert client.pause("tick", until="1h", reason="trying").state == "paused"
        assert client.resume("tick").state == "active"
        client.reschedule("tick", every="2s")
        client.reschedule("tick", reset=True)
        client.reschedule("nightly", at=client.now() + timedelta(hours=1))
        client.add("customer_42", func="tasks.tick", cron="0 9 * * *")
        client.remove("customer_42")
        assert client.pause_all(reason="all of them") > 0
        assert client.resume_all() > 0
        assert running.end() == 0
    assert attacks(stage) == []


def test_the_outbox_is_read_alone_and_in_groups(stage: Stage) -> None:
    stage.admin.execute_command("ACL", "LOG", "RESET")
    stage.admin.xadd(
        "beat:events", {"type": "enqueued", "schedule": "tick", "tick": "", "job": "", "by": "x", "entry": ""}
    )
    assert list(events.read(redis=stage.url, follow=False))
    assert list(events.read(redis=stage.url, follow=False, group="mail"))
    assert list(events.read(redis=stage.url, follow=False, group="mail")) == []
    assert attacks(stage) == []


REFUSED = {
    "deleting a queue": ["DEL", "rq:queue:default"],
    "emptying a queue": ["LPOP", "rq:queue:default"],
    "renaming a queue": ["RENAME", "rq:queue:default", "beat:mine"],
    "copying over a queue": ["COPY", "beat:template:tick", "rq:queue:default", "REPLACE"],
    "forgetting the queues": ["DEL", "rq:queues"],
    "reading another key": ["GET", "secret"],
    "copying another key": ["COPY", "secret", "beat:mine"],
    "sorting by another key": ["SORT_RO", "beat:due", "BY", "nosort", "GET", "secret*"],
    "writing another key": ["SET", "secret", "x"],
    "reading the job of somebody else": ["HGETALL", "rq:job:theirs"],
    "deleting the job of somebody else": ["DEL", "rq:job:theirs"],
    "changing what a worker says": ["HSET", "rq:worker:w1", "state", "idle"],
    "commands to other channels": ["PUBLISH", "news", "x"],
    "listing keys": ["KEYS", "*"],
    "CONFIG GET": ["CONFIG", "GET", "*"],
    "CONFIG SET": ["CONFIG", "SET", "maxmemory", "1"],
    "FLUSHALL": ["FLUSHALL"],
    "FLUSHDB": ["FLUSHDB"],
    "forgetting scripts": ["SCRIPT", "FLUSH"],
    "ACL": ["ACL", "LIST"],
    "MONITOR": ["MONITOR"],
    "SHUTDOWN": ["SHUTDOWN"],
    "a script that reads another key": ["EVAL", "return redis.call('GET', 'secret')", "0"],
    "a script that is given another key": ["EVAL", "return 1", "1", "secret"],
    "a script that deletes a queue": ["EVAL", "return redis.call('DEL', 'rq:queue:default')", "0"],
}


@pytest.mark.parametrize("what", REFUSED)
def test_nothing_else_works(what: str, stage: Stage) -> None:
    stage.admin.set("secret", "s3cret")
    stage.admin.rpush("rq:queue:default", "job")
    stage.admin.hset("rq:job:theirs", "data", "s3cret")
    before = stage.admin.dump("rq:queue:default")
    with Redis.from_url(stage.url) as client, pytest.raises(exceptions.ResponseError) as refusal:
        client.execute_command(*REFUSED[what])
    assert connection.forbids(refusal.value) or "insufficient ACL permissions" in str(refusal.value)
    assert stage.admin.dump("rq:queue:default") == before
    assert stage.admin.get("secret") == "s3cret"
    assert stage.admin.hget("rq:job:theirs", "data") == "s3cret"
