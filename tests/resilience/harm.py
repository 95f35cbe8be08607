"""The faults that can befall a command on its way through the proxy.

A fault is a function of the link that carries the command: it may ask the server, answer the client, wait, act and cut,
in the order it likes. It is carried through even if the client leaves meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.resilience.link import Link

Action = Callable[[], object]
Until = float | threading.Event | Callable[[], bool]
"""So many seconds, or until a fact."""
Fault = Callable[[Link], object]


def before(action: Action) -> Fault:
    """Act while the command is on its way; it never arrives, and the connection is lost."""

    def fault(link: Link) -> None:
        action()
        link.cut()

    return fault


def after(action: Action) -> Fault:
    """Act when the server has carried out the command; the reply and the connection are lost."""

    def fault(link: Link) -> None:
        link.ask()
        action()
        link.cut()

    return fault


def drop_reply() -> Fault:
    """The server carries out the command; the reply and the connection are lost."""
    return after(lambda: None)


def swallow_reply() -> Fault:
    """The server carries out the command; the reply is lost on a connection that stays open."""
    return lambda link: link.ask()


def delay(until: Until) -> Fault:
    """The command arrives late, even if its client has given up meanwhile."""

    def fault(link: Link) -> None:
        link.wait(until)
        link.answer(link.ask())

    return fault


def delay_reply(until: Until) -> Fault:
    """The reply arrives late."""

    def fault(link: Link) -> None:
        reply = link.ask()
        link.wait(until)
        link.answer(reply)

    return fault


def pause(stop: Action, until: Until, resume: Action) -> Fault:
    """Stop the client when its command has been carried out; when it resumes, the reply has long been there.

    A reply of more than 2 MB does not fit into the buffers of a client that is stopped, and would wait for ever.
    """

    def fault(link: Link) -> None:
        reply = link.ask()
        try:
            stop()
            link.answer(reply)
            link.wait(until)
        finally:
            resume()

    return fault


def stopped_before(stop: Action, until: Until, resume: Action) -> Fault:
    """Stop the client when it has sent the command, which arrives only in the end, just before the client resumes."""

    def fault(link: Link) -> None:
        try:
            stop()
            link.wait(until)
            link.answer(link.ask())
        finally:
            resume()

    return fault


def reply(answer: bytes) -> Fault:
    """Answer in the server's place, which never sees the command: `b"-LOADING ...\\r\\n"`."""
    return lambda link: link.answer(answer)


def cut() -> Fault:
    """The command and the connection are lost."""
    return before(lambda: None)
