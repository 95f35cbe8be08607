"""Make random states of Redis, sound and unsound, and random messages to the scripts, each from a seed.

A message is first made as beat would make it for the state, and then some of its items are spoiled. A later message is
made as if the earlier ones had done what they should. Some messages are sent twice.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.resilience.script_items import (
    AdmitItem,
    CloseItem,
    DropItem,
    Expectation,
    FireItem,
    Message,
    Part,
    QuarantineItem,
    RegisterItem,
    ReleaseItem,
    ResumeItem,
    Sign,
    SkipItem,
    Slot,
    TriggerItem,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.resilience.script_items import Item

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATER = 4_102_444_800  # in seconds: 2100, so that nothing expires by the real clock
MINE, OTHER = "ours", "another"
GROUPS = {"g1": "wait 2 3", "g2": "skip 1", "g3": "wait 3"}
META = b"\x80\x05}\x94"
STEPS = ("fire", "admit", "trigger", "resume", "close", "register")
FAMILIES = ("schedule", "template", "runs", "running", "waiting", "followers", "slow")
AGES = (0, 1, 2, 17, 30, 90, 7200)
"""How many seconds ago ticks were due."""
SHARED = (
    "beat:due", "beat:open", "beat:records", "beat:events", "beat:waiting", "beat:groups", "beat:announcements",
    "beat:closed", "beat:fanout", "beat:schedules", "beat:meta", "beat:functions", "beat:in:paused", "beat:in:failing",
    "beat:in:all", "beat:running:@g1", "beat:waiting:@g1", "rq:queues", "rq:queue:default", "beat:announced:default.1",
    "beat:shards:beat_a_7",
)  # fmt: skip
GARBAGE = {
    "rev": ["", "not a digest"],
    "next_run": ["soon", "1969-12-31T23:59:00Z", "2100-02-31T00:00:00Z"],
    "due_at": ["soon", "2099-12-31T23:59:00Z", "2100-01-01T00:00:00.5Z"],
    "run_count": ["many", "-1", "1" * 16, "7.5", ""],
    "skip_count": ["many", "1e3"],
    "kept": ["many", "900", ""],
    "skips": ["misfire x", "x" * 1001, "misfire " + "9" * 16],
    "manual_count": ["few", "900"],
    "job_meta": ["", "r1 8", "r1 xy", "r2 80057d94", "r1 80057d9"],
    "version": ["latest", ""],
    "misfire_after": ["late", "0", "60000", "400000"],
    "created_at": ['"', "long ago"],
    "result_ttl": ["-1", "x"],
    "last_job": ['a"b', ""],
    "state": ["odd", ""],
    "follows": ["nobody"],
}
VERDICTS = ('{"type":"enqueued"', '{"type":"skipped"')
TROUBLES = ("gone", "no template", "template ttl", "type", "ledger", "ledger", "field", "field", "no field")


class Scenario(NamedTuple):
    """The commands that make a state, and the messages that are sent then."""

    state: list[tuple[Any, ...]]
    messages: list[Message]
    claims: list[tuple[Any, ...]]
    """The commands that claim the schedules again, between two messages."""


class Run(NamedTuple):
    """An open or closed run."""

    job: str
    record: str
    sign: Sign | None
    is_closed: bool
    group: str


@dataclass
class Schedule:
    """What the generator knows of a schedule; `tick` moves on when an item decides it."""

    id: str
    rev: str
    state: str
    tick: int
    """In seconds; 0 if it has none."""
    step: int
    due: int
    """In ms."""
    count: int
    """How many jobs it had."""
    created_at: str
    origin: str
    app: str
    version: int | None
    until: str
    slot: Slot | None
    group: str
    queues: tuple[str, ...]
    max_runs: int | None
    follows: str
    waiting: list[tuple[str, str, str]] = field(default_factory=list)
    """Tick, by, and the job that it follows."""
    runs: list[Run] = field(default_factory=list)


def text(ms: float) -> str:
    """Return the instant as Redis keeps it."""
    at = EPOCH + timedelta(milliseconds=ms)
    fraction = f".{at.microsecond // 1000:03d}" if at.microsecond else ""
    return f"{at:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def scenario(seed: int) -> Scenario:
    """Return the scenario of this seed."""
    return Maker(random.Random(seed)).scenario()  # noqa: S311 (a seed repeats it)


class Maker:
    """Makes one scenario."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._state: list[tuple[Any, ...]] = []
        self._now = (LATER + chance.randrange(10**6)) * 1000 + chance.choice([0, 0, chance.randrange(1000)])
        self._schedules: list[Schedule] = []
        self._usual = chance.choice(AGES)

    def scenario(self) -> Scenario:
        chance = self._chance
        self._put(
            "RPUSH", "clock", self._now // 1000, self._now % 1000 * 1000 + chance.choice([0, chance.randrange(1000)])
        )
        if self._is(0.01):
            messages = chance.choice([self._long_page, self._long_slot, self._many_ends, self._many_followers])()
        else:
            self._make_shared()
            for name in chance.sample("abcdefgh", chance.randint(1, 5)):
                self._make_schedule(name)
            for made in self._schedules:
                if self._is(0.2):
                    self._spoil(made)
            self._spoil_shared()
            messages = [self._message() for _ in range(chance.randint(1, 3))]
            messages += [chance.choice(messages)] if self._is(0.2) else []
        claims = [("SET", f"beat:lock:{each.id}", MINE) for each in self._schedules] if self._is(0.7) else []
        return Scenario(self._state, messages, claims)

    def _is(self, probability: float) -> bool:
        return self._chance.random() < probability

    def _put(self, *command: Any) -> None:
        self._state.append(command)

    # --- the state ---------------------------------------------------------------------------------------------------

    def _make_shared(self) -> None:
        chance = self._chance
        odd = {name: chance.choice(["wait", "skip 0", "wait 5"]) for name in GROUPS if self._is(0.1)}
        groups = {name: limits for name, limits in (GROUPS | odd).items() if self._is(0.97)}
        self._hash("beat:groups", groups)
        self._put("HSET", "beat:meta", "format", chance.choices([1, 2], [40, 1])[0])
        self._put("ZADD", "beat:functions", self._now - 1000, "tasks.f")
        for digest, revs in {"default.1": "r1 r2", "default.2": "r2", "other.1": "r1 r3", "other": "r2"}.items():
            if self._is(0.6):
                self._put("ZADD", "beat:announcements", self._now + chance.choice([-1, 0, 9000, 9000]), digest)
                rev = revs.split()
                declared = {each: f"{chance.choice(rev)}\tmore" for each in "abcdefgh" if self._is(0.6)}
                self._hash(f"beat:announced:{digest}", declared)
        for n in range(chance.choice([0, 0, 2, 120])):
            self._put("XADD", "beat:events", f"{LATER * 1000 - 5000}-{n + 1}", "type", "enqueued", "entry", "{}")
        if self._is(0.2):
            self._put("RPUSH", "rq:queue:default", "already", "there")
        parts = {"0": "succeeded ", "1": "failed it broke", "counted": "failed", "2": "lost it went"}
        self._hash("beat:shards:beat_a_7", {name: how for name, how in parts.items() if self._is(0.3)})

    def _spoil_shared(self) -> None:
        if self._is(0.1):
            self._replace_by_other_type(self._chance.choice(SHARED))

    def _replace_by_other_type(self, key: str) -> None:
        self._put("DEL", key)
        others = [("SET", "text"), ("SADD", "a"), ("LPUSH", "a"), ("ZADD", 1, "a"), ("HSET", "a", "b")]
        command, *words = self._chance.choice(others)
        self._put(command, key, *words)

    def _make_schedule(self, name: str) -> None:
        chance = self._chance
        step = chance.choice([1, 60, 60, 60, 3600])
        tick = self._now // 1000 - (self._usual if self._is(0.7) else chance.choice([*AGES, -3600, -3600]))
        tick -= tick % step
        slot = None
        if self._is(0.35):
            slot = Slot(chance.choice(["skip", "wait", "replace"]), chance.randint(1, 2), chance.randint(1, 3))
        own = [f"rq:queue:{each}" for each in chance.choices(["default", "other", "third"], [6, 1, 1])]
        made = Schedule(
            id=name,
            rev=chance.choice(["r1", "r1", "r2"]),
            state=chance.choices(
                ["active", "paused", "disabled", "finished", "broken", "retired"], [30, 6, 1, 2, 2, 1]
            )[0],
            tick=tick,
            step=step,
            due=tick * 1000,
            count=(count := chance.randint(0, 5)),
            created_at=text(self._now - 10**7),
            origin=chance.choice(["code", "code", "code", "api"]),
            app=chance.choice(["default", "default", "other"]),
            version=chance.choice([None, 1, 7]),
            until=chance.choice(["", "", text(self._now - 500), text(self._now + 90_000)]),
            slot=slot,
            group=chance.choice(list(GROUPS)) if self._is(0.3) else "",
            queues=("rq:queue:default", "rq:queue:other") if self._is(0.1) else tuple(own),
            max_runs=count + chance.randrange(4) if self._is(0.3) else None,
            follows=chance.choice("abcdefgh") if self._is(0.15) else "",
        )
        if made.follows and made.max_runs is None and self._is(0.5):
            made.max_runs = made.count + chance.randrange(3)
        if (made.follows and self._is(0.7)) or (made.state in {"finished", "retired"} and self._is(0.8)):
            made.tick = made.due = 0
        elif made.state == "paused" and self._is(0.4):
            made.tick += (self._now // 1000 - made.tick) // 3600 * 3600 + 3600
            made.due = (made.tick - chance.choice([0, 3600, 3600])) * 1000
        elif self._is(0.2) or made.tick * 1000 > self._now:
            made.due += chance.choice([300, 5000, 40_000, -3_700_000])  # before its tick, if an operator says so
        self._schedules.append(made)
        self._make_runs(made)
        self._make_hash(made)
        self._make_template(made)
        self._make_ledger(made)
        self._make_waiting(made)
        if made.origin == "code":
            self._put("SADD", f"beat:app:{made.app}", name)
        holder = chance.choices([MINE, OTHER, ""], [16, 1, 1])[0]
        if holder:
            self._put("SET", f"beat:lock:{name}", holder, "PXAT", self._now + 8000)
        if self._is(0.95):
            self._put("ZADD", "beat:due", self._now + 10_000, name)

    def _make_hash(self, made: Schedule) -> None:
        chance = self._chance
        fields: dict[str, Any] = {
            "state": made.state,
            "rev": made.rev,
            "run_count": made.count,
            "skip_count": chance.randint(0, 5),
            "created_at": made.created_at,
            "rule": chance.choice(['{"every":"1m"}', "garbled {", '{"cron":"\x01"}'])
            if self._is(0.2)
            else '{"every":"1m"}',
            "source": made.origin,
            "job_meta": f"{made.rev} {META.hex()}",
            "definition": chance.choice(['{"id":"it"}', "d" * 16_385]) if self._is(0.1) else "{}",
        }
        if made.tick:
            fields |= {"next_run": text(made.tick * 1000), "due_at": text(made.due)}
        if made.origin == "code":
            fields["app"] = made.app
        if made.version is not None:
            fields["version"] = made.version
        if made.state == "paused":
            fields |= {"pause_reason": "work", "paused_by": "me", "paused_at": made.created_at, "pause_scope": "all"}
            fields |= {"pause_until": made.until} if made.until else {}
        if made.follows:
            fields["follows"] = made.follows
            self._put("SADD", f"beat:followers:{made.follows}", made.id)
        if made.runs and self._is(0.7):
            fields["last_job"] = made.runs[-1].job
        fields |= self._other_fields()
        if self._is(0.85 if made.due < made.tick * 1000 else 0.1):
            fields |= {"moved": fields.get("next_run", "x"), "moved_by": "me"}
        self._hash(f"beat:schedule:{made.id}", fields)
        if made.state != "active" and self._is(0.9):
            self._put("SADD", f"beat:in:{made.state}", made.id)

    def _other_fields(self) -> dict[str, Any]:
        others: dict[str, list[Any]] = {
            "manual_count": [1, 2],
            "skips": ["misfire 3", "overlap 1 misfire 2", "misfire 9999999999999999", "misfire x 3"],
            "ends": ["succeeded 2 failed 1"],
            "misfire_after": [5000, 400_000],
            "result_ttl": [500],
            "failure_ttl": [900],
            "last_run": [text(self._now - 100_000), text(self._now + 100_000), "never"],
            "last_error": ["it failed"],
            "last_success": [text(self._now - 9000), text(self._now + 9000), text(self._now + 99_000)],
            "last_failure": [text(self._now - 8000), text(self._now + 8000)],
            "success_count": [3, "x"],
            "failure_count": [2],
            "consecutive_failures": [1, 2],
            "overlap": ["wait"],
            "slow": ["100 2 60000", "x"],
            "declared_rev": ["r2"],
            "uses": ["{}"],
            "unannounced_at": [text(self._now - 10**7)],
            "override": ["{}"],
            "monitor": ["{}"],
            "jitter": ["5s"],
            "paused_at": [text(self._now - 10**7)],
        }
        found = {name: self._chance.choice(values) for name, values in others.items() if self._is(0.12)}
        if self._is(0.03):
            found["run_count"] = "many"
        if self._is(0.07):
            found["job_meta"] = self._chance.choice(GARBAGE["job_meta"])
        if self._is(0.6):
            found["revs"] = self._chance.choice(["r2 r1", "r1 r2 r3", "r3 r2 r1"])
        return found

    def _make_template(self, made: Schedule) -> None:
        fields: dict[str, Any] = {
            "data": b"\x00data",
            "origin": "default",
            "timeout": 180,
            "status": "queued",
            "meta": META,
        }
        others = {"ttl": 500, "retries_left": self._chance.choice([3, "x"]), "origin": "elsewhere", "meta": b"\x80odd"}
        fields |= {name: value for name, value in others.items() if self._is(0.08)}
        self._hash(f"beat:template:{made.id}", fields)

    def _make_ledger(self, made: Schedule) -> None:
        lines = self._chance.choices(
            ['{"type":"enqueued","tick":1}', '{"type":"skipped"}', '{"type":"succeeded"}', "garbled"],
            [5, 2, 3, 1],
            k=self._chance.choice([0, 1, 5, 7, 43, 44, 46, 170]),
        )
        if lines:
            self._put("RPUSH", f"beat:runs:{made.id}", *lines)
        if self._is(0.85):
            self._put("HSET", f"beat:schedule:{made.id}", "kept", sum(line.startswith(VERDICTS) for line in lines))

    def _make_runs(self, made: Schedule) -> None:
        chance = self._chance
        for n in range(chance.choices([0, 1, 2, 3], [4, 3, 2, 1])[0]):
            job = f"beat_{made.id}_{n + 1}"
            sign = Sign(
                chance.choice(["queued", "started", "started", "finished", "failed", "stopped", "canceled"]),
                chance.choice(["", text(self._now - 7000)]),
                chance.choice(["", text(self._now - 3000)]),
            )
            known = None if self._is(0.1) else sign
            told = {"schedule": made.id, "tick": text(made.tick * 1000), "by": "scheduler", "n": n}
            run = Run(job, json.dumps(told), known, self._is(0.3), made.group)
            made.runs.append(run)
            if known:
                self._hash(
                    f"rq:job:{job}",
                    {"status": known.status, "started_at": known.started_at, "ended_at": known.ended_at},
                )
                self._put("XADD", f"rq:results:{job}", "1-1", "type", "1")
                self._put("ZADD", "rq:finished:default", 1, job)
            if self._is(0.95):
                self._put("HSET", "beat:records", job, run.record)
                self._put("ZADD", "beat:closed" if run.is_closed else "beat:open", self._now - 100 + n, job)
            if not run.is_closed and (made.slot or made.group) and self._is(0.9):
                self._put("ZADD", f"beat:running:{made.id}", self._now - 100 + n, job)
                if made.group:
                    self._put("ZADD", f"beat:running:@{made.group}", self._now - 100 + n, job)

    def _make_waiting(self, made: Schedule) -> None:
        chance = self._chance
        if not (made.slot or made.group or made.follows) or self._is(0.4):
            return
        for n in range(chance.randint(1, 3)):
            tick = (
                text(made.tick * 1000)
                if made.tick and self._is(0.1)
                else text((self._now // 1000 - 600 + n * made.step) * 1000)
            )
            wait = (
                (tick, "follows", "beat_x_1") if made.follows else (tick, chance.choice(["scheduler", "catchup"]), "")
            )
            made.waiting.append(wait)
            member, score = " ".join((made.id, *wait)).strip(), self._now - 600_000 + n * made.step * 1000
            self._put("ZADD", f"beat:waiting:{made.id}", score, member)
            if self._is(0.6):
                self._put("ZADD", "beat:waiting", self._now + 500, made.id)
            if made.group and self._is(0.5):
                self._put("ZADD", f"beat:waiting:@{made.group}", score, member)
                if self._is(0.6):
                    self._put("ZADD", "beat:waiting", self._now + 500, f"@{made.group}")

    def _spoil(self, made: Schedule) -> None:
        key = f"beat:schedule:{made.id}"
        match self._chance.choice(TROUBLES):
            case "gone":
                self._put("DEL", key)
            case "no template":
                self._put("DEL", f"beat:template:{made.id}")
            case "template ttl":
                self._put(
                    "HSET", f"beat:template:{made.id}", "ttl", self._chance.choice(["0", "long", "-5", "12345678901"])
                )
            case "type":
                family = self._chance.choice((*FAMILIES, "lock"))
                self._replace_by_other_type(f"beat:{family}:{made.id}")
            case "ledger":
                self._replace_by_other_type(f"beat:runs:{made.id}")
            case "field":
                name = self._chance.choice(list(GARBAGE))
                self._put("HSET", key, name, self._chance.choice(GARBAGE[name]))
            case "no field":
                self._put("HDEL", key, self._chance.choice(list(GARBAGE)))

    def _hash(self, key: str, fields: dict[str, Any]) -> None:
        if fields:
            self._put("HSET", key, *(word for pair in fields.items() for word in pair))

    # --- messages ----------------------------------------------------------------------------------------------------

    def _message(self) -> Message:
        chance = self._chance
        step = chance.choices(STEPS, [8, 4, 3, 3, 3, 4])[0]
        make: Callable[[Schedule], Iterator[Item]] = getattr(self, f"_{step}")
        items = [item for each in self._picked() for item in make(each)]
        if not items:
            return self._message()
        if items and self._is(0.1):
            items.insert(chance.randrange(len(items) + 1), chance.choice(items))
        return Message(step, tuple(self._spoiled(item) for item in items), OTHER if self._is(0.04) else MINE)

    def _picked(self) -> list[Schedule]:
        """Return some schedules; like those of a page, most are alike."""
        return self._chance.sample(self._schedules, self._chance.randint(1, len(self._schedules)))

    def _fire(self, of: Schedule) -> Iterator[Item]:
        chance = self._chance
        if of.state != "active" and self._is(0.7):
            return
        if not of.tick or self._is(0.08):
            odd: list[Item] = [ReleaseItem(of.id), QuarantineItem(of.id, of.rev, 'it has "no" timing')]
            yield chance.choice(odd)
            return
        for n in range(chance.choices([1, 2, 4], [6, 2, 1])[0]):
            if n and of.due > self._now and self._is(0.9):
                return
            count = chance.randint(1, 3) if self._is(0.25) else 0
            tick, due = text(of.tick * 1000), of.due
            last = of.tick + max(count - 1, 0) * of.step
            ends = self._is(0.07)
            of.tick = last + of.step
            of.due = of.tick * 1000 + (chance.choice([250, 9000]) if self._is(0.1) else 0)
            following = ("", 0) if ends else (text(of.tick * 1000), of.due)
            error = chance.choice(["", "", "", "", "no connection"])
            if count:
                reason = chance.choice(["misfire", "excluded", "dependency", "an odd reason"])
                why, expects = (self._because(), self._expects(of)) if reason == "dependency" else ("", ())
                yield SkipItem(
                    of.id, of.rev, tick, due, *following, text(last * 1000), count, reason, why, error, expects
                )
            else:
                yield FireItem(
                    id=of.id,
                    rev=of.rev,
                    tick=tick,
                    due=due,
                    next=following[0],
                    next_due=following[1],
                    error=error,
                    is_cleared=bool(of.slot or of.group) and self._is(0.3),
                    expects=self._expects(of) if self._is(0.05) else (),
                    max_runs=of.max_runs,
                    **self._enqueued(of, f"beat_{of.id}_{last}"),
                    by=chance.choice(["scheduler", "scheduler", "catchup"]),
                )
            if ends:
                return

    def _enqueued(self, of: Schedule, job: str) -> dict[str, Any]:
        is_routed = self._is(0.08)
        return {
            "job": job,
            "queues": of.queues,
            "runs": tuple(f"(run of {job} {n}\n.".encode() for n in range(len(of.queues))),
            "at_front": self._is(0.07),
            "slot": of.slot,
            "group": of.group,
            "why": self._because() if is_routed else "",
            "uses": '{"default":1}' if is_routed else "",
        }

    def _because(self) -> str:
        return self._chance.choice(["default is the shortest", 'it "requires" b', ""])

    def _expects(self, of: Schedule) -> tuple[Expectation, ...]:
        told = self._chance.choice([("state", of.state), ("state", of.state), ("last_success", ""), ("state", "odd")])
        return (Expectation(of.id, "rev", of.rev), Expectation(of.id, *told))

    def _admit(self, of: Schedule) -> Iterator[Item]:
        chance = self._chance
        waiting = of.waiting or [(text(self._now - 5000), "scheduler", "")] * self._is(0.2)
        for tick, by, after in waiting[: chance.randint(1, 3)]:
            named = self._enqueued(of, f"beat_{of.id}_{'f1a2' if after else len(tick)}_{tick[14:16]}{tick[17:19]}")
            named |= {"id": of.id, "rev": of.rev, "tick": tick, "by": by, "after": after, "max_runs": of.max_runs}
            named["due"] = self._ms(tick)
            if self._is(0.3):
                reason = chance.choice(["dependency", "replaced", "misfire"])
                yield DropItem(**named, reason=reason, expects=self._expects(of) if self._is(0.4) else ())
            else:
                yield AdmitItem(**named)

    def _ms(self, tick: str) -> int:
        return (datetime.fromisoformat(tick) - EPOCH) // timedelta(milliseconds=1)

    def _trigger(self, of: Schedule) -> Iterator[Item]:
        chance = self._chance
        by, past = chance.choice(
            [("manual", ""), ("manual", ""), ("backfill", text((self._now // 1000 - 86_400) * 1000))]
        )
        job = f"beat_{of.id}_{by[0]}{chance.randrange(3)}"
        is_forced, named = self._is(0.2), self._enqueued(of, job)
        if self._is(0.08):
            self._put("SET", f"beat:request:{job}", text(self._now), "PXAT", self._now + 5000)
        item = TriggerItem(
            id=of.id,
            rev=of.rev,
            tick=past,
            by=by,
            remembered_s=chance.choice([3600, 60]),
            is_forced=is_forced,
            data=b"\x00other" if self._is(0.2) else b"",
            **named | ({"slot": None} if is_forced else {}),
        )
        if of.tick and not past and self._is(0.35):
            before, of.tick = of.tick, of.tick + of.step
            of.due = of.tick * 1000
            following = ("", 0) if self._is(0.1) else (text(of.due), of.due)
            item = replace(item, instead_of=text(before * 1000), next=following[0], next_due=following[1])
        yield item

    def _resume(self, of: Schedule) -> Iterator[Item]:
        if of.state != "paused" and self._is(0.8):
            return
        tick, until = of.tick, self._chance.choice([of.until, of.until, of.until, "", text(self._now - 200)])
        version = self._chance.choice([None, None, None, of.version, 3])
        count = self._chance.randint(1, 4) if tick and self._is(0.6) else 0
        item = ResumeItem(of.id, of.rev, "", "", 0, until=until, version=version, is_disabled=self._is(0.1))
        if tick:
            of.tick += count * of.step
            of.due = of.tick * 1000
            following = ("", 0) if count and self._is(0.1) else (text(of.due), of.due)
            last = text((of.tick - of.step) * 1000) if count else ""
            item = replace(
                item, tick=text(tick * 1000), next=following[0], next_due=following[1], count=count, last=last
            )
        yield item

    def _spoiled(self, item: Item) -> Item:
        """Return the item, or one that makes no sense or comes too late."""
        if not self._is(0.15):
            return item
        chance, past, future = self._chance, text(self._now - 10**6), text(self._now + 10**7)
        wrong: dict[str, list[Any]] = {
            "rev": ["r9", ""],
            "tick": [past, future, "soon", ""],
            "due": [-5, self._now + 700, self._now - 700, 10**9],
            "next": [past, "soon", "", future, f"{future[:-1]}.000Z", past],
            "next_due": [-1, 10**15, self._now + 2500],
            "job": ["", 'a "job"\n', "beat_a_1", "spoiled"],
            "queues": [(), ("rq:queue:spoiled",), ("rq:queue:default", "rq:queue:spoiled"), ("elsewhere",)],
            "by": ['"me"', "catchup"],
            "slot": [Slot("skip", 0, 0), Slot("wait", 1, 0), Slot("odd", 1, 1)],
            "group": ["g9", "g1", "g 1 2", "@"],
            "max_runs": [0, 1, -1],
            "runs": [(), (b"", b""), (b"(odd\n.",)],
            "last": [past, "", "soon", future],
            "count": [0, -1, 10**15],
            "reason": ["", "x" * 41],
            "until": [past, "soon", future],
            "version": [0, 1, 7, 8],
            "instead_of": [past, future, "soon"],
            "remembered_s": [-1, 1],
            "is_forced": [True],
            "is_cleared": [True],
            "after": ["beat_x_2"],
            "id": ["nobody", *"abc"],
            "expects": [(Expectation("nobody", "state", ""),), (Expectation("nobody", "state", "active"),)],
            # of close and register
            "kind": ["mark", "forget", "odd"],
            "seen": ["", "{}"],
            "sign": [None, Sign("odd", "", "")],
            "outcome": ["odd", "lost", "failed"],
            "ttl": [-1, 0, 9000, None],
            "life": ["", past],
            "part": [None, Part("beat_a_7", 0, 2), Part("beat_a_7", 1, 2), Part("two words", 1, 2)],
            "registry": ["beat:due", "beat:groups", "rq:finished:default"],
            "seen_rev": ["", "r9"],
            "seen_next": ["", past],
            "seen_state": ["", "broken"],
            "origin": ["api", "operator", "code"],
            "app": ["third", "other", "default"],
            "func": ["tasks.hidden"],
            "declared": ["r2", "r9"],
            "state": ["disabled", "finished", "paused", "retired"],
        }
        names = [name for name in item.__dataclass_fields__ if name in wrong]
        name = chance.choice(names)
        if name in {"job", "queues"} and self._is(0.5):
            self._state.extend([("SET", "rq:queue:spoiled", "x"), ("SET", "rq:job:spoiled", "x")])
        if name == "runs" and isinstance(item, FireItem) and len(item.queues) == 1:
            return item
        changed: Any = {name: chance.choice(wrong[name])}
        return replace(item, **changed)

    def _close(self, of: Schedule) -> Iterator[Item]:
        chance = self._chance
        for run in of.runs:
            if self._is(0.2):
                continue
            kind = chance.choices(["close", "reopen", "mark", "forget"], [8, 2, 1, 1])[0]
            outcome = (
                "reopened"
                if kind == "reopen"
                else chance.choice(["succeeded", "succeeded", "failed", "stopped", "lost"])
            )
            ended = chance.choice([text(self._now - 3000), text(self._now - 20_000), ""])
            record = "" if (kind == "close" and self._is(0.5)) or kind == "forget" else run.record[:-1] + ', "seen": 1}'
            was = chance.choice(["failed", "lost", "stopped", "succeeded"]) if run.is_closed else ""
            yield CloseItem(
                kind=kind,
                job=run.job,
                seen=run.record,
                sign=run.sign,
                record=record,
                id=of.id,
                tick=text(of.tick * 1000) if of.tick else "",
                outcome=outcome,
                entry=json.dumps({"type": outcome, "job": run.job})[:-1],
                was=was,
                was_ended=text(self._now - 9000) if was else "",
                ended=ended,
                duration=chance.choice(["", "0.05", "12.5"]),
                error="it broke" if outcome in {"failed", "lost"} else "",
                ttl=chance.choice([None, None, 0, 5000]),
                registry="rq:finished:default",
                life=chance.choice([of.created_at, of.created_at, "", text(self._now)]),
                group=run.group,
                part=Part("beat_a_7", chance.randrange(2), 2) if self._is(0.2) else None,
            )

    def _register(self, of: Schedule) -> Iterator[Item]:
        chance = self._chance
        is_new = self._is(0.15)
        seen_next = text(of.tick * 1000) if of.tick else ""
        ahead = text((self._now // 1000 + 60) * 1000)
        following = chance.choice([None, None, seen_next, ahead, ""])
        yield RegisterItem(
            id=f"{of.id}{chance.randrange(3)}" if is_new else of.id,
            rev=chance.choice([of.rev, of.rev, "r1", "r2", "r3"]),
            seen_rev="" if is_new else of.rev,
            seen_next="" if is_new else seen_next,
            seen_state="" if is_new else of.state,
            state=chance.choice([of.state, of.state, of.state, "active", "active", "finished"]),
            next=ahead if is_new else following,
            next_due=self._ms(following or ahead) + chance.choice([0, 0, 700]),
            rule=chance.choice(['{"every":"1m"}', '{"every":"2m"}']),
            origin=chance.choices([of.origin, "operator", "api", "code"], [9, 2, 1, 1])[0],
            declared=chance.choice([of.rev, "r1", "r2", "r3"]),
            app=chance.choice([of.app, of.app, "default", "other"]),
            func=chance.choice(["tasks.f", "tasks.f", "tasks.f", "tasks.g"]),
            version=chance.choice([None] * 6 + [of.version, 4]),
            follows=chance.choice(["", "", of.follows, "a"]),
            fields={
                "func": "tasks.f",
                "definition": "{}",
                **{
                    n: v
                    for n, v in {"monitor": "{}", "override": "{}", "follows": "a", "job_meta": "r1 80"}.items()
                    if self._is(0.15)
                },
            },
            template={"data": chance.choice([b"\x00data", b"\x00more"]), "meta": META},
        )

    # --- what takes a script long ------------------------------------------------------------------------------------

    def _plain(self, name: str, ago: int = 10, **changes: Any) -> Schedule:
        """Make a schedule with nothing special about it, whose tick is due."""
        tick = self._now // 1000 - ago
        made = Schedule(
            id=name,
            rev="r1",
            state="active",
            tick=tick,
            step=60,
            due=tick * 1000,
            count=0,
            created_at=text(tick * 1000),
            origin="code",
            app="default",
            version=1,
            until="",
            slot=None,
            group="",
            queues=("rq:queue:default",),
            max_runs=None,
            follows="",
        )
        made = replace(made, **changes)
        at = text(tick * 1000)
        fields = {
            "state": "active",
            "rev": "r1",
            "next_run": at,
            "due_at": at,
            "run_count": 0,
            "skip_count": 0,
            "kept": 0,
        }
        self._hash(f"beat:schedule:{name}", {**fields, "created_at": at, "job_meta": f"r1 {META.hex()}"})
        self._hash(f"beat:template:{name}", {"data": b"x", "origin": "default", "meta": META})
        self._put("SET", f"beat:lock:{name}", MINE)
        self._schedules.append(made)
        return made

    def _fires(self, made: list[Schedule]) -> Message:
        items = [
            FireItem(
                id=of.id,
                rev=of.rev,
                tick=text(of.due),
                due=of.due,
                next=text(of.due + 60_000),
                next_due=of.due + 60_000,
                **self._enqueued(of, f"beat_{of.id}_{of.tick}"),
            )
            for of in made
        ]
        return Message("fire", tuple(items), MINE)

    def _long_page(self) -> list[Message]:
        made = [self._plain(f"p{n}", group="g1" if n % 400 == 399 else "") for n in range(1100)]
        self._hash("beat:groups", {"g1": "wait 1"})
        for each in made[:130]:  # more lines than a script reads to count them anew
            self._put("HDEL", f"beat:schedule:{each.id}", "kept")
            self._put("RPUSH", f"beat:runs:{each.id}", *(['{"type":"enqueued"'] * 3 + ["x"] * 41))
        return [self._fires(made)]

    def _long_slot(self) -> list[Message]:
        made = [self._plain(f"l{n}", slot=Slot("wait", 2, 2)) for n in range(4)]
        jobs = [(n, f"job{n}") for n in range(2001)]
        for key in ("beat:open", "beat:running:l0", "beat:running:l1", "beat:running:l2"):
            self._put("ZADD", key, *(word for pair in jobs for word in pair))
        return [self._fires(made)]

    def _ends(self, of: Schedule, number: int) -> Message:
        items = []
        for n in range(number):
            job, record = f"beat_{of.id}_{n}", f'{{"schedule":"{of.id}","n":{n}}}'
            self._put("HSET", "beat:records", job, record)
            self._put("ZADD", "beat:open", n, job)
            entry = f'{{"type":"succeeded","job":"{job}"'
            items.append(CloseItem("close", job, record, None, id=of.id, outcome="succeeded", entry=entry))
        return Message("close", tuple(items), MINE)

    def _many_ends(self) -> list[Message]:
        of = self._plain("m")
        self._put("SADD", "beat:followers:m", *(f"f{n}" for n in range(self._chance.choice([10, 480]))))
        self._plain("f1")
        self._hash("beat:schedule:f1", {"follows": "m"})
        return [self._ends(of, 105)]

    def _many_followers(self) -> list[Message]:
        of = self._plain("m")
        self._put("SADD", "beat:followers:m", *(f"f{n}" for n in range(501)))
        if self._is(0.5):
            self._put("ZADD", "beat:fanout", *(word for n in range(1000) for word in (n, f"m {n} job{n}")))
        return [self._ends(of, 3)]
