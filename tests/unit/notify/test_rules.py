"""Rules and channels as people write them: what is wrong is refused at start, in a sentence that shows no secret."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from beat.cli.config import data, rows, text
from beat.config import settings
from beat.errors import BadOption, ConfigError
from beat.notify import channels
from beat.notify.alerts import config, hooks, rules, templates
from beat.notify.channels import Channel
from beat.scheduler import Scheduler

SECRET = "xoxb-hunter2"  # noqa: S105 (made up)
URL = f"https://hooks.example.com/services/{SECRET}"
GUIDE = Path(__file__).parent.parent.parent.parent / "docs/guides/monitoring.md"
OPS = {"ops": {"url": URL, "kind": "slack"}}


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """No function outlives its test."""
    monkeypatch.setattr("beat.notify.alerts.hooks._declared", {})


def read(**table: Any) -> config.Alerts:
    found = settings.load({"alerts": {"channels": OPS, **table}}, {}).settings
    return config.read(found, {"SECRET": SECRET, "EMPTY": " "})


def rule(**given: Any) -> rules.Rule:
    return rules.read({"on": "failed", "channel": "ops", **given}, "a rule")


def test_a_rule_is_read_with_all_that_it_says() -> None:
    found = rule(on=["failed", "recovered"], schedules="report-*", times=3, escalate_after=5, escalate_to="pager")
    assert (found.on, found.schedules, found.times) == (("failed", "recovered"), ("report-*",), 3)
    assert found.concerns("failed", "report-daily")
    assert not found.concerns("failed", "mail")
    assert not found.concerns("lost", "report-daily")
    assert str(found) == "failed or recovered 3 times in a row of report-* → ops; after 5 in a row → pager"


def test_the_same_words_give_the_same_name_and_others_another() -> None:
    assert rule().name == rule().name
    assert rule().name != rule(times=2).name
    assert rule(name="mine").name == "mine"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"on": "faild"}, "a rule: on 'faild' is not an event: there are failed, lost, .* Did you mean 'failed'?"),
        ({"on": None}, "`on` is missing"),
        ({"on": []}, "on must be a word or a list of words"),
        ({"on": 7}, "on must be a word or a list of words"),
        ({"chanel": "ops"}, "a rule has no 'chanel': .* Did you mean 'channel'?"),
        ({"channel": None}, "channel must be the name of a channel"),
        ({"schedules": "report daily"}, "schedules 'report daily' must be an id"),
        ({"times": 0}, "times must be a whole number from 1"),
        ({"times": True}, "times must be a whole number from 1"),
        ({"on": "no_worker", "times": 3}, "times says nothing here"),
        ({"after": "5m"}, "after says nothing here: it is for late_fire"),
        ({"on": "late_fire", "after": "soon"}, "after 'soon' must be a length of time"),
        ({"on": "no_beat", "after": "5s"}, "after must be at least 30s for no_beat"),
        ({"queues": "mail"}, "queues says nothing here"),
        ({"on": "no_worker", "schedules": "a"}, "schedules says nothing here"),
        ({"escalate_after": 3}, "escalate_after and escalate_to belong together"),
        ({"escalate_to": "pager"}, "escalate_after and escalate_to belong together"),
        ({"times": 3, "escalate_after": 3, "escalate_to": "p"}, "escalate_after 3 must be more than times"),
        ({"on": "broken", "escalate_after": 3, "escalate_to": "p"}, "write a time, as in '30m'"),
        ({"on": "recovered", "escalate_after": "1h", "escalate_to": "p"}, "what is over is not escalated"),
        ({"escalate_after": 3, "escalate_to": "ops"}, "escalate_to says nothing here"),
        ({"name": "my rule"}, "name 'my rule' must be 1 to 100"),
        ({"template": "{schedul} failed"}, "template has no field 'schedul': .* Did you mean 'schedule'?"),
        ({"template": "{schedule.__class__}"}, "template has no field 'schedule.__class__'"),
        ({"template": "{count:>10}"}, "template can only name {count} as it is"),
        ({"template": "{error!r}"}, "template can only name {error} as it is"),
        ({"template": "{0}"}, "template has no field '0'"),
        ({"template": "{error"}, "template '{error' cannot be read"),
        ({"template": ""}, "template must be text"),
    ],
    ids=str,
)
def test_a_rule_that_cannot_work_is_refused_with_a_reason(given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadOption, match=words):
        rule(**given)


@pytest.mark.parametrize(
    ("channel", "words"),
    [
        (
            {"kind": "webhok", "url": URL},
            "alerts.channels.ops: kind 'webhok' must be one of .* Did you mean 'webhook'?",
        ),
        ({"kind": "webhook"}, "url is missing"),
        ({"url": f"ftp://{SECRET}"}, "url must begin with https:// or http://"),
        ({"url": f"https://me:{SECRET}@x/"}, "url holds a user name or a password"),
        ({"url": f"https://x:{SECRET}/"}, "url is not a URL"),
        ({"url": f"https://x/{SECRET} y"}, "url holds a blank"),
        ({"url": f"https://x/{SECRET}\n"}, "url holds a blank"),
        ({"url": 7}, "url must be text"),
        ({"url": f"https://hooks..example.com/{SECRET}"}, "url is not a URL"),
        ({"url": URL, "secret": f"{SECRET}\udcff"}, "secret is not UTF-8"),
        ({"url": URL, "secret_env": SECRET}, "secret_env must name a variable that is set"),
        ({"url_env": URL}, "url_env must name a variable that is set"),
        ({"url_env": "EMPTY"}, "url_env must name a variable that is set"),
        ({"url": URL, "url_env": "SECRET"}, "url and url_env say two things"),
        ({"url": URL, "kind": "slack", "secret": SECRET}, "a Slack webhook is not signed"),
        ({"url": URL, "timeout": "1h"}, "timeout '1h' must be a length of time"),
        ({"url": URL, "tiemout": "1s"}, "has no 'tiemout': .* Did you mean 'timeout'?"),
        ({"command": "page me"}, "command must be a list of words"),
        ({"command": []}, "command must be a list of words"),
        ({"command": ["x"], "url": URL}, "url says nothing here: a command has none"),
        ({"kind": "webhook", "command": ["x"], "url": URL}, "command says nothing here"),
        ("https", "alerts.channels.ops must be a table"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value) if isinstance(value, dict) else str(value),
)
def test_a_channel_that_cannot_work_is_refused_and_no_secret_is_shown(channel: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        read(channels={"ops": channel})
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("channel", [URL, {"url": URL}, [SECRET]], ids=["url", "table", "list"])
def test_a_rule_with_a_secret_for_a_channel_is_refused_without_showing_it(channel: Any) -> None:
    with pytest.raises(ConfigError, match="channel") as caught:
        read(rules=[{"on": "failed", "channel": channel}])
    assert SECRET not in str(caught.value)


def test_all_that_is_wrong_is_said_at_once() -> None:
    table = {
        "channels": {"ops": {"kind": "slack"}},
        "rules": [{"on": "x"}, {"on": "failed", "channel": "opps"}],
        "z": 1,
    }
    with pytest.raises(ConfigError) as caught:
        read(**table)
    assert [line.partition(" ")[0] for line in str(caught.value).splitlines()] == [
        "alerts", "alerts.channels.ops:", "alerts.rules[0]:", "alerts.rules[1]:",
    ]  # fmt: skip
    assert "no channel is called 'opps': there are ops. Did you mean 'ops'?" in str(caught.value)


@pytest.mark.parametrize("table", [{"rules": {}}, {"channels": []}, {"rules": [7]}], ids=str)
def test_what_is_no_list_or_no_table_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"alerts\.(rules|channels)"):
        read(**table)


def test_two_rules_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="another rule is called"):
        read(rules=[{"on": "failed", "channel": "ops"}] * 2)


def test_a_beat_does_not_start_with_a_rule_that_cannot_work() -> None:
    with pytest.raises(ConfigError, match=r"alerts\.rules\[0\]: on 'x' is not an event"):
        Scheduler(alerts={"rules": [{"on": "x", "channel": "ops"}]})


def test_a_url_and_a_secret_can_stand_in_the_environment() -> None:
    found = settings.load({"alerts": {"channels": {"ops": {"url_env": "URL", "secret_env": "SECRET"}}}}, {}).settings
    channel = config.read(found, {"URL": URL, "SECRET": SECRET}).channels["ops"]
    assert (channel.url, channel.secret) == (URL, SECRET)


def test_nothing_shows_a_url_or_a_secret() -> None:
    loaded = settings.load({}, {"BEAT_ALERTS": f'{{"channels": {{"ops": {{"url": "{URL}", "secret": "{SECRET}"}}}}}}'})
    channel = Channel("ops", "webhook", url=URL, secret=SECRET, command=(SECRET,))
    listed = [(row, text(row.value), data(row.value)) for row in rows(loaded)]
    shown = f"{loaded!r} {loaded.settings!r} {loaded.settings.model_dump()} {listed} {channel!r} {channel}"
    assert "1 channel" in shown
    assert SECRET not in shown
    assert "webhook at hooks.example.com" in shown


@pytest.mark.parametrize("written", [f'{{"{SECRET}', f'["{SECRET}"]', SECRET], ids=["cut", "list", "word"])
def test_a_variable_that_is_no_table_is_refused_without_being_shown(written: str) -> None:
    with pytest.raises(ConfigError, match="BEAT_ALERTS must be a table") as caught:
        settings.load({}, {"BEAT_ALERTS": written})
    assert SECRET not in str(caught.value)


def test_the_example_of_the_guide_works() -> None:
    examples = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    [example] = [each for each in examples if "tool.beat.alerts" in each]
    found = settings.load({"alerts": tomllib.loads(example)["tool"]["beat"]["alerts"]}, {}).settings
    wanted = config.read(found, {"SLACK_URL": URL, "PAGER_URL": URL, "PAGER_SECRET": SECRET})
    assert (list(wanted.channels), len(wanted.rules)) == (["ops", "pager"], 2)


def test_the_guide_tells_every_event_and_every_option_and_every_field() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    names = [*rules.EVENTS, *rules.FIELDS, *templates.FIELDS, *channels.KINDS, *channels.FIELDS]
    assert [name for name in names if f"`{name}" not in text] == []


# --- functions -------------------------------------------------------------------------------------------------------


def test_a_function_becomes_a_rule_and_a_channel_and_stays_what_it_is() -> None:
    @hooks.on_event("failed", "recovered", schedules="report-*", times=3)
    def page(alert: dict[str, Any]) -> str:
        return f"paged {alert}"

    [found] = hooks.declared()
    assert page({}) == "paged {}"
    assert found.channel.function is page
    assert (found.rule.on, found.rule.times, found.rule.channel) == (("failed", "recovered"), 3, found.channel.name)
    wanted = read(rules=[{"on": "failed", "channel": "ops"}])
    assert [each.channel for each in wanted.rules] == ["ops", found.channel.name]
    assert list(wanted.channels) == ["ops", found.channel.name]


@pytest.mark.parametrize("on", [("faild",), (), ("failed", 7)], ids=str)
def test_an_event_that_is_none_is_refused_where_it_is_written(on: Any) -> None:
    with pytest.raises(BadOption, match=r"on_event: (on|`on`)"):
        hooks.on_event(*on)


def test_a_function_that_cannot_be_called_with_an_alert_is_refused() -> None:
    with pytest.raises(BadOption, match="must take one argument, the alert"):
        hooks.on_event("failed")(lambda: None)  # type: ignore[type-var]

    async def page(alert: dict[str, Any]) -> None: ...

    with pytest.raises(BadOption, match="not awaited"):
        hooks.on_event("failed")(page)
