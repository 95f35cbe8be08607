"""The service: builds a beat from settings, and runs it until somebody stops it.

Three threads: the ticker and the housekeeper, each with its own connection, and the observers. The main thread waits
for a signal, and sees to it that the others do not hang.
"""

from __future__ import annotations

import fnmatch
import os
import queue
import secrets
import socket
import threading
from typing import TYPE_CHECKING, Any

from beat import (
    assembly,
    companions,
    connection,
    globs,
    interrupts,
    logs,
    registry,
    relations,
    server,
    settings,
    tracing,
    vitals,
)
from beat.book import Book
from beat.dialogue import Dialogue
from beat.errors import ConfigError
from beat.event import Event
from beat.guard import Guard, Mark
from beat.health import Health, Patience
from beat.housekeeper import Housekeeper
from beat.keys import Keys
from beat.lookout import Lookout
from beat.metrics import Tally
from beat.neighbours import Neighbours
from beat.observers import Observers
from beat.obstacles import Obstacles
from beat.pace import Pace
from beat.sync import Sync
from beat.watchdog import Watchdog
from beat.watcher import Watcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from beat.companions import Companion
    from beat.connection import Redis
    from beat.event import Emit
    from beat.registry import Registry
    from beat.settings import Settings
    from beat.store import Store

NOTHING_TO_DO = """\
there is nothing to do: the code declares no schedule, and Redis knows none. Write a tasks.py:

    from beat import periodic

    @periodic("* * * * *")
    def hello(): print("hello")

and start `beat run tasks`."""
DECLARES_NOTHING = (
    "this scheduler declares no schedule, but fires the schedules that other programs have put into this Redis: "
    "name modules that declare yours, as in `beat run app.tasks`, or stop it if you did not mean to join"
)
_STOP_S = 1.5


class Scheduler:
    """A scheduler, which fires the ticks of all schedules in its Redis, beside any number of others.

    `schedules` is the registry behind `beat.periodic` unless another is given. `redis` is a URL or a client; the
    settings name it otherwise. Options are settings by name, as in `prefix="app:"` or `lock_ttl="5s"`. `beside` makes
    services that run beside the scheduler, such as `beat.web.companion.Page`.
    """

    def __init__(
        self,
        schedules: Registry | None = None,
        redis: Redis | str | None = None,
        *,
        only: str | None = None,
        listeners: Iterable[Callable[[Event], None]] = (),
        beside: Iterable[Callable[[Settings, Redis | str, Emit], Companion]] = (),
        **options: Any,
    ) -> None:
        found = registry.default if schedules is None else schedules
        self.settings = companions.checked(settings.load(options, module=found.main_module).settings)
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"  # as Redis knows it
        self._source = redis or self.settings.redis_url
        self._only, self._more = globs.checked(only), beside
        self._schedules = [each for each in found if only is None or fnmatch.fnmatchcase(each.id, only)]
        self._functions = () if only else found.functions
        groups = relations.agreed(found, self.settings.groups, self.settings.sentry_dsn)
        exposed: Any = {"functions": self._functions, "signatures": {} if only else found.signatures}
        self._told: Any = {"app": self.settings.app, "groups": groups, "host": socket.gethostname(), **exposed}
        self._told |= {"modules": found.modules}
        self._fired, self._greeted, self._tally = 0, False, Tally()
        self._wishes: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._observers = Observers([self._count, logs.listen, self._tally.listen, *listeners])
        self._health = Health(self._observers.emit)
        self._watchdog = Watchdog(self._observers.emit, self._health)
        self._about = {**vitals.process(), "app": self.settings.app, "schedules": str(len(self._schedules))}
        self._about |= {"tz": self.settings.tz, **({"only": only} if only else {})}
        self._mark: Mark | None = None
        self._lookout: Lookout | None = None

    def run(self) -> None:
        """Runs until `stop()`, SIGTERM or SIGINT; refuses a Redis that cannot work. Raises Stuck if a thread hangs."""
        told = (self.settings, self._source, self.name, self._observers.emit, self._tally)
        self._beside = companions.wanted(*told, stopping=self._stopping, more=self._more)
        self._observers.start()
        work = _thread(self._work, name="beat-housekeeper")
        with interrupts.stopping(self.stop):
            work.start()
            problem = self._watchdog.wait(self._wishes)
            self._stopping.set()
            work.join(_STOP_S)
            if self._greeted:
                self._observers.emit(Event("stopped", fields={"name": self.name, "fired": self._fired}))
            self._observers.stop(_STOP_S if problem else 0.3)
        if problem:
            raise problem

    def stop(self) -> None:
        """Ends `run()` after the step that it is at; from any thread, and from a signal handler."""
        self._wishes.put(None)

    def _work(self) -> None:
        try:
            self._perform()
        except BaseException as e:  # noqa: BLE001 (whatever it is, the main thread raises it)
            self._wishes.put(e)

    def _perform(self) -> None:
        emit, store, desk = self._observers.emit, self._store(), self._store()
        self._lookout = Lookout(store, name=self.name, emit=emit)
        sync = Sync(store, self._schedules, beat=self.name, emit=emit, **self._told)
        self._until_it_works(store.client, lambda: self._greet(store))
        self._until_it_works(store.client, lambda: self._register(store, sync))
        book = Book(store, ((each, each.rev) for each in self._schedules))
        obstacles = Obstacles(emit)
        told: Any = {
            "token": self.name,
            "emit": emit,
            "health": self._health,
            "only": globs.lua(self._only),
            "obstacles": obstacles,
        }
        ticker = assembly.ticker(desk, book, Pace.of(self.settings), told, guard=Guard(self._mark), tally=self._tally)
        keeper = Housekeeper(
            store,
            sync,
            Watcher(store, name=self.name, emit=emit, is_busy=lambda: ticker.holding.is_crowded),
            assembly.attendant(store, Book(store), self.name, emit, obstacles),
            name=self.name,
            about=lambda: {**self._about, "digest": sync.digest, "fired": str(self._fired), **vitals.passed(ticker)},
            judged=lambda: ticker.timekeeper.guard.sound,
            emit=emit,
            health=self._health,
            retirement=None if self._only else assembly.retirement(store, self.settings, self.name, emit),
            lookout=self._lookout,
            neighbours=Neighbours(store, sync, emit),
        )
        (ticking := _thread(ticker.run, self._stopping, name="beat-ticker")).start()
        self._watchdog.watch("ticker", lambda: ticker.awake_at, desk.client)
        self._watchdog.watch("housekeeper", lambda: max(keeper.awake_at, store.answered_at), store.client, patient=True)
        self._watchdog.ready(len(self._schedules))
        with companions.beside(self._beside, emit, self._stopping):
            keeper.run(self._stopping)
            ticking.join(_STOP_S / 2)  # one that hangs does not keep the heartbeat from being taken away
            keeper.leave()

    def _store(self) -> Dialogue:
        limits = {name: getattr(self.settings, name) for name in ("history_limit", "events_limit")}
        pace = Pace.of(self.settings)
        limits |= {**pace.waits, "longest_lock": pace.lock_ttl}
        store = Dialogue(connection.connect(self._source), Keys(self.settings.prefix), **limits)
        store.tracer = tracing.wanted(self.settings)
        return store

    def _until_it_works(self, client: Redis, step: Callable[[], None]) -> None:
        """Redis may be away when a beat starts: it waits."""
        patience = Patience()
        while not self._stopping.is_set():
            try:
                step()
            except connection.Errors as e:
                if connection.forbids(e):
                    raise server.may_not(client, "work", e) from None
                self._health.failed("start", e)
                patience.wait(self._stopping)
            else:
                self._health.worked("start")
                return

    def _register(self, store: Store, sync: Sync) -> None:
        self._mark = Mark.read(store.high_water()[1])
        sync.announce()
        sync.register()

    def _greet(self, store: Store) -> None:
        """Refuses what cannot work, and says what an operator should know."""
        about, advice = server.inspect(store.client)
        if not (self._schedules or self._functions) and store.is_empty():
            none = f"no schedule matches {self._only!r}, and Redis knows none"
            raise ConfigError(none if self._only else NOTHING_TO_DO)
        if not (self._schedules or self._functions or self._only):
            advice = [*advice, DECLARES_NOTHING]
        for words in advice:
            self._observers.emit(Event("advice", fields={"words": words}))
        fields = {"name": self.name, "schedules": len(self._schedules), "server": about}
        self._observers.emit(Event("started", fields=fields))
        self._greeted = True

    def _count(self, event: Event) -> None:
        if event.name in {"fired", "admitted", "followed"}:
            self._fired += 1
            if self._lookout:
                self._lookout.sent(*event.fields["queues"])


def _thread(work: Callable[..., None], *given: object, name: str) -> threading.Thread:
    return threading.Thread(target=work, args=given, name=name, daemon=True)
