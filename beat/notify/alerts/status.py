"""Show rules, channels, open incidents and pending messages, and send a test message to a channel."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.client.connected import Connected
from beat.config.sources import UNNAMED
from beat.notify import delivery
from beat.notify.alerts import config
from beat.notify.alerts.incidents import State
from beat.notify.outbox import Kept
from beat.storage import announcements
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beat.notify.alerts.config import Alerts
    from beat.notify.channels import Channel


class Open(NamedTuple):
    """An open incident."""

    rule: str
    subject: str
    state: State


class Standing(Connected):
    """The alerts of one installation; `redis` is a URL or a client, by default the one of the settings."""

    @functools.cached_property
    def wanted(self) -> Alerts:
        """Return the rules and channels of the settings."""
        return config.read(self.settings)

    def _kept(self) -> list[Kept]:
        """Return the stored alerts of this application or, if no application is named, of all live schedulers."""
        apps = {self.settings.app}
        if self.settings.app == UNNAMED:
            apps |= {each.app for each in announcements.alive(self._store, self._store.time()) if each.app}
        return [Kept(self._store, app) for app in sorted(apps)]

    def incidents(self) -> list[Open]:
        """Return the open incidents, oldest first."""
        with self._asking():
            found = [pair for kept in self._kept() for pair in kept.states().items()]
        named = ((name.split(":", 2), State.read(text)) for name, text in found if name.count(":") > 1)
        opened = (Open(parts[0], parts[2], state) for parts, state in named if state and state.incident)
        return sorted(opened, key=lambda each: each.state.since)

    def waiting(self) -> Mapping[str, int]:
        """Return how many messages are pending per channel."""
        with self._asking():
            numbers = [kept.waiting(self.wanted.channels) for kept in self._kept()]
        return {channel: sum(each[channel] for each in numbers) for channel in self.wanted.channels}


def plain(found: Standing) -> dict[str, Any]:
    """Return rules, channels and incidents as `--json` prints them."""
    kinds = found.wanted.channels
    waiting = found.waiting().items()
    return {
        "rules": [
            {"name": rule.name, "on": list(rule.on), "channels": list(rule.channels), "text": str(rule)}
            for rule in found.wanted.rules
        ],
        "channels": [{"channel": name, "kind": kinds[name].kind, "waiting": number} for name, number in waiting],
        "incidents": [_incident(each) for each in found.incidents()],
    }


def _incident(each: Open) -> dict[str, Any]:
    state = each.state
    return {
        "incident": state.incident,
        "rule": each.rule,
        "subject": each.subject,
        "event": state.event,
        "count": state.count,
        "since": state.since,
        "channels": list(state.told),
        "error": state.error or None,
    }


def trial(channel: Channel) -> str:
    """Send a test message and return the channel's answer; raise NotTaken when the channel does not accept it."""
    now = clock.text(clock.now())
    text = f"a test of the channel {channel.name}: beat can reach you"
    facts = dict.fromkeys(("schedule", "queue", "count", "job", "tick", "error", "since"))
    told = {"incident": f"test.{channel.name}.{now}", "state": "test", "event": "test", "rule": "test", "at": now}
    return delivery.send(channel, {**facts, **told, "text": text})
