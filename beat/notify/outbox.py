"""What Redis keeps of the alerts of one application: incidents, and messages that channels have yet to take."""

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
"""For so long it is tried to send a message."""
_KEPT_MS = 2 * GIVE_UP_MS
_FIRST_MS = 1_000
_PAGE = 1000
HIDDEN = timedelta(milliseconds=lifetimes.HIDDEN_MS)
"""After so long a tick that could not be fired is tried again."""


class Item(NamedTuple):
    """A part of a decision: a state that changes, or a message that is to be sent."""

    kind: str
    of: str
    key: str
    text: str


class Handed(NamedTuple):
    """A message that is to be sent."""

    key: str
    text: str

    @property
    def incident(self) -> str:
        """The incident that it is about."""
        return self.key.partition(" ")[0]

    def facts(self) -> dict[str, Any]:
        """What it says; nothing if that cannot be read."""
        try:
            found = json.loads(self.text)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


class Kept:
    """Those of one application, through one client."""

    def __init__(self, store: Store, app: str, hidden: timedelta = HIDDEN) -> None:
        self.store, self._app = store, app
        self.hidden = max(hidden, HIDDEN)
        """For so long a tick may be out of sight after a beat has tried to fire it."""

    @property
    def group(self) -> str:
        """As which the events are read."""
        return f"beat-alerts-{self._app}"

    @property
    def lock(self) -> str:
        """The key of the lock of the beat that decides."""
        return self.store.keys.alerting(self._app)

    def states(self) -> dict[str, str]:
        """Every incident by its name, as it is written."""
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
        """Writes all of these, and that the event is dealt with, or nothing; safe to send again."""
        named: dict[str, Any] = {"group": group, "event": event, "idle": idle, "lock": self.lock, "token": token}
        named |= {"most": most, "most_waiting": most_waiting, "kept": kept}
        sent = [[value.encode(errors="surrogateescape") for value in item] for item in items]
        said = self.store.run("decide", sent, incidents=self.store.keys.incidents(self._app), **named)
        return Reply(*map(decoded, said))

    def message(self, message: Message) -> Item:
        """As a part of a decision."""
        return Item("message", self._place(message.channel), message.key, message.text)

    def hand(self, channel: str, *, lease: int) -> Handed | Reply:
        """The next message for a channel, which nobody else is handed for so many ms; or why there is none."""
        place, keys = self._place(channel), self.store.keys
        said = self.store.run("hand", deliveries=keys.deliveries(place), messages=keys.messages(place), lease=lease)
        code, *words = map(decoded, said)
        return Handed(*words) if code == "OK" else Reply(code, *words)

    def taken(self, channel: str, key: str) -> None:
        """The channel has taken it, or it is given up; safe to send again."""
        place, keys = self._place(channel), self.store.keys
        with self.store.client.pipeline() as pipe:
            pipe.zrem(keys.deliveries(place), key)
            pipe.hdel(keys.messages(place), key)
            pipe.execute()

    def later(self, channel: str, key: str, tries: int) -> None:
        """It is tried again: after a second, two, four … up to five minutes, by how often it was tried."""
        wait = min(_FIRST_MS * 2 ** min(tries, 20), lifetimes.TRY_AGAIN_MS)
        at = clock.to_ms(self.store.time()) + wait
        self.store.client.zadd(self.store.keys.deliveries(self._place(channel)), {key: at}, xx=True)

    def waiting(self, channels: Iterable[str]) -> Mapping[str, int]:
        """How many messages each channel has yet to take."""
        keys = self.store.keys
        return {each: int(self.store.client.zcard(keys.deliveries(self._place(each)))) for each in channels}

    def _place(self, channel: str) -> str:
        return f"{self._app}.{channel}"


def _text(value: Any) -> str:
    return str(value.decode(errors="surrogateescape"))  # what is compared in Redis is sent back byte by byte
