"""Store the alerts of one application in Redis: incidents, and messages that still have to be sent.

A decision is written in one step with the acknowledgement of its event, so a crash neither loses nor repeats it.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.storage import lifetimes
from beat.storage.messages import Reply, decoded
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from beat.notify.alerts.incidents import Message
    from beat.storage.store import Store

MOST_INCIDENTS, MOST_WAITING = 10_000, 1_000
GIVE_UP_MS = 86_400_000
"""How long beat tries to send a message."""
_KEPT_MS = 2 * GIVE_UP_MS
_FIRST_MS = 1_000
_PAGE = 1000
HIDDEN = timedelta(milliseconds=lifetimes.HIDDEN_MS)
"""How long at most a tick that could not be fired is hidden until it is retried."""


class Item(NamedTuple):
    """One part of a decision: the new state of an incident, or a message to send."""

    kind: str
    of: str
    key: str
    text: str


class Handed(NamedTuple):
    """A message that was leased to this sender."""

    key: str
    text: str

    @property
    def incident(self) -> str:
        """Return the id of the incident that the message belongs to."""
        return self.key.partition(" ")[0]

    def facts(self) -> dict[str, Any]:
        """Return the decoded alert, or an empty dict if the stored text is not a JSON object."""
        try:
            found = json.loads(self.text)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


class Kept:
    """The stored alerts of one application, through one Redis client."""

    def __init__(self, store: Store, app: str, hidden: timedelta = HIDDEN) -> None:
        self.store, self._app = store, app
        self.hidden = max(hidden, HIDDEN)
        """How long a tick may be hidden from the due index after a scheduler failed to fire it."""

    @property
    def group(self) -> str:
        """Return the name of the consumer group that reads the event stream for alerts."""
        return f"beat-alerts-{self._app}"

    @property
    def lock(self) -> str:
        """Return the key of the lock that the deciding scheduler holds."""
        return self.store.keys.alerting(self._app)

    def states(self) -> dict[str, str]:
        """Return the stored text of every incident state by its name."""
        found = self.store.client.hscan_iter(self.store.keys.incidents(self._app), count=_PAGE)
        return {_text(name): _text(text) for name, text in found}

    def decide(
        self,
        items: Iterable[Item],
        *,
        group: str,
        event: str,
        idle: str = "",
        token: str = "",
        most: int = MOST_INCIDENTS,
        most_waiting: int = MOST_WAITING,
        kept: int = _KEPT_MS,
    ) -> Reply:
        """Write all items and acknowledge the event, or write nothing; safe to repeat after a lost reply."""
        named: dict[str, Any] = {"group": group, "event": event, "idle": idle, "lock": self.lock, "token": token}
        named |= {"most": most, "most_waiting": most_waiting, "kept": kept}
        sent = [[value.encode(errors="surrogateescape") for value in item] for item in items]
        said = self.store.run("decide", sent, incidents=self.store.keys.incidents(self._app), **named)
        return Reply(*map(decoded, said))

    def message(self, message: Message) -> Item:
        """Return a message as an item of a decision."""
        return Item("message", self._place(message.channel), message.key, message.text)

    def hand(self, channel: str, *, lease: int) -> Handed | Reply:
        """Lease the next due message of a channel for `lease` ms, or return the reply that says why there is none."""
        place, keys = self._place(channel), self.store.keys
        said = self.store.run("hand", deliveries=keys.deliveries(place), messages=keys.messages(place), lease=lease)
        code, *words = map(decoded, said)
        return Handed(*words) if code == "OK" else Reply(code, *words)

    def taken(self, channel: str, key: str) -> None:
        """Delete a message that was accepted or given up; safe to repeat."""
        place, keys = self._place(channel), self.store.keys
        with self.store.client.pipeline() as pipe:
            pipe.zrem(keys.deliveries(place), key)
            pipe.hdel(keys.messages(place), key)
            pipe.execute()

    def later(self, channel: str, key: str, tries: int) -> None:
        """Schedule the next attempt in 1 s, 2 s, 4 s … at most 5 minutes, by the number of earlier `tries`."""
        wait = min(_FIRST_MS * 2 ** min(tries, 20), lifetimes.TRY_AGAIN_MS)
        at = clock.to_ms(self.store.time()) + wait
        self.store.client.zadd(self.store.keys.deliveries(self._place(channel)), {key: at}, xx=True)

    def waiting(self, channels: Iterable[str]) -> Mapping[str, int]:
        """Return how many messages are pending per channel."""
        keys = self.store.keys
        return {each: int(self.store.client.zcard(keys.deliveries(self._place(each)))) for each in channels}

    def _place(self, channel: str) -> str:
        return f"{self._app}.{channel}"


def _text(value: Any) -> str:
    return str(value.decode(errors="surrogateescape"))  # decide.lua compares this text with the stored bytes
