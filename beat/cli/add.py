"""`beat add`: schedules from data, one by its options or many from a file."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from beat import options
from beat.cli import asking, changes, changing, documents, output, values
from beat.client.adding import Added, Wanted
from beat.client.ticking import next_ticks
from beat.errors import DeclarationError, DuplicateSchedule, Refused
from beat.zones import zone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TextIO

    from beat.cli.documents import Unread
    from beat.client import Client

_REFUSED = 4
_SHOWN = 3
_WORDS = {
    "added": "added",
    "replaced": "replaced",
    "same": "the same",
    "refused": "refused",
    "left": "left to the code",
}
_IN_PYTHON = {
    "seconds=True": "--option seconds=true",
    "every=": "--every ",
    "@periodic('0 9 * * *')": "--cron '0 9 * * *'",
    "@periodic(--every '15m')": "--every 15m",
    "an expression": "--cron",
}


@click.command("add")
@click.argument("schedule_id", required=False, metavar="[ID]")
@click.option("--func", metavar="PATH", help="The function, as the application has exposed it: app.tasks.report.")
@click.option("--cron", metavar="EXPR", help="When: an expression, in quotes.")
@click.option("--every", metavar="PERIOD", help="When: an interval, 10s, 15m, 1h30m, 1d.")
@click.option("--tz", metavar="ZONE", help="The zone of the expression.  [default: the setting tz]")
@click.option(
    "--arg", "named", metavar="NAME=VALUE", multiple=True, help="An argument of the function, as JSON or text."
)
@click.option("--args", "args", metavar="JSON", help="The arguments without a name, as a list.")
@click.option("--queue", metavar="NAME", help="The queue of its jobs.")
@click.option("--option", "others", metavar="NAME=VALUE", multiple=True, help="Any other option of @periodic.")
@click.option("--replace", is_flag=True, help="Take the place of one that was added before, and keep its history.")
@click.option(
    "--file",
    "file",
    metavar="FILE",
    type=click.File(encoding="utf-8"),
    help="Many, as `beat list --json` prints; - for stdin.",
)
@changing.rehearse
@changing.the_author
@asking.the_url
@asking.as_json
def command(*, by: str | None, url: str | None, as_json: bool, file: TextIO | None, **given: Any) -> int:
    """Add schedules from data, for functions that an application has exposed.

    \b
    beat add customer_42 --func app.tasks.report --cron "0 9 * * *" --tz Europe/Berlin --arg customer=42
    beat add poll_eu --func app.tasks.poll --every 15m --queue low --option overlap=skip
    beat add --file schedules.json --dry-run
    beat list --json | beat add --file - --redis-url redis://other

    A function can be scheduled if its application decorates it with @schedulable or @periodic, and a beat that imports
    it has been alive: nothing else is run. Values are JSON where they can be, else text. Of a file each schedule is
    added, replaced (with --replace), the same, or refused with the reason; those that come from code are left to it.
    Ends with 4 if one was refused.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    single = {name: value for name, value in given.items() if name not in {"replace", "dry_run"} and value}
    if (file is None) == (given["schedule_id"] is None) or (file and single):
        raise click.UsageError("add one schedule (beat add ID --func app.tasks.report --every 15m), or those of --file")
    how = {"replace": given["replace"], "dry_run": given["dry_run"]}
    if file is None:
        return _one(changing.client(url, by), _wanted(**single), as_json=as_json, **how)
    entries, warnings = documents.read(_text(file))
    for warning in warnings:
        output.complaint("warning", warning, err=True)
    return _many(changing.client(url, by), entries, as_json=as_json, **how)


def _text(file: TextIO) -> str:
    try:
        return file.read()
    except UnicodeDecodeError as e:
        raise click.UsageError(f"the file is no text: {e.reason}; it must hold what `beat list --json` prints") from e


def _wanted(
    *,
    schedule_id: str,
    func: str | None = None,
    cron: str | None = None,
    args: str | None = None,
    named: Sequence[str] = (),
    others: Sequence[str] = (),
    **more: Any,
) -> Wanted:
    """One schedule, from its options."""
    if func is None:
        raise click.UsageError("which function? Say --func app.tasks.report")
    if (cron is None) == ("every" not in more):
        raise click.UsageError("when is it to tick? Give one of --cron '0 9 * * *' and --every 15m")
    positional, keyed = values.arguments(args, named)
    named_so = values.pairs(others, "--option")
    options.refuse_unknown(named_so)
    own = {name: value for name, value in {"args": positional, "kwargs": keyed, **more}.items() if value is not None}
    if twice := [name for name in named_so if name in {"id", *own}]:
        raise click.UsageError(f"--option {twice[0]} says what was said already: leave it out")
    return Wanted(schedule_id, func, cron, documents.given({**named_so, **own}))


def _one(client: Client, wanted: Wanted, *, replace: bool, dry_run: bool, as_json: bool) -> int:
    [done] = client.add_all([wanted], replace=replace, dry_run=dry_run)
    if isinstance(done.error, DuplicateSchedule):
        raise Refused(
            f"{done.error} (--replace)" if "replace it" in str(done.error) else str(done.error)
        ) from done.error
    if isinstance(done.error, DeclarationError):
        for python, here in _IN_PYTHON.items():
            done.error.message = done.error.message.replace(python, here)
    if done.error:
        raise done.error
    if as_json:
        output.document(dry_run=dry_run, schedules=[_plain(done)])
        return 0
    output.say(f"{wanted.id}: {_would(dry_run)}{_WORDS[done.result]}")
    if not dry_run:
        found, now = client.get_schedule(wanted.id), client.now()
        where = zone(found.tz)
        rows = [[changing.when(tick, where, now)] for tick in next_ticks(found, _SHOWN, now)]
        output.table([changes.rule({**found.rule, "tz": found.tz})], rows) if rows else None
    return 0


def _many(client: Client, entries: Sequence[Wanted | Unread], *, replace: bool, dry_run: bool, as_json: bool) -> int:
    results: Counter[str] = Counter()
    told = []
    for done in _results(client, entries, replace=replace, dry_run=dry_run):
        results[done["result"]] += 1
        if as_json:
            told.append(done)
        else:
            reason = f": {done['reason']}" if done["reason"] else ""
            output.echo(output.printable(f"{done['id']}: {_would(dry_run)}{_WORDS[done['result']]}{reason}"))
    if as_json:
        output.document(dry_run=dry_run, schedules=told)
    else:
        counted = ", ".join(f"{number:,} {_WORDS[name]}" for name, number in results.items())
        output.say(f"{_would(dry_run)}{counted or 'the file holds no schedule'}", err=True)
    return _REFUSED if results["refused"] else 0


def _results(client: Client, entries: Sequence[Wanted | Unread], **how: bool) -> Iterator[dict[str, Any]]:
    """What became of each entry, in their order."""
    added = client.add_all((each for each in entries if isinstance(each, Wanted)), **how)
    for each in entries:
        if isinstance(each, Wanted):
            yield _plain(next(added))
        elif each.error is None:
            yield {"id": each.id, "result": "left", "reason": None}
        else:
            yield _plain(Added(each.id, "refused", each.error))


def _plain(done: Added) -> dict[str, Any]:
    reason = _in_a_line(str(done.error)) if done.error else None
    return {"id": done.id, "result": done.result, "reason": reason}


def _in_a_line(message: str) -> str:
    """Without the expression, and the caret under it, that are indented."""
    return ". ".join(line.rstrip(".") for line in message.split("\n") if not line.startswith(" "))


def _would(dry_run: bool) -> str:  # noqa: FBT001 (a word for a word)
    return "would be " if dry_run else ""
