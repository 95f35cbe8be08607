"""What the commands that ask have in common: which Redis they ask, and in whose zone they tell.

What the commands that change have in common: who does it, whether one is sure, and what became of each schedule.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from beat.cli import output
from beat.client import Client
from beat.client.describe import instants
from beat.config import masking, settings
from beat.dev import embedded
from beat.errors import BeatError, NoRedis
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from beat.timing.zones import Zone


the_url: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--redis-url", "url", metavar="URL", help="Use this Redis.  [default: the setting, or that of beat dev here]"
)
as_json: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document; durations are in seconds."
)


reveal: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--reveal", is_flag=True, help="Show secrets instead of masking them."
)


def shown(document: dict[str, Any], *, reveal: bool) -> dict[str, Any]:
    """Return the document as the web UI would show it, with its secrets masked, unless they are to be revealed."""
    masked: dict[str, Any] = masking.shown(document)
    return document if reveal else masked


def worded(text: str, *, reveal: bool) -> str:
    """Return the text without the passwords in it, unless they are to be revealed."""
    return text if reveal else masking.without_passwords(text)


def where(url: str | None) -> str:
    """The Redis that was named, or is set, or else the one that `beat dev` runs in this directory."""
    loaded = settings.load({"redis_url": url})
    for warning in loaded.warnings:
        output.complaint("warning", warning, err=True)
    here = embedded.running() if loaded.origins["redis_url"] == "default" else None
    return here or loaded.settings.redis_url


def client(url: str | None, by: str | None = None) -> Client:
    """A client of that Redis, whose changes bear that name."""
    return Client(where(url), by=by)


def zone_of(client: Client, schedule_id: str) -> Zone:
    """The zone of a schedule; UTC where nothing but its ledger is left."""
    try:
        return zone(client.get(schedule_id).tz)
    except NoRedis:
        raise
    except BeatError:
        return zone("UTC")


T = TypeVar("T")
Option: TypeAlias = "Callable[[Callable[..., Any]], Callable[..., Any]]"

the_author: Option = click.option("--by", metavar="WHO", help="Record this name in the history.  [default: user@host]")
the_version: Option = click.option(
    "--expected-version",
    "version",
    metavar="N",
    type=click.IntRange(0),
    help="Refuse unless the schedule has this version (see beat show --json).",
)
sure: Option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
rehearse: Option = click.option("--dry-run", is_flag=True, help="Print what would be done; change nothing.")
NOT_DONE = 1


def named(ids: Iterable[str], version: int | None, *, everything: bool, option: str = "--all") -> list[str]:
    """The ids that were given, each once; none of them if `option` stands for many. Refuses both, and neither."""
    found = list(dict.fromkeys(ids))
    if everything == bool(found):
        problem = f"name schedules, or say {option}, not both"
        raise click.UsageError(problem if found else f"which schedule? Name it, or say {option}")
    if version is not None and len(found) != 1:
        raise click.UsageError("--expected-version is the version of one schedule: name one")
    return found


def agreed(question: str, *, yes: bool) -> bool:
    """Whether somebody is sure; refuses where nobody can be asked."""
    if yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError(f"{question} There is no terminal on which to answer: say --yes.")
    if click.confirm(question, err=True):
        return True
    output.say("nothing was changed", err=True)
    return False


def each(client: Client, ids: Iterable[str], act: Callable[[str], T]) -> tuple[list[T], int]:
    """Does it to every schedule, and goes on after one that is refused; the exit code is that of the first of those.

    If one of the ids is none, nothing is done at all.
    """
    done, code = [], 0
    ids = [client.get(schedule_id).schedule_id for schedule_id in ids]
    for schedule_id in ids:
        try:
            done.append(act(schedule_id))
        except NoRedis:
            raise
        except BeatError as e:
            if len(ids) == 1:
                raise
            output.complaint("error", str(e), err=True)
            code = code or e.exit_code
    return done, code


def when(instant: datetime, where: Zone, now: datetime) -> str:
    """`Mon 2026-11-23 09:00 Berlin = 08:00Z, in 5d20h`."""
    away = (instant - now).total_seconds()
    distance = f"in {instants.span(away)}" if away > 0 else "now"
    return f"{instants.both(instant.replace(microsecond=0), where)}, {distance}"


def ticks(number: int) -> str:
    """`1 tick`, `2 ticks`."""
    return f"{number:,} tick{'s' * (number != 1)}"
