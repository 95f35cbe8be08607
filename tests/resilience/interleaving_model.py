"""What Redis must hold of one schedule after each script, in whatever order the scripts run and however often.

The model knows no Redis. Each method is one message to Redis: it returns the codes of the replies and changes the model
as the scripts must change Redis. `holds` returns all that is compared.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from beat.config.groups import WhenFull
    from beat.schedule.options import Overlap

KEEP = -1
"""The place of the schedule in the index stays as it is."""
Member = tuple[str, str]
"""A tick on a waiting list, and what triggered it."""


@dataclass(frozen=True)
class Policy:
    """What a definition says about capacity."""

    overlap: Overlap = "allow"
    max_running: int = 1
    max_waiting: int = 1
    max_runs: int | None = None


@dataclass(frozen=True)
class Group:
    """The capacity of the group to which all definitions belong."""

    when_full: WhenFull
    max_running: int
    max_waiting: int


@dataclass(frozen=True)
class Step:
    """One decision in a message."""

    kind: str
    """`fire`, `skip`, `release`, `resume`, `admit`, `pass` or `trigger`."""
    rev: str = ""
    tick: str = ""
    due: int = 0
    next: str = ""
    next_due: int = 0
    job: str = ""
    by: str = ""
    last: str = ""
    count: int = 1
    reason: str = ""
    until: str = ""
    """The end of the pause that a `resume` ends; empty if an operator ends it."""
    version: str = ""
    instead_of: str = ""
    """The next tick, if a triggered run takes its place."""
    forced: bool = False
    """Whether a triggered run needs no free slot."""
    cleared: bool = False
    """Whether runs that had ended were closed just before."""


class Registered(NamedTuple):
    """A definition, and the state of the schedule for which it was prepared."""

    rev: str
    seen: tuple[str, str, str]
    """Its rev, its next tick and its state."""
    state: str
    next: str
    """The next tick from now on, or `keep`."""
    next_due: int


class Ending(NamedTuple):
    """The outcome of a run, or `mark` if only its record changes; prepared from what was seen of the run."""

    job: str
    outcome: str
    record: int
    signs: int


@dataclass
class Run:
    """A job that was enqueued."""

    job: str
    tick: str
    life: int
    status: str = "queued"
    """`queued`, `started`, `finished`, `failed`, `canceled`; `vanished` if RQ has no record of it."""
    is_open: bool = True
    record: int = 0
    """How often beat's record of the run has changed."""
    signs: int = 0
    """How often RQ's record of the job has changed."""
    replaced_by: str = ""


@dataclass
class Known:
    """The schedule while it exists."""

    life: int
    rev: str = ""
    state: str = "active"
    next: str = ""
    due: int = 0
    version: int = 0
    until: str = ""
    reason: str = ""
    last_job: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    skips: Counter[str] = field(default_factory=Counter)
    """How many ticks were skipped, by reason."""
    ends: Counter[str] = field(default_factory=Counter)
    """How many runs ended, by outcome."""
    waiting: dict[Member, None] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)
    newest: str = ""
    """The newest tick of the calendar that was decided, or waits."""
    lines: int = 0
    has_strangers: bool = False
    """Whether runs were open from before it was removed and came again; `beat verify` takes them for its own."""


class Model:
    """One schedule and its runs."""

    def __init__(self, policies: Mapping[str, Policy], group: Group | None) -> None:
        self.now = 0
        self.known: Known | None = None
        self.index: int | None = None
        """When schedulers see the schedule; None if they do not."""
        self.owner, self.locked_until = "", 0
        self.runs: dict[str, Run] = {}
        self.running: set[str] = set()
        self.group_running: set[str] = set()
        self.group_waiting: set[Member] = set()
        self.new_lines: list[tuple[Any, ...]] = []
        """What the ledger has got since `holds` was last asked, oldest first."""
        self._policies, self._group = policies, group
        self._requests: set[str] = set()
        self._events = 0

    # --- what Redis must hold ----------------------------------------------------------------------------------------

    def holds(self) -> dict[str, Any]:
        """Return what Redis must hold; the caller then forgets `new_lines`."""
        found: dict[str, Any] = {
            "index": self.index,
            "owner": self.owner,
            "running": self.running,
            "group_running": self.group_running,
            "waiting": set(self.known.waiting) if self.known else set(),
            "group_waiting": self.group_waiting,
            "open": {run.job for run in self.runs.values() if run.is_open},
            "queue": sorted(run.job for run in self.runs.values() if run.status == "queued"),
            "events": self._events,
            "ledger": self.new_lines,
            "lines": self.known.lines if self.known else 0,
            "schedule": None,
        }
        if known := self.known:
            names = (
                "kept",
                "run_count",
                "manual_count",
                "skip_count",
                "success_count",
                "failure_count",
                "stopped_count",
            )
            found["schedule"] = {
                "state": known.state,
                "rev": known.rev,
                "next_run": known.next,
                "due_at": clock.text(clock.from_ms(known.due)) if known.next else "",
                "version": str(known.version),
                "pause_until": known.until,
                "pause_reason": known.reason,
                "last_job": known.last_job,
                "skips": dict(known.skips),
                "ends": dict(known.ends),
                **{name: known.counts[name] for name in names},
            }
        return found

    # --- messages of schedulers --------------------------------------------------------------------------------------

    def claim(self, owner: str, *, lookahead: int, lock_ttl: int) -> str:
        """Return `CLAIMED`, `LOCKED`, or an empty text if nothing is due."""
        if self.index is None or self.index > self.now + lookahead:
            return ""
        if self.owner:
            self.index = max(self.locked_until, self.now + lookahead + 1)
            return "LOCKED"
        self.owner, self.locked_until = owner, self.now + lock_ttl
        self.index = max(self.locked_until, self.now + lookahead + 1)
        return "CLAIMED"

    def decide(self, sender: str, steps: Sequence[Step]) -> list[str]:
        """Return the code for each decision of one message."""
        ours, codes, last = self.owner == sender, [], ""
        place: int | None = KEEP
        for step in steps:
            code, moved = self._decide(step, ours=ours)
            codes.append(code)
            if step.kind in {"admit", "pass"} or (step.kind == "trigger" and not step.instead_of):
                continue  # it needs no lock, and moves nothing
            place = place if moved == KEEP else moved
            last = last if last == "ENDED" else code
        if last in {"FENCED", "EARLY", "ENDED"}:
            place = KEEP
        elif last and ours:
            self.owner = ""
        if place != KEEP:
            self.index = place
        return codes

    def _decide(self, step: Step, *, ours: bool) -> tuple[str, int | None]:
        """Return the code, and the place in the index from then on."""
        if (known := self.known) is None:
            return "GONE", None
        if step.kind in {"admit", "pass"}:
            return self._admit(known, step), KEEP
        if step.kind == "trigger":
            return self._trigger(known, step)
        if step.kind == "resume":
            return self._resume(known, step, ours=ours)
        if not ours:
            return "STALE" if step.tick and known.next != step.tick else "FENCED", KEEP
        place = self._place(known)
        if step.kind == "release":
            return "OK", place
        if code := self._is_refused(known, step, "active"):
            return code, place
        if step.due > self.now:
            return "EARLY", place
        if step.kind == "skip":
            self._skip(known, step.tick, step.last, step.count, step.reason)
            return "OK", self._move(known, step)
        return self._fire(known, step, place)

    def _is_refused(self, known: Known, step: Step, state: str) -> str:
        """Return why the schedule is not as it was when the step was prepared; empty if it is."""
        if known.next != step.tick:
            return "STALE"
        if known.rev != step.rev:
            return "CHANGED"
        return "" if known.state == state else "INACTIVE"

    def _fire(self, known: Known, step: Step, place: int | None) -> tuple[str, int | None]:
        if self._finishes(known):
            self._skip(known, step.tick, step.tick, 1, "finished")
            return "SKIPPED", self._move(known, step, ends=True)
        slot, group = self._slot(known, cleared=step.cleared), "free"
        if slot == "free" and self._group:
            group = self._shared(self._group, known, cleared=step.cleared)
        if "ended" in {slot, group}:
            return "ENDED", place
        if "full" in {slot, group}:
            return self._wait(known, step, self._group if slot == "free" else None)
        self._enqueue(known, step)
        return "OK", self._move(known, step, ends=self._finishes(known))

    def _wait(self, known: Known, step: Step, group: Group | None) -> tuple[str, int | None]:
        """The tick has no slot, of its own or in the group."""
        policy, member = self._policy(known), (step.tick, step.by)
        when_full: str
        if group:
            when_full, most, ahead = group.when_full, group.max_waiting, len(self.group_waiting)
        else:
            if policy.overlap == "replace":
                for older in sorted(known.waiting):
                    self._skip(known, older[0], older[0], 1, "replaced")
                    self._leave(known, older)
            when_full, most, ahead = policy.overlap, policy.max_waiting, len(known.waiting) - self._in_both(known)
        if when_full == "skip" or ahead >= most:
            self._skip(known, step.tick, step.tick, 1, "group" if group else "overlap")
            return "SKIPPED", self._move(known, step)
        self._write(known, "waiting", step.tick, step.job)
        known.waiting[member] = None
        self.group_waiting |= {member} if group else set()
        return "WAITS", self._move(known, step, ends=self._finishes(known))

    def _admit(self, known: Known, step: Step) -> str:
        member = (step.tick, step.by)
        if member not in known.waiting:
            return "STALE"
        if known.rev != step.rev:
            return "CHANGED"
        has_slot = member in self.group_waiting
        reason = self._unwanted(known, step)
        if not reason:
            policy, taken = self._policy(known), len(self.running) + self._in_both(known)
            if policy.overlap != "allow" and not has_slot and taken >= policy.max_running:
                return "FULL"
            ahead = 0 if has_slot else len(self.group_waiting)
            if self._group and (ahead or not self._fits(self._group)[0]):
                if has_slot or (self._group.when_full == "wait" and ahead < self._group.max_waiting):
                    self.group_waiting.add(member)
                    return "FULL"
                reason = "group"
        self._leave(known, member)
        if reason:
            self._skip(known, step.tick, step.tick, 1, reason)
            return "SKIPPED"
        self._enqueue(known, step, has_slot=has_slot)
        return "OK"

    def _unwanted(self, known: Known, step: Step) -> str:
        """Return why a tick that waits is skipped whatever the capacity; empty if it is not."""
        if step.kind == "pass":
            return step.reason
        if known.state not in {"active", "finished"}:
            return known.state
        return "finished" if self._is_enough(known) else ""

    # --- messages of operators ---------------------------------------------------------------------------------------

    def _trigger(self, known: Known, step: Step) -> tuple[str, int | None]:
        if step.job in self._requests:
            return "STALE", KEEP
        if known.rev != step.rev or (step.instead_of and known.next != step.instead_of):
            return "CHANGED", KEEP
        if step.instead_of and known.state != "active":
            return "INACTIVE", KEEP
        if not step.forced and self._slot(known, cleared=True) != "free":
            return "FULL", KEEP
        if self._group and not step.forced and self._shared(self._group, known, cleared=True) != "free":
            return "FULL", KEEP
        self._enqueue(known, step)
        self._requests.add(step.job)
        known.counts["manual_count"] += 1
        if not step.instead_of:
            return "OK", KEEP
        self._skip(known, step.instead_of, step.instead_of, 1, "instead")
        return "OK", self._move(known, step)

    def _resume(self, known: Known, step: Step, *, ours: bool) -> tuple[str, int | None]:
        place = self._place(known) if ours else KEEP
        if code := self._is_refused(known, step, "paused"):
            return code, place
        if step.version and step.version != str(known.version):
            return "CONFLICT", place
        if step.until and step.until != known.until:
            return "CHANGED", place
        if step.until and clock.to_ms(clock.read(step.until)) > self.now:
            return "EARLY", place
        if step.count:
            self._skip(known, step.tick, step.last, step.count, "paused")
        known.state, known.until, known.reason = "active", "", ""
        known.version += 1
        self._write(known, "resumed")
        return "OK", known.due if step.next == step.tick else self._move(known, step)

    def pause(self, *, version: str, until: str, reason: str) -> str:
        """Pause the schedule."""
        if (known := self.known) is None:
            return "GONE"
        if version and version != str(known.version):
            return "CONFLICT"
        if known.state not in {"active", "paused"}:
            return "INACTIVE"
        if until and clock.to_ms(clock.read(until)) <= self.now:
            return "PAST"
        if known.state == "paused" and (known.until, known.reason) == (until, reason):
            return "SAME"
        known.state, known.until, known.reason = "paused", until, reason
        known.version += 1
        self.index = self._place(known)
        self._write(known, "paused")
        return "OK"

    def register(self, item: Registered) -> str:
        """Replace the definition."""
        known = self.known
        if item.seen != ((known.rev, known.next, known.state) if known else ("", "", "")):
            return "RETRY"
        if known and item.next != "keep" and "" < item.next <= known.newest:
            return "RETRY"
        if known is None:
            is_stranger = any(run.is_open for run in self.runs.values())
            code, line, known = "NEW", "registered", Known(life=self.now, has_strangers=is_stranger)
            self.known = known
        else:
            code, line = "UPDATED", "updated"
        state, following = item.state, item.next
        if known.next and clock.to_ms(clock.read(known.next)) <= self.now and known.state in {"active", "paused"}:
            state = "active" if state == "finished" and following != "keep" else state
            following = "keep"  # a tick that is due never moves
        if following not in {"keep", known.next}:
            code, line = ("NEW", line) if code == "NEW" else ("MOVED", "moved")
        if following != "keep":
            known.next, known.due = following, item.next_due
        known.rev, known.state = item.rev, state
        known.version += 1
        self.index = self._place(known)
        self._write(known, line)
        return code

    def remove(self, *, version: str) -> str:
        """Delete the schedule; its jobs stay."""
        if (known := self.known) is None:
            return "GONE"
        if version and version != str(known.version):
            return "CONFLICT"
        self.group_waiting -= known.waiting.keys()
        self.running, self.known, self.index = set(), None, None
        self.new_lines.clear()
        self._events += 1
        return "OK"

    # --- runs --------------------------------------------------------------------------------------------------------

    def close(self, endings: Sequence[Ending]) -> list[str]:
        """Record outcomes."""
        return [self._close(ending, self.runs[ending.job]) for ending in endings]

    def _close(self, ending: Ending, run: Run) -> str:
        if ending.record != run.record:
            return "STALE"
        if ending.signs != run.signs:
            return "CHANGED"
        run.record += 1
        if ending.outcome == "mark":
            return "OK"
        run.is_open = False
        self.running.discard(run.job)
        self.group_running.discard(run.job)
        if self.known is None:
            self._events += 1
            return "OK"
        if run.life == self.known.life:  # what was removed and came again counts from nought
            counter = {"succeeded": "success_count", "stopped": "stopped_count"}.get(ending.outcome, "failure_count")
            self.known.counts[counter] += 1
            self.known.ends[ending.outcome] += 1
        self._write(self.known, ending.outcome, run.tick, run.job)
        return "OK"

    def withdraw(self, jobs: Collection[str], tick: str) -> None:
        """Cancel the jobs that are queued; the workers of the others are told to stop them."""
        for run in (self.runs[job] for job in jobs):
            if run.status in {"queued", "started"} and run.is_open and run.replaced_by != tick:
                run.replaced_by = tick
                run.record += 1
            if run.status == "queued":
                self.work(run.job, "canceled")

    def work(self, job: str, status: str) -> None:
        """RQ's record of a job changes."""
        self.runs[job].status = status
        self.runs[job].signs += 1

    # --- capacity ----------------------------------------------------------------------------------------------------

    def _slot(self, known: Known, *, cleared: bool) -> str:
        """Return whether the schedule's own capacity is `free` or `full`; `ended` if runs are to be closed first."""
        policy = self._policy(known)
        if policy.overlap == "allow":
            return "free"
        self._adopt(self.running, known)
        shared = self._in_both(known)
        waits = len(known.waiting) - shared
        if len(self.running) + shared < policy.max_running and not waits:
            return "free"
        ended, live = self._ended(self.running)
        if not cleared and (ended or (waits and len(self.running) + shared < policy.max_running)):
            return "ended"
        return "full" if waits or live + shared >= policy.max_running else "free"

    def _shared(self, group: Group, known: Known, *, cleared: bool) -> str:
        """Return the same for the group."""
        self._adopt(self.group_running, known)
        (fits, ended), waits = self._fits(group), bool(self.group_waiting)
        if not waits and fits and not ended:
            return "free"
        if not cleared and (ended or (waits and fits)):
            return "ended"
        return "full" if waits or not fits else "free"

    def _fits(self, group: Group) -> tuple[bool, int]:
        """Return whether the group has a slot, and how many of its runs have ended and are not closed."""
        if len(self.group_running) < group.max_running:
            return True, 0
        ended, live = self._ended(self.group_running)
        return not self.group_running or live < group.max_running, ended

    def _ended(self, jobs: Collection[str]) -> tuple[int, int]:
        """Return how many of these have ended, and how many may go on; a job that is cancelled may do either."""
        statuses = Counter(self.runs[job].status for job in jobs)
        over = statuses["finished"] + statuses["failed"]
        return over + statuses["canceled"], len(jobs) - over

    def _adopt(self, jobs: set[str], known: Known) -> None:
        """The newest run occupies a slot, even if it needed none when it was enqueued."""
        if known.last_job and self.runs[known.last_job].is_open:
            jobs.add(known.last_job)

    def _in_both(self, known: Known) -> int:
        """Return how many of its ticks have a slot of the schedule, and wait for one of the group."""
        return len(self.group_waiting.intersection(known.waiting))

    def _policy(self, known: Known) -> Policy:
        return self._policies[known.rev]

    def _is_enough(self, known: Known, waiting: int = 0) -> bool:
        most = self._policy(known).max_runs
        return most is not None and known.counts["run_count"] - known.counts["manual_count"] + waiting >= most

    def _finishes(self, known: Known) -> bool:
        return self._is_enough(known, len(known.waiting))

    # --- what is written ---------------------------------------------------------------------------------------------

    def _enqueue(self, known: Known, step: Step, *, has_slot: bool = False) -> None:
        """With `has_slot`, the tick had a slot of the schedule while it waited for the group."""
        assert step.job not in self.runs, f"{step.job} is enqueued twice"
        if step.kind != "trigger":
            self._take(known, step.tick)
        policy = self._policy(known)
        if policy.overlap != "allow" and not step.forced:
            live = self._ended(self.running)[1] + self._in_both(known)
            assert has_slot or live < policy.max_running, f"{step.job} has no slot"
            self.running.add(step.job)
        if self._group:
            live = self._ended(self.group_running)[1]
            assert step.forced or live < self._group.max_running, f"{step.job} has no slot in the group"
            self.group_running.add(step.job)
        self.runs[step.job] = Run(step.job, step.tick, known.life)
        known.last_job = step.job
        known.counts["run_count"] += 1
        self._write(known, "enqueued", step.tick, step.job, step.by, known.counts["run_count"])

    def _skip(self, known: Known, tick: str, last: str, count: int, reason: str) -> None:
        self._take(known, tick)
        known.counts["skip_count"] += count
        known.skips[reason] += count
        self._write(known, "skipped", tick, last, count, reason, known.counts["skip_count"])

    def _take(self, known: Known, tick: str) -> None:
        assert tick not in known.decided, f"{tick} is decided twice"
        known.decided.add(tick)

    def _leave(self, known: Known, member: Member) -> None:
        del known.waiting[member]
        self.group_waiting.discard(member)

    def _write(self, known: Known, *line: Any) -> None:
        self.new_lines.append(line)
        known.lines += 1
        known.counts["kept"] += line[0] in {"enqueued", "skipped"}
        self._events += 1

    def _move(self, known: Known, step: Step, *, ends: bool = False) -> int | None:
        """The next tick comes; return its place in the index."""
        known.newest = max(known.newest, step.last or step.instead_of or step.tick)
        if ends or not step.next:
            known.state, known.next = "finished", ""
            return None
        known.next, known.due = step.next, step.next_due
        return step.next_due

    def _place(self, known: Known) -> int | None:
        """Return the place of the schedule in the index if no scheduler has claimed it."""
        if known.state == "active" and known.next:
            return known.due
        return clock.to_ms(clock.read(known.until)) if known.state == "paused" and known.until else None
