"""Read the state of a schedule from its hash in Redis; a field that is missing or invalid is empty."""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.errors import BadZone, DeclarationError
from beat.schedule import serialize
from beat.timing import clock
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from beat.schedule.schedule import Schedule


class Pause(NamedTuple):
    """A pause of a schedule."""

    by: str
    at: datetime | None
    until: datetime | None
    """None if it lasts until an operator resumes the schedule."""
    reason: str
    scope: str
    """`all` if the whole namespace was paused, else `one`."""


class Override(NamedTuple):
    """The rule of an operator that replaces the rule of the code."""

    rule: Mapping[str, Any]
    by: str
    at: datetime | None
    declared: Mapping[str, Any]
    """The definition in the code."""
    declared_rev: str


class Bound(NamedTuple):
    """The bound that ended the ticks of a schedule: one of the two."""

    end: datetime | None = None
    max_runs: int | None = None


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One schedule, as Redis knows it."""

    schedule_id: str
    state: str
    """`active`, `paused`, `disabled`, `finished`, `retired` or `broken`; empty if Redis has none."""
    next_run: datetime | None
    due_at: datetime | None
    last_run: datetime | None
    run_count: int | None
    manual_count: int
    skip_count: int | None
    success_count: int
    failure_count: int
    stopped_count: int
    consecutive_failures: int
    last_success: datetime | None
    last_failure: datetime | None
    last_error: str
    last_duration: float | None
    """Seconds."""
    last_enqueued: datetime | None
    last_job: str
    created_at: datetime | None
    updated_at: datetime | None
    rev: str
    version: int
    """Grows with every change."""
    source: str
    """`code` or `api`; empty if Redis has none."""
    app: str
    pause: Pause | None
    override: Override | None
    deferred_by: str
    """The operator who moved the next tick; empty if none did."""
    unannounced_at: datetime | None
    """Since when no running scheduler declares it, so that its ticks are on hold."""
    tz: str
    """A zone that exists; UTC if Redis has none."""
    rule: Mapping[str, Any] = field(repr=False)
    """What decides its ticks, as the ledger keeps it."""
    definition: Mapping[str, Any] = field(repr=False)

    @property
    def declared(self) -> Mapping[str, Any]:
        """Return the definition in the code or in the data that declared it, without an override."""
        return self.override.declared if self.override and self.override.declared else self.definition

    @property
    def open_count(self) -> int | None:
        """Return how many of its runs have not ended; None if run_count cannot be read."""
        if self.run_count is None:
            return None
        return max(0, self.run_count - self.success_count - self.failure_count - self.stopped_count)

    @property
    def ticked(self) -> int:
        """Return how many of its ticks became jobs; requested runs do not count."""
        return max(0, (self.run_count or 0) - self.manual_count)

    @property
    def finished(self) -> Bound | None:
        """Return the bound that ended it; None if it has not finished, or the bound is unknown."""
        rule = self.schedule if self.state == "finished" else None
        if rule and rule.max_runs and (self.ticked >= rule.max_runs or not rule.end):
            return Bound(max_runs=rule.max_runs)
        return Bound(end=rule.end) if rule and rule.end else None

    @property
    def jittered(self) -> datetime | None:
        """Return when its next tick is due, if jitter delayed it; delays of catch-up do not count."""
        jitter = self.policies.jitter if self.policies else None
        if not (jitter and self.next_run and self.due_at):
            return None
        return self.due_at if self.next_run < self.due_at <= self.next_run + jitter else None

    @property
    def put_off(self) -> datetime | None:
        """Return when its next tick is due, if jitter or an operator changed that."""
        return self.due_at if self.deferred_by else self.jittered

    @functools.cached_property
    def schedule(self) -> Schedule | None:
        """Return the schedule with its ticks alone; None if the rule cannot be read."""
        return ticking(self.rule)

    @functools.cached_property
    def policies(self) -> Schedule | None:
        """Return the schedule with all its policies; None if the definition cannot be read."""
        try:
            return serialize.read(json.dumps(dict(self.definition)))
        except DeclarationError:
            return None


def read(schedule_id: str, found: Mapping[bytes, bytes]) -> Standing:
    """Parse the hash of a schedule, whatever it contains."""
    told = {name.decode(errors="replace"): value.decode(errors="replace") for name, value in found.items()}
    definition = parsed(told.get("definition", ""))
    rule = parsed(told.get("rule", "")) or definition
    times: dict[str, Any] = {name: clock.found(told.get(name, "")) for name in _INSTANTS}
    counts: dict[str, Any] = {name: _count(told.get(name, "")) or 0 for name in _COUNTS}
    return Standing(
        schedule_id=schedule_id,
        state=told.get("state", ""),
        **times,
        **counts,
        run_count=_count(told.get("run_count", "")),
        skip_count=_count(told.get("skip_count", "")),
        last_error=told.get("last_error", ""),
        last_duration=_seconds(told.get("last_duration", "")),
        last_job=told.get("last_job", ""),
        rev=told.get("rev", ""),
        version=_count(told.get("version", "")) or 0,
        source=told.get("source", ""),
        app=told.get("app", ""),
        pause=_pause(told) if told.get("state") == "paused" else None,
        override=_override(told) if "override" in told else None,
        deferred_by=told.get("moved_by", "") if told.get("moved", "") == told.get("next_run") else "",
        tz=_zone(told.get("tz") or rule.get("tz")),
        rule=rule,
        definition=definition,
    )


def _pause(told: Mapping[str, str]) -> Pause:
    at, until = clock.found(told.get("paused_at", "")), clock.found(told.get("pause_until", ""))
    return Pause(told.get("paused_by", ""), at, until, told.get("pause_reason", ""), told.get("pause_scope", "one"))


def _override(told: Mapping[str, str]) -> Override:
    return Override(
        parsed(told["override"]),
        told.get("overridden_by", ""),
        clock.found(told.get("overridden_at", "")),
        parsed(told.get("declared", "")),
        told.get("declared_rev", ""),
    )


def rule(written: str) -> Schedule | None:
    """Parse a rule and return a schedule with its ticks; None if it is invalid."""
    return ticking(parsed(written))


def ticking(rule: Mapping[str, Any]) -> Schedule | None:
    """Return a schedule with the ticks of this rule; None if it is invalid."""
    try:
        return serialize.ticking(rule)
    except DeclarationError:
        return None


_INSTANTS = (
    "next_run", "due_at", "last_run", "last_success", "last_failure", "last_enqueued", "created_at", "updated_at",
    "unannounced_at",
)  # fmt: skip
_COUNTS = ("manual_count", "success_count", "failure_count", "stopped_count", "consecutive_failures")


def _count(written: str) -> int | None:
    return int(written) if written.isascii() and written.isdigit() and len(written) < _LONG else None


_LONG = 16  # more digits than Redis' scripts can count


def _seconds(written: str) -> float | None:
    try:
        seconds = float(written)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) else None


def parsed(written: str) -> dict[str, Any]:
    """Parse a JSON object; return an empty one if it is invalid."""
    try:
        found = json.loads(written)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _zone(name: object) -> str:
    try:
        return zone(str(name)).name
    except BadZone:
        return "UTC"
