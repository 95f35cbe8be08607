"""Histories by chance of schedules that share room, are broadcast and follow each other: what must hold always does.

Ticks come one by one, in chains and in pages, and are sent again as if the reply had been lost; runs end in any order
and way; nobody looks for a while; indexes are deleted, limits changed, schedules paused. Then all comes to its end.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from beat.schedule.requires import Requires
from tests.support.builders import TOKEN
from tests.support.many_schedules import SLOTS, Town, following, periodic

if TYPE_CHECKING:
    from collections.abc import Callable

    from beat.storage.store import Store

HISTORIES = 300 if os.environ.get("LONG_TESTS") else 12
STEPS = 40
BY_TIME = ("plain", "waits", "newest", "parts", "needs")
GROUPED = ("plain", "waits", "newest", "parts", "after", "last")
ENDED = {b"finished", b"failed", b"stopped", b"canceled"}


def schedules() -> list[Any]:
    shared: Any = {"group": "g"}
    return [
        periodic("plain", **shared),
        periodic("waits", overlap="wait", max_waiting=2, **shared),
        periodic("newest", overlap="replace", **shared),
        periodic("parts", queues=("x", "y"), route="broadcast", **shared),
        periodic("needs", requires=Requires("plain", within="1d"), queues=("x", "y", "z"), route="round_robin"),
        following("after", "plain", overlap="skip", **shared),
        following("last", "parts", overlap="wait", max_waiting=3, **shared),
        following("end", "after"),
    ]


class History:
    """One of them."""

    def __init__(self, store: Store, seed: int) -> None:
        self.chance, self.limit, self.told = random.Random(seed), 3, list[str]()  # noqa: S311 (no secret)
        self.town = Town(store, *schedules(), g="wait 3 4")
        self.client = self.town.client
        self.steps: list[tuple[int, Callable[[], None]]] = [
            (8, self.tick),
            (2, self.page),
            (8, self.end),
            (4, self.town.close),
            (3, self.town.turn),
            (2, self.town.attendant.turn),
            (1, self.change_limit),
            (1, self.forget),
            (1, self.pause),
            (1, self.start_again),
        ]

    # --- steps ---

    def step(self) -> None:
        before, weights = set(self.alive()), [weight for weight, _ in self.steps]
        [(_, act)] = self.chance.choices(self.steps, weights)
        self.told.append(act.__name__)
        act()
        alive = self.alive()
        if set(alive) - before and len(alive) > self.limit:  # a broadcast alone may take more than there is
            assert len({each.partition("_s")[0] for each in alive}) == 1, f"{alive} are more than {self.limit}"

    def tick(self) -> None:
        items = self.town.chain(self.chance.choice(BY_TIME), self.chance.choice([1, 1, 2, 4]))
        self.decide(items)

    def page(self) -> None:
        self.decide([item for each in BY_TIME for item in self.town.chain(each)])

    def decide(self, items: Any) -> None:
        replies = self.town.send(items)
        if self.chance.random() < 0.3:  # the reply was lost
            self.town.store.fire(items, token=TOKEN)
        if any(reply.code == "ENDED" for reply in replies) and self.chance.random() < 0.7:
            self.town.attendant.clear(sum(int(reply.words) for reply in replies if reply.code == "ENDED"))
            cleared = [
                item._replace(slot=item.slot and f"{item.slot} cleared", group=item.group and f"{item.group} cleared")
                for item, reply in zip(items, replies, strict=True)
                if reply.code == "ENDED"
            ]
            self.town.send(cleared)

    def end(self) -> None:
        jobs = [each.decode() for each in self.client.zrange("beat:open", 0, -1)]
        going = [each for each in jobs if self.client.hget(f"rq:job:{each}", "status") not in ENDED]
        for job in self.chance.sample(going, min(len(going), self.chance.choice([1, 1, 2, 5]))):
            self.town.end(job, status=self.chance.choice(["finished", "finished", "finished", "failed", "stopped"]))

    def start_again(self) -> None:
        """Somebody has RQ run again what failed, or was stopped."""
        failed = [each.decode() for each in self.client.zrange("beat:closed", 0, -1)]
        for job in failed[:1]:
            if self.client.hget(f"rq:job:{job}", "status") in {b"failed", b"stopped"}:
                self.client.hset(f"rq:job:{job}", "status", "queued")
                self.client.rpush("rq:queue:again", job)
                self.limit = max(self.limit, len(self.alive()))  # which needs no room, and takes up some
        self.town.look_again()

    def change_limit(self) -> None:
        self.limit = self.chance.choice([1, 2, 3, 5])
        self.client.hset("beat:groups", "g", f"{self.chance.choice(['wait', 'wait', 'skip'])} {self.limit} 4")

    def forget(self) -> None:
        self.client.delete(*self.chance.sample([SLOTS, "beat:waiting:@g", "beat:followers:plain"], 1))
        self.town.store.repair(list(self.town.schedules))

    def pause(self) -> None:
        state = self.chance.choice(["active", "paused"])
        self.client.hset(f"beat:schedule:{self.chance.choice(['after', 'last', 'end'])}", "state", state)

    # --- what holds ---

    def jobs(self, schedule_id: str) -> list[str]:
        """All that were enqueued, each part of what was broadcast."""
        found = []
        for line in self.town.lines(schedule_id, "enqueued"):
            found += [f"{line['job']}_s{n}" for n in range(line["shards"])] if "shards" in line else [line["job"]]
        return found

    def alive(self) -> list[str]:
        """Those of the group that have not ended."""
        found = [job for each in GROUPED for job in self.jobs(each)]
        return [job for job in found if self.client.hget(f"rq:job:{job}", "status") not in ENDED]

    def comes_to_its_end(self) -> None:
        for each in self.town.schedules:
            self.client.hset(f"beat:schedule:{each}", "state", "active")
        self.client.hset("beat:groups", "g", "wait 3 4")
        self.town.store.repair(list(self.town.schedules))
        for _ in range(100):
            going = [each.decode() for each in self.client.zrange("beat:open", 0, -1)]
            if not going and not self.client.exists(SLOTS):
                break
            self.town.succeed(*going)
            self.town.turn()
        left = [key for key in self.client.scan_iter("beat:*") if key.startswith((b"beat:running", b"beat:waiting"))]
        assert (left, self.client.zcard("beat:open")) == ([], 0)

    def successes(self, schedule_id: str) -> Counter[str]:
        """Of a tick that was broadcast, when all parts have succeeded."""
        good: Counter[str] = Counter()
        for line in self.town.lines(schedule_id, "succeeded"):
            good[line.get("of", line["job"])] += 1
        lines = self.town.lines(schedule_id, "enqueued")
        return Counter(line["job"] for line in lines if good[line["job"]] == line.get("shards", 1))

    def holds(self) -> None:
        town = self.town
        town.one_verdict_each(*BY_TIME)
        for parent, each in (("plain", "after"), ("parts", "last"), ("after", "end")):
            told = Counter(line["after"] for line in town.lines(each, "enqueued", "skipped"))
            assert told == self.successes(parent), f"{each} after {parent}"
        for each in town.schedules:
            state, jobs = town.state(each), self.jobs(each)
            assert len(jobs) == len(set(jobs))
            assert int(state["run_count"]) == len(town.lines(each, "enqueued"))
            assert int(state.get("success_count", 0)) == self.successes(each).total(), each
            ends = sum(int(state.get(name, 0)) for name in ("success_count", "failure_count", "stopped_count"))
            assert ends == int(state["run_count"]), each
        turns = [line["queue"] for line in town.lines("needs", "enqueued")]
        assert turns == [("x", "y", "z")[n % 3] for n in range(len(turns))]


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_whatever_happens_each_tick_and_each_success_has_one_verdict(store: Store, seed: int) -> None:
    history = History(store, seed)
    for _ in range(STEPS):
        history.step()
    history.comes_to_its_end()
    history.holds()
