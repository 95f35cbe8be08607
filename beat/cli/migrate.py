"""`beat add --from`: read a predecessor's schedules, and print them as Python, print a plan, or add them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from beat import migrate
from beat.cli import common_options, output
from beat.config import redis_url
from beat.errors import BadInstant, NoRedis
from beat.storage import connection, server_check
from beat.timing import clock
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from beat.migrate import Added, Found, Reading

_BAD, _REFUSED = 1, 4
_NEEDS = {
    "rq-cron": "the file that `rq cron` loads, as in 'app/cron_config.py' or 'app.cron_config'",
    "celery": "where beat_schedule is, as in 'app/celery.py' or 'app.celery:app'",
    "crontab": "a file, or - for what is piped in, as in 'crontab -l | beat add --from crontab -'",
}

the_source: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--from", "source", type=click.Choice(migrate.SOURCES), help="Read the schedules of a predecessor from PLACE."
)
_OPTIONS = (
    click.option("--add", "adding", is_flag=True, help="Add what --from reads; without it, nothing changes."),
    click.option("--system", is_flag=True, help="Expect a user before each command, as in /etc/crontab."),
    click.option(
        "--import", "importing", is_flag=True, help="Import the file of celery or rq-cron to see everything in it."
    ),
)


def the_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that only `--from` uses to the command `beat add`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def move(
    source: str,
    place: str | None,
    *,
    url: str | None = None,
    by: str | None = None,
    adding: bool = False,
    dry_run: bool = False,
    replace: bool = False,
    tz: str | None = None,
    system: bool = False,
    importing: bool = False,
    as_json: bool = False,
) -> int:
    """Read a predecessor's schedules, and print them as Python, print a plan, or add them.

    Return the exit code: 0 if all schedules can move, 1 if some cannot, 4 if beat has refused some.
    """
    _refuse_nonsense(source, place, tz=tz, system=system, importing=importing)
    reading = _read(source, place, url=url, tz=tz, system=system, importing=importing)
    real = adding and not dry_run
    added = list(migrate.add(common_options.client(url, by), reading, replace=replace)) if real else []
    if as_json:
        _document(reading, added)
    else:
        _tell(reading, added if real else None, dry_run=dry_run)
    if any(each.refused for each in added):
        return _REFUSED
    return _BAD if reading.left else 0


def _refuse_nonsense(source: str, place: str | None, *, tz: str | None, system: bool, importing: bool) -> None:
    if place is None and source in _NEEDS:
        raise click.UsageError(f"--from {source} needs {_NEEDS[source]}")
    if system and source != "crontab":
        raise click.UsageError("--system is for --from crontab: only its lines may have a user")
    if importing and source not in ("celery", "rq-cron"):
        raise click.UsageError(f"--import is for --from celery and rq-cron: {source} has no Python to run")
    if tz is not None and source == "rq-cron":
        raise click.UsageError("--tz is not for --from rq-cron, which keeps to UTC")
    if tz is not None:
        zone(tz)


def _read(source: str, place: str | None, *, url: str | None, tz: str | None, system: bool, importing: bool) -> Reading:
    match source:
        case "crontab":
            return migrate.crontab.read(str(place), tz=tz, system=system)
        case "celery":
            with output.kept_for_the_report():  # the application may print while it is imported
                return migrate.celery.read(str(place), tz=tz, importing=importing)
        case "rq-cron":
            with output.kept_for_the_report():
                return migrate.rq_cron.read(str(place), importing=importing)
    where = common_options.where(place or url)
    shown, client = redis_url.masked(where), connection.connect(where)
    try:
        return migrate.rq_scheduler.read(client, tz=tz)
    except connection.Errors as e:
        if connection.forbids(e) or isinstance(e, connection.Refused):
            raise server_check.refused(client, shown, e) from e
        said = str(e).split("\n")[0].rstrip(". ")
        raise NoRedis(f"no Redis answers at {shown}: {said}") from e


def _tell(reading: Reading, added: list[Added] | None, *, dry_run: bool) -> None:
    if added is not None:
        _tell_added(added)
    elif dry_run:
        _plan(reading)
    else:
        output.echo(migrate.writer.module(reading).rstrip("\n"))
    _tell_left(reading)
    output.say(_summary(reading, added), err=True)


def _plan(reading: Reading) -> None:
    now = clock.now()
    rows = [[each.id, _next(each, now) or "never", _what(each), each.schedule().describe()] for each in reading.found]
    if rows:
        output.table(["schedule", "next tick", "runs", "when"], rows)
    for each in reading.found:
        for note in each.notes:
            output.complaint("warning", f"{each.id}: {note}", each.where, err=True)
    for note in reading.notes:
        output.say(f"note: {output.printable(note)}", err=True)


def _tell_added(added: list[Added]) -> None:
    for each in added:
        if each.refused is None:
            output.echo(f"added {each.found.id}")
        else:
            output.complaint("error", f"{each.found.id} was not added: {each.refused}", each.found.where, err=True)
        for note in each.found.notes if each.refused is None else ():
            output.complaint("warning", f"{each.found.id}: {note}", each.found.where, err=True)


def _tell_left(reading: Reading) -> None:
    for each in reading.left:
        output.complaint("warning", f"{each.name} cannot move in: {each.why}", each.where, err=True)


def _summary(reading: Reading, added: list[Added] | None) -> str:
    count = sum(each.refused is None for each in added) if added is not None else len(reading.found)
    done = "moved in" if added is not None else "can move in"
    told = [f"{count} schedule{'s' * (count != 1)} of {reading.source} {done}"]
    told += [f"{len(added) - count} refused"] if added is not None and len(added) > count else []
    return ", ".join([*told, f"{len(reading.left)} cannot"] if reading.left else told)


def _next(found: Found, now: datetime) -> str | None:
    try:
        tick = found.schedule().after(now)
    except BadInstant:
        return None
    return clock.text(tick) if tick else None


def _what(found: Found) -> str:
    return found.command.line if found.command else found.func


def _document(reading: Reading, added: list[Added]) -> None:
    now = clock.now()
    refused = {each.found.id: each.refused for each in added}
    output.document(
        source=reading.source,
        place=reading.place,
        schedules=[
            {**_plain(each, now), **({"added": refused[each.id] is None, "refused": refused[each.id]} if added else {})}
            for each in reading.found
        ],
        left=[{"name": each.name, "where": each.where, "why": each.why} for each in reading.left],
        notes=list(reading.notes),
        python=migrate.writer.module(reading),
    )


def _plain(found: Found, now: datetime) -> dict[str, Any]:
    options = {name: clock.text(value) if name == "start" else value for name, value in found.options.items()}
    return {
        "id": found.id,
        "name": found.name,
        "where": found.where,
        "func": found.func or None,
        "command": found.command.line if found.command else None,
        "cron": found.cron,
        "every": found.every,
        "seconds": found.seconds,
        "tz": found.tz,
        "args": _jsonable(list(found.args)),
        "kwargs": _jsonable(dict(found.kwargs)),
        "queue": found.queue,
        "options": _jsonable(options),
        "notes": list(found.notes),
        "next_tick": _next(found, now),
    }


def _jsonable(value: Any) -> Any:
    """Return the value for JSON. Bytes, and keys that are not text, become text as Python writes them."""
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, dict):
        return {key if isinstance(key, str) else repr(key): _jsonable(item) for key, item in value.items()}
    return repr(value) if isinstance(value, bytes) else value
