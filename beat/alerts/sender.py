"""The sender: hands the messages of one channel over, one after the other, until the channel has taken each.

Each channel has a thread in each beat. A message that is on its way is hidden from the other beats for as long as that
may take; one that a killed beat had in hand is sent again, with the same incident.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from beat import clock
from beat.alerts import channels, sending
from beat.alerts.kept import GIVE_UP_MS, Handed
from beat.alerts.sending import Caller, NotTaken
from beat.event import Event
from beat.health import Once

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from beat.alerts.channels import Channel
    from beat.alerts.kept import Kept
    from beat.event import Emit
    from beat.protocol import Reply

_LONGEST_S = 1.0
_TRIED = 10_000
"""Of so many messages it is known how often they were tried."""


class Sender:
    """One channel's in one beat; `made` gives it a connection of its own."""

    def __init__(self, made: Callable[[], Kept], channel: Channel, emit: Emit) -> None:
        self.name = f"alerts-{channel.name}"
        self._made, self._channel, self._emit = made, channel, emit
        self._caller, self._once = Caller(channel), Once(emit)
        self._tries: dict[str, int] = {}
        self._fails = False
        self._kept: Kept | None = None

    def run(self, stopping: threading.Event) -> None:
        """Sends what there is to send."""
        kept = self._kept = self._kept or self._made()
        while not stopping.is_set():
            found = kept.hand(self._channel.name, lease=channels.lease_ms(self._channel))
            if isinstance(found, Handed):
                self.send(kept, found)
            else:
                stopping.wait(min(self._wait_s(found), _LONGEST_S))

    def send(self, kept: Kept, found: Handed) -> None:
        """Hands over one message, or has it tried again later."""
        facts, function = found.facts(), self._channel.function
        try:
            (self._caller.send if function else lambda said: sending.send(self._channel, said))(facts)
        except NotTaken as e:
            self._failed(kept, found, str(e))
            return
        kept.taken(self._channel.name, found.key)
        self._tries.pop(found.key, None)
        self._emit(Event("alerted", fields={"channel": self._channel.name, "incident": found.incident}))
        if self._fails:
            self._fails = False
            self._emit(Event("alert_back", fields={"channel": self._channel.name}))

    def _wait_s(self, nothing: Reply) -> float:
        if nothing.code == "NONE":
            return int(nothing.words) / 1000
        error = f"{nothing.words}: rename that key, or delete it"
        self._once.say("", Event("alerts_refused", fields={"error": error}))
        return _LONGEST_S

    def _failed(self, kept: Kept, found: Handed, why: str) -> None:
        if not self._fails:
            self._fails = True
            fields = {"channel": self._channel.name, "error": why, "incident": found.incident}
            self._emit(Event("alert_failed", fields=fields))
        if self._is_old(kept, found):
            kept.taken(self._channel.name, found.key)
            self._emit(
                Event("alert_dropped", fields={"channel": self._channel.name, "incident": found.incident, "error": why})
            )
            return
        tries = self._tries.pop(found.key, 0)
        kept.later(self._channel.name, found.key, tries)
        if len(self._tries) < _TRIED:
            self._tries[found.key] = tries + 1

    def _is_old(self, kept: Kept, found: Handed) -> bool:
        at = clock.found(str(found.facts().get("at", "")))
        return at is None or kept.store.time() - at > timedelta(milliseconds=GIVE_UP_MS)
