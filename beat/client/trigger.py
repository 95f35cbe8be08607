"""Trigger runs: enqueue them at once, whatever tick is next, and each request at most once."""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.client import workers
from beat.client.change import WAIT_OR_FORCE, Changing, definition_of, timed
from beat.engine import fire_items
from beat.engine.fact_reader import Inquiry
from beat.engine.run_tracker import Watcher
from beat.errors import BadArguments, BadOption, NoRedis, Refused
from beat.history.history import Fired
from beat.jobs import job_template
from beat.policies import routing
from beat.policies.facts import NONE
from beat.schedule import functions
from beat.storage import announcements, connection
from beat.storage.messages import Reply, decoded
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from beat.client.schedule_info import Standing
    from beat.client.workers import Queue
    from beat.schedule.schedule import Schedule
    from beat.storage.messages import Item
    from beat.storage.store import Store

_TRIES = 5
_REQUEST = re.compile(r"[A-Za-z0-9]{8,40}")
_AGAIN_S, _LOOK_S, _ATTEND_S = 0.2, 0.1, 1.0


class Attendance(NamedTuple):
    """The workers that can take a run, and the schedulers that can record its outcome."""

    queues: tuple[Queue, ...]
    """The queues of its jobs, with their workers."""
    schedulers: int
    """How many schedulers are running."""


class Triggering(Changing):
    """A client that triggers runs."""

    def trigger(
        self,
        schedule_id: str,
        *,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        wait: bool = False,
        force: bool = False,
        skip_next: bool = False,
        request: str | None = None,
        expected_version: int | None = None,
    ) -> Fired:
        """Enqueue a run at once and return it; with `wait`, return it when it has ended.

        `kwargs` are merged over those of the schedule, and `args` replace its own. The next tick stays as it is, unless
        `skip_next` lets this run take its place. If runs may not overlap and one has not ended, the call is refused
        unless `force` is given. A repeated call with the same `request` (8 to 40 letters and digits) within an hour
        returns the same run. Arguments that the function does not accept are refused, if its parameters are known.
        """
        job = self._keys.asked(schedule_id, f"m{_request(request)}")
        tried: list[datetime] = []

        def step(found: Standing, now: datetime) -> Reply:
            schedule = timed(found) if skip_next else definition_of(found)
            data = (
                b"" if args is None and kwargs is None else _data(found, self._store, args, kwargs, self._apps(found))
            )
            named: dict[str, Any] = {"data": data, "force": force, "instead_of": _next(found) if skip_next else None}
            tried.append(now)
            return _fits(asked(self._store, found.rev, schedule, job, now=now, operator=self.by, **named), schedule)

        try:
            self._settle(schedule_id, expected_version, step)
        except NoRedis as e:
            unsure = f"; whether {job} was enqueued is not known: look before you try again" if tried else ""
            raise NoRedis(f"{e}{unsure}") from e
        run = self._told(schedule_id, job, tried[-1])
        return [run, *self.follow(job)][-1] if wait else run

    def _apps(self, found: Standing) -> set[str]:
        """Return the applications whose code may run: the schedule's own, or for data those of all live schedulers."""
        if found.app:
            return {found.app}
        return {each.app for each in announcements.alive(self._store, self._store.time())}

    def _told(self, schedule_id: str, job: str, at: datetime) -> Fired:
        """Return what is known of a run that was just enqueued: if nothing else, that it was enqueued."""
        with contextlib.suppress(NoRedis):
            if run := self.get_run(job):
                return run
        return Fired(
            schedule_id=schedule_id,
            tick=None,
            job_id=job,
            at=at,
            triggered_by="manual",
            enqueued_at=at,
            beat=self.by,
        )

    def follow(
        self,
        job_id: str,
        *,
        timeout: float | None = None,
        attend: Callable[[Fired, Attendance], None] | None = None,
    ) -> Iterator[Fired]:
        """Yield a run each time its state has changed, until it has ended, or for `timeout` seconds.

        Meanwhile `attend` is called about once a second with the workers and schedulers that are alive. If no scheduler
        is running, this method records the outcome itself.
        """
        watcher, seen, begun = self._watcher(), "", time.monotonic()
        attended = begun
        while run := self.get_run(job_id):
            if run.state != seen:
                seen, attended = run.state, time.monotonic()
                yield run
            if run.closed_at or (timeout is not None and time.monotonic() - begun >= timeout):
                return
            if attend and time.monotonic() - attended >= _ATTEND_S:
                attended = time.monotonic()
                attend(run, self._attendance(run))
            self._wait(watcher)

    def _attendance(self, run: Fired) -> Attendance:
        """Return the workers that can take the run, and how many schedulers can record its outcome."""
        with self._asking():
            queues = {each.queue: None for each in self._archive.progress(run.job_ids or [run.job_id]) if each.queue}
            schedulers = self._archive.beats(self._store.time())
            return Attendance(workers.look(self._store, queues), schedulers)

    def _watcher(self) -> Watcher:
        """Return a run tracker that emits no events."""
        return Watcher(self._store, name=self.by, emit=lambda _event: None)

    def _wait(self, watcher: Watcher) -> None:
        """Wait a moment; record the outcomes of ended runs if no scheduler is running to do it."""
        time.sleep(_LOOK_S)
        with self._asking():
            if not self._archive.beats(self._store.time()):
                watcher.turn()


def _request(given: str | None) -> str:
    """Return the name of a request: the given one, or a random one; raise if the given one is invalid."""
    if given is None:
        return secrets.token_hex(6)
    if not _REQUEST.fullmatch(given):
        raise BadOption(f"request {given!r:.60} must be 8 to 40 ASCII letters and digits")
    return given


def _next(found: Standing) -> datetime:
    """Return the tick whose place a run may take; raise Refused if there is none."""
    if found.state != "active" or found.next_run is None:
        raise Refused(f"{found.schedule_id} is {found.state or 'broken'}: it has no next tick to skip")
    return found.next_run


def _fits(reply: Reply, schedule: Schedule) -> Reply:
    """Return the reply; raise Refused with the reason if the schedule has a group and there is no free slot."""
    if reply.code != "FULL" or not schedule.group:
        return reply
    own = "" if schedule.overlap == "allow" else "it may not overlap, or "
    why = f"{reply.words} has not ended" if reply.words else "others wait for it"
    full = f"{own}the group {schedule.group} is full, and {why}"
    raise Refused(f"{schedule.id} has no room: {full}: {WAIT_OR_FORCE}")


def asked(store: Store, rev: str, schedule: Schedule, job: str, *, now: datetime, operator: str, **named: Any) -> Reply:
    """Enqueue a requested run and return Redis' reply; the run goes to the queue that a tick would go to."""
    facts = Inquiry(store).about([schedule], clock.to_ms(now)).get(schedule.id, NONE)
    way = routing.route(schedule, named.get("tick") or now, facts)
    return sent(store, fire_items.manual(rev, schedule, job, way=way, keys=store.keys, **named), operator)


def sent(store: Store, item: Item, by: str) -> Reply:
    """Send the item and return Redis' reply; send it again if the reply is lost, because that is idempotent."""
    for left in reversed(range(_TRIES)):
        try:
            reply = store.fire([item], token=by).replies[0]
        except connection.Refused:
            raise
        except connection.Errors:
            if not left:
                raise
            time.sleep(_AGAIN_S)
        else:
            return Reply("OK") if reply == Reply("STALE", item.job) and item.job else reply
    raise AssertionError  # unreachable, because the last try returns or raises


def _data(
    found: Standing, store: Store, args: Sequence[Any] | None, kwargs: Mapping[str, Any] | None, apps: Iterable[str]
) -> bytes:
    """Return function and arguments as RQ writes them: those of the schedule, with `args` and `kwargs` laid over them.

    Raise BadArguments if the arguments do not fit the function in these applications, or cannot be read here.
    """
    schedule = definition_of(found)
    own: Any = store.client.hget(store.keys.template(schedule.id), "data")
    declared = job_template.arguments(own or b"", schedule.serializer)
    if declared is None and (args is None or kwargs is None):
        raise BadArguments(
            f"the arguments of {schedule.id} are of classes that only its application can read: give all of them, "
            "args and kwargs"
        )
    own_args, own_kwargs = declared or ((), {})
    all_args, all_kwargs = own_args if args is None else args, {**own_kwargs, **(kwargs or {})}
    functions.check_call(schedule.func, _signature(store, schedule.func, apps), all_args, all_kwargs)
    return job_template.data(schedule, all_args, all_kwargs)


def _signature(store: Store, path: str, apps: Iterable[str]) -> str:
    """Return the parameters of a function as JSON; empty if these applications do not agree about them."""
    with store.client.pipeline(transaction=False) as pipe:
        for app in apps:
            pipe.hget(store.keys.signatures(app), path)
        found = pipe.execute(raise_on_error=False)
    [written, *others] = {decoded(each) for each in found if isinstance(each, bytes)} or {""}
    return "" if others else written
