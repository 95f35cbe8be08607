"""The option `monitor`: what it may be, what a schedule makes of it, and that nobody is shown its secret."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from beat import Registry
from beat.cli import config
from beat.config import sentry_dsn
from beat.config.settings import load
from beat.errors import BadOption, ConfigError, DeclarationError
from beat.policies.definition_diff import differences, masked, plain
from beat.schedule import cross_checks, monitor, serialize
from beat.schedule.monitor import Monitor
from beat.schedule.schedule import Schedule
from beat.testing import ManualBeat
from beat.timing.interval import Every
from tests.support.declared import plain as plain_function

TOKEN = "0f63-canary-8a1e"  # noqa: S105 (nobody's)
URL = f"https://hc-ping.com/{TOKEN}"
DSN = "https://canarykey@o1.ingest.sentry.io/42"


def schedule(**given: Any) -> Schedule:
    return Schedule(**{"id": "report", "func": "app.tasks.report", "timing": Every("1h"), **given})


@pytest.mark.parametrize(
    "given",
    [
        URL,
        f"{URL}/",
        f"{URL}?create=1",
        "http://127.0.0.1:8000/ping/a/b",
        "sentry",
        "sentry:nightly-report_2",
        "sentry grace=5m",
        "sentry:x grace=5m max_runtime=1h30m",
    ],
)
def test_what_is_written_stays_as_it_is(given: str) -> None:
    found = schedule(monitor=given).monitor
    assert found is not None
    assert found.written() == given
    assert Monitor.read(found.written()) == found
    assert pickle.loads(pickle.dumps(schedule(monitor=given))).monitor == found  # noqa: S301 (our own)


def test_an_object_says_the_same() -> None:
    made = Monitor("sentry:x", grace="5m", max_runtime=timedelta(hours=1))
    assert schedule(monitor=made) == schedule(monitor="sentry:x grace=5m max_runtime=1h")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("sentri", "monitor 'sentri' must be 'https://hc-ping.com/<uuid>', 'sentry' or 'sentry:nightly-report'."),
        ("sentri", "Did you mean 'sentry'?"),
        ("", "monitor '' must be"),
        (TOKEN, "monitor '***' must be"),
        (f"ftp://hc-ping.com/{TOKEN}", "monitor '***' must be"),
        (7, "or a beat.Monitor, not int"),
        ("https://", "names no host: write https://hc-ping.com/<uuid>"),
        ("https:///x", "names no host"),
        ("https://hc-ping.com", "names no check: write https://hc-ping.com/<uuid>"),
        ("https://hc-ping.com/", "names no check"),
        (f"https://hc-ping.com:99999/{TOKEN}", "has no port from 1 to 65535"),
        (f"https://me:{TOKEN}@hc-ping.com/x", "holds a user or a password, which no ping URL needs: take them out"),
        (f"{URL}#x", "holds a #, and what comes after it is never sent"),
        (f"{URL}/start", "ends with /start, which beat adds itself: leave it out"),
        (f"{URL}/fail/", "ends with /fail, which beat adds itself"),
        ("https://hc-ping.com/" + "x" * 500, "must be at most 500 plain characters"),
        ("https://hc-ping.com/größe", "must be at most 500 plain characters"),
        ("https://hc-ping.com/***", "is masked, as beat shows it: write the whole URL"),
        (f"{URL} grace=5m", "grace='5m' says nothing here: the service behind a ping URL has its own"),
        ("sentry:", "'' is no slug of Sentry's: write up to 50 of a-z 0-9 _ -"),
        ("sentry:Nightly", "'Nightly' is no slug of Sentry's"),
        ("sentry:123", "'123' is no slug of Sentry's"),
        ("sentry grce=5m", "monitor: 'grce=5m' is none of grace=5m, max_runtime=5m"),
        ("sentry grace=5m grace=6m", "is none of"),
        ("sentry grace=soon", "grace 'soon' must be a length of time from 1m to 4w, as in"),
        ("sentry grace=5s", "grace '5s' must be a length of time from 1m"),
    ],
)
def test_what_makes_no_sense_is_refused_and_its_secret_is_not_shown(given: Any, said: str) -> None:
    with pytest.raises(BadOption) as refused:
        schedule(monitor=given)
    assert said in str(refused.value)
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize("schedule_id", ["x" * 51, "2026"])
def test_an_id_that_is_no_slug_needs_one(schedule_id: str) -> None:
    with pytest.raises(BadOption, match=r"write monitor='sentry:a-shorter-name'"):
        schedule(id=schedule_id, monitor="sentry")
    assert schedule(id=schedule_id, monitor="sentry:fine").monitor
    assert monitor.slug_of(schedule(id="Nightly", monitor="sentry")) == "nightly"


def test_where_sentry_is_meant_there_must_be_a_dsn() -> None:
    registry = Registry()
    registry.register(plain_function, every="1h", monitor="sentry:x")
    for fine in (DSN, sentry_dsn.OFF):
        cross_checks.agreed(registry, {}, fine)
    with pytest.raises(DeclarationError) as refused:
        cross_checks.agreed(registry, {}, None)
    assert "test_monitor.py:" in str(refused.value)
    assert "there is no DSN: set BEAT_SENTRY_DSN (or SENTRY_DSN), or BEAT_SENTRY_DSN=off" in str(refused.value)


def test_nobody_is_shown_the_secret() -> None:
    made = schedule(monitor=URL)
    kept = json.loads(serialize.write(made))
    assert kept["monitor"] == URL  # any beat must be able to ping
    assert monitor.hidden(kept)["monitor"] == "https://hc-ping.com/***"
    assert monitor.hidden({"monitor": 5}) == {"monitor": "***"}
    assert TOKEN not in f"{made!r} {made.monitor} {made.monitor!r}"
    assert str(made.monitor) == "https://hc-ping.com/***"
    assert str(Monitor("sentry:x", grace="5m")) == "sentry:x grace=5m"
    other = plain(serialize.write(schedule(monitor=f"{URL}-2")))
    [shown] = map(masked, differences(plain(serialize.write(made)), other))
    assert shown == ("monitor", "https://hc-ping.com/***", "https://hc-ping.com/*** (another)")
    [new] = map(masked, differences(plain(serialize.write(schedule())), other))
    assert new == ("monitor", None, "https://hc-ping.com/***")


# --- the DSN ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "envelopes"),
    [
        (DSN, "https://o1.ingest.sentry.io/api/42/envelope/"),
        ("http://key:secret@127.0.0.1:9000/7", "http://127.0.0.1:9000/api/7/envelope/"),
        ("https://key@example.com/sentry/7", "https://example.com/sentry/api/7/envelope/"),
    ],
)
def test_a_dsn_says_where_check_ins_go(text: str, envelopes: str) -> None:
    found = sentry_dsn.read(text)
    assert found is not None
    assert found.envelopes == envelopes


def test_the_setting_is_beats_own_or_the_applications() -> None:
    assert load({}, {"SENTRY_DSN": DSN}).settings.sentry_dsn == DSN
    assert load({}, {"SENTRY_DSN": DSN, "BEAT_SENTRY_DSN": "off"}).settings.sentry_dsn == "off"
    assert load({}, {"SENTRY_DSN": "disabled"}).settings.sentry_dsn is None  # it is not beat's, nor for beat to judge
    shown = load({}, {"SENTRY_DSN": DSN}).settings
    assert "canarykey" not in f"{shown!r}{shown.model_dump()}"
    with pytest.raises(ConfigError) as refused:
        load({}, {"BEAT_SENTRY_DSN": "https://canarykey/42"})
    assert "is not the DSN of a project at Sentry: write https://key@o1.ingest.sentry.io/42" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (DSN, "https://***@o1.ingest.sentry.io/42"),
        ("https://canarykey:canary@example.com:9000/sentry/7/", "https://***@example.com:9000/sentry/7"),
        ("off", "off"),
        ("https://canarykey:canary@example.com", "https://***"),
        ("canarykey", "***"),
    ],
)
def test_a_masked_dsn_shows_no_key_and_off_is_no_secret(text: str, shown: str) -> None:
    assert sentry_dsn.masked(text) == shown


@pytest.mark.parametrize("dsn", ["https://canarykey:canary@example.com/7", "off"])
def test_the_settings_show_a_dsn_masked_and_off_as_it_is(dsn: str) -> None:
    loaded = load({}, {"BEAT_SENTRY_DSN": dsn})
    [row] = [row for row in config.rows(loaded) if row.name == "sentry_dsn"]
    assert row.value == loaded.settings.model_dump()["sentry_dsn"] == dsn.replace("canarykey:canary", "***")


def test_a_dsn_that_is_refused_is_shown_without_its_key() -> None:
    with pytest.raises(ConfigError) as refused:
        load({}, {"BEAT_SENTRY_DSN": "https://canarykey:canary@example.com"})
    assert "BEAT_SENTRY_DSN='https://***' is not the DSN of a project" in str(refused.value)


def test_a_manual_beat_fires_and_tells_nobody() -> None:
    registry = Registry()
    for name, given in {"pinged": URL, "checked": "sentry"}.items():
        registry.register(plain_function, "0 * * * *", id=name, monitor=given)
    beat = ManualBeat(datetime(2026, 11, 16, 8, 30, tzinfo=UTC), registry=registry)
    assert {each.schedule_id for each in beat.tick_until("1h")} == {"pinged", "checked"}
    assert beat.run_jobs() == ["plain", "plain"]


def test_a_monitor_changes_the_rev() -> None:
    assert schedule(monitor=None).rev == schedule().rev != schedule(monitor="sentry").rev
