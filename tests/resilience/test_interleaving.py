"""Schedulers and an operator change one schedule, in any order, late, and again after a lost reply.

Each message is prepared from what its sender saw, and sent at any later time, perhaps more than once. After every step
Redis must hold what the model holds. A failure names its seed: `INTERLEAVING=<seed>` plays that history alone.
"""

from __future__ import annotations

import os
import random
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from redis import ConnectionPool

from beat.testing import ManualClock
from beat.testing.fake_redis import Clocked
from beat.timing import clock
from tests.resilience.interleaving_adapter import LOCK_MS, Installation, schedules
from tests.resilience.interleaving_model import Group, Model, Policy
from tests.support.chance import LONG

if TYPE_CHECKING:
    from beat.dev.embedded import PrivateRedis
    from beat.schedule.options import Overlap
    from tests.resilience.interleaving_adapter import Message

BEGINS = datetime(2020, 1, 1, tzinfo=UTC)
STEPS = 400
GIVEN = os.environ.get("INTERLEAVING")
SEEDS = [int(GIVEN)] if GIVEN else range(100 if LONG else 10)
SCHEDULERS = ("one", "two", "three")
OPERATOR = "ann"
LAPSES_S = (1, 30, 300, 600, 600, 600, 900, 1500, 4200)
MOST_MESSAGES = 12


REPLIES = {
    "claim": "CLAIMED LOCKED",
    "fire": "OK SKIPPED WAITS ENDED STALE FENCED CHANGED INACTIVE EARLY GONE",
    "skip": "OK STALE FENCED",
    "release": "OK FENCED",
    "resume": "OK STALE INACTIVE",
    "admit": "OK FULL SKIPPED STALE CHANGED",
    "pass": "SKIPPED STALE",
    "trigger": "OK FULL STALE CHANGED GONE",
    "pause": "OK SAME PAST INACTIVE CONFLICT GONE",
    "register": "NEW UPDATED MOVED RETRY",
    "remove": "OK CONFLICT GONE",
    "succeeded": "OK STALE",
    "failed": "OK STALE CHANGED",
    "lost": "OK STALE",
    "mark": "OK STALE",
    "stopped": "OK STALE",
}
"""What the histories must meet, or they show too little."""


def test_redis_holds_what_the_model_holds(server: PrivateRedis) -> None:
    met: set[str] = set()
    with ConnectionPool.from_url(server.url) as pool:
        for seed in SEEDS:
            history = History(pool, seed)
            try:
                history.plays(STEPS)
                history.ends()
            except Exception as e:
                told = "\n".join(history.told)
                raise AssertionError(f"INTERLEAVING={seed}, {history.kind}:\n{told}\n{e}") from e
            met |= history.met
    wanted = {f"{kind} {code}" for kind, codes in REPLIES.items() for code in codes.split()}
    assert len(SEEDS) == 1 or wanted <= met, f"no history met {sorted(wanted - met)}"


class History:
    """One schedule, three schedulers, an operator and a worker, by chance."""

    def __init__(self, pool: ConnectionPool, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 (no secret)
        group = self._group() if self._chance.random() < 0.4 else None
        policies = [self._policy() for _ in range(3)]
        self.kind = f"{policies}, {group}"
        definitions = schedules(policies, grouped=group is not None)
        self._revs = list(definitions)
        self._clock = ManualClock(BEGINS)
        client = Clocked(self._clock, connection_pool=pool)
        client.flushall()
        client.script_flush()  # or a script that another test has loaded would read the server's clock
        self.redis = Installation(client, definitions, group)
        self.model = Model(dict(zip(definitions, policies, strict=False)), group)
        self._messages: list[Message] = []
        self._asked = 0
        self.told: deque[str] = deque(maxlen=40)
        """The newest steps."""
        self.met: set[str] = set()
        """The kinds of messages, with the replies to them."""

    def _policy(self) -> Policy:
        draw = self._chance
        overlaps: list[Overlap] = ["allow", "allow", "skip", "wait", "wait", "replace"]
        overlap = draw.choice(overlaps)
        running = draw.choice([1, 1, 2, 3]) if overlap in {"skip", "wait"} else 1
        waiting = {"wait": draw.choice([1, 2, 3]), "replace": 1}.get(overlap, 0)
        return Policy(overlap, running, waiting, draw.choice([None, None, None, 2, 5]))

    def _group(self) -> Group:
        return Group(
            self._chance.choice(["wait", "wait", "skip"]), self._chance.choice([1, 2]), self._chance.choice([1, 2])
        )

    # --- what happens ------------------------------------------------------------------------------------------------

    def plays(self, steps: int) -> None:
        """Take so many steps by chance."""
        acts = {
            self._delivers: 60,
            self._claims: 20,
            self._waits: 12,
            self._works: 16,
            self._observes: 8,
            self._admits: 8,
            self._dismisses: 1,
            self._withdraws: 2,
            self._triggers: 5,
            self._pauses: 2,
            self._resumes: 5,
            self._registers: 4,
            self._removes: 0.5,
        }
        self._registers()
        for number, act in enumerate(self._chance.choices(list(acts), list(acts.values()), k=steps)):
            self._tick(0)
            if not self.model.known and self._chance.random() < 0.2:
                self._registers()
            act()
            self._agrees()
            if number % 20 == 0:
                self._is_sound()

    def ends(self) -> None:
        """All runs end, no tick waits, and when the schedule is removed nothing of it is left."""
        self._resumes(always=True)
        for _ in range(50):
            if not self._closes_all():
                break
        assert not self.model.known or not self.model.known.waiting, "a tick waits for nothing"
        assert not self.redis.undocumented()
        self._is_sound()
        self._sends(self.redis.remove(OPERATOR, ""))
        assert not self.redis.left()

    def _closes_all(self) -> bool:
        """Let all runs end, and admit what waits; return whether there is more to do."""
        self._tick(70)
        for run in list(self.model.runs.values()):
            for before, after in (("queued", "started"), ("started", "finished")):
                if run.status == before:
                    self._work(run.job, after)
        if ending := self.redis.endings("one", self.model):
            self._sends(ending)
        for message in self.redis.admissions("one"):
            self._sends(message)
        is_open = any(run.is_open for run in self.model.runs.values())
        return is_open or bool(self.model.known and self.model.known.waiting)

    def _tick(self, seconds: float) -> None:
        """Time passes, at least a millisecond."""
        now = self._clock.advance(timedelta(seconds=seconds, milliseconds=1))
        self.model.now = clock.to_ms(now)
        if self.model.owner and self.model.now >= self.model.locked_until:
            self.model.owner = ""
            self.redis.drop_lock()

    def _waits(self) -> None:
        seconds = self._chance.choice(LAPSES_S)
        self.told.append(f"{seconds} s later")
        self._tick(seconds)

    def _delivers(self) -> None:
        """A message arrives: for the first time, or once more."""
        if not self._messages:
            return
        message = self._chance.choice([self._messages[-1], self._chance.choice(self._messages)])
        if self._chance.random() < 0.5:
            self._messages.remove(message)
        self._sends(message)

    def _sends(self, message: Message) -> None:
        expected = message.predict(self.model)
        self.told.append(f"{clock.text(self._clock.now)} {message.sender}: {message.label} → {expected}")
        codes = message.send()
        assert codes == expected, f"Redis replies {codes}"
        kinds = (part.partition(" ")[0] for part in message.label.split(", "))
        self.met.update(f"{kind} {code}" for kind, code in zip(kinds, codes, strict=False))
        if rest := message.again():
            self._keep(rest)
        if message.label.startswith("remove") and codes == ["OK"]:
            # A schedule that is registered anew begins after now. A message from before the schedule
            # existed for the first time would begin it in the past, and its ticks have had their jobs.
            self._messages = [each for each in self._messages if not each.creates]
        self._agrees()

    def _keep(self, message: Message | None) -> None:
        if message:
            self._messages.append(message)
            if len(self._messages) > MOST_MESSAGES:  # some are very late
                del self._messages[self._chance.randrange(MOST_MESSAGES)]

    # --- schedulers --------------------------------------------------------------------------------------------------

    def _claims(self) -> None:
        owner, lookahead = self._chance.choice(SCHEDULERS), self._chance.choice([0, 0, 300_000])
        if self.model.index and self._chance.random() < 0.5:  # once the schedule is due
            self._tick(max(0, self.model.index - self.model.now - lookahead) // 1000)
        expected = self.model.claim(owner, lookahead=lookahead, lock_ttl=LOCK_MS)
        self.told.append(f"{clock.text(self._clock.now)} {owner}: claim → {expected}")
        code, claim = self.redis.claim(owner, lookahead)
        self.met.add(f"claim {code}")
        assert code == expected, f"Redis replies {code}"
        if code == "LOCKED" and self.model.index:
            self.redis.hide(self.model.now, self.model.index)
        if claim:
            self._keep(self.redis.decisions(owner, claim))
            if self._chance.random() < 0.15:
                self._keep(self.redis.release(owner))

    def _admits(self) -> None:
        for message in self.redis.admissions(self._chance.choice(SCHEDULERS)):
            self._keep(message)

    def _dismisses(self) -> None:
        if (known := self.model.known) and known.waiting:
            tick, by = self._chance.choice(sorted(known.waiting))
            self._keep(self.redis.dismissal(self._chance.choice(SCHEDULERS), known.rev, tick, by))

    def _withdraws(self) -> None:
        if (known := self.model.known) and known.waiting and self.model.running:
            self._sends(self.redis.withdraw(sorted(self.model.running), max(known.waiting)[0]))

    def _registers(self) -> None:
        self._keep(self.redis.registers(self._chance.choice(SCHEDULERS), self._chance.choice(self._revs)))

    def _observes(self) -> None:
        self._keep(self.redis.endings(self._chance.choice(SCHEDULERS), self.model))

    # --- the operator ------------------------------------------------------------------------------------------------

    def _triggers(self) -> None:
        if not (known := self.model.known):
            return
        self._asked += 1
        how, forced = self._chance.choice(["now", "past", "instead"]), self._chance.random() < 0.3
        past = self._clock.now.replace(minute=0, second=0, microsecond=0)
        instead = known.next if how == "instead" and known.state == "active" else ""
        tick = past if how == "past" else None
        self._keep(self.redis.trigger(OPERATOR, known.rev, self._asked, tick=tick, instead_of=instead, forced=forced))

    def _pauses(self) -> None:
        lapse = self._chance.choice([None, None, 60, 900, 3600])
        until = clock.text(self._clock.now.replace(microsecond=0) + timedelta(seconds=lapse)) if lapse else ""
        reason = self._chance.choice(["", "deploy"])
        self._keep(self.redis.pause(OPERATOR, version=self._version(), until=until, reason=reason))

    def _resumes(self, *, always: bool = False) -> None:
        known = self.model.known
        if not known or known.state != "paused" or not known.next:
            return
        version = "" if always else self._version()
        catch_up = self._chance.random() < 0.4
        message = self.redis.resume(OPERATOR, known.rev, known.next, version=version, catch_up=catch_up)
        if always:
            self._sends(message)
        else:
            self._keep(message)

    def _removes(self) -> None:
        self._keep(self.redis.remove(OPERATOR, self._version()))

    def _version(self) -> str:
        """The version that the operator has seen, or none."""
        return str(self.model.known.version) if self.model.known and self._chance.random() < 0.5 else ""

    # --- the worker --------------------------------------------------------------------------------------------------

    def _works(self) -> None:
        following = {
            "queued": ["started"] * 9 + ["vanished"],
            "started": ["finished", "finished", "failed"],
            "failed": ["queued"],
        }
        able = [
            r
            for r in self.model.runs.values()
            if r.status in {"queued", "started"} or (r.status == "failed" and r.is_open)
        ]
        if able:
            run = self._chance.choice(able)
            self._work(run.job, self._chance.choice(following[run.status]))

    def _work(self, job: str, status: str) -> None:
        self.told.append(f"the worker: {job} {status}")
        self.redis.work(job, status)
        self.model.work(job, status)

    # --- what must hold ----------------------------------------------------------------------------------------------

    def _agrees(self) -> None:
        expected = self.model.holds()
        found = self.redis.holds(len(expected["ledger"]))
        self.model.new_lines = []
        wrong = [
            f"{name}: Redis has {found[name]}, the model {expected[name]}"
            for name in expected
            if found[name] != expected[name]
        ]
        assert not wrong, "\n".join(wrong)

    def _is_sound(self) -> None:
        if (known := self.model.known) and not known.has_strangers:
            told = self.redis.verify()
            assert told
            assert told.sound, told
