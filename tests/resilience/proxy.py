"""A proxy before a real Redis that knows which command is passing, and strikes at the one a test has chosen.

    with Proxy(server_url, {sha: "fire"}) as proxy:
        lost = proxy.plan("evalsha fire", harm.drop_reply())
        ...  # a process that connects to proxy.url
        assert lost.done.wait(30)

Every command but SUBSCRIBE and its kin must have a reply: CLIENT REPLY is not understood.
"""

from __future__ import annotations

import hashlib
import select
import socket
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self
from urllib.parse import unquote, urlsplit

from tests.resilience.link import Link, World
from tests.resilience.resp import words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.resilience.harm import Fault

CONTAINERS = {
    "ACL", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "FUNCTION", "MEMORY", "OBJECT", "SCRIPT", "XGROUP", "XINFO",
}  # fmt: skip
SCRIPTS = {"EVAL", "EVAL_RO", "EVALSHA", "EVALSHA_RO"}


@dataclass(frozen=True)
class Command:
    """One request."""

    name: str
    """`HGETALL`, `CLIENT SETINFO`, `evalsha fire`, `eval fire`."""
    number: int
    """The first of its name, over all connections, is 1."""
    args: tuple[bytes, ...]
    """All words after the first."""


@dataclass(eq=False)
class Rule:
    """A fault and the commands it strikes: the first `times` that match."""

    match: Callable[[Command], bool]
    fault: Fault
    times: float
    hits: int = 0
    """How many commands it has struck; the fault may still be at work."""
    applied: int = 0
    """How often the fault has been carried through."""
    done: threading.Event = field(default_factory=threading.Event)
    """Set when it has been carried through `times` times; never, if that is without end."""

    def end(self) -> None:
        """Strike no more: the end of a rule with `times=math.inf`."""
        self.times = self.hits


class Proxy:
    """Listens on 127.0.0.1 and dials the server anew for each connection, so that the server may go and come back."""

    def __init__(self, upstream_url: str, scripts: Mapping[str, str] | None = None) -> None:
        self._upstream_url = upstream_url
        self._scripts = dict(scripts or {})
        self._world = World()
        self._lock = threading.RLock()  # a rule's predicate may ask the proxy
        self._recorded: list[Command] = []
        self._counts: Counter[str] = Counter()
        self._rules: list[Rule] = []
        self._links: set[Link] = set()
        self._threads: list[threading.Thread] = []
        self._door: tuple[socket.socket, threading.Thread] | None = None
        self._port = 0
        self._frozen = False
        self.accept()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    @property
    def recorded(self) -> list[Command]:
        """All commands so far, in the order they came."""
        with self._lock:
            return list(self._recorded)

    def names(self) -> set[str]:
        return {command.name for command in self.recorded}

    def plan(self, match: Callable[[Command], bool] | str, fault: Fault, times: float = 1) -> Rule:
        """Let the fault strike the next command that matches (its name, or a predicate), and `times - 1` more.

        Of several rules that match a command, the one that was planned first takes it.
        """
        rule = Rule((lambda command: command.name == match) if isinstance(match, str) else match, fault, times)
        with self._lock:
            self._rules.append(rule)
        return rule

    def fail_over(self, upstream_url: str) -> None:
        """Close all connections; new ones lead to another server."""
        self._upstream_url = upstream_url
        self.cut_all()

    def cut_all(self) -> None:
        """Close all present connections."""
        with self._lock:
            for link in self._links:
                link.cut()

    def refuse(self) -> None:
        """Refuse new connections, as a machine does on which no Redis runs; those that are open stay."""
        if self._door:
            bell, thread = self._door
            bell.close()
            thread.join()
            self._door = None

    def accept(self) -> None:
        """Take new connections (again), on the same port."""
        if not self._door:
            listener = socket.create_server(("127.0.0.1", self._port), backlog=128)
            self._port = listener.getsockname()[1]
            bell, rung = socket.socketpair()
            self._door = bell, self._start(self._listen, listener, rung)

    def freeze(self) -> None:
        """Let no byte through, either way; connections open, and stay open. What was sent arrives after `thaw`."""
        if not self._frozen:
            self._world.wire.acquire()
            self._frozen = True

    def thaw(self) -> None:
        """Let the bytes through again."""
        if self._frozen:
            self._frozen = False
            self._world.wire.release()

    def close(self) -> None:
        """Close everything; a fault that waits is cut short."""
        self._world.closing.set()
        self.thaw()
        self.refuse()
        self.cut_all()
        for thread in self._threads:
            thread.join(10)

    def _start(self, target: Callable[..., None], *args: socket.socket) -> threading.Thread:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _listen(self, listener: socket.socket, rung: socket.socket) -> None:
        with listener, rung:
            poll = select.poll()
            poll.register(listener, select.POLLIN)
            poll.register(rung, select.POLLIN)
            while all(fd == listener.fileno() for fd, _ in poll.poll()):
                self._start(self._serve, listener.accept()[0])

    def _serve(self, client: socket.socket) -> None:
        with client:
            try:
                server = _dial(self._upstream_url)
            except OSError:
                return
            with server:
                self._carry(Link(client, server, self._world))

    def _carry(self, link: Link) -> None:
        with self._lock:
            self._links.add(link)
        try:
            if not self._world.closing.is_set():
                link.run(self._handle)
        finally:
            with self._lock:  # its sockets are closed next, and then nobody may cut them
                self._links.discard(link)

    def _handle(self, link: Link) -> None:
        rule = self._note(words(link.request))
        link.patient = rule is not None
        if rule is None:
            link.answer(link.ask())
            return
        rule.fault(link)
        link.patient = False
        with self._lock:
            rule.applied += 1
            if rule.applied >= rule.times:
                rule.done.set()

    def _note(self, request: list[bytes]) -> Rule | None:
        """Record the command; the rule that takes it, if one does."""
        name = _name(request, self._scripts)
        with self._lock:
            self._counts[name] += 1
            command = Command(name, self._counts[name], tuple(request[1:]))
            self._recorded.append(command)
            for rule in self._rules:
                if rule.hits < rule.times and rule.match(command):
                    rule.hits += 1
                    return rule
        return None


def _dial(url: str) -> socket.socket:
    place = urlsplit(url)
    if place.scheme != "unix":
        return socket.create_connection((place.hostname, place.port or 6379))
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(unquote(place.path))
    except OSError:
        server.close()
        raise
    return server


def _name(request: list[bytes], scripts: Mapping[str, str]) -> str:
    name, first = request[0].decode().upper(), b"".join(request[1:2])
    if name in SCRIPTS:
        sha = first.decode().lower() if "SHA" in name else hashlib.sha1(first, usedforsecurity=False).hexdigest()
        return f"{name.lower()} {scripts.get(sha, sha)}"
    return f"{name} {first.decode().upper()}" if name in CONTAINERS and first else name
