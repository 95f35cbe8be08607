"""`beat check`: import modules and report every invalid or surprising schedule, for people, CI and pre-commit."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import click

from beat.cli import modules, output
from beat.config import settings
from beat.errors import BadCron, BadInstant, BeatError, DeclarationError, LoadError
from beat.policies.lint import lint
from beat.schedule import monitor
from beat.schedule.registry import Load, default_registry
from beat.timing import clock
from beat.timing.cron import Cron
from beat.timing.cron.fields import SIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from beat.schedule.schedule import Schedule

_BAD = 1


@dataclass(frozen=True)
class _Finding:
    """One line of the report."""

    level: str
    where: str | None
    schedule: str | None
    message: str


@click.command("check")
@click.argument("names", metavar="[MODULES]...", nargs=-1)
@click.option("--setup", metavar="MODULE:CALLABLE", help="Call this before importing, to prepare the application.")
@click.option("--strict", is_flag=True, help="Treat warnings as problems.")
@click.option("-v", "--verbose", is_flag=True, help="List the schedules, too, with their next ticks.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(*, names: tuple[str, ...], setup: str | None, strict: bool, verbose: bool, as_json: bool) -> int:
    """Import modules and report every wrong or surprising schedule.

    \b
    beat check app.tasks               a module
    beat check app                     a package with its sub-modules
    beat check app/tasks.py            a file
    beat check                         the modules of BEAT_MODULES or [tool.beat], else ./tasks.py

    Ends with 1 if there are problems, with 0 if there are none. Warnings are about what is legal but may not be meant.
    With DJANGO_SETTINGS_MODULE set, django.setup() comes first.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    loaded = settings.load({"setup": setup})
    chosen = modules.choose(names, loaded)
    if not chosen.names:
        raise click.UsageError(f"name the modules to check, as in 'beat check app.tasks', {modules.REMEDY}")
    if chosen.why:
        output.say(chosen.why, err=True)
    findings = [_warning(warning) for warning in loaded.warnings]
    findings += _presets(loaded.settings.presets)
    findings += _load(chosen.names, loaded.settings.setup)
    with output.kept_for_the_report():  # lint imports functions that exclude days, and imports may print
        linted = lint(default_registry, clock.now())
    findings += [
        replace(_problem(e), level="warning") for e in monitor.without_dsn(default_registry, loaded.settings.sentry_dsn)
    ]
    findings += [_Finding(f.level, _place(f.schedule), f.schedule.id, f.message) for f in linted]
    if as_json:
        _document(findings)
    else:
        _show(findings, verbose=verbose, strict=strict)
    return _BAD if any(f.level == "problem" or strict for f in findings) else 0


def _presets(presets: Mapping[str, str]) -> Iterator[_Finding]:
    for name, expression in presets.items():
        try:
            Cron(expression, seconds=len(expression.split()) == len(SIX))
        except BadCron as e:
            yield _Finding("problem", f"preset {name}", None, e.message)


def _load(names: Iterable[str], setup: str | None) -> Iterator[_Finding]:
    with output.kept_for_the_report(), default_registry.collecting() as refused:
        try:
            done = default_registry.load(*names, setup=setup)
        except LoadError as e:
            done = Load(modules=(), silent=(), problems=(e,))
    yield from (_problem(error) for error in (*done.problems, *refused))
    for name in done.unseen:
        yield _warning(f"{name} holds schedules but no __init__.py, and was not imported: add one, or name {name}")
    for name in done.silent if not refused else []:
        yield _warning(f"{name} declares no schedule with beat.periodic: is it missing, or the name wrong?")


def _warning(message: str) -> _Finding:
    return _Finding("warning", None, None, message)


def _problem(error: BeatError) -> _Finding:
    if isinstance(error, DeclarationError):
        return _Finding("problem", error.where, None, error.message)
    return _Finding("problem", None, None, str(error))


def _place(schedule: Schedule) -> str | None:
    return str(schedule.declared) if schedule.declared else None


def _next_tick(schedule: Schedule, now: datetime) -> str | None:
    try:
        tick = schedule.after(now)
    except BadInstant:  # its ticks lie beyond the end of the calendar, which lint reports
        return None
    return clock.text(tick) if tick else None


def _show(findings: list[_Finding], *, verbose: bool, strict: bool) -> None:
    if verbose and len(default_registry):
        now = clock.now()
        rows = [[s.id, _next_tick(s, now) or "never", _place(s) or "", s.describe()] for s in default_registry]
        output.table(["schedule", "next tick", "declared", "when"], rows)
        output.echo()
    for f in findings:
        output.complaint(f.level, f"{f.schedule}: {f.message}" if f.schedule else f.message, f.where)
    count = {level: sum(f.level == level for f in findings) for level in ("problem", "warning")}
    said = ", ".join(f"{n} {level}{'s' * (n != 1)}" for level, n in count.items())
    words = f"{len(default_registry)} schedule{'s' * (len(default_registry) != 1)}: {said}"
    output.say(words + (" (which count as problems)" if strict and count["warning"] else ""), err=True)


def _document(findings: list[_Finding]) -> None:
    now = clock.now()
    schedules = [
        {
            "id": s.id,
            "func": s.func,
            "when": s.describe(),
            "timing": str(s.timing),
            "tz": s.tz,
            "queue": s.queue,
            "enabled": s.enabled,
            "next_tick": _next_tick(s, now),
            "declared": _place(s),
            "rev": s.rev,
        }
        for s in default_registry
    ]
    told = {level: [asdict(f) for f in findings if f.level == level] for level in ("problem", "warning")}
    output.document(schedules=schedules, problems=told["problem"], warnings=told["warning"])
