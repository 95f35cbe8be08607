"""Settings: where each comes from, what is refused, and that no sentence shows a password.

The table in docs/reference/settings.md is made here: `python -m tests.unit.config.test_settings` writes it anew.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import FrozenInstanceError
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from pydantic import ValidationError

from beat.cli import config
from beat.config import redis_url, sources
from beat.config.settings import Loaded, Settings, kind_and_range, load
from beat.errors import ConfigError
from tests.support.files import lay_out

if TYPE_CHECKING:
    from collections.abc import Callable

    Place = Callable[..., Loaded]

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "settings.md"
BEGIN, END = "<!-- the table: begin -->", "<!-- the table: end -->"
CANARY = "hunter2"
NAMES = list(Settings.model_fields)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Loads settings from a directory with this pyproject.toml, this environment and these flags, and nothing else."""

    def look(toml: str = "", flags: dict[str, object] | None = None, **environ: str) -> Loaded:
        (tmp_path / "pyproject.toml").write_text(toml)
        return load(flags, environ, tmp_path)

    return look


def refusal(place: Place, *args: Any, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        place(*args, **environ)
    assert caught.value.exit_code == 78
    return str(caught.value)


# where a value comes from


def test_the_defaults_hold_when_nothing_is_set(place: Place) -> None:
    loaded = place()
    assert loaded.settings.redis_url == "redis://localhost:6379/0"
    assert loaded.settings.interval == timedelta(seconds=1)
    assert loaded.origins == dict.fromkeys(NAMES, "default")
    assert loaded.warnings == ()


def test_pyproject_wins_over_the_default(place: Place) -> None:
    loaded = place("[tool.beat]\ninterval = 2")
    assert loaded.settings.interval == timedelta(seconds=2)
    assert loaded.origins["interval"] == "pyproject.toml [tool.beat] interval"


def test_the_environment_wins_over_pyproject(place: Place) -> None:
    loaded = place("[tool.beat]\ninterval = 2", BEAT_INTERVAL="3s")
    assert loaded.settings.interval == timedelta(seconds=3)
    assert loaded.origins["interval"] == "BEAT_INTERVAL"


def test_a_flag_wins_over_the_environment(place: Place) -> None:
    loaded = place("[tool.beat]\nlock_ttl = 20", {"lock_ttl": "40s"}, BEAT_LOCK_TTL="30s")
    assert loaded.settings.lock_ttl == timedelta(seconds=40)
    assert loaded.origins["lock_ttl"] == "--lock-ttl"


@pytest.mark.parametrize("nothing", [None, ()])
def test_a_flag_that_was_not_given_wins_over_nothing(place: Place, nothing: object) -> None:
    assert place("", {"modules": nothing}, BEAT_MODULES="app").settings.modules == ("app",)


@pytest.mark.parametrize(
    ("variables", "origin"),
    [
        ("BEAT_REDIS_URL RQ_REDIS_URL REDIS_URL", "BEAT_REDIS_URL"),
        ("RQ_REDIS_URL REDIS_URL", "RQ_REDIS_URL"),
        ("REDIS_URL", "REDIS_URL"),
        ("", "pyproject.toml [tool.beat] redis_url"),
    ],
)
def test_the_redis_of_rq_and_of_the_platform_is_found(place: Place, variables: str, origin: str) -> None:
    environ = {name: f"redis://{name.lower().replace('_', '-')}/1" for name in variables.split()}
    loaded = place('[tool.beat]\nredis_url = "redis://file/1"', **environ)
    assert loaded.origins["redis_url"] == origin
    assert loaded.settings.redis_url == environ.get(origin, "redis://file/1")


@pytest.mark.parametrize("empty", ["", "  ", "\t"])
def test_an_empty_variable_counts_as_not_set(place: Place, empty: str) -> None:
    loaded = place("[tool.beat]\ninterval = 2", BEAT_INTERVAL=empty, BEAT_REDIS_URL=empty, REDIS_URL="redis://r/0")
    assert loaded.settings.interval == timedelta(seconds=2)
    assert loaded.origins["redis_url"] == "REDIS_URL"


def test_a_parent_directory_is_searched(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.beat]\npage_size = 7")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    loaded = load(environ={}, cwd=below)
    assert loaded.settings.page_size == 7
    assert loaded.origins["page_size"] == "../../pyproject.toml [tool.beat] page_size"


def test_the_search_ends_at_the_nearest_pyproject_even_without_settings(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.beat]\npage_size = 7")
    below = tmp_path / "app"
    below.mkdir()
    (below / "pyproject.toml").write_text("[project]\nname = 'app'")
    assert load(environ={}, cwd=below).settings.page_size == 100


# --- the application -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "app", "origin"),
    [
        ("[project]\nname = 'shop'", "shop", "pyproject.toml [project] name"),
        ("[project]\nname = 'My.Shop__of - things'", "default", "default"),
        ("[project]\nname = 'My.Shop__of-Things'", "my-shop-of-things", "pyproject.toml [project] name"),
        ("[tool.poetry]\nname = 'shop'", "shop", "pyproject.toml [tool.poetry] name"),
        ("[project]\nname = 'shop'\n[tool.beat]\napp = 'till'", "till", "pyproject.toml [tool.beat] app"),
        ("[project]\nname = 7", "default", "default"),
        ("project = 7", "default", "default"),
        ("[project]\nname = 'шоп'", "default", "default"),
        (f"[project]\nname = '{'s' * 101}'", "default", "default"),
        ("", "default", "default"),
    ],
)
def test_the_project_names_the_application(place: Place, file: str, app: str, origin: str) -> None:
    loaded = place(file)
    assert (loaded.settings.app, loaded.origins["app"]) == (app, origin)


def test_a_setting_names_the_application_before_the_project_does(place: Place) -> None:
    loaded = place("[project]\nname = 'shop'", BEAT_APP="till")
    assert (loaded.settings.app, loaded.origins["app"]) == ("till", "BEAT_APP")


def test_without_a_project_the_distribution_of_the_first_module_names_the_application(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "site"
    lay_out(installed, {
        "stock/tasks.py": "", "My_Stock-2.0.dist-info/METADATA": "Name: My.Stock\nVersion: 2.0\n",
        "My_Stock-2.0.dist-info/top_level.txt": "stock\n",
    })  # fmt: skip
    monkeypatch.syspath_prepend(str(installed))
    told = "the distribution My.Stock, which holds stock"
    by_setting = place("", BEAT_MODULES="stock.tasks,tasks")
    assert (by_setting.settings.app, by_setting.origins["app"]) == ("my-stock", told)
    by_code = load({}, {}, tmp_path, module="stock.tasks")
    assert (by_code.settings.app, by_code.origins["app"]) == ("my-stock", told)
    (tmp_path / "tasks.py").touch()
    assert place("", BEAT_MODULES="tasks,stock.tasks").settings.app == "default"
    assert place("[project]\nname = 'shop'", BEAT_MODULES="stock.tasks").settings.app == "shop"


@pytest.mark.parametrize("local", ["stock/tasks.py", "stock.py"])
def test_a_module_of_the_current_directory_belongs_to_no_distribution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, local: str
) -> None:
    installed, here = tmp_path / "site", tmp_path / "here"
    lay_out(installed, {"stock-2.0.dist-info/METADATA": "Name: stock\n", "stock-2.0.dist-info/top_level.txt": "stock"})
    lay_out(here, {local: ""})
    monkeypatch.syspath_prepend(str(installed))
    assert load({}, {"BEAT_MODULES": "stock"}, tmp_path).settings.app == "stock"
    assert load({}, {"BEAT_MODULES": "stock"}, here).settings.app == "default"


def test_the_real_environment_and_directory_are_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.beat]\npage_size = 7")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BEAT_HISTORY_LIMIT", "8")
    loaded = load()
    assert (loaded.settings.page_size, loaded.settings.history_limit) == (7, 8)


def test_settings_made_in_python_count_as_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.beat]\npage_size = 7\nhistory_limit = 9")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BEAT_PAGE_SIZE", "8")
    settings = Settings(page_size=5)
    assert (settings.page_size, settings.history_limit) == (5, 9)


# a pyproject.toml that is none


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[tool.beat]\ninterval = 1\ninterval ==", "line 3"),
        (b"[tool.beat]\ninterval = 1\ninterval = 2\n\n[x]", "line 3"),
        (b"name = '\xff'", "not valid TOML"),
        (b"a = " + b"[" * 100_000, "not valid TOML"),
        (b"tool = 3", "[tool] must be a table"),
        (b"[tool]\nbeat = ['x']", "[tool.beat] must be a table"),
    ],
)
def test_a_broken_pyproject_is_refused_by_name(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "pyproject.toml").write_bytes(content)
    with pytest.raises(ConfigError, match=re.escape(said)) as caught:
        load(environ={}, cwd=tmp_path)
    assert str(caught.value).startswith("pyproject.toml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["directory", "dangling link"])
def test_a_pyproject_that_cannot_be_read_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "pyproject.toml"
    path.mkdir() if kind == "directory" else path.symlink_to("nowhere")
    with pytest.raises(ConfigError, match=r"^pyproject.toml cannot be read: "):
        load(environ={}, cwd=tmp_path)


def test_a_directory_that_is_gone_holds_no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert load(environ={}).settings == load(environ={}, cwd=tmp_path).settings


# values


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("interval", "0.1", timedelta(milliseconds=100)),
        ("interval", "1m", timedelta(minutes=1)),
        ("lookahead", "0", timedelta(0)),
        ("lock_ttl", "10m", timedelta(minutes=10)),
        ("misfire_after", "1w", timedelta(days=7)),
        ("page_size", " 1 ", 1),
        ("page_size", "1000", 1000),
        ("history_limit", "100000", 100_000),
        ("events_limit", "100", 100),
        ("events_limit", "10000000", 10_000_000),
        ("prefix", ":", ":"),
        ("prefix", "a" * 63 + ":", "a" * 63 + ":"),
        ("prefix", "my-app:beat_1:", "my-app:beat_1:"),
        ("modules", "app.tasks, app/reports.py\n other,app.tasks", ("app.tasks", "app/reports.py", "other")),
        ("modules", ",", ()),
        ("setup", "app.boot:setup", "app.boot:setup"),
        ("tz", "Europe/Paris", "Europe/Paris"),
        ("log_level", "WARNING", "warning"),
        ("log_format", "Json", "json"),
        ("metrics_port", " 9108", 9108),
        ("metrics_host", "::1", "::1"),
        ("metrics_schedules", "report_*, tenant_[!ab]?", ("report_*", "tenant_[!ab]?")),
        ("web_port", "0", 0),
        ("web_path", "/ops/beat-1", "/ops/beat-1"),
        ("web_token", "!" * 16, "!" * 16),
        ("web_users", "alice:twelve:chars, bob:twelve chars", {"alice": "twelve:chars", "bob": "twelve chars"}),
        ("web_users", '{"alice": "with, a comma"}', {"alice": "with, a comma"}),
        ("web_hosts", "beat.example.com, *.internal", ("beat.example.com", "*.internal")),
        ("web_read_only", "ON", "on"),
        ("web_read_only", "true", "on"),
        ("web_read_only", "0", "off"),
    ],
)
def test_a_variable_is_read(place: Place, name: str, value: str, expected: object) -> None:
    loaded = (
        place(**{f"BEAT_{name.upper()}": value}, BEAT_LOOKAHEAD="0")
        if name != "lookahead"
        else place(BEAT_LOOKAHEAD=value)
    )
    assert getattr(loaded.settings, name) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("interval = 0.25", timedelta(milliseconds=250)),
        ("interval = '2s'", timedelta(seconds=2)),
        ("page_size = 5", 5),
        ("modules = ['app', 'my module.py']", ("app", "my module.py")),
        ("modules = 'a b'", ("a", "b")),
        ("web_read_only = true", "on"),
        ("web_users = {alice = 'long enough!'}", {"alice": "long enough!"}),
    ],
)
def test_a_line_of_pyproject_is_read(place: Place, line: str, expected: object) -> None:
    assert getattr(place(f"[tool.beat]\n{line}").settings, line.split(maxsplit=1)[0]) == expected


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("BEAT_INTERVAL", "abc", "is not a length of time: .*100ms to 1m"),
        ("BEAT_INTERVAL", "-1", "is not a length of time: .*100ms to 1m"),
        ("BEAT_INTERVAL", "0", r"must be a duration \(100ms to 1m\)"),
        ("BEAT_INTERVAL", "99ms", r"must be a duration \(100ms to 1m\)"),
        ("BEAT_INTERVAL", "61s", r"must be a duration \(100ms to 1m\)"),
        ("BEAT_INTERVAL", "0.1234", "is finer than a millisecond"),
        ("BEAT_INTERVAL", "nan", "is not a length of time"),
        ("BEAT_INTERVAL", "999999999999w", "is not a length of time"),
        ("BEAT_LOOKAHEAD", "11s", r"must be a duration \(0s to 10s\)"),
        ("BEAT_LOCK_TTL", "999ms", r"must be a duration \(1s to 10m\)"),
        ("BEAT_LOCK_TTL", "601", r"must be a duration \(1s to 10m\)"),
        ("BEAT_MISFIRE_AFTER", "0", r"must be a duration \(1s to 1w\)"),
        ("BEAT_PAGE_SIZE", "0", r"must be a whole number \(1 to 1,000\)"),
        ("BEAT_PAGE_SIZE", "1001", r"must be a whole number \(1 to 1,000\)"),
        ("BEAT_PAGE_SIZE", "1_0", "must be a whole number"),
        ("BEAT_PAGE_SIZE", "٣", "must be a whole number"),
        ("BEAT_PAGE_SIZE", "1.5", "must be a whole number"),
        ("BEAT_HISTORY_LIMIT", "100001", r"must be a whole number \(1 to 100,000\)"),
        ("BEAT_HISTORY_LIMIT", "9" * 5000, "must be a whole number"),
        ("BEAT_PREFIX", "beat", "must be text .*ending in :"),
        ("BEAT_PREFIX", "a" * 64 + ":", "must be text"),
        ("BEAT_PREFIX", "be at:", "must be text"),
        ("BEAT_PREFIX", "{beat}:", "must be text"),
        ("BEAT_PREFIX", "béat:", "must be text"),
        ("BEAT_PREFIX", "beat:\n", "must be text"),
        ("BEAT_PREFIX", "rq:", "not RQ's"),
        ("BEAT_PREFIX", "rq:beat:", "not RQ's"),
        ("BEAT_SETUP", "app.boot.setup", "such as app.boot:setup"),
        ("BEAT_SETUP", "app.boot:setup()", "must be a function"),
        ("BEAT_SETUP", "app.boot:", "must be a function"),
        ("BEAT_SETUP", "1app:setup", "must be a function"),
        ("BEAT_MODULES", "app\0tasks", "control character"),
        ("BEAT_TZ", "Europe/Atlantis", "Did you mean"),
        ("BEAT_TZ", "europe/paris", "'Europe/Paris'"),
        ("BEAT_TZ", "+02:00", "Etc/GMT-2"),
        ("BEAT_TZ", "../../etc/passwd", "is not known"),
        ("BEAT_TZ", "x" * 100_000, "is not the name of a time zone"),
        ("BEAT_LOG_LEVEL", "warn", "Did you mean 'warning'"),
        ("BEAT_LOG_LEVEL", "loud", r"must be a word \(debug, info, warning, error\)$"),
        ("BEAT_LOG_FORMAT", "xml", r"must be a word \(text, json\)$"),
        ("BEAT_WEB_PORT", "65536", r"must be a whole number \(0 to 65,535\)"),
        ("BEAT_WEB_READ_ONLY", "maybe", r"must be a word \(on, off\)$"),
        ("BEAT_WEB_HOSTS", "http://x", "must be names"),
        ("BEAT_WEB_PATH", "beat", "must be a path"),
        ("BEAT_WEB_PATH", "/beat/", "must be a path"),
        ("BEAT_WEB_PATH", "//evil", "must be a path"),
        ("BEAT_WEB_PATH", "/..", "must be a path"),
    ],
)
def test_a_wrong_variable_is_one_sentence_that_names_it(place: Place, variable: str, value: str, said: str) -> None:
    message = refusal(place, **{variable: value})
    assert re.match(rf"{variable}[=:]", message)
    assert re.search(said, message)
    assert "\n" not in message
    assert len(message) < 300


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("interval = true", "interval=True is not a length of time"),
        ("interval = -1", "interval=-1 must be a duration (100ms to 1m)"),
        ("interval = [1]", "interval=<list> is not a length of time"),
        ("interval = 2026-01-01", "interval=<date> is not a length of time"),
        ("interval = nan", "interval=nan is not a length of time"),
        ("interval = ''", "interval='' is not a length of time"),
        ("page_size = true", "page_size=True must be a whole number (1 to 1,000)"),
        ("page_size = 1.0", "page_size=1.0 must be a whole number (1 to 1,000)"),
        ("page_size = 0", "page_size=0 must be a whole number (1 to 1,000)"),
        ("events_limit = 99", "events_limit=99 must be a whole number (100 to 10,000,000)"),
        ("prefix = 3", "prefix=3 must be text"),
        ("modules = [3]", "modules=<list> must be names"),
        ("modules = ['']", "modules=<list> holds an empty name"),
        ("modules = {}", "modules=<dict> must be names"),
        ("setup = ''", "setup='' must be a function"),
        ("tz = 2", "tz=2 must be a time zone"),
        ("tz = ''", "tz: time zone '' is not known"),
        ("log_level = true", "log_level=True must be a word"),
        ("redis_url = ''", "redis_url='' is empty"),
        ("redis_url = 6379", "redis_url=6379 must be a URL"),
        ("metrics_port = 0", "metrics_port=0 must be a whole number (1 to 65,535)"),
        ("metrics_port = 'off'", "metrics_port='off' must be a whole number (1 to 65,535)"),
        ("metrics_host = 'a b'", "metrics_host='a b' must be a name or address"),
        ("metrics_schedules = ['a b']", "metrics_schedules=<list> must be ids"),
    ],
)
def test_a_wrong_line_of_pyproject_is_one_sentence_that_names_it(place: Place, line: str, said: str) -> None:
    message = refusal(place, f"[tool.beat]\n{line}")
    assert f"pyproject.toml [tool.beat] {said}" in message
    assert "\n" not in message


def test_every_problem_is_told_at_once(place: Place) -> None:
    toml = "[tool.beat]\nlock_ttl = 0\n[tool.beat.queues]\nhihg = 'a'"
    lines = refusal(
        place, toml, {"page_size": 0}, BEAT_INTERVAL="abc", REDIS_URL="http://x", BEAT_PRESETS="x"
    ).splitlines()
    assert sorted(re.split("[=: ]", line)[0] for line in lines) == [
        "--page-size",
        "BEAT_INTERVAL",
        "BEAT_PRESETS",
        "REDIS_URL",
        "pyproject.toml",
        "pyproject.toml",
    ]


def test_lookahead_must_be_shorter_than_lock_ttl_and_both_places_are_named(place: Place) -> None:
    message = refusal(place, "[tool.beat]\nlookahead = '5s'", BEAT_LOCK_TTL="5s")
    assert "lookahead must be shorter than lock_ttl" in message
    assert "(lookahead: pyproject.toml [tool.beat] lookahead, lock_ttl: BEAT_LOCK_TTL)" in message
    assert place("[tool.beat]\nlookahead = '4999ms'", BEAT_LOCK_TTL="5s").settings.lock_ttl == timedelta(seconds=5)


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, 20),
        ({"BEAT_LOCK_TTL": "2s"}, 10),
        ({"BEAT_LOCK_TTL": "30s"}, 60),
        ({"BEAT_LOCK_TTL": "30s", "BEAT_MISFIRE_AFTER": "45s"}, 45),
    ],
)
def test_a_misfire_is_twice_the_lock_late_unless_set(place: Place, environ: dict[str, str], seconds: int) -> None:
    assert place(**environ).settings.misfire_limit == timedelta(seconds=seconds)


def test_settings_do_not_change(place: Place) -> None:
    loaded = place()
    with pytest.raises(ValidationError, match="frozen"):
        loaded.settings.page_size = 3
    with pytest.raises(FrozenInstanceError):
        loaded.warnings = ()  # type: ignore[misc]


def test_a_setting_that_does_not_exist_is_refused_in_python(place: Place) -> None:
    assert refusal(place, "", {"intervall": 1}) == "--intervall is not a setting. Did you mean 'interval'?"
    with pytest.raises(ValidationError, match="Extra inputs"):
        Settings(intervall=1)  # type: ignore[call-arg]


# Redis URLs


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("redis://localhost", "redis://localhost"),
        ("redis://localhost/", "redis://localhost/"),
        ("redis://cache:65535?db=3&protocol=3", "redis://cache:65535?db=3&protocol=3"),
        ("redis://[::1]:6379/1", "redis://[::1]:6379/1"),
        (f"redis://:{CANARY}@localhost:6379/0", "redis://:***@localhost:6379/0"),
        (f"rediss://user:{CANARY}@h:6380/0?ssl_cert_reqs=none", "rediss://user:***@h:6380/0?ssl_cert_reqs=none"),
        (f"redis://{CANARY}@localhost", "redis://***@localhost"),
        (f"redis://:p@{CANARY}@localhost", "redis://:***@localhost"),
        (f"redis://:p%23{CANARY}@localhost", "redis://:***@localhost"),
        (f"redis://h/0?password={CANARY}&socket_timeout=5", "redis://h/0?password=***&socket_timeout=5"),
        (f"redis://h/0?{CANARY}", "redis://h/0?***"),
        ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1"),
        (
            f"unix://user:{CANARY}@/run/redis.sock?db=1&password={CANARY}",
            "unix://user:***@/run/redis.sock?db=1&password=***",
        ),
    ],
)
def test_a_good_redis_url_is_kept_whole_and_shown_masked(place: Place, url: str, shown: str) -> None:
    loaded = place(BEAT_REDIS_URL=url)
    assert loaded.settings.redis_url == url
    assert redis_url.masked(url) == shown
    assert loaded.settings.model_dump()["redis_url"] == shown
    for output in (repr(loaded), str(loaded.settings), loaded.settings.model_dump_json()):
        assert CANARY not in output


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("localhost:6379", "write redis://localhost:6379/0"),
        ("localhost", "write redis://localhost/0"),
        ("10.0.0.1:6379/2", "write redis://10.0.0.1:6379/2"),
        (f"user:{CANARY}@host:6379", r"write redis://user:\*\*\*@host:6379/0"),
        (CANARY, "has no scheme: write redis://localhost:6379/0"),
        ("http://localhost", "begin with redis://, rediss:// or unix://"),
        (f"http://user:{CANARY}@localhost", "begin with redis://, rediss:// or unix://"),
        ("REDIS://localhost", "begin with redis://"),
        ("redis://localhost:99999", "port from 1 to 65535"),
        ("redis://localhost:65536", "port from 1 to 65535"),
        ("redis://localhost:0", "port from 1 to 65535"),
        ("redis://localhost:", "port from 1 to 65535"),
        ("redis://localhost:abc", "port from 1 to 65535"),
        (f"redis://user:{CANARY}", "port from 1 to 65535"),
        ("redis://", "names no host"),
        ("redis:///0", "names no host"),
        ("redis://:6379/0", "names no host"),
        (f"redis://:{CANARY}", "names no host"),
        (f"redis://:{CANARY}@/0", "names no host"),
        ("redis://[::1", "names no host"),
        ("redis://localhost/abc", "number for its database"),
        ("redis://localhost/1/2", "number for its database"),
        ("redis://localhost/-1", "number for its database"),
        ("redis://localhost/٣", "number for its database"),
        ("redis://localhost?db=abc", "number for its database"),
        ("redis://localhost?db=", "number for its database"),
        ("unix:///run/redis.sock?db=abc", "number for its database"),
        ("redis://localhost/1?db=2", "database twice"),
        (f"redis://:{CANARY}#1@localhost/0", "is cut short: in a password write %40"),
        (f"redis://:{CANARY}/1@localhost/0", "is cut short"),
        (f"redis://:1?{CANARY}@localhost/0", "is cut short"),
        (f"redis://localhost/0?password=1@{CANARY}", "is cut short"),
        ("unix://redis.sock", "three slashes"),
        ("unix://", "three slashes"),
        ("redis://localhost/0?decode_responses=True", "jobs are bytes"),
        (f"redis://:{CANARY}@localhost/0\n", "take it out"),
        (f"redis://:{CANARY} @localhost/0", "take it out"),
        ("redis://local\0host", "take it out"),
    ],
)
def test_a_bad_redis_url_is_one_sentence_without_its_password(place: Place, url: str, said: str) -> None:
    message = refusal(place, BEAT_REDIS_URL=url)
    assert re.match("BEAT_REDIS_URL='[^']*' ", message)
    assert re.search(said, message)
    assert CANARY not in message
    assert "\n" not in message


def test_an_empty_flag_is_not_a_redis_url(place: Place) -> None:
    assert refusal(place, "", {"redis_url": ""}).startswith("--redis-url='' is empty: write redis://")


@effort(deadline=None)  # a busy machine is no failure
@given(
    st.text(max_size=8),
    st.text(max_size=8),
    st.sampled_from(["redis://u:{}@h:1/0", "redis://h/0?db=1&password={}", "{}@h:1"]),
)
def test_no_password_however_odd_is_shown(before: str, after: str, url: str) -> None:
    password = before + CANARY + after
    if url.startswith("{}") and (":" in password or "/" in password):
        password = CANARY  # `name:password@host`: a name may be shown
    found = sources.find(
        environ={"BEAT_REDIS_URL": url.format(password), "BEAT_TZ": "x://" + url.format(password)}, cwd=ROOT
    )
    shown = [str(raw) for raw in found.values.values()] + [repr(found)]
    try:
        shown.append(repr(load({"redis_url": url.format(password)}, {}, ROOT)))
    except ConfigError as e:
        shown.append(str(e))
    assert not [text for text in shown if CANARY in text]


def test_a_url_pasted_into_another_setting_is_masked_too(place: Place) -> None:
    url = f"redis://:{CANARY}@localhost/0"
    any_text = ("redis_url", "modules", "web_token", "web_users")
    variables = [f"BEAT_{name.upper()}" for name in NAMES if name not in any_text]
    message = refusal(place, **dict.fromkeys(variables, url))
    assert len(message.splitlines()) == len(variables)
    assert CANARY not in message


def test_a_redis_url_written_as_a_table_shows_nothing_of_it(place: Place) -> None:
    message = refusal(place, f"[tool.beat.redis_url]\npassword = '{CANARY}'")
    assert "[tool.beat] redis_url=<dict> must be a URL" in message
    assert CANARY not in message


def test_pydantic_shows_no_password_either() -> None:
    with pytest.raises(ValidationError) as caught:
        Settings(redis_url=f"redis://:{CANARY}@localhost:abc")
    assert CANARY not in str(caught.value)


WEB_SECRETS = [
    ("web_token", CANARY, "is no token"),
    ("web_token", f"{CANARY} and some words", "is no token"),
    ("web_users", CANARY, "must be a table"),
    ("web_users", f"alice:{CANARY},{CANARY}", "must be a table"),
    ("web_users", f"{{'alice': '{CANARY}'}}", "must be a table"),
    ("web_users", f'{{"alice": ["{CANARY}"]}}', "must be a table"),
    ("web_users", f"alice:{CANARY},alice:{CANARY}", "has a name twice"),
    ("web_users", f'{{"alice": "{CANARY}", "alice": "x"}}', "has a name twice"),
    ("web_users", "alice:", "has a password that is too short: write 12 characters or more"),
    ("web_users", f"alice:{CANARY}", "has a password that is too short: write 12 characters or more"),
    ("web_users", f"alice:{CANARY}{CANARY},bob:{CANARY}234", "has a password that is too short"),
    ("web_users", f":{CANARY}", "holds a name that cannot be"),
    ("web_users", f'{{"a:b": "{CANARY}"}}', "holds a name that cannot be"),
    ("web_users", f'{{"alice": "{CANARY}{CANARY}\\n"}}', "has a password that cannot be"),
    ("web_users", f"alice:{CANARY}{'x' * 200}", "has a password that cannot be: write 12 to 200 characters"),
]


@pytest.mark.parametrize(("name", "value", "said"), WEB_SECRETS)
def test_a_wrong_secret_of_the_page_is_one_sentence_without_it(place: Place, name: str, value: str, said: str) -> None:
    message = refusal(place, **{f"BEAT_{name.upper()}": value})
    assert message.startswith(f"BEAT_{name.upper()} {said}")
    assert CANARY not in message


def test_no_secret_of_the_page_is_shown_with_the_settings(place: Place) -> None:
    loaded = place(
        BEAT_WEB_TOKEN=f"{CANARY}-and-more-of-it", BEAT_WEB_USERS=f"alice:{CANARY}{CANARY},bob:{CANARY}{CANARY}"
    ).settings
    assert CANARY not in f"{loaded!r} {loaded.model_dump()} {loaded.model_dump_json()}"
    assert loaded.model_dump()["web_users"] == "2 users"


@pytest.mark.parametrize("line", ["web_token = 'a-secret-of-16-letters'", "web_users = {alice = 'long enough!'}"])
def test_a_secret_of_the_page_in_pyproject_is_a_warning(place: Place, line: str) -> None:
    (warning,) = place(f"[tool.beat]\n{line}").warnings
    assert re.search(r"holds a secret, which others can read there: set BEAT_WEB_(TOKEN|USERS) instead", warning)


# warnings


@pytest.mark.parametrize(
    ("variable", "warning"),
    [
        ("BEAT_INTERVALL", "BEAT_INTERVALL is not a setting. Did you mean 'BEAT_INTERVAL'?"),
        ("BEAT_interval", "BEAT_interval is not a setting. Did you mean 'BEAT_INTERVAL'?"),
        ("BEAT_XYZZY", "BEAT_XYZZY is not a setting."),
        ("BEAT_", "BEAT_ is not a setting."),
        ("BEAT_PORT", "BEAT_PORT is not a setting. Did you mean 'BEAT_WEB_PORT'?"),
    ],
)
def test_an_unknown_variable_is_a_warning_with_the_nearest_name(place: Place, variable: str, warning: str) -> None:
    assert place(**{variable: CANARY}).warnings == (warning,)


def test_an_unknown_key_of_pyproject_is_a_warning_with_the_nearest_name(place: Place) -> None:
    assert place("[tool.beat]\nlock-ttl = 3\n'a\\u001bb' = 1\n\"a\\u001bb\" = 1").warnings == (
        "pyproject.toml [tool.beat] 'a\\\\u001bb' is not a setting.",
        "pyproject.toml [tool.beat] 'a\\x1bb' is not a setting.",
        "pyproject.toml [tool.beat] lock-ttl is not a setting. Did you mean 'lock_ttl'?",
    )


def test_what_kubernetes_injects_for_a_service_called_beat_is_not_meant(place: Place) -> None:
    injected = {
        "BEAT_SERVICE_HOST": "10.0.0.1",
        "BEAT_SERVICE_PORT": "80",
        "BEAT_SERVICE_PORT_HTTP": "80",
        "BEAT_PORT": "tcp://10.0.0.1:80",
        "BEAT_PORT_80_TCP": "tcp://10.0.0.1:80",
        "BEAT_PORT_80_TCP_ADDR": "10.0.0.1",
        "BEAT_WEB_SERVICE_HOST": "10.0.0.2",
        "BEAT_WEB_PORT": "tcp://10.0.0.2:80",
    }
    assert place(**injected).warnings == ()


def test_a_password_in_pyproject_is_a_warning(place: Place) -> None:
    toml = f'[tool.beat]\nredis_url = "redis://:{CANARY}@localhost/0"'
    (warning,) = place(toml).warnings
    assert "holds a password" in warning
    assert CANARY not in warning
    assert place(toml, BEAT_REDIS_URL=f"redis://:{CANARY}@localhost/0").warnings == ()


@pytest.mark.parametrize(
    ("environ", "warned"),
    [
        ({"BEAT_MISFIRE_AFTER": "11s"}, False),
        ({"BEAT_MISFIRE_AFTER": "10999ms"}, True),
        ({"BEAT_INTERVAL": "10s"}, False),
        ({"BEAT_INTERVAL": "11s"}, True),
    ],
)
def test_ticks_that_a_takeover_would_misfire_are_a_warning(
    place: Place, environ: dict[str, str], *, warned: bool
) -> None:
    assert any("misfire" in warning for warning in place(**environ).warnings) == warned


# presets and queues


@pytest.mark.parametrize(
    "written", ['{"nightly": "0 3 * * *", "q": "*/15 * * * *"}', "nightly=0 3 * * *; q = */15 * * * * ;"]
)
def test_presets_are_read_from_the_environment(place: Place, written: str) -> None:
    loaded = place(BEAT_PRESETS=written)
    assert loaded.settings.presets == {"nightly": "0 3 * * *", "q": "*/15 * * * *"}
    assert loaded.origins["presets"] == "BEAT_PRESETS"


def test_presets_of_the_environment_are_laid_over_those_of_pyproject(place: Place) -> None:
    loaded = place("[tool.beat.presets]\na = '0 1 * * *'\nb = '0 2 * * *'", BEAT_PRESETS="b=0 3 * * *")
    assert loaded.settings.presets == {"a": "0 1 * * *", "b": "0 3 * * *"}
    assert loaded.origins["presets"] == "BEAT_PRESETS over pyproject.toml [tool.beat.presets]"


@pytest.mark.parametrize("written", ['{"high": "urgent"}', "high=urgent", " high = urgent, "])
def test_queues_are_laid_over_the_defaults(place: Place, written: str) -> None:
    assert place(BEAT_QUEUES=written).settings.queues == {"high": "urgent", "normal": "default", "low": "low"}


def test_queues_of_the_environment_are_laid_over_those_of_pyproject(place: Place) -> None:
    loaded = place("[tool.beat.queues]\nhigh = 'a'\nlow = 'b'", {"queues": {"normal": "n"}}, BEAT_QUEUES="low=c")
    assert loaded.settings.queues == {"high": "a", "normal": "n", "low": "c"}
    assert loaded.origins["queues"] == "--queues over BEAT_QUEUES over pyproject.toml [tool.beat.queues]"


@pytest.mark.parametrize(
    "written",
    [
        "reports=5, exports=skip 2 1000",
        '{"reports": 5, "exports": {"max_running": 2, "when_full": "skip"}}',
        '{"reports": "wait 5 1000", "exports": "skip 2 1000"}',
    ],
)
def test_groups_are_read_from_the_environment(place: Place, written: str) -> None:
    assert place(BEAT_GROUPS=written).settings.groups == {"reports": "wait 5 1000", "exports": "skip 2 1000"}


def test_groups_of_the_environment_are_laid_over_those_of_pyproject(place: Place) -> None:
    toml = "[tool.beat.groups]\nreports = 5\nexports = {max_running = 2, max_waiting = 7}"
    loaded = place(toml, {"groups": {"more": 1}}, BEAT_GROUPS="reports=3")
    assert loaded.settings.groups == {"reports": "wait 3 1000", "exports": "wait 2 7", "more": "wait 1 1000"}
    assert loaded.origins["groups"] == "--groups over BEAT_GROUPS over pyproject.toml [tool.beat.groups]"


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("BEAT_GROUPS", "reports", "or name=value,name=value"),
        ("BEAT_GROUPS", "reports=0", "'reports': max_running must be a whole number from 1 to 1,000, not 0"),
        ("BEAT_GROUPS", "reports=many", "'reports': group 'reports': 'many' must be like 'wait 5 1000'"),
        ("BEAT_GROUPS", "reports=", "'reports': group 'reports': '' must be like 'wait 5 1000'"),
        ("BEAT_GROUPS", "a b=5", "'a b': group 'a b' must be 1 to 100 of the characters"),
        ("BEAT_GROUPS", "a=5,a=6", "'a' is given twice"),
        ("BEAT_GROUPS", '{"a": null}', "'a': max_running must be a whole number from 1 to 1,000, not None"),
        ("BEAT_GROUPS", '{"a": true}', "'a': max_running must be a whole number"),
        ("BEAT_GROUPS", '{"a": [1, 2]}', "'a': '[1, 2]' is no group: write a = 5, or a = {max_running = 5"),
        ("BEAT_GROUPS", '{"a": {"when_full": "skip"}}', "'a': max_running must be a whole number from 1 to 1,000"),
        (
            "BEAT_GROUPS",
            '{"a": {"max_running": 1, "full": 1}}',
            "a group has no 'full'. Did you mean 'when_full'?",
        ),
        ("BEAT_GROUPS", f"a=redis://:{CANARY}@h/1", "'a': 'redis://:***@h/1' is no group"),
        ("BEAT_PRESETS", "nightly", "write a JSON object, or name=value;name=value"),
        ("BEAT_PRESETS", ";", "write a JSON object"),
        ("BEAT_PRESETS", "[1]", "write a JSON object"),
        ("BEAT_PRESETS", '{"a": ', "is not a JSON object"),
        ("BEAT_PRESETS", '{"a":' * 100_000, "is not a JSON object"),
        ("BEAT_PRESETS", '{"a": 1}', "'a' must be one line of text"),
        ("BEAT_PRESETS", '{"a": {"b": "c"}}', "'a' must be one line of text"),
        ("BEAT_PRESETS", '{"a": "0 3 * * *\\n"}', "'a' must be one line of text"),
        ("BEAT_PRESETS", "a=", "'a' must be one line of text"),
        ("BEAT_PRESETS", "a=1;a=2", "'a' is given twice"),
        ("BEAT_PRESETS", '{"a": "1", "a": "2"}', "'a' is given twice"),
        ("BEAT_PRESETS", "Nightly=0 3 * * *", "'Nightly' cannot name a preset"),
        ("BEAT_PRESETS", "1a=0 3 * * *", "'1a' cannot name a preset"),
        ("BEAT_PRESETS", "=0 3 * * *", "'' cannot name a preset"),
        ("BEAT_PRESETS", f"redis://:{CANARY}@h?db=1", "cannot name a preset"),
        ("BEAT_QUEUES", "high", "or name=value,name=value"),
        ("BEAT_QUEUES", "hihg=a", "there are high, normal, low. Did you mean 'high'?"),
        ("BEAT_QUEUES", "high=", "'high' must be one line of text"),
        ("BEAT_QUEUES", '{"high": " a"}', "'high' must name a queue"),
        ("BEAT_QUEUES", "high=" + "a" * 201, "'high' must name a queue"),
    ],
)
def test_a_wrong_table_is_one_sentence_that_names_its_source(
    place: Place, variable: str, value: str, said: str
) -> None:
    message = refusal(place, **{variable: value})
    assert message.startswith(variable)
    assert said in message
    assert CANARY not in message
    assert "\n" not in message


@pytest.mark.parametrize("table", ["presets", "queues", "groups"])
@pytest.mark.parametrize("value", ["3", "['a=b']", "true"])
def test_a_table_of_pyproject_must_be_one(place: Place, table: str, value: str) -> None:
    message = refusal(place, f"[tool.beat]\n{table} = {value}")
    assert message.startswith(f"pyproject.toml [tool.beat.{table}] must be a table")


# what declarations need


def test_declarations_see_the_same_as_the_settings(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[tool.beat]\ntz = 'Europe/Paris'\n[tool.beat.presets]\nnightly = '0 3 * * *'\n[tool.beat.groups]\na = 5"
    )
    environ = {"BEAT_QUEUES": "low=slow", "BEAT_INTERVAL": "nonsense"}
    defaults = sources.defaults(environ, tmp_path)
    settings = load(environ={"BEAT_QUEUES": "low=slow"}, cwd=tmp_path).settings
    assert defaults == sources.Defaults(settings.tz, settings.presets, settings.queues, settings.groups)
    assert defaults.queues == {"high": "high", "normal": "default", "low": "slow"}


def test_declarations_have_defaults_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    expected = sources.Defaults("UTC", {}, {"high": "high", "normal": "default", "low": "low"})
    assert sources.defaults({}, tmp_path) == sources.Defaults() == expected


@pytest.mark.parametrize("toml", ["tz = 3", "presets = 3", "queues = {x = 'a'}", "groups = {x = 'a'}"])
def test_declarations_refuse_settings_of_the_wrong_shape(tmp_path: Path, toml: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.beat]\n{toml}")
    with pytest.raises(ConfigError, match=r"^pyproject.toml \[tool.beat"):
        sources.defaults({}, tmp_path)


def test_declarations_never_import_pydantic() -> None:
    code = (
        "import sys, beat.config.sources; beat.config.sources.defaults();"
        "print([name for name in sys.modules if 'pydantic' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# the page


def rendered() -> str:
    lines = ["| setting | variable | type | default | range | meaning |", "|---|---|---|---|---|---|"]
    for row in config.rows(load(environ={}, cwd=Path("/"))):
        kind, default = row.kind.removeprefix("a "), config.text(row.default)
        cells = [f"`{row.name}`", f"`BEAT_{row.name.upper()}`", kind, f"`{default}`", row.range, row.meaning]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def rewritten(page: str) -> str:
    head, rest = page.split(BEGIN)
    return f"{head}{BEGIN}\n{rendered()}\n{END}{rest.split(END)[1]}"


def test_the_page_shows_every_setting_as_it_is() -> None:
    assert PAGE.read_text() == rewritten(PAGE.read_text()), "run `python -m tests.unit.config.test_settings`"


@pytest.mark.parametrize("example", re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL))
def test_every_toml_example_of_the_page_works(place: Place, example: str) -> None:
    assert place(example).warnings == ()


@pytest.mark.parametrize("line", re.findall(r"^BEAT_.*$", PAGE.read_text(), re.MULTILINE))
def test_every_variable_of_the_page_works(place: Place, line: str) -> None:
    variable, _, value = line.partition("=")
    assert variable in place(**{variable: value.strip("'")}).origins.values()


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_has_a_meaning_of_one_sentence_and_a_range(name: str) -> None:
    assert re.fullmatch(r"[A-Z][^.]*\.", Settings.model_fields[name].description or "")
    assert all(kind_and_range(name))


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text()))
