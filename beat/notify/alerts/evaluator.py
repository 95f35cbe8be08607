"""Read the event stream, look for overdue work, and decide which of it opens or closes an incident.

One scheduler at a time does this, so that events are processed in order; a lock says which. Correctness does not depend
on the lock: one Redis script writes a decision, its messages and the acknowledgement of its event, and only if the
state is still the one that was read. A scheduler that is killed before that leaves the event to the next one.
"""

from __future__ import annotations

import contextlib
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from beat.engine.events import Event
from beat.engine.health import Once
from beat.events.event import Missed
from beat.events.readers import Member
from beat.notify.alerts import incidents
from beat.notify.alerts.incidents import Sign, State, step, unheard
from beat.notify.alerts.overdue import Lateness
from beat.notify.outbox import GIVE_UP_MS, Item, Kept
from beat.storage import connection, lifetimes
from beat.storage.backoff import cause
from beat.storage.event_stream import Outbox
from beat.storage.lock import Lock
from beat.timing import clock

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from beat.engine.events import Emit
    from beat.events.readers import Took
    from beat.notify.alerts.rules import Rule

LEASE_MS = lifetimes.ALERTING_MS
LOOK_S = 5.0
"""How often, in seconds, to look for trouble that no event reports."""
_WAIT_S = 1.0
_READ_S = 0.5
"""How long to block for events, in seconds; short, so that a stopping scheduler releases the lock in time."""
_FORGOTTEN = timedelta(weeks=1)
_CONSUMER = "decider"
"""The consumer name that all schedulers share, so that a new lock owner receives pending events at once."""
_SEEN = "@seen"
"""The name under which the incidents' hash keeps the time of the last evaluation."""


class Lost(Exception):
    """Another scheduler decides now, or the stored state has changed."""


class Decider:
    """The service that evaluates alerts in one scheduler; `made` opens a Redis connection of its own."""

    name = "alerts"

    def __init__(self, made: Callable[[], Kept], rules: Sequence[Rule], emit: Emit) -> None:
        self._made, self._rules, self._emit = made, rules, emit
        self._once = Once(emit)
        self._kept: Kept | None = None

    def run(self, stopping: threading.Event) -> None:
        """Evaluate alerts while this scheduler holds the lock; otherwise try to take the lock every second."""
        kept = self._kept = self._kept or self._made()
        while not stopping.is_set():
            lock = Lock(kept.store.client, kept.lock, LEASE_MS)
            if not lock.acquire():
                stopping.wait(_WAIT_S)
                continue
            try:
                Turn(kept, self._rules, self._emit, self._once, lock.token).go_on(lock, stopping)
            except Lost:
                stopping.wait(_WAIT_S)
            except connection.Refused as e:
                self._once.say("", Event("alerts_refused", fields={"error": cause(e)}))
                raise
            finally:
                with contextlib.suppress(*connection.Errors):
                    lock.release()


class Turn:
    """The evaluation by one scheduler while it holds the lock; it caches the incident states of Redis."""

    def __init__(self, kept: Kept, rules: Sequence[Rule], emit: Emit, once: Once, token: str) -> None:
        self._kept, self._rules, self._emit, self._once, self._token = kept, rules, emit, once, token
        outbox = Outbox(kept.store.client, kept.store.keys.events, kept.lock)
        told = {"group": kept.group, "consumer": _CONSUMER, "token": token}
        self.reader = Member(outbox, lambda _: "$", idle=timedelta(seconds=1), **told)
        self._states = kept.states()
        self.lateness = Lateness(kept.store, rules, kept.hidden)
        self._looked_at = 0.0

    def go_on(self, lock: Lock, stopping: threading.Event) -> None:
        """Process events and look for overdue work, until it is time to stop or the lock is lost."""
        self._return()
        self._tidy()
        while not stopping.is_set() and lock.extend():
            taken = self.reader.look()
            if taken and not lock.extend():
                raise Lost
            if taken:
                self.take(taken)
            if time.monotonic() - self._looked_at >= LOOK_S:
                self.look()
            if not taken:
                self.reader.wait(int(_READ_S * 1000))

    def take(self, taken: Iterable[Took]) -> None:
        """Decide on a page of events, in order.

        An event that changes nothing is acknowledged with the next decision and no later. If it were processed again
        after that decision, it could have an effect.
        """
        idle: list[str] = []
        now = self._kept.store.time()
        for each in taken:
            if isinstance(each.value, Missed):
                self._emit(Event("alerts_missed", fields={"count": _number(each.value.count)}))
                each.settle()
            elif each.value is None or not (items := self._items(incidents.of(each.value), now)):
                idle.append(each.id)
            else:
                self._decide(items, each.id, idle)
                idle = []
        if idle:
            self._decide((), idle=idle)

    def look(self) -> None:
        """Process trouble that no event reports, escalate by time, and record that an evaluation took place."""
        self._looked_at = time.monotonic()
        now = self._kept.store.time()
        for sign in self.lateness.look(now, self._known()):
            if items := self._items(sign, now):
                self._decide(items)
        for name, state in self._known().items():
            rule = next((each for each in self._rules if name.startswith(f"{each.name}:")), None)
            if rule and isinstance(rule.escalate_after, timedelta) and state.incident:
                sign = Sign("still", state.event, name.split(":", 2)[2], "", now)
                if items := self._items(sign, now):
                    self._decide(items)
        self._decide([Item("state", _SEEN, self._states.get(_SEEN, ""), clock.text(now))])

    def _return(self) -> None:
        """Alert for `no_beat` if no scheduler evaluated alerts for longer than a rule allows."""
        seen = clock.found(self._states.get(_SEEN, ""))
        if seen is None:
            return
        now, items = self._kept.store.time(), []
        for rule in self._rules:
            if rule.concerns("no_beat", "") and now - seen > rule.lasts("no_beat"):
                sign = Sign("trouble", "no_beat", "", str(clock.to_ms(seen)), now, since=seen)
                items += [self._kept.message(each) for each in step(rule, None, sign).messages]
        if items:
            self._decide([*items, Item("state", _SEEN, self._states[_SEEN], clock.text(now))])

    def _tidy(self) -> None:
        """Delete week-old states that belong to no rule; another scheduler may still have that rule."""
        names, before = {each.name for each in self._rules}, self._kept.store.time() - _FORGOTTEN
        for name, text in list(self._states.items()):
            state = State.read(text)
            if name != _SEEN and name.partition(":")[0] not in names and (not state or clock.read(state.last) < before):
                self._decide([Item("state", name, text, "")])

    def _items(self, sign: Sign | None, now: datetime) -> list[Item]:
        """Return what a sign changes under all rules: states and messages."""
        found: list[Item] = []
        for rule in self._rules if sign else ():
            if sign is None or not any(rule.concerns(each, sign.subject) for each in _events(sign)):
                continue
            if sign.kind == "trouble" and rule.bears(sign.event, sign.lasted):
                continue
            name = sign.name(rule)
            before = self._states.get(name, "")
            state = State.read(before) if before else None
            state = state and state.by(now)
            decided = step(rule, state, sign)
            if _is_old(sign, now):
                decided = unheard(state, decided)
            if not (before or decided.state) or (state is not None and decided.state == state):
                continue
            found.append(Item("state", name, before, decided.state.text() if decided.state else ""))
            found += [self._kept.message(each) for each in decided.messages]
        return found

    def _decide(self, items: Sequence[Item], event: str = "", idle: Sequence[str] = ()) -> None:
        group, acknowledged = self._kept.group, " ".join(idle)
        reply = self._kept.decide(items, group=group, event=event, idle=acknowledged, token=self._token)
        if reply.code == "BADTYPE":
            error = f"{reply.words}: rename that key, or delete it"
            self._once.say("", Event("alerts_refused", fields={"error": error}))
        if reply.code != "OK":
            raise Lost
        for each in items:
            if each.kind == "state" and each.text:
                self._states[each.of] = each.text
            elif each.kind == "state":
                self._states.pop(each.of, None)
        if reply.words != "0":
            self._emit(Event("alerts_given_up", fields={"count": int(reply.words)}))

    def _known(self) -> dict[str, State]:
        read = ((name, State.read(text)) for name, text in self._states.items() if name != _SEEN)
        return {name: state for name, state in read if state}


def _events(sign: Sign) -> tuple[str, ...]:
    """Return the events of a rule that the sign can affect: a success closes incidents of both `failed` and `lost`."""
    return ("failed", "lost") if sign.family == "run" and sign.kind != "trouble" else (sign.event,)


def _is_old(sign: Sign, now: datetime) -> bool:
    """Return whether a sign is too old to alert about.

    A queue without a worker is never too old, because its event is written only once, when the trouble starts.
    """
    return sign.event != "no_worker" and now - sign.at > timedelta(milliseconds=GIVE_UP_MS)


def _number(count: int | None) -> str:
    return "some" if count is None else str(count)
