"""Deliver messages: alerts to channels, and pings to monitoring services.

Each channel has one `Sender` thread per scheduler. Redis keeps the messages and leases each one to a single sender, so
a message that a killed scheduler was sending is sent again with the same incident. Messages are retried for a day.

Each monitoring service has one `Lane`, an in-memory queue with a thread of its own, so a slow service delays no other.
Pings are retried for a quarter of an hour, because a newer ping says more. The pings of one schedule stay in order. An
outage of a service is logged once when it starts and once when it ends; pings that were given up are counted and
logged.

No log line or error shows a URL or a secret.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from datetime import timedelta
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.engine.events import Event
from beat.engine.health import Once
from beat.notify import channels, http
from beat.notify.http import send_ping
from beat.notify.outbox import GIVE_UP_MS, Handed
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from beat.engine.events import Emit
    from beat.notify.channels import Channel
    from beat.notify.http import Failure
    from beat.notify.monitors.pings import Request
    from beat.notify.outbox import Kept
    from beat.storage.messages import Reply


SIGNATURE, INCIDENT = "X-Beat-Signature", "X-Beat-Incident"
_SHOWN = 200
_LATE = 100
"""How many alerts are remembered that a function finished after its timeout."""


class NotTaken(Exception):
    """A channel did not accept a message; the text says why and is safe to log."""


def send(channel: Channel, facts: Mapping[str, Any]) -> str:
    """Send an alert and return the channel's answer; raise NotTaken when the channel does not accept it."""
    match channel.kind:
        case "command":
            return _command(channel, facts)
        case "slack":
            return _post(channel, {"text": _escaped(str(facts.get("text", "")))}, facts)
        case _:
            return _post(channel, facts, facts)


def _escaped(text: str) -> str:
    """Escape text for Slack, so that `<!channel>` in an error message does not notify the whole channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _post(channel: Channel, content: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    body = json.dumps(content).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "beat", INCIDENT: str(facts.get("incident", ""))}
    if channel.secret:
        digest = hmac.new(channel.secret.encode(), body, hashlib.sha256).hexdigest()
        headers[SIGNATURE] = f"sha256={digest}"
    try:
        answer = http.post(channel.url, body, headers, channel.timeout.total_seconds())
    except TimeoutError:
        raise NotTaken(_too_slow(channel)) from None
    except HTTPException as e:
        raise NotTaken(f"did not answer in HTTP: {type(e).__name__}") from None  # its text may contain the URL
    except (OSError, ValueError) as e:
        raise NotTaken(f"{type(e).__name__}: {getattr(e, 'strerror', None) or 'cannot be reached'}") from None
    if not answer.is_good:
        hint = ", and redirects are not followed" if answer.leads_elsewhere else ""
        raise NotTaken(f"answered {answer.status}{hint}")
    return f"answered {answer.status}"


def _command(channel: Channel, facts: Mapping[str, Any]) -> str:
    environ = {**os.environ, "BEAT_INCIDENT": str(facts.get("incident", ""))}
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
        given.write(json.dumps(facts).encode())
        given.seek(0)
        try:
            process = subprocess.Popen(  # noqa: S603 (the operator's own command, and no shell)
                channel.command, stdin=given, stdout=said, stderr=said, env=environ, start_new_session=True
            )
        except OSError as e:
            raise NotTaken(f"cannot be started: {e.strerror}") from None
        try:
            code = process.wait(channel.timeout.total_seconds())
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise NotTaken(f"{_too_slow(channel)}, and was killed") from None
        said.seek(0)
        words = " ".join(said.read(10_000).decode(errors="replace").split())[:_SHOWN]
    if code:
        raise NotTaken(f"ended with {code}{f': {words}' if words else ''}")
    return "ended with 0"


class Caller:
    """Call a function of the application, one call at a time.

    A call that exceeds its timeout cannot be interrupted, and no other call starts until it returns. If it returns
    without an error after all, its alert counts as delivered and the function is not called with it again.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._thread: threading.Thread | None = None
        self._taken: deque[Mapping[str, Any]] = deque(maxlen=_LATE)

    def send(self, facts: Mapping[str, Any]) -> str:
        """Call the function with an alert, and return or raise NotTaken as `send` does."""
        if self._has_taken(facts):
            return "returned"
        if self._thread and self._thread.is_alive():
            raise NotTaken("is still at an earlier alert")
        raised: list[BaseException] = []

        def call() -> None:
            try:
                if self._channel.function:
                    self._channel.function(dict(facts))
                self._taken.append(facts)
            except BaseException as e:  # noqa: BLE001 (any exception means that the alert was not accepted)
                raised.append(e)

        self._thread = threading.Thread(target=call, name=f"beat-alerts-{self._channel.name}-call", daemon=True)
        self._thread.start()
        self._thread.join(self._channel.timeout.total_seconds())
        if self._has_taken(facts):
            return "returned"
        if raised:
            raise NotTaken(f"raised {type(raised[0]).__name__}: {' '.join(str(raised[0]).split())[:_SHOWN]}")
        raise NotTaken(_too_slow(self._channel))

    def _has_taken(self, facts: Mapping[str, Any]) -> bool:
        with contextlib.suppress(ValueError):
            self._taken.remove(facts)
            return True
        return False


def _too_slow(channel: Channel) -> str:
    return f"took longer than {channel.timeout.total_seconds():g} s"


_LONGEST_WAIT_S = 1.0
_TRIED = 10_000
"""For how many messages at most the number of attempts is remembered."""


class Sender:
    """The service that sends the messages of one channel; `made` opens a Redis connection of its own."""

    def __init__(self, made: Callable[[], Kept], channel: Channel, emit: Emit) -> None:
        self.name = f"alerts-{channel.name}"
        self._made, self._channel, self._emit = made, channel, emit
        self._caller, self._once = Caller(channel), Once(emit)
        self._tries: dict[str, int] = {}
        self._fails = False
        self._kept: Kept | None = None

    def run(self, stopping: threading.Event) -> None:
        """Send the messages that are due until `stopping` is set."""
        kept = self._kept = self._kept or self._made()
        while not stopping.is_set():
            found = kept.hand(self._channel.name, lease=channels.lease_ms(self._channel))
            if isinstance(found, Handed):
                self.send(kept, found)
            else:
                stopping.wait(min(self._wait_s(found), _LONGEST_WAIT_S))

    def send(self, kept: Kept, found: Handed) -> None:
        """Send one message, and on failure schedule a retry or give the message up when it is older than a day."""
        facts, function = found.facts(), self._channel.function
        try:
            (self._caller.send if function else lambda said: send(self._channel, said))(facts)
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
        return _LONGEST_WAIT_S

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


GIVE_UP_S = 900.0
MOST = 10_000
"""About how many pings may wait for a service; a full queue pauses the reading of events.

While the service fails, reading goes on and the oldest pings are given up.
"""
_FIRST_S, _LONGEST_REST_S = 1.0, 60.0
_IDLE_S = 60.0


class Letter(NamedTuple):
    """A ping in the queue of a service."""

    schedule_id: str
    request: Request
    done: Callable[[], None]
    """A callback for when the service accepted the ping or it was given up."""
    until: float
    """The monotonic time, in seconds, after which it is given up."""


class Lane:
    """The delivery queue of one monitoring service."""

    def __init__(self, service: str, emit: Emit, send: Callable[[Request], Failure | None] = send_ping) -> None:
        self._service, self._emit, self._send = service, emit, send
        self._once = Once(emit)
        self._letters: deque[Letter] = deque()
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._works = False
        self._rests: dict[str, tuple[float, float]] = {}  # schedule id → end of its pause, length of the next
        self._failing: set[str] = set()  # schedule ids; '' stands for the whole service
        self._failing_since = 0.0
        self._given_up = 0

    @property
    def is_full(self) -> bool:
        """Return whether reading should pause; it does not while the service fails, for the sake of other services."""
        return len(self._letters) >= MOST and not self._failing

    def put(self, letter: Letter) -> None:
        """Append a ping, and start the thread if it is not running."""
        with self._changed:
            if len(self._letters) >= MOST and self._failing:
                self._drop(max(MOST // 10, 1))
            self._letters.append(letter)
            self._changed.notify()
            if not self._works:
                self._works = True
                threading.Thread(target=self._run, name=f"beat-monitor-{self._service}", daemon=True).start()

    def stop(self) -> None:
        """Stop sending after the current attempt."""
        self._stopping.set()
        with self._changed:
            self._changed.notify()

    def _drop(self, count: int) -> None:
        """Give up the oldest `count` pings at once, so that one event reports them all."""
        for letter in [self._letters.popleft() for _ in range(count)]:
            self._rests.pop(letter.schedule_id, None)
            letter.done()
        self._missed(count, f"too many wait for {self._service}")

    def _missed(self, count: int, why: str) -> None:
        self._emit(Event("monitor_missed", fields={"count": count, "why": why}))

    def _run(self) -> None:
        while letter := self._next():
            if self._deliver(letter):
                letter.done()

    def _next(self) -> Letter | None:
        """Remove and return the first ping that may be sent now.

        Returns None, which ends the thread, when it is time to stop or the queue was empty for a minute.
        """
        with self._changed:
            while not self._stopping.is_set():
                soonest_s = _IDLE_S
                for n, letter in enumerate(self._letters):
                    rest_s = self._rests.get(letter.schedule_id, (0.0,))[0] - time.monotonic()
                    if rest_s <= 0:
                        del self._letters[n]
                        return letter
                    soonest_s = min(soonest_s, rest_s)
                if not self._changed.wait(soonest_s) and not self._letters:
                    break
            self._works = False
            return None

    def _deliver(self, letter: Letter) -> bool:
        """Send one ping, and return whether it is done: accepted or given up.

        Returns False when the ping was put back to wait, or when it is time to stop.
        """
        pause_s = _FIRST_S
        while not self._stopping.is_set():
            failure = self._send(letter.request)
            if failure is None:
                self._well(letter.schedule_id)
                return True
            self._say(letter.schedule_id, failure)
            if failure.alone:
                pause_s = self._rests.get(letter.schedule_id, (0.0, _FIRST_S))[1]
            if failure.final or time.monotonic() + pause_s > letter.until:
                self._given_up += not failure.final
                self._rests.pop(letter.schedule_id, None)
                return True
            if failure.alone:
                self._put_back(letter, pause_s)
                return False
            self._stopping.wait(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_REST_S)
        return False

    def _put_back(self, letter: Letter, pause_s: float) -> None:
        with self._changed:
            self._rests[letter.schedule_id] = time.monotonic() + pause_s, min(pause_s * 2, _LONGEST_REST_S)
            self._letters.appendleft(letter)

    def _say(self, schedule_id: str, failure: Failure) -> None:
        """Report a failure: once per outage of the service, and once per schedule whose pings it rejects."""
        event = Event("monitor_failed", schedule_id, {"service": self._service, "error": failure.words})
        if failure.final:
            # The body of a response may differ for each ping, so a rejection is reported once per schedule and text.
            self._once.say(schedule_id if failure.alone else f"{schedule_id} {failure.words}", event)
            return
        subject = schedule_id if failure.alone else ""
        if not self._failing:
            self._failing_since = time.monotonic()
        if not self._failing or (not subject and subject not in self._failing):
            self._emit(event)
        self._failing.add(subject)

    def _well(self, schedule_id: str) -> None:
        self._once.forget(schedule_id)
        self._rests.pop(schedule_id, None)
        was_failing, self._failing = bool(self._failing), self._failing & self._rests.keys()
        if was_failing and not self._failing:
            seconds = round(time.monotonic() - self._failing_since, 1)
            self._emit(Event("monitor_back", fields={"service": self._service, "seconds": seconds}))
        if self._given_up and not self._failing:
            self._missed(self._given_up, f"{self._service} did not take them in time")
            self._given_up = 0
