"""The messages that schedulers and operators send to Redis, kept so that they can be sent late, and more than once.

This is the only place that knows how beat builds its messages and where Redis keeps what the model names.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from beat.client.reader import Archive
from beat.client.verify import Audit
from beat.config.groups import Group as GroupLimits
from beat.engine import fire_items, waiting
from beat.engine.definition_cache import Page
from beat.engine.replies import Replies
from beat.engine.run_tracker import Watcher
from beat.jobs import job_template
from beat.policies import decide, reconcile
from beat.schedule.schedule import Schedule
from beat.storage import group_limits
from beat.storage.keys import Keys
from beat.storage.messages import Reply
from beat.storage.operations import Operations
from beat.storage.registration import Origin, registration
from beat.storage.runs import Runs
from beat.storage.slots import Slots
from beat.storage.store import Store
from beat.timing import clock
from beat.timing.interval import Every
from tests.resilience.interleaving_model import Ending, Group, Policy, Registered, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from beat.client.reader import Snapshot
    from beat.engine.fire_items import Chain
    from beat.history.verify import Verification
    from beat.storage.messages import Claim, Closing, Item
    from beat.testing.fake_redis import Clocked
    from tests.resilience.interleaving_model import Model

ID = "x"
LOCK_MS = 15 * 60_000
MISFIRE_AFTER = timedelta(minutes=35)
_INSTANT = timedelta(microseconds=1)
_REFERENCE = Path(__file__).parent.parent.parent / "docs/reference/redis.md"


@dataclass(frozen=True)
class Message:
    """A message that is ready to be sent."""

    label: str
    sender: str
    send: Callable[[], list[str]]
    """Send it to Redis, and return the code of each reply."""
    predict: Callable[[Model], list[str]]
    """Send it to the model."""
    again: Callable[[], Message | None] = lambda: None
    """Return what the sender sends after the last replies."""
    creates: bool = False
    """Whether it registers a schedule that does not exist."""


def schedules(policies: Sequence[Policy], *, grouped: bool) -> dict[str, Schedule]:
    """Return a definition for each policy, by rev; every other one has another interval."""
    found: dict[str, Schedule] = {}
    for number, policy in enumerate(policies):
        limits: dict[str, Any] = {"max_runs": policy.max_runs, "group": "g" if grouped else None}
        if policy.overlap in {"skip", "wait"}:
            limits["max_running"] = policy.max_running
        if policy.overlap == "wait":
            limits["max_waiting"] = policy.max_waiting
        every = Every("15m" if number % 2 else "10m")
        made = Schedule(
            id=ID, func="tests.support.job_functions.anything", timing=every, overlap=policy.overlap, **limits
        )
        found[made.rev] = made
    return found


class Installation:
    """One Redis, whose clock is set by hand."""

    def __init__(self, client: Clocked, definitions: Mapping[str, Schedule], group: Group | None) -> None:
        self.client, self.keys, self.definitions = client, Keys(), definitions
        self.store = Store(client, self.keys, longest_lock=LOCK_MS)
        self.runs, self.slots, self.operations = Runs(self.store), Slots(self.store), Operations(self.store)
        if group:
            limits = GroupLimits("g", group.max_running, group.when_full, group.max_waiting)
            group_limits.keep(self.store, [limits], anew=True)

    # --- messages of schedulers --------------------------------------------------------------------------------------

    def claim(self, owner: str, lookahead: int) -> tuple[str, Claim | None]:
        """Claim the schedule; return the code as the model has it, and the claim."""
        claimed = self.store.claim(token=owner, lock_ttl=LOCK_MS, lookahead=lookahead, limit=10)
        assert claimed.code == "OK"
        codes = [*("CLAIMED" for _ in claimed.claims), *(reply.code for _, reply in claimed.troubles)]
        [code] = codes or [""]
        return code, claimed.claims[0] if claimed.claims else None

    def decisions(self, owner: str, claim: Claim) -> Message:
        """Return the decisions on all due ticks of a claim."""
        schedule = self.definitions[claim.rev]
        verdicts = decide.prepare(
            schedule,
            clock.read(claim.tick),
            self.store.time(),
            lateness=decide.Lateness(MISFIRE_AFTER),
            most=100,
            paused_until=clock.read(claim.mark) if claim.mark else None,
        )
        return self._chain(owner, fire_items.chain(claim, claim.rev, schedule, verdicts, self.keys))

    def release(self, owner: str) -> Message:
        """Return the message that gives a claim back."""
        return self._chain(owner, fire_items.released(ID))

    def _chain(self, owner: str, chain: Chain) -> Message:
        replies: list[Reply] = []

        def send() -> list[str]:
            decided = self.store.fire(chain.items, token=owner)
            replies[:] = decided.replies
            return [reply.code for reply in replies]

        def again() -> Message | None:
            rest = Replies(lambda _event: None).settle(chain, replies, clock.to_ms(self.store.time()))
            return self._chain(owner, rest) if rest else None

        steps = [_step(item) for item in chain.items]
        return Message(_label(steps), owner, send, lambda model: model.decide(owner, steps), again)

    def admissions(self, owner: str) -> list[Message]:
        """Return the messages that let ticks in that wait, as far as their slots seem to be free."""
        _, slots = self.slots.attend(limit=50, interval=1)
        found: list[Message] = []
        for slot in slots:
            [rev] = {*slot.revs} if slot.is_group else {slot.rev}
            page = Page(rev, self.definitions[rev])
            found += [self._items(owner, [item]) for item in waiting.decided(slot, {ID: page}, {}, self.keys)]
        return found

    def dismissal(self, owner: str, rev: str, tick: str, by: str) -> Message:
        """Return the message that skips a tick that waits."""
        item = fire_items.passing(rev, self.definitions[rev], tick, by, self.keys, after="", reason="excluded")
        return self._items(owner, [item])

    def registers(self, beat: str, rev: str) -> Message | None:
        """Return the message that registers a definition; None if Redis has it already."""
        [seen] = self.store.look([ID], app="default")
        placed = reconcile.foresee(self.definitions[rev], seen, self.store.time(), "default").placed
        if placed is None:
            return None
        item = registration(self.definitions[rev], seen, placed, Origin("code", "default"))
        before = (seen.rev, seen.next_run, seen.state) if seen else ("", "", "")
        expected = Registered(rev, before, placed.state, placed.next, placed.next_due)
        return Message(
            f"register {rev[:4]} {placed.state} {placed.next}",
            beat,
            lambda: [reply.code for reply in self.store.register([item], beat=beat)],
            lambda model: [model.register(expected)],
            creates=seen is None,
        )

    def endings(self, owner: str, model: Model) -> Message | None:
        """Return the message that records what became of runs; None if nothing did."""
        caught: list[Closing] = []

        def catch(_runs: Runs, items: Sequence[Closing], *, token: str) -> list[Reply]:  # noqa: ARG001
            caught.extend(items)
            return [Reply("STALE")] * len(items)

        with mock.patch.object(Runs, "close", catch):
            seen = self.runs.observe(limit=100, interval=1)
            Watcher(self.store, name=owner, emit=lambda _event: None).settle(seen)
        if not caught:
            return None
        endings = [
            Ending(each.job, each.outcome or each.kind, model.runs[each.job].record, model.runs[each.job].signs)
            for each in caught
        ]
        label = ", ".join(f"{each.outcome} {each.job}" for each in endings)
        return Message(
            label,
            owner,
            lambda: [reply.code for reply in self.runs.close(caught, token=owner)],
            lambda model: model.close(endings),
        )

    def withdraw(self, jobs: Sequence[str], tick: str) -> Message:
        """Return the message that cancels jobs for a newer tick."""

        def send() -> list[str]:
            self.slots.withdraw(ID, jobs, tick=tick)
            return []

        def predict(model: Model) -> list[str]:
            model.withdraw(jobs, tick)
            return []

        return Message(f"withdraw {jobs} for {tick}", "any", send, predict)

    # --- messages of operators ---------------------------------------------------------------------------------------

    def trigger(
        self,
        by: str,
        rev: str,
        number: int,
        *,
        tick: datetime | None = None,
        instead_of: str = "",
        forced: bool = False,
    ) -> Message:
        """Return the request for a run; for a past tick, it is a backfill."""
        item = fire_items.manual(
            rev,
            self.definitions[rev],
            self.keys.asked(ID, f"{'b' if tick else 'm'}{number}"),
            tick=tick,
            by="backfill" if tick else "manual",
            force=forced,
            instead_of=clock.read(instead_of) if instead_of else None,
            keys=self.keys,
        )
        return self._items(by, [item], forced=forced)

    def resume(self, by: str, rev: str, tick: str, *, version: str, catch_up: bool) -> Message:
        """Return the message that ends a pause now."""
        schedule, at = self.definitions[rev], clock.read(tick)
        ended = decide.resume(schedule, at, at if catch_up else self.store.time() + _INSTANT)
        item = fire_items.resumed(rev, schedule, ended, tick)._replace(max_runs=version)
        return self._items(by, [item])

    def pause(self, by: str, *, version: str, until: str, reason: str) -> Message:
        """Return the message that pauses the schedule."""
        return Message(
            f"pause until {until or '-'} version {version or '-'}",
            by,
            lambda: [r.code for r in self.operations.pause([(ID, version)], by=by, untl=until, reason=reason)],
            lambda model: [model.pause(version=version, until=until, reason=reason)],
        )

    def remove(self, by: str, version: str) -> Message:
        """Return the message that removes the schedule."""
        return Message(
            f"remove version {version or '-'}",
            by,
            lambda: [reply.code for reply in self.operations.remove([(ID, version)], by=by)],
            lambda model: [model.remove(version=version)],
        )

    def _items(self, sender: str, items: Sequence[Item], *, forced: bool = False) -> Message:
        steps = [_step(item, forced=forced) for item in items]
        return Message(
            _label(steps),
            sender,
            lambda: [reply.code for reply in self.store.fire(items, token=sender).replies],
            lambda model: model.decide(sender, steps),
        )

    # --- what RQ's workers do ----------------------------------------------------------------------------------------

    def work(self, job: str, status: str) -> None:
        """Change RQ's records of a job as its worker does."""
        key, queue, now = job_template.job_key(job), job_template.queue_key("default"), clock.text(self.store.time())
        changes: Any = {"status": status}
        alive = job_template.EXECUTIONS_PREFIX + job, f"{job_template.EXECUTION_PREFIX}{job}:1"
        if status == "queued":  # RQ tries a failed job again
            self.client.rpush(queue, job)
        elif status in {"started", "vanished"}:
            assert self.client.lrem(queue, 0, job) == 1
        if status == "vanished":
            self.client.delete(key)
            return
        if status == "started":
            changes |= {"started_at": now, "worker_name": "w"}
            self.client.zadd(alive[0], {"1": 0})
            self.client.hset(alive[1], "alive", "1")
        elif status in {"finished", "failed"}:
            changes["ended_at"] = now
            self.client.delete(*alive)
        self.client.hset(key, mapping=changes)

    # --- what Redis holds --------------------------------------------------------------------------------------------

    def holds(self, new_lines: int) -> dict[str, Any]:
        """Return all that the model has, by the same names; of the ledger only so many new lines, oldest first."""
        keys = self.keys
        with self.client.pipeline(transaction=False) as pipe:
            pipe.hgetall(keys.schedule(ID))
            pipe.zscore(keys.due, ID)
            pipe.get(keys.lock(ID))
            for key in (keys.running(ID), keys.running("@g"), keys.waiting(ID), keys.waiting("@g"), keys.open):
                pipe.zrange(key, 0, -1)
            pipe.lrange(job_template.queue_key("default"), 0, -1)
            pipe.xlen(keys.events)
            pipe.llen(keys.runs(ID))
            pipe.lrange(keys.runs(ID), 0, new_lines)
            pipe.zrange(keys.waiting_slots, 0, -1)
            found: list[Any] = pipe.execute()
        fields, index, owner, running, shared, waits, shared_waits, going, queue, events, lines, newest, slots = found
        in_line, in_group = _members(waits), _members(shared_waits)
        watched = {_text(each) for each in slots}
        assert in_line <= in_group or ID in watched, "no scheduler looks after the ticks that wait"
        assert not in_group or "@g" in watched, "no scheduler looks after the ticks that wait for the group"
        assert in_line or ID not in watched, "schedulers look after ticks, and none waits"
        return {
            "index": None if index is None else int(index),
            "owner": _text(owner or b""),
            "running": {_text(job) for job in running},
            "group_running": {_text(job) for job in shared},
            "waiting": in_line,
            "group_waiting": in_group,
            "open": {_text(job) for job in going},
            "queue": sorted(_text(job) for job in queue),
            "events": events,
            "ledger": [_line(line) for line in reversed(newest[:new_lines])],
            "lines": lines,
            "schedule": _schedule({_text(name): _text(value) for name, value in fields.items()}) if fields else None,
        }

    def drop_lock(self) -> None:
        """Delete the lock, as Redis does when it has expired."""
        self.client.delete(self.keys.lock(ID))

    def hide(self, now: int, until: int) -> None:
        """Hide a locked schedule until its lock expires; `claim` reads that from the machine's clock."""
        index = self.client.zscore(self.keys.due, ID)
        assert index is not None
        assert now < index <= now + LOCK_MS
        self.client.zadd(self.keys.due, {ID: until})

    def verify(self) -> Verification | None:
        """Compare ledger, counters and jobs as `beat verify` does."""
        return Audit(_Pinned(self.client, self.keys), self.keys, ID).verify(ID)

    def undocumented(self) -> list[str]:
        """Return the keys that docs/reference/redis.md does not name, and strings that never expire."""
        written = re.findall(r"^\| (`beat:[^|]*) \| ([^|]*) \|", _REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
        names = [name for cell, _ in written for name in re.findall("`([^`]+)`", cell)]
        known = [re.compile(re.sub(r"<\w+>", "[^:]+", name)) for name in names]
        keys = [_text(key) for key in self.client.scan_iter("beat:*", count=1000)]
        endless = [key for key in keys if self.client.type(key) == b"string" and self.client.ttl(key) < 0]
        return [key for key in keys if not any(name.fullmatch(key) for name in known)] + endless

    def left(self) -> dict[str, int]:
        """Return the keys that should be gone when the schedule is and all its runs are closed."""
        keys = self.keys
        own = (keys.schedule(ID), keys.template(ID), keys.runs(ID), keys.running(ID), keys.waiting(ID))
        shared = (keys.running("@g"), keys.waiting("@g"), keys.waiting_slots, keys.open, keys.due, keys.schedules)
        states = (keys.index(name) for name in ("all", "paused", "finished", "failing"))
        return {key: 1 for key in (*own, *shared, *states, keys.app("default")) if self.client.exists(key)}


class _Pinned(Archive):
    """An archive by the clock that is set by hand."""

    def snapshot(self, *args: Any, **options: Any) -> Snapshot:
        seconds, micros = self._client.time()
        return super().snapshot(*args, **options)._replace(now=clock.from_ms(seconds * 1000 + micros // 1000))


def _step(item: Item, *, forced: bool = False) -> Step:
    """Return what the model needs to know of an item."""
    kind = "trigger" if item.kind == "manual" else item.kind
    return Step(
        kind=kind,
        rev=item.rev,
        tick=item.tick,
        due=item.due,
        next=item.next,
        next_due=item.next_due,
        job=item.job,
        by=item.by,
        last=item.last if kind in {"skip", "resume"} else "",
        count=item.number if kind in {"skip", "resume"} else 1,
        reason=item.reason if kind in {"skip", "pass"} else "",
        until=item.reason if kind == "resume" else "",
        version=str(item.max_runs) if kind == "resume" else "",
        instead_of=item.last if kind == "trigger" else "",
        forced=forced,
        cleared="cleared" in f"{item.slot} {item.group}" and kind == "fire",
    )


def _label(steps: Sequence[Step]) -> str:
    return ", ".join(
        " ".join(
            [step.kind, step.rev[:4], step.tick or step.job, "cleared" * step.cleared, "forced" * step.forced]
        ).rstrip()
        for step in steps
    )


def _schedule(fields: Mapping[str, str]) -> dict[str, Any]:
    texts = ("state", "rev", "next_run", "due_at", "version", "pause_until", "pause_reason", "last_job")
    counts = ("kept", "run_count", "manual_count", "skip_count", "success_count", "failure_count", "stopped_count")
    by_word = {name: fields.get(name, "").split() for name in ("skips", "ends")}
    return {
        **{name: fields.get(name, "") for name in texts},
        **{name: int(fields.get(name, 0)) for name in counts},
        **{name: dict(zip(words[::2], map(int, words[1::2]), strict=True)) for name, words in by_word.items()},
    }


def _line(written: bytes) -> tuple[Any, ...]:
    line = json.loads(written)
    match line["type"]:
        case "enqueued":
            return "enqueued", line["tick"] or "", line["job"], line["by"], line["n"]
        case "skipped":
            return "skipped", line["tick"], line["last"], line["count"], line["reason"], line["n"]
        case "waiting":
            return "waiting", line["tick"], line["job"]
        case "succeeded" | "failed" | "stopped" | "lost":
            return line["type"], line["tick"] or "", line["job"]
    return (line["type"],)


def _members(members: Sequence[bytes]) -> set[tuple[str, str]]:
    return {(tick, by) for _, tick, by in (_text(each).split(" ") for each in members)}


def _text(value: bytes) -> str:
    return value.decode()
