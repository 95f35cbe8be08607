"""Judge the schedulers: whether any is alive, whether they match, and how far their clocks are off."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

from beat.config import shell_quoting
from beat.doctor.findings import NOTE, OK, PROBLEM, WARNING, Finding, counted, some, span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from beat.doctor.facts import Beats
    from beat.storage.heartbeat import Instance

_OFF_MS = 1000
_START = "beat run app.tasks"


def judge(found: Beats) -> Iterator[Finding]:
    """Yield all findings about the live schedulers."""
    yield from alive(found)
    if found.alive:
        yield from passes(found)
        yield from versions(found)
        yield from tzdata(found)
        yield from clocks(found)


def alive(found: Beats) -> Iterator[Finding]:
    """Report how many schedulers run; without one nothing fires."""
    names = [each.name for each in found.alive]
    if len(names) > 1:
        yield Finding("beats", "alive", OK, f"{counted(len(names), 'scheduler')} running: {some(names)}")
    elif names:
        what = f"one scheduler running: {names[0]}; when it is gone, ticks wait until it is back"
        yield Finding("beats", "alive", NOTE, what, f"start another one on another machine: {_START}")
    elif found.schedules:
        yield Finding("beats", "alive", PROBLEM, "no scheduler is running: nothing fires", _START)
    else:
        yield Finding("beats", "alive", NOTE, "no scheduler is running", _START)


def passes(found: Beats) -> Iterator[Finding]:
    """Report schedulers that send heartbeats but no longer check for due ticks."""
    stuck = 0
    for each in found.alive:
        since = each.last_pass or each.started_at
        if since and found.now - since > found.patience:
            stuck += 1
            age = span((found.now - since).total_seconds())
            what = f"{each.name} has not looked for due ticks for {age}: it is stuck"
            yield Finding(
                "beats", "passes", PROBLEM, what, f"look at its log, and restart it: pid {each.pid} on {each.host}"
            )
    if not stuck:
        oldest = max((found.now - each.last_pass for each in found.alive if each.last_pass), default=timedelta(0))
        yield Finding(
            "beats", "passes", OK, f"all of them look for due ticks, the last {span(oldest.total_seconds())} ago"
        )


def versions(found: Beats) -> Iterator[Finding]:
    """Report schedulers of different versions, which are right only during a deploy."""
    by_version = _grouped(found.alive, lambda each: each.version or "unknown")
    if len(by_version) > 1:
        what = f"schedulers of different versions: {_listed(by_version)}"
        yield Finding("beats", "versions", WARNING, what, "finish the deploy: restart those that are older")
    elif (version := next(iter(by_version))) != found.version:
        what = f"schedulers are version {version}, and this command is {found.version}"
        yield Finding("beats", "versions", NOTE, what, f"pip install {shell_quoting.word(f'rq-beat=={version}')}")
    else:
        yield Finding("beats", "versions", OK, f"version {version}")


def tzdata(found: Beats) -> Iterator[Finding]:
    """Report different time zone data: where the rules of a zone have changed, the ticks differ."""
    by_release = _grouped(found.alive, lambda each: each.tzdata or "unknown")
    if len(by_release) > 1:
        what = f"time zone data differ: {_listed(by_release)}; where a zone has new rules, so do its ticks"
        remedy = "pip install --upgrade tzdata, or upgrade the system's, on all of them"
        yield Finding("beats", "tzdata", WARNING, what, remedy)
    else:
        yield Finding("beats", "tzdata", OK, f"time zone data {next(iter(by_release))}")


def clocks(found: Beats) -> Iterator[Finding]:
    """Compare the schedulers' clocks with Redis' clock.

    Redis' clock decides what is due. Log lines, and the times that workers write, use the clocks of their machines.
    """
    known = [(each.name, each.clock_offset_ms) for each in found.alive if each.clock_offset_ms is not None]
    off = [(name, offset) for name, offset in known if abs(offset) >= _OFF_MS]
    for name, offset in off:
        what = f"the clock of {name} is {abs(offset) / 1000:.1f} s {'ahead of' if offset > 0 else 'behind'} Redis'"
        yield Finding("beats", "clocks", WARNING, what, "keep both machines on time: chronyd, or systemd-timesyncd")
    if known and not off:
        most = max(abs(offset) for _, offset in known)
        yield Finding("beats", "clocks", OK, f"clocks within {most} ms of Redis'")


def _grouped(beats: Iterable[Instance], by: Callable[[Instance], str]) -> dict[str, list[str]]:
    found = defaultdict(list)
    for each in beats:
        found[by(each)].append(each.name)
    return dict(sorted(found.items()))


def _listed(grouped: dict[str, list[str]]) -> str:
    return "; ".join(f"{what} ({some(names)})" for what, names in grouped.items())
