"""Define the options and helpers that several commands share.

Commands that read share the choice of Redis, the JSON output, the masking of secrets and the zone. Commands that change
something also share the author, the confirmation, and the handling of several ids.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from beat.cli import output
from beat.client.client import Client
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
    """Return the document with its secrets masked as in the web UI, or unchanged if `reveal` is true."""
    masked: dict[str, Any] = masking.shown(document)
    return document if reveal else masked


def worded(text: str, *, reveal: bool) -> str:
    """Return the text without the passwords in it, or unchanged if `reveal` is true."""
    return text if reveal else masking.without_passwords(text)


def where(url: str | None) -> str:
    """Return the URL of the Redis to use, and print warnings about settings.

    It is the given URL or that of the settings. If neither exists, it is that of `beat dev` in this directory, or else
    the default.
    """
    loaded = settings.load({"redis_url": url})
    for warning in loaded.warnings:
        output.complaint("warning", warning, err=True)
    here = embedded.running() if loaded.origins["redis_url"] == "default" else None
    return here or loaded.settings.redis_url


def client(url: str | None, by: str | None = None) -> Client:
    """Return a client of the Redis at `where(url)`, which records its changes under the name `by`."""
    return Client(where(url), by=by)


def zone_of(client: Client, schedule_id: str) -> Zone:
    """Return the zone of a schedule, or UTC if only its ledger is left."""
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
    """Return the given ids without duplicates, or an empty list if `everything` is true.

    Raise UsageError for ids together with `option`, for neither, and for a version unless there is exactly one id.
    """
    found = list(dict.fromkeys(ids))
    if everything == bool(found):
        problem = f"name schedules, or say {option}, not both"
        raise click.UsageError(problem if found else f"which schedule? Name it, or say {option}")
    if version is not None and len(found) != 1:
        raise click.UsageError("--expected-version is the version of one schedule: name one")
    return found


def agreed(question: str, *, yes: bool) -> bool:
    """Return whether the user confirms, or `yes` is true. Raise UsageError if there is no terminal to ask on."""
    if yes:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError(f"{question} There is no terminal on which to answer: say --yes.")
    if click.confirm(question, err=True):
        return True
    output.say("nothing was changed", err=True)
    return False


def each(client: Client, ids: Iterable[str], act: Callable[[str], T]) -> tuple[list[T], int]:
    """Call `act` with each id; return its results, and the exit code of the first error or 0.

    An error is printed, and does not stop the others. It is raised only if there is a single id, or if Redis is
    unavailable. If an id does not exist, raise its error before calling `act` at all.
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
    """Return an instant as in `Mon 2026-11-23 09:00 Berlin = 08:00Z, in 5d20h`."""
    away = (instant - now).total_seconds()
    distance = f"in {instants.span(away)}" if away > 0 else "now"
    return f"{instants.both(instant.replace(microsecond=0), where)}, {distance}"


def ticks(number: int) -> str:
    """Return `1 tick` or `2 ticks`, for example."""
    return f"{number:,} tick{'s' * (number != 1)}"
