"""Hands one message to one channel, within its time; or says in a line why the channel has not taken it.

No line shows a URL or a secret.
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
from collections import deque
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

from beat import posting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beat.alerts.channels import Channel

SIGNATURE, INCIDENT = "X-Beat-Signature", "X-Beat-Incident"
_SHOWN = 200
_LATE = 100
"""So many messages are remembered that a function took after its time."""


class NotTaken(Exception):
    """The channel has not taken a message; why, in a line that can be shown."""


def send(channel: Channel, facts: Mapping[str, Any]) -> str:
    """What the channel said when it took the message; raises NotTaken otherwise."""
    match channel.kind:
        case "command":
            return _command(channel, facts)
        case "slack":
            return _post(channel, {"text": _escaped(str(facts.get("text", "")))}, facts)
        case _:
            return _post(channel, facts, facts)


def _escaped(text: str) -> str:
    """As Slack wants it: `<!channel>` in somebody's error would wake everybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _post(channel: Channel, content: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    body = json.dumps(content).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "beat", INCIDENT: str(facts.get("incident", ""))}
    if channel.secret:
        digest = hmac.new(channel.secret.encode(), body, hashlib.sha256).hexdigest()
        headers[SIGNATURE] = f"sha256={digest}"
    try:
        answer = posting.post(channel.url, body, headers, channel.timeout.total_seconds())
    except TimeoutError:
        raise NotTaken(_too_slow(channel)) from None
    except HTTPException as e:
        raise NotTaken(f"did not answer in HTTP: {type(e).__name__}") from None  # its words may be those of the URL
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
    """Calls a function of the application, one call at a time: one that hangs cannot be ended, and is not repeated.

    One that was too slow may return after all: then that message is taken, and it is not called with it again.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._thread: threading.Thread | None = None
        self._taken: deque[Mapping[str, Any]] = deque(maxlen=_LATE)

    def send(self, facts: Mapping[str, Any]) -> str:
        """As `send` does."""
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
            except BaseException as e:  # noqa: BLE001 (whatever it is, the function has not taken it)
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
