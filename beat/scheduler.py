"""Build a scheduler from its settings, and run it until it is stopped.

A scheduler has three threads: the ticker and the housekeeper, each with its own connection, and the observers. Each
service has another one. The main thread waits for a signal and ends the process if the ticker or the housekeeper hangs.
"""

from __future__ import annotations

import fnmatch
import os
import queue
import secrets
import socket
import threading
from typing import TYPE_CHECKING, Any

from beat.config import settings
from beat.engine import housekeeper, services, signals
from beat.engine.clock_guard import Guard, Mark
from beat.engine.conflicts import Neighbours
from beat.engine.definition_cache import Book
from beat.engine.events import Event
from beat.engine.fact_reader import Inquiry
from beat.engine.health import Health
from beat.engine.housekeeper import Housekeeper
from beat.engine.observers import Observers
from beat.engine.obstacles import Obstacles
from beat.engine.pacing import Pace
from beat.engine.registrar import Sync
from beat.engine.retirement import Retirement
from beat.engine.run_tracker import Watcher
from beat.engine.ticker import Ticker
from beat.engine.unserved_queues import Lookout
from beat.engine.waiting import Attendant
from beat.engine.watchdog import Watchdog
from beat.errors import ConfigError
from beat.notify import alerts
from beat.notify.monitors import Monitors
from beat.schedule import cross_checks, globs, registry
from beat.storage import connection, server_check
from beat.storage.backoff import Patience
from beat.storage.keys import Keys
from beat.storage.pipelined import Dialogue
from beat.telemetry import logs, tracing
from beat.telemetry.metrics import Metrics, Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from beat.config.settings import Settings
    from beat.engine.events import Emit
    from beat.engine.services import Companion
    from beat.schedule.registry import Registry
    from beat.storage.connection import Redis
    from beat.storage.store import Store


def build_retirement(store: Store, mine: Settings, name: str, emit: Emit) -> Retirement:
    """Build what holds and retires the schedules that no running scheduler declares any more."""
    return Retirement(store, beat=name, app=mine.app, after=mine.retire_after, emit=emit)


def build_ticker(desk: Dialogue, book: Book, pace: Pace, told: dict[str, Any], *, guard: Guard, tally: Tally) -> Ticker:
    """Build the ticker with its waiting ticks, and let `tally` count its cycles and failures."""
    made = Ticker(desk, book, pace, **told)
    tally.passes, tally.health = made.passes, told["health"]
    made.timekeeper.guard, made.holding.inquiry = guard, Inquiry(desk)
    made.attendant = build_attendant(desk, book, told["token"], told["emit"], told["obstacles"])
    return made


def build_attendant(store: Store, book: Book, name: str, emit: Emit, obstacles: Obstacles) -> Attendant:
    """Build what processes waiting ticks; each thread needs its own, because it has its own connection."""
    return Attendant(store, book, Watcher(store, name=name, emit=emit), token=name, emit=emit, obstacles=obstacles)


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
    """A scheduler, which fires the ticks of all schedules in its Redis. Any number of schedulers can run side by side.

    `schedules` defaults to the registry behind `beat.periodic`. `redis` is a URL or a client, and defaults to the URL
    of the settings. Options are settings by name, as in `prefix="app:"` or `lock_ttl="5s"`. Each function of `beside`
    builds a service that runs in a thread of its own, such as `beat.web.service.Page`.
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
        found = registry.default_registry if schedules is None else schedules
        self.settings = alerts.check_settings(settings.load(options, module=found.main_module).settings)
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"  # its name in Redis, too
        self._source = redis or self.settings.redis_url
        self._only, self._more = globs.checked(only), beside
        self._schedules = [each for each in found if only is None or fnmatch.fnmatchcase(each.id, only)]
        self._functions = () if only else found.functions
        groups = cross_checks.agreed(found, self.settings.groups, self.settings.sentry_dsn)
        exposed: Any = {"functions": self._functions, "signatures": {} if only else found.signatures}
        self._told: Any = {"app": self.settings.app, "groups": groups, "host": socket.gethostname(), **exposed}
        self._told |= {"modules": found.modules}
        self._fired, self._greeted, self._tally = 0, False, Tally()
        self._wishes: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._observers = Observers([self._count, logs.listen, self._tally.listen, *listeners])
        self._health = Health(self._observers.emit)
        self._watchdog = Watchdog(self._observers.emit, self._health)
        self._about = {**housekeeper.process(), "app": self.settings.app, "schedules": str(len(self._schedules))}
        self._about |= {"tz": self.settings.tz, **({"only": only} if only else {})}
        self._mark: Mark | None = None
        self._lookout: Lookout | None = None

    def run(self) -> None:
        """Run until `stop()`, SIGTERM or SIGINT.

        Raises NoRedis if beat cannot work with Redis, ConfigError if there is nothing to do or a service cannot start,
        and Stuck if a thread hangs. While Redis is unreachable, it waits.
        """
        told = (self.settings, self._source, self.name, self._observers.emit, self._tally)
        self._beside = build_services(*told, stopping=self._stopping, more=self._more)
        self._observers.start()
        work = _thread(self._work, name="beat-housekeeper")
        with signals.stopping(self.stop):
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
        """End `run()` after its current step; safe to call from any thread and from a signal handler."""
        self._wishes.put(None)

    def _work(self) -> None:
        try:
            self._perform()
        except BaseException as e:  # noqa: BLE001 (the main thread raises it)
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
        ticker = build_ticker(desk, book, Pace.of(self.settings), told, guard=Guard(self._mark), tally=self._tally)
        keeper = Housekeeper(
            store,
            sync,
            Watcher(store, name=self.name, emit=emit, is_busy=lambda: ticker.holding.is_crowded),
            build_attendant(store, Book(store), self.name, emit, obstacles),
            name=self.name,
            about=lambda: {
                **self._about,
                "digest": sync.digest,
                "fired": str(self._fired),
                **housekeeper.passed(ticker),
            },
            judged=lambda: ticker.timekeeper.guard.sound,
            emit=emit,
            health=self._health,
            retirement=None if self._only else build_retirement(store, self.settings, self.name, emit),
            lookout=self._lookout,
            neighbours=Neighbours(store, sync, emit),
        )
        (ticking := _thread(ticker.run, self._stopping, name="beat-ticker")).start()
        self._watchdog.watch("ticker", lambda: ticker.awake_at, desk.client)
        self._watchdog.watch("housekeeper", lambda: max(keeper.awake_at, store.answered_at), store.client, patient=True)
        self._watchdog.ready(len(self._schedules))
        with services.beside(self._beside, emit, self._stopping):
            keeper.run(self._stopping)
            ticking.join(_STOP_S / 2)  # a ticker that hangs must not keep the heartbeat alive
            keeper.leave()

    def _store(self) -> Dialogue:
        limits = {name: getattr(self.settings, name) for name in ("history_limit", "events_limit")}
        pace = Pace.of(self.settings)
        limits |= {**pace.waits, "longest_lock": pace.lock_ttl}
        store = Dialogue(connection.connect(self._source), Keys(self.settings.prefix), **limits)
        store.tracer = tracing.wanted(self.settings)
        return store

    def _until_it_works(self, client: Redis, step: Callable[[], None]) -> None:
        """Retry a step until Redis answers or the scheduler stops; raise NoRedis if the Redis user lacks a right."""
        patience = Patience()
        while not self._stopping.is_set():
            try:
                step()
            except connection.Errors as e:
                if connection.forbids(e):
                    raise server_check.may_not(client, "work", e) from None
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
        """Check the server, and raise ConfigError if there is nothing to do; then emit advice and `started`."""
        about, advice = server_check.inspect(store.client)
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


def build_services(
    settings: Settings,
    redis: Redis | str,
    name: str,
    emit: Emit,
    tally: Tally,
    *,
    stopping: threading.Event,
    more: Iterable[Callable[[Settings, Redis | str, Emit], Companion]] = (),
) -> list[Companion]:
    """Build the monitors, the services that the settings ask for, and those of `more`.

    This happens before the first tick, so that a service that cannot start keeps the scheduler from starting.
    """
    hosts = settings.monitor_hosts
    monitors = Monitors(redis, prefix=settings.prefix, dsn=settings.sentry_dsn, emit=emit, hosts=hosts)
    alerting = alerts.build_services(settings, redis, emit)
    metrics = [Metrics(settings, redis, name, emit, tally, stopping=stopping)] if settings.metrics_port else []
    return [monitors, *metrics, *alerting, *(make(settings, redis, emit) for make in more)]


def _thread(work: Callable[..., None], *given: object, name: str) -> threading.Thread:
    return threading.Thread(target=work, args=given, name=name, daemon=True)
