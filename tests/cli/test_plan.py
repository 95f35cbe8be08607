"""`beat plan` for people at terminals and for CI: real processes, and what a beat of the old code left in Redis."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from beat import Client
from tests.cli.test_command_line import beat, document, refused, without_colours
from tests.process.commands import on_a_terminal
from tests.support.files import lay_out
from tests.support.schedulers import Beat

if TYPE_CHECKING:
    from pathlib import Path

    from redis import Redis

    from beat.dev.embedded import PrivateRedis

OLD = """
    from beat import periodic

    @periodic("0 9 * * *", tz="Europe/Berlin", kwargs={"kind": "daily"})
    def report(kind): ...

    @periodic(every="15m")
    def poll(): ...

    @periodic("0 3 * * *")
    def cleanup(): ...

    @periodic("0 * * * *")
    def hourly(): ...

    @periodic("0 0 1 * *")
    def monthly(): ...
"""
NEW = """
    print("an application that talks")
    from beat import periodic

    @periodic("0 10 * * *", tz="Europe/Berlin", kwargs={"kind": "weekly"},
              description="Goes to everybody who asked for it, in the order in which they asked.")
    def report(kind): ...

    @periodic(every="15m", id="poll")
    def poll_all(): ...

    @periodic("30 * * * *")
    def hourly(): ...

    @periodic("0 0 1 * *")
    def monthly(): ...

    @periodic("0 0 1 1 *")
    def yearly(): ...
"""
PLAN = """\
+ yearly  added
    when  at 00:00, on 1 January, UTC
    next  {ticks} UTC
~ report  changed
    kwargs.kind  daily → weekly
    description  none → Goes to everybody who asked for it, in the order in which they asked.
    cron         0 9 * * * → 0 10 * * *
    before       {ticks} Europe/Berlin
    after        {ticks} Europe/Berlin
~ poll  changed
    func  tasks.poll → tasks.poll_all
    next  {ticks} UTC
! hourly  overridden
    cron      0 * * * * → 30 * * * *
    in force  every 7m, by ann since {at} UTC
    the code  30 * * * *: {ticks} UTC
    to reset  beat reschedule hourly --reset
    next      {ticks} UTC
- cleanup  removed
    when  at 03:00, every day, UTC
    next  {ticks} UTC
    then  held when no running scheduler declares it; retired after 15m

1 added, 2 changed, 1 overridden, 1 removed; 1 the same
"""


@pytest.fixture
def here(home: Path, server: PrivateRedis, redis: Redis) -> Path:  # noqa: ARG001 (it is empty)
    """Two versions of an application; the old one has been running, and an operator was here."""
    lay_out(home, {"old/tasks.py": OLD, "new/tasks.py": NEW, "new/broken.py": "import nowhere"})
    lay_out(home, {"pyproject.toml": "[project]\nname = 'shop'\n"})
    with Beat(home / "old", server.url) as old:
        old.says("registered")
        Client(server.url, by="ann").reschedule("hourly", every="7m")
        assert old.end() == 0
    return home


def matches(printed: str, expected: str) -> None:
    """Where the document has {ticks}, there are three; where it has {at}, there is a time."""
    printed_lines, expected_lines = printed.splitlines(), expected.splitlines()
    for line, wanted in zip(printed_lines, expected_lines, strict=True):
        begin, mark, end = wanted.partition("{ticks}" if "{ticks}" in wanted else "{at}")
        if not mark:
            assert line == wanted
            continue
        assert line.startswith(begin)
        assert line.endswith(end)
        told = line.removeprefix(begin).removesuffix(end)
        assert told.count(", ") == (2 if mark == "{ticks}" else 0)


def test_a_plan_is_told_line_by_line(here: Path, server: PrivateRedis) -> None:
    done = beat("plan", "tasks", cwd=here / "new", BEAT_REDIS_URL=server.url)
    assert done.returncode == 0
    matches(done.stdout, PLAN)
    assert done.stderr == "an application that talks\n"


@pytest.mark.parametrize("columns", [80, 200])
def test_a_plan_fits_the_terminal(here: Path, server: PrivateRedis, columns: int) -> None:
    code, received = on_a_terminal("plan", "tasks", cwd=here / "new", columns=columns, BEAT_REDIS_URL=server.url)
    lines = without_colours(received).splitlines()
    assert code == 0
    assert max(map(len, lines)) <= columns
    assert any(len(line) > 80 for line in lines) == (columns > 80)
    begun = [line.strip() for line in lines if line and not line.startswith("  ")][1:]
    assert begun[:3] == [
        "+ yearly  added",
        "~ report  changed",
        "~ poll  changed",
    ]
    assert "\x1b[31m\x1b[1m-\x1b[0m cleanup" in received


def test_programs_get_one_document(here: Path, server: PrivateRedis) -> None:
    found = document("plan", "tasks", cwd=here / "new", BEAT_REDIS_URL=server.url)
    kinds = ("added", "changed", "returning", "overridden", "taken", "removed")
    ids = {kind: [each["id"] for each in found[kind]] for kind in kinds}
    assert ids == {
        "added": ["yearly"], "changed": ["report", "poll"], "returning": [], "overridden": ["hourly"],
        "taken": [], "removed": ["cleanup"],
    }  # fmt: skip
    assert (found["app"], found["changes"], found["same"]) == ("shop", True, 1)
    [report, _], [hourly], [cleanup] = found["changed"], found["overridden"], found["removed"]
    assert {each["option"]: (each["was"], each["becomes"]) for each in report["options"]}["cron"] == (
        "0 9 * * *", "0 10 * * *",
    )  # fmt: skip
    assert (len(report["before"]), len(report["after"]), report["declared"]) == (3, 3, "tasks.py:5")
    assert (hourly["overridden"]["by"], hourly["overridden"]["rule"]) == ("ann", "every 7m")
    assert (cleanup["retire_after"], cleanup["held_since"]) == (900, None)


def test_the_exit_code_says_whether_there_are_changes(here: Path, server: PrivateRedis) -> None:
    given = {"BEAT_REDIS_URL": server.url}
    assert beat("plan", "tasks", "--exit-code", cwd=here / "new", **given).returncode == 1
    done = beat("plan", "tasks", "--exit-code", cwd=here / "old", **given)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "1 overridden; 4 the same")


def test_after_the_deploy_there_is_nothing_left_to_do(here: Path, server: PrivateRedis) -> None:
    Client(server.url).reschedule("hourly", reset=True)
    with Beat(here / "new", server.url) as new:
        new.says("registered")
        found = document("plan", "tasks", cwd=here / "new", BEAT_REDIS_URL=server.url)
        assert [each["id"] for each in found["removed"]] == ["cleanup"]
        assert (found["same"], found["added"], found["changed"]) == (5, [], [])
        new.says("cleanup: no running scheduler declares it any more", 45)
    done = beat("plan", "tasks", "--json", cwd=here / "new", BEAT_REDIS_URL=server.url, BEAT_RETIRE_AFTER="1h")
    assert '"held_since": "20' in done.stdout


def test_another_id_for_the_same_function_is_named(here: Path, server: PrivateRedis) -> None:
    code = OLD.replace('@periodic(every="15m")', '@periodic(every="15m", id="poll_often")')
    lay_out(here, {"new/tasks.py": code})
    printed = beat("plan", "tasks", cwd=here / "new", BEAT_REDIS_URL=server.url).stdout
    words = 'poll goes and poll_often comes with the same function tasks.poll: pass id="poll" to keep its history'
    assert words in printed.splitlines()
    found = document("plan", "tasks", cwd=here / "new", BEAT_REDIS_URL=server.url)
    assert found["other_ids"] == [{"func": "tasks.poll", "old": "poll", "new": "poll_often"}]


def test_without_a_name_the_plan_says_where_the_scheduler_must_run(
    here: Path, server: PrivateRedis, redis: Redis
) -> None:
    redis.flushall()
    given = {"BEAT_REDIS_URL": server.url, "BEAT_APP": "default"}
    with Beat(here / "old", server.url, BEAT_APP="default") as old:
        old.says("registered")
    place = f"{(here / 'old').resolve()} on {socket.gethostname()}"
    assert document("plan", "tasks", cwd=here / "new", **given)["removed"][0]["place"] == place
    told = beat("plan", "tasks", cwd=here / "new", **given).stdout
    assert f"    if    the scheduler runs in {place}: the application has no name (BEAT_APP)\n" in told
    (here / "old/tasks.py").write_text((here / "new/tasks.py").read_text())
    with Beat(here / "old", server.url, BEAT_APP="default") as old:
        old.says("cleanup: no running scheduler declares it any more", 45)


def test_another_application_removes_nothing(here: Path, server: PrivateRedis) -> None:
    found = document("plan", "tasks", "--app", "billing", cwd=here / "new", BEAT_REDIS_URL=server.url)
    assert (found["app"], found["removed"]) == ("billing", [])


def test_code_that_cannot_be_planned_is_refused(here: Path, server: PrivateRedis) -> None:
    given = {"BEAT_REDIS_URL": server.url}
    code, words = refused("plan", "broken", cwd=here / "new", **given)
    assert code == 78
    assert "nowhere" in words
    (here / "new/tasks.py").rename(here / "new/others.py")
    code, words = refused("plan", cwd=here / "new", **given)
    assert code == 2
    assert "name the modules" in words
    (here / "new/others.py").rename(here / "new/tasks.py")
    assert beat("plan", cwd=here / "new", **given).stderr.startswith("loading tasks.py from this directory")
    code, words = refused("plan", "tasks", "--app", "a b", cwd=here / "new", **given)
    assert code == 78
    assert "app" in words


def test_code_without_schedules_removes_nothing_and_says_so(here: Path, server: PrivateRedis) -> None:
    (here / "new/empty.py").write_text("")
    done = beat("plan", "empty", "--exit-code", cwd=here / "new", BEAT_REDIS_URL=server.url)
    assert (done.returncode, done.stdout) == (0, "no changes: 0 the same\n")
    assert "the code declares no schedule: a beat with none retires nothing" in done.stderr


def test_without_a_redis_there_is_no_plan(here: Path) -> None:
    code, words = refused("plan", "tasks", cwd=here / "old", BEAT_REDIS_URL="redis://127.0.0.1:1/0")
    assert code == 69
    assert "no Redis answers" in words
