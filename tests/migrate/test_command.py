"""`beat add --from`: what it prints, what it adds, and how it ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from beat import Client, cli
from beat.cli import common_options
from beat.cli.add import command
from beat.errors import ConfigError, DuplicateSchedule, NoRedis, Refused
from beat.migrate import add, cron_fields, crontab, rq_cron

if TYPE_CHECKING:
    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store
    from tests.migrate.house import House

TABLE = "0 5 * * 1 /usr/bin/backup --all\n@reboot /usr/bin/started\n"
JOBS = """
from rq.cron import register
from app.tasks import add, report
register(add, 'default', interval=30, args=(1,))
register(report, 'reports', cron='0 9 * * *', name='daily', webhooks=[1])
"""


class Shelf:
    """A client to which schedules are added."""

    def __init__(self, **errors: Exception) -> None:
        self.errors = errors
        self.added: dict[str, dict[str, Any]] = {}

    def add(self, schedule_id: str, /, **given: Any) -> None:
        if schedule_id in self.errors:
            raise self.errors[schedule_id]
        self.added[schedule_id] = given


class Ended:
    """How a call of the command line ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def call(house: House, capfd: pytest.CaptureFixture[str]) -> Any:
    """`beat add …`, through the one place where errors become exit codes."""
    house.write("table", TABLE)
    house.write("cron_config.py", JOBS)

    def called(*arguments: str) -> Ended:
        code = cli._run(["add", *arguments])  # noqa: SLF001 (main would end this process)
        return Ended(code, *capfd.readouterr())

    return called


def test_python_is_printed_and_nothing_else_is_done(call: Any) -> None:
    ended = call("--from", "crontab", "table", "--tz", "UTC")
    assert ended.code == 1  # one line cannot move in
    assert "def backup():" in ended.out
    compile(ended.out, "moved.py", "exec")
    assert "table:2: warning: line 2 cannot move in" in ended.err
    assert ended.err.endswith("1 schedule of crontab can move in, 1 cannot\n")


def test_all_that_moves_ends_with_0(call: Any) -> None:
    ended = call("--from", "rq-cron", "cron_config.py")
    assert (ended.code, ended.err) == (0, "2 schedules of rq-cron can move in\n")
    assert 'beat.register(app.tasks.add, every="30s", args=(1,), queue="default")' in ended.out


def test_a_job_that_would_tick_at_other_times_is_named_and_ends_with_1(
    call: Any, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.write(
        "cron_config.py",
        "from rq.cron import register\nfrom app.tasks import add\nregister(add, 'q', cron='5-5 * * * *')\n",
    )
    ended = call("--from", "rq-cron", "cron_config.py")
    assert ended.code == 0
    assert '"* * * * *"' in ended.out  # croniter reads it so
    monkeypatch.setattr(cron_fields, "kept", lambda text, *_: text)  # a difference that nobody has thought of
    ended = call("--from", "rq-cron", "cron_config.py")
    assert ended.code == 1
    assert "add cannot move in: rq cron runs '5-5 * * * *' at 2026-01-01T00:01:00Z, and beat would" in ended.err


def test_a_dry_run_says_what_would_be_added(call: Any) -> None:
    ended = call("--from", "rq-cron", "cron_config.py", "--dry-run", "--add")
    assert ended.code == 0
    heading, first, second = ended.out.strip().split("\n")
    assert heading.split() == ["schedule", "next", "tick", "runs", "when"]
    assert first.startswith("add ")
    assert first.endswith("app.tasks.add     every 30 seconds")
    assert second.endswith("at 09:00, every day, UTC")
    assert "cron_config.py:5: warning: daily: its webhooks were not carried over" in ended.err
    assert "note: stop `rq cron` before beat runs these" in ended.err


def test_each_is_added_with_all_that_it_says(house: House) -> None:
    shelf = Shelf()
    done = list(add(shelf, rq_cron.read(house.write("cron_config.py", JOBS)), replace=True))
    assert [each.refused for each in done] == [None, None]
    assert shelf.added == {
        "add": {
            "func": "app.tasks.add",
            "cron": None,
            "every": "30s",
            "args": (1,),
            "queue": "default",
            "replace": True,
        },
        "daily": {
            "func": "app.tasks.report",
            "cron": "0 9 * * *",
            "tz": "UTC",
            "queue": "reports",
            "replace": True,
        },
    }


def test_a_refusal_is_told_and_the_others_go_on(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf(add=Refused("no live application exposes app.tasks.add"))
    monkeypatch.setattr(common_options, "client", lambda *_: shelf)
    ended = call("--from", "rq-cron", "cron_config.py", "--add")
    assert (ended.code, ended.out) == (4, "added daily\n")
    assert "error: add was not added: no live application exposes app.tasks.add" in ended.err
    assert ended.err.endswith("1 schedule of rq-cron moved in, 1 refused\n")


def test_what_an_application_exposes_is_added_to_redis(call: Any, store: Store, server: PrivateRedis) -> None:
    store.announce({}, ["app.tasks.add"], digest="d", ttl=10_000)
    adding = ["--from", "rq-cron", "cron_config.py", "--add", "--redis-url", server.url]
    ended = call(*adding)
    assert (ended.code, ended.out) == (4, "added add\n")
    assert "error: daily was not added: " in ended.err
    assert "app.tasks.report" in ended.err
    assert store.client.smembers("beat:schedules") == {b"add"}
    assert Client(server.url).get("add").next_run
    Client(server.url).add("add", func="app.tasks.add", every="1h", replace=True)
    assert "there is another schedule 'add'" in call(*adding).err
    assert call(*adding, "--replace").out == "added add\n"


def test_a_dry_run_adds_nothing(call: Any, store: Store, server: PrivateRedis) -> None:
    store.announce({}, ["app.tasks.add", "app.tasks.report"], digest="d", ttl=10_000)
    assert call("--from", "rq-cron", "cron_config.py", "--add", "--dry-run", "--redis-url", server.url).code == 0
    assert store.client.smembers("beat:schedules") == set()


@pytest.mark.parametrize("error", [DuplicateSchedule("there is one"), Refused("no")])
def test_any_refusal_of_beat_s_concerns_one_schedule(house: House, error: Exception) -> None:
    reading = rq_cron.read(house.write("cron_config.py", JOBS))
    assert [each.refused for each in add(Shelf(add=error), reading)] == [str(error), None]


@pytest.mark.parametrize("error", [NoRedis("no Redis"), ConfigError("a setting")])
def test_what_concerns_all_ends_it(house: House, error: Exception) -> None:
    reading = rq_cron.read(house.write("cron_config.py", JOBS))
    with pytest.raises(type(error)):
        list(add(Shelf(add=error), reading))


def test_a_command_cannot_be_added(house: House) -> None:
    shelf = Shelf()
    [done] = add(shelf, crontab.read(house.write("table", "0 1 * * * true\n")))
    assert "only a function can be added" in (done.refused or "")
    assert shelf.added == {}


def test_json_is_one_document(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = call("--from", "crontab", "table", "--tz", "Europe/Paris", "--json")
    told = json.loads(ended.out)
    assert (ended.code, ended.err, told["schema_version"]) == (1, "", 1)
    [schedule] = told["schedules"]
    assert (schedule["id"], schedule["cron"], schedule["tz"]) == ("backup", "0 5 * * 1", "Europe/Paris")
    assert schedule["command"] == "/usr/bin/backup --all"
    assert [left["name"] for left in told["left"]] == ["line 2"]
    compile(told["python"], "moved.py", "exec")
    monkeypatch.setattr(common_options, "client", lambda *_: Shelf(add=Refused("no")))
    told = json.loads(call("--from", "rq-cron", "cron_config.py", "--add", "--json").out)
    assert [(each["id"], each["added"], each["refused"]) for each in told["schedules"]] == [
        ("add", False, "no"),
        ("daily", True, None),
    ]


def test_values_that_json_does_not_know_are_told_as_python_writes_them(call: Any, house: House) -> None:
    register = "register(add, 'q', interval=5, args=(b'x', {1: (2,)}))"
    house.write("cron_config.py", f"from rq.cron import register\nfrom app.tasks import add\n{register}")
    [schedule] = json.loads(call("--from", "rq-cron", "cron_config.py", "--json").out)["schedules"]
    assert schedule["args"] == ["b'x'", {"1": [2]}]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--from", "crontab"], 2, "--from crontab needs a file, or - for what is piped in"),
        (["--from", "celery"], 2, "--from celery needs where beat_schedule is"),
        (["--from", "rq-cron"], 2, "--from rq-cron needs the file that `rq cron` loads"),
        (["--from", "airflow", "x"], 2, "'airflow' is not one of"),
        (["x"], 2, "which function? Say --func app.tasks.report"),
        (["x", "--add"], 2, "--add, --system and --import go with --from"),
        (["--from", "crontab", "table", "--every", "5m"], 2, "--from brings what it says itself: leave out --every"),
        (["--from", "celery", "x.py", "--system"], 2, "--system is for --from crontab"),
        (["--from", "crontab", "table", "--import"], 2, "--import is for --from celery and rq-cron"),
        (["--from", "rq-cron", "x.py", "--tz", "UTC"], 2, "--tz is not for --from rq-cron"),
        (["--from", "crontab", "table", "--tz", "Europe/Atlantis"], 2, "'Europe/Atlantis' is not known"),
        (["--from", "crontab", "nowhere"], 3, "there is no file 'nowhere'"),
        (["--from", "celery", "pyproject.toml"], 3, "has no beat_schedule"),
        (["--from", "celery", "table"], 2, "table:1: this is not Python"),
        (["--from", "rq-scheduler", "localhost:6379"], 78, "localhost:6379"),
        (["--from", "rq-scheduler", "redis://127.0.0.1:1/0"], 69, "no Redis answers at redis://127.0.0.1:1/0"),
        (["--from", "celery", "broken.py", "--import"], 78, "ZeroDivisionError"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(
    call: Any, house: House, arguments: list[str], code: int, sentence: str
) -> None:
    house.write("broken.py", "1 / 0")
    ended = call(*arguments)
    assert (ended.code, ended.out) == (code, "")
    assert sentence in ended.err
    assert "Traceback" not in ended.err


def test_what_the_application_prints_is_not_in_the_python(call: Any, house: House) -> None:
    house.write("cron_config.py", f"print('hello')\n{JOBS}")
    ended = call("--from", "rq-cron", "cron_config.py", "--import")
    assert ended.code == 0
    assert "hello" in ended.err
    compile(ended.out, "moved.py", "exec")


def test_rq_scheduler_is_read_from_the_redis_that_is_named(call: Any, server: PrivateRedis, redis: Redis) -> None:
    redis.zadd("rq:scheduler:scheduled_jobs", {"gone": 5})
    for arguments in (["--redis-url", server.url], [server.url]):
        ended = call("--from", "rq-scheduler", *arguments)
        assert ended.code == 1
        assert "gone cannot move in: its job rq:job:gone is gone" in ended.err


def test_a_redis_that_does_not_let_us_read_says_so(call: Any, server: PrivateRedis, redis: Redis) -> None:
    redis.acl_setuser("shy", enabled=True, passwords=["+secret"], commands=["+ping"])
    try:
        ended = call("--from", "rq-scheduler", server.url.replace("unix://", "unix://shy:secret@"))
    finally:
        redis.acl_deluser("shy")
    assert ended.code == 69
    assert "refuses user 'shy': " in ended.err
    assert "has no permissions to run the 'zrange' command" in ended.err
    assert "secret" not in ended.err


def test_help_tells_what_can_be_read() -> None:
    shown = CliRunner().invoke(command, ["--help"]).output
    assert all(name in shown for name in ("rq-scheduler", "rq-cron", "celery", "crontab", "--import", "--system"))
