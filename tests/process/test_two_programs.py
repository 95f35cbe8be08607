"""Two programs on one Redis, as real schedulers: they live side by side, and where they cannot, both sides are told."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.test_command_line import beat, document
from tests.support.facts import wait_until
from tests.support.files import lay_out
from tests.support.schedulers import Beat

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from redis import Redis

    from beat.dev.embedded import PrivateRedis

HASTY = """
from beat import periodic
from beat.engine import conflicts, housekeeper, registrar, retirement

housekeeper.HEARTBEAT_S, housekeeper.LINGER_MS, retirement.LOOK_S, conflicts.LOOK_S = 1, 2_000, 1, 1
housekeeper.ANNOUNCED_MS = registrar.ANNOUNCED_MS = 8_000
"""
REPORT = """
@periodic("{rule}")
def report(): ...
"""
OWN = """
@periodic(every="1s")
def {name}(): ...
"""
PROJECT = "[project]\nname = '{name}'\n"
DIFFERENTLY = "live schedulers declare report differently"


class Programs:
    """Projects and their schedulers, all ended with the block."""

    def __init__(self, home: Path, url: str) -> None:
        self.home, self.url, self._stack = home, url, contextlib.ExitStack()

    def write(self, directory: str, *tasks: str, project: str = "", module: str = "tasks") -> None:
        lay_out(self.home, {f"{directory}/{module}.py": HASTY + "".join(tasks)})
        if project:
            lay_out(self.home, {f"{directory}/pyproject.toml": PROJECT.format(name=project)})

    def start(self, directory: str, module: str = "tasks", **environment: str) -> Beat:
        given = {"BEAT_RETIRE_AFTER": "10s", **environment}
        started = self._stack.enter_context(Beat(self.home / directory, self.url, module=module, **given))
        started.says("registered")
        return started

    def doctor(self, directory: str) -> dict[str, Any]:
        told = document("doctor", cwd=self.home / directory, BEAT_REDIS_URL=self.url)
        return {each["check"]: each for each in told["findings"]}

    def close(self) -> None:
        self._stack.close()


@pytest.fixture
def programs(home: Path, server: PrivateRedis, redis: Redis) -> Iterator[Programs]:  # noqa: ARG001 (it empties it)
    with contextlib.closing(Programs(home, server.url)) as made:
        yield made


def state(redis: Any, schedule_id: str) -> dict[str, str]:
    found: dict[str, str] = redis.hgetall(f"beat:schedule:{schedule_id}")
    return found


def heartbeats(redis: Any, number: int) -> None:
    """Waits until every live scheduler has shown so many more heartbeats."""
    for name in redis.zrange("beat:instances", 0, -1):
        seen = {redis.hget(f"beat:instance:{name}", "seen_at")}

        def has_beaten(name: str = name, seen: set[str] = seen) -> bool:
            seen.add(redis.hget(f"beat:instance:{name}", "seen_at"))
            return len(seen) > number

        wait_until(has_beaten, 60)


def test_two_projects_without_any_setting_leave_each_others_schedules_alone(programs: Programs, redis: Redis) -> None:
    programs.write("shop", OWN.format(name="sell"), OWN.format(name="stock"), project="shop")
    programs.write("till", OWN.format(name="count"), project="till")
    shop = programs.start("shop")
    till = programs.start("till")
    wait_until(lambda: redis.zcard("beat:instances") == 2)
    heartbeats(redis, 3)
    assert shop.end() == 0
    wait_until(lambda: redis.zcard("beat:announcements") == 1, 20)
    heartbeats(redis, 3)
    assert [state(redis, each)["app"] for each in ("sell", "stock", "count")] == ["shop", "shop", "till"]
    assert all("unannounced_at" not in state(redis, each) for each in ("sell", "stock"))
    ticked = state(redis, "sell")["next_run"]
    wait_until(lambda: state(redis, "sell")["next_run"] > ticked)
    assert till.end() == 0
    warned = [line for log in (shop.log, till.log) for line in log.splitlines() if "WARNING" in line]
    assert [line for line in warned if "no live worker" not in line] == []


def test_two_projects_with_one_id_are_both_told_and_the_first_keeps_it(programs: Programs, redis: Redis) -> None:
    programs.write("shop", REPORT.format(rule="0 9 * * *"), project="shop")
    programs.write("till", REPORT.format(rule="0 10 * * *"), project="till")
    shop = programs.start("shop")
    before = state(redis, "report")
    till = programs.start("till")
    for program in (shop, till):
        program.says(DIFFERENTLY)
    heartbeats(redis, 3)
    assert state(redis, "report") == before
    told = programs.doctor("shop")["conflict"]
    assert told["level"] == "problem"
    places = [programs.home.resolve() / directory / "tasks.py" for directory in ("shop", "till")]
    for words in ("0 9 * * * UTC (shop on ", "0 10 * * * UTC (till on ", *(f"{place}:8)" for place in places)):
        assert words in told["what"]
        assert all(words in program.log for program in (shop, till))
    assert "BEAT_PREFIX" in told["remedy"]
    assert [program.log.count(DIFFERENTLY) for program in (shop, till)] == [1, 1]
    assert shop.end() == 0
    till.says("1 schedule of the application shop, of which no scheduler runs, now belong")
    assert state(redis, "report")["cron"] == "0 10 * * *"


def test_two_hosts_with_two_default_zones_are_told_at_once(programs: Programs, redis: Redis) -> None:
    programs.write("shop", REPORT.format(rule="0 9 * * *"), project="shop")
    schedulers = [programs.start("shop", BEAT_TZ=tz) for tz in ("UTC", "Europe/Berlin")]
    for each in schedulers:
        each.says(DIFFERENTLY)
        assert "BEAT_TZ" in each.log
    told = programs.doctor("shop")["conflict"]
    assert (told["level"], "BEAT_TZ" in told["remedy"]) == ("problem", True)
    assert "0 9 * * * UTC (shop on" in told["what"]
    assert "0 9 * * * Europe/Berlin (shop on" in told["what"]
    heartbeats(redis, 2)
    assert [each.log.count(DIFFERENTLY) for each in schedulers] == [1, 1]


def test_two_programs_of_one_name_retire_nothing(programs: Programs, redis: Redis) -> None:
    programs.write("one", OWN.format(name="a"), OWN.format(name="gone"))
    assert programs.start("one").end() == 0
    programs.write("one", OWN.format(name="a"))
    programs.write("two", OWN.format(name="b"))
    schedulers = [programs.start(each) for each in ("two", "one")]
    for each in schedulers:
        each.says("have no schedule in common, so beat treats them as two and retires nothing")
        assert "BEAT_APP" in each.log
    heartbeats(redis, 3)
    assert "unannounced_at" not in state(redis, "gone")
    assert programs.doctor("one")["unrelated"]["level"] == "warning"


def test_a_scheduler_of_some_modules_leaves_those_of_others_alone(programs: Programs, redis: Redis) -> None:
    programs.write("shop", OWN.format(name="daily"), OWN.format(name="weekly"), project="shop", module="reports")
    programs.write("shop", OWN.format(name="invoice"), module="billing")
    both = [programs.start("shop", module) for module in ("reports", "billing")]
    for each in both:
        assert each.end() == 0
    wait_until(lambda: redis.zcard("beat:announcements") == 0 or not list(redis.scan_iter("beat:announced:*")), 20)
    programs.write("shop", OWN.format(name="daily"), module="reports")
    reports = programs.start("shop", "reports")
    reports.says("weekly: no running scheduler declares it any more")
    heartbeats(redis, 2)
    assert "unannounced_at" not in state(redis, "invoice")
    assert "invoice (billing, " in programs.doctor("shop")["undeclared"]["what"]


def test_config_names_where_the_application_comes_from(programs: Programs) -> None:
    programs.write("shop", project="My.Shop")
    told = beat("config", cwd=programs.home / "shop").stdout
    assert ["app", "my-shop", "pyproject.toml", "[project]", "name"] in [line.split() for line in told.splitlines()]
