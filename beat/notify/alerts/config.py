"""Read the alerts of one application from its settings and its code, and check that rules and channels fit together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.errors import BadOption, ConfigError, did_you_mean
from beat.notify import channels
from beat.notify.alerts import hooks, rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beat.config.settings import Settings
    from beat.notify.alerts.rules import Rule
    from beat.notify.channels import Channel

_FIELDS = ("channels", "rules")
_MOST = 100
"""The limit for rules and for channels: each event is tested against each rule, and each channel has a thread."""


class Alerts(NamedTuple):
    """All rules of an application, and the channels that they name."""

    channels: Mapping[str, Channel]
    rules: Sequence[Rule]


def read(settings: Settings, environ: Mapping[str, str] | None = None) -> Alerts:
    """Return the alerts of the settings and of `@on_event`; raise ConfigError with everything that is wrong."""
    table, problems = settings.alerts, list[str]()
    for each in table:
        if each not in _FIELDS:
            problems.append(f"alerts has no {each!r:.60}: there are channels and rules.{did_you_mean(each, _FIELDS)}")
    found = _channels(table.get("channels", {}), os.environ if environ is None else environ, problems)
    known = table.get("channels", {})
    made = _rules(table.get("rules", []), known if isinstance(known, Mapping) else {}, problems)
    if problems:
        raise ConfigError("\n".join(problems))
    declared = hooks.declared()
    return Alerts(
        {**found, **{each.channel.name: each.channel for each in declared}}, [*made, *(d.rule for d in declared)]
    )


def _channels(given: object, environ: Mapping[str, str], problems: list[str]) -> dict[str, Channel]:
    found: dict[str, Channel] = {}
    if not isinstance(given, Mapping) or len(given) > _MOST:
        problems.append(
            f"alerts.channels must be a table of up to {_MOST} channels: write [tool.beat.alerts.channels.ops]"
        )
        return {}
    for name, each in given.items():
        try:
            found[name] = channels.read(name, each, f"alerts.channels.{name!s:.60}", environ)
        except BadOption as e:
            problems.append(e.message)
    return found


def _rules(given: object, known: Mapping[str, Any], problems: list[str]) -> list[Rule]:
    found: dict[str, Rule] = {}
    if not isinstance(given, list | tuple) or len(given) > _MOST:
        problems.append(
            f"alerts.rules must be a list of up to {_MOST} rules: write [[tool.beat.alerts.rules]] for each"
        )
        return []
    for number, each in enumerate(given):
        place = f"alerts.rules[{number}]"
        try:
            rule = rules.read(each, place)
        except BadOption as e:
            problems.append(e.message)
            continue
        for channel in rule.channels:
            if channel not in known:
                there = (
                    f"there are {', '.join(known)}" if known else "there is none: write [tool.beat.alerts.channels.ops]"
                )
                shown = repr(channel) if channels.NAME.fullmatch(channel) else "what is no name"  # a URL is a secret
                problems.append(f"{place}: no channel is called {shown}: {there}.{did_you_mean(channel, known)}")
        if rule.name in found:
            problems.append(
                f"{place}: another rule is called {rule.name!r}, too: give each its own name, or leave one out"
            )
        found[rule.name] = rule
    return list(found.values())
