"""What the tests of place are made of: schedules as they are declared, ticks one by one, and workers who do as told.

Each tick goes the whole way of the engine: facts, verdict, `fire`; only which tick is next is said by hand.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest import mock

from beat.engine import fire_items
from beat.engine.definition_cache import Book
from beat.engine.fact_reader import Inquiry
from beat.engine.registrar import Sync
from beat.engine.run_tracker import Watcher
from beat.engine.waiting import Attendant
from beat.jobs import outcomes
from beat.policies.decide import Fire
from beat.policies.facts import NONE
from beat.schedule.follows import Follows
from beat.schedule.schedule import Schedule
from beat.storage.messages import Claim
from beat.timing import clock
from beat.timing.interval import Every
from tests.support.builders import TOKEN, claim, hash_of, second, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beat.engine.events import Event
    from beat.storage.messages import Item, Reply
    from beat.storage.store import Store

SLOTS = "beat:waiting"
_FUNC = "tests.support.job_functions.anything"


def periodic(schedule_id: str, **options: Any) -> Schedule:
    """One that ticks every second."""
    return Schedule(**{"id": schedule_id, "func": _FUNC, "timing": Every("1s"), **options})


def following(schedule_id: str, parent: str, **options: Any) -> Schedule:
    """One that ticks when another has succeeded."""
    return periodic(schedule_id, timing=Follows(parent), **options)


class Town:
    """Schedules, their groups, a beat that does what it is told, and the events that it tells."""

    def __init__(self, store: Store, *schedules: Schedule, **groups: str) -> None:
        self.store, self.events = store, list[Any]()
        self.client: Any = store.client
        self.schedules: dict[str, Schedule] = {}
        self.next: dict[str, int] = {}
        self.start = second(store) - 50
        if groups:
            told: Any = groups
            self.client.hset("beat:groups", mapping=told)
        self.declare(*schedules)
        emit = self.events.append
        self.watcher = Watcher(store, name=TOKEN, emit=emit)
        self.attendant = Attendant(store, Book(store), self.watcher, token=TOKEN, emit=emit)

    def declare(self, *schedules: Schedule) -> None:
        """Their code, be it that of another deploy; what is new has its first tick 50 s ago."""
        for each in schedules:
            self.schedules[each.id] = each
        sync = Sync(self.store, self.schedules.values(), beat="us", emit=lambda _: None)
        sync.announce()
        sync.register()
        for each in schedules:
            if each.follows is None and each.id not in self.next:
                self.put(each.id, self.start)

    def put(self, schedule_id: str, at: int) -> None:
        """Says which tick is next."""
        self.next[schedule_id] = at
        placed: Any = {"next_run": text(at), "due_at": text(at)}
        self.client.hset(self.store.keys.schedule(schedule_id), mapping=placed)
        self.client.zadd(self.store.keys.due, {schedule_id: at * 1000})

    # --- a beat ---

    def chain(self, schedule_id: str, number: int = 1) -> list[Item]:
        """The next ticks as a beat prepares them, from what Redis says now."""
        schedule, at = self.schedules[schedule_id], self.next[schedule_id]
        facts = Inquiry(self.store).about([schedule], second(self.store) * 1000).get(schedule_id, NONE)
        fires = [Fire(clock.at(at + n), clock.at(at + n + 1), "scheduler") for n in range(number)]
        claimed = Claim(schedule_id, schedule.rev, text(at), at * 1000, "normal")
        return list(fire_items.chain(claimed, schedule.rev, schedule, fires, self.store.keys, facts=facts).items)

    def send(self, items: Sequence[Item]) -> list[Reply]:
        """A page of these, whose schedules are ours."""
        claim(self.store)
        replies = list(self.store.fire(items, token=TOKEN).replies)
        for item in items:
            found = self.client.hget(self.store.keys.schedule(item.id), "next_run")
            if found:
                self.next[item.id] = int(clock.read(found.decode()).timestamp())
        return replies

    def fire(self, schedule_id: str, **changes: Any) -> Reply:
        """The next tick."""
        [item] = self.chain(schedule_id)
        [reply] = self.send([item._replace(**changes)])
        return reply

    def codes(self, *ids: str) -> list[str]:
        """What is said to the next tick of each, one after the other."""
        return [self.fire(each).code for each in ids]

    def cleared(self, schedule_id: str) -> Reply:
        """The next tick, after somebody has looked for runs that have ended."""
        schedule = self.schedules[schedule_id]
        [item] = self.chain(schedule_id)
        slot, group = item.slot and f"{item.slot} cleared", schedule.group and f"{schedule.group} cleared"
        return self.fire(schedule_id, slot=slot, group=group or "")

    def turn(self) -> None:
        """The attendant looks at all who wait, wherever they stand."""
        for _ in range(3):
            for slot in self.client.zrange(SLOTS, 0, -1):
                self.client.zadd(SLOTS, {slot: 0}, xx=True)
            self.attendant.turn()

    def close(self) -> None:
        """The watcher looks at every run."""
        for job in self.client.zrange("beat:open", 0, -1):
            self.client.zadd("beat:open", {job: 0}, xx=True)
        self.watcher.look(self.client.zcard("beat:open"))

    def look_again(self) -> None:
        """The watcher looks at runs that were closed: RQ may have started one again."""
        self.client.delete(self.store.keys.watching)
        self.watcher.turn()

    # --- workers ---

    def end(self, *jobs: str, status: str = "finished", seconds: float = 0) -> None:
        """As a worker does; each took so long."""
        for job in jobs:
            for queue in self.client.scan_iter("rq:queue:*"):
                self.client.lrem(queue, 1, job)
            ended = self.store.time()
            began = clock.from_ms(clock.to_ms(ended) - int(seconds * 1000))
            told: Any = {"status": status, "started_at": clock.text(began), "ended_at": clock.text(ended)}
            self.client.hset(f"rq:job:{job}", mapping=told)

    def succeed(self, *jobs: str) -> None:
        """They end well, and that is written down."""
        self.end(*jobs)
        self.close()

    def lose(self, job: str) -> None:
        """It is in no queue, for long enough."""
        for queue in self.client.scan_iter("rq:queue:*"):
            self.client.lrem(queue, 1, job)
        at_once = (
            mock.patch.multiple("beat.engine.run_tracker", AGE=timedelta(seconds=-5)),
            mock.patch.object(outcomes, "MISSING_MS", 0),
        )
        with at_once[0], at_once[1]:
            for _ in range(2):
                self.client.delete(self.store.keys.searched)
                self.watcher.search()

    # --- what Redis holds ---

    def running(self, slot: str) -> list[str]:
        return self._members(f"beat:running:{slot}")

    def waiting(self, slot: str) -> list[str]:
        """Who waits, each as `id second`, or `id after`."""
        found = [each.split(" ") for each in self._members(f"beat:waiting:{slot}")]
        return [f"{each[0]} {each[3] if len(each) > 3 else self.second_of(each[1])}" for each in found]

    def second_of(self, tick: str) -> int:
        """How many seconds after the first."""
        return int(clock.read(tick).timestamp()) - self.start

    def _members(self, key: str) -> list[str]:
        found: Any = self.client.zrange(key, 0, -1)
        return [each.decode() for each in found]

    def job(self, schedule_id: str, number: int = 0) -> str:
        """That of the first tick, or the one so many seconds later."""
        return f"beat_{schedule_id}_{self.start + number}"

    def queued(self, queue: str = "default") -> list[str]:
        found: Any = self.client.lrange(f"rq:queue:{queue}", 0, -1)
        return [each.decode() for each in found]

    def state(self, schedule_id: str) -> dict[str, str]:
        return hash_of(self.store, schedule_id)

    def lines(self, schedule_id: str, *types: str) -> list[dict[str, Any]]:
        """The ledger, oldest first; those of some types, or all."""
        found: Any = self.client.lrange(f"beat:runs:{schedule_id}", 0, -1)
        lines = [json.loads(each) for each in reversed(found)]
        return [line for line in lines if not types or line["type"] in types]

    def reasons(self, schedule_id: str) -> list[str]:
        """Why ticks were skipped."""
        return [line["reason"] for line in self.lines(schedule_id, "skipped")]

    def told(self, name: str) -> list[Event]:
        return [event for event in self.events if event.name == name]

    def one_verdict_each(self, *ids: str) -> None:
        """Of those that tick by time: every tick before the next is enqueued, skipped or waits, and none twice."""
        for schedule_id in ids:
            verdicts_on = [self.second_of(line["tick"]) for line in self.lines(schedule_id, "enqueued", "skipped")]
            waits = [int(each.split(" ")[1]) for each in self.waiting(schedule_id)]
            assert sorted([*verdicts_on, *waits]) == list(range(self.next[schedule_id] - self.start)), schedule_id
            state = self.state(schedule_id)
            assert int(state["run_count"]) == len(self.lines(schedule_id, "enqueued"))
            assert int(state["skip_count"]) == len(self.lines(schedule_id, "skipped"))
