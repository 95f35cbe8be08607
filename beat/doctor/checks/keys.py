"""Judge whether this version of beat can use its keys in Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from beat.doctor.facts import Unseen
from beat.doctor.findings import OK, PROBLEM, WARNING, Finding, counted, rename, some, span, unseen
from beat.storage.clock_setback import REMEDY
from beat.timing import clock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.doctor.facts import Kept

_SECOND_MS = 1000


def judge(found: Kept) -> Iterator[Finding]:
    """Judge format, types, scripts, Redis' clock, what lies too far ahead, functions."""
    yield from layout(found)
    yield from types(found)
    yield from scripts(found)
    yield from hold(found)
    yield from setback(found)
    yield from far(found)
    yield from functions(found)


def layout(found: Kept) -> Iterator[Finding]:
    """Compare the format of the keys; a scheduler leaves keys of a newer format alone."""
    if found.format in {"", str(found.understood)}:
        written = f"the keys are of format {found.format}" if found.format else "no scheduler has written here yet"
        yield Finding("state", "format", OK, written)
    else:
        what = f"the keys are of format {found.format}, and this version leaves alone what is not of {found.understood}"
        yield Finding("state", "format", PROBLEM, what, "pip install --upgrade rq-beat")


def types(found: Kept) -> Iterator[Finding]:
    """Report keys that another program replaced with another type."""
    if isinstance(found.strange, Unseen):
        yield unseen("state", "types", found.strange.right, "the types of the keys")
        return
    for words in found.strange:
        key = words.partition(" ")[0]
        yield Finding("state", "types", PROBLEM, words, rename(key))
    if not found.strange:
        yield Finding("state", "types", OK, "every key is of its type")


def scripts(found: Kept) -> Iterator[Finding]:
    """Report scripts that Redis rejects; a script that is new to Redis is loaded and is no fault."""
    if isinstance(found.loaded, Unseen):
        yield unseen("state", "scripts", found.loaded.right, "the scripts")
        return
    for name, why in found.refused.items():
        what = f"Redis does not take the script {name}: {why}"
        yield Finding("state", "scripts", PROBLEM, what, "report it: this is a bug of beat's, or a server that is none")
    if not found.refused:
        new = found.scripts - found.loaded
        sent = f", {new} of them for the first time" if new else ""
        yield Finding("state", "scripts", OK, f"Redis takes all {found.scripts} scripts{sent}")


def hold(found: Kept) -> Iterator[Finding]:
    """Report a hold: after a forward jump of Redis' clock nothing fires until the new time has lasted a minute."""
    if found.hold_until and found.now and found.hold_until > found.now:
        left = span((found.hold_until - found.now).total_seconds())
        what = f"Redis' clock jumped forward: nothing fires for {left}, until {clock.text(found.hold_until)}"
        yield Finding(
            "state", "clock", WARNING, what, "keep the machine of Redis on time: chronyd, or systemd-timesyncd"
        )


def setback(found: Kept) -> Iterator[Finding]:
    """Report that Redis' clock went back; a schedule then fires nothing before its next tick."""
    if found.setback:
        level = PROBLEM if found.setback.stops_everything else WARNING
        yield Finding("state", "clock", level, found.setback.words, REMEDY)


def far(found: Kept) -> Iterator[Finding]:
    """Report locks and scores that lie too far ahead; such a lock stops every scheduler."""
    if isinstance(found.far, Unseen):
        yield unseen("state", "ahead", found.far.right, "what lies too far ahead")
    elif found.far:
        words = [f"{each.key} by {_ahead(each.ms)}, not {_ahead(each.most_ms)}" for each in found.far]
        what = f"Redis' clock was ahead when this was written, and it lies too far ahead now: {some(words)}"
        remedy = "a live scheduler of this version corrects it within a minute: beat run app.tasks"
        yield Finding("state", "ahead", PROBLEM, what, remedy)


def _ahead(ms: int) -> str:
    if ms < 0:
        return "no end"
    return f"{ms} ms" if ms < _SECOND_MS else span(ms / _SECOND_MS)


def functions(found: Kept) -> Iterator[Finding]:
    """Report schedules added at run time whose function no application exposes."""
    if found.unexposed:
        words = [f"{each.id} ({each.words})" for each in found.unexposed]
        what = f"{counted(len(words), 'schedule')} of functions that no application exposes: {some(words)}"
        yield Finding("state", "functions", WARNING, what, "declare the function with @schedulable, and start its beat")
