"""`beat add`: add schedules from data, either one from options or many from a file."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from beat.cli import common_options, json_files, migrate, output, schedule_ids
from beat.client.add import Added, Wanted
from beat.client.describe import changes, values
from beat.client.upcoming import next_ticks
from beat.errors import DeclarationError, DuplicateSchedule, Refused
from beat.schedule import options
from beat.timing.zones import zone

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import TextIO

    from beat.cli.json_files import Unread
    from beat.client.client import Client

_REFUSED = 4
_FILE = click.File(encoding="utf-8")
_OWN = {
    "func", "cron", "every", "follows", "tz", "named", "args", "queues", "route", "group", "requires", "slow_queue",
    "others",
}  # fmt: skip
"""The parameters that describe one schedule."""
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
    "route=": "--route ",
    "queues=": "--queue ",
    "requires=": "--requires ",
    "follows=": "--follows ",
}


@click.command("add")
@click.argument("name", required=False, metavar="[ID|PLACE]")
@click.option("--func", metavar="PATH", help="Run this function, which a scheduler exposes: app.tasks.report.")
@click.option("--cron", metavar="EXPR", help="Tick by this cron expression, in quotes.")
@click.option("--every", metavar="PERIOD", help="Tick at this interval: 10s, 15m, 1h30m, 1d.")
@click.option(
    "--follows", metavar="ID", shell_complete=schedule_ids.complete, help="Tick after every success of this schedule."
)
@click.option("--tz", metavar="ZONE", help="Use this zone for the expression, or for those of a predecessor.")
@click.option(
    "--arg", "named", metavar="NAME=VALUE", multiple=True, help="Pass an argument; the value is JSON or text."
)
@click.option("--args", metavar="JSON", help="Pass positional arguments as a JSON list.")
@click.option("--queue", "queues", metavar="NAME", multiple=True, help="Enqueue its jobs there; several with --route.")
@click.option("--route", metavar="ROUTE", help="Choose among the queues: shortest, failover, broadcast …")
@click.option("--group", metavar="NAME", help="Share the capacity of this group.")
@click.option(
    "--requires",
    metavar="ID",
    shell_complete=schedule_ids.complete,
    multiple=True,
    help="Require a success: extract, 'extract within 1h'.",
)
@click.option("--slow-queue", metavar="NAME", help="Enqueue its jobs there when they have become slow.")
@click.option("--option", "others", metavar="NAME=VALUE", multiple=True, help="Set any other option of @periodic.")
@click.option("--file", metavar="FILE", type=_FILE, help="Add the schedules of beat list --json --reveal; - for stdin.")
@migrate.the_source
@migrate.the_options
@click.option("--replace", is_flag=True, help="Replace schedules that were added before; keep their history.")
@common_options.rehearse
@common_options.the_author
@common_options.the_url
@common_options.as_json
def command(*, name: str | None, file: TextIO | None, source: str | None, **given: Any) -> int:
    """Add schedules from data, for functions that an application has exposed; or move in from a predecessor.

    \b
    beat add customer_42 --func app.tasks.report --cron "0 9 * * *" --arg customer=42
    beat add poll_eu --func app.tasks.poll --every 15m --queue low --option overlap=skip
    beat add load --func app.tasks.load --follows extract
    beat add resize --func app.tasks.resize --every 1m --queue fast --queue spare --route shortest
    beat add --file schedules.json --dry-run
    beat list --json --reveal | beat add --file - --redis-url redis://other

    A function can be scheduled if its application decorates it with @schedulable or @periodic, and a scheduler has
    imported it. Values are JSON where they can be, else text. Each schedule of a file is added, replaced (with
    --replace), the same, or refused with the reason. Schedules of code are left alone. Ends with 4 if one was refused.

    \b
    beat add --from rq-scheduler                       print the schedules in Redis as Python
    beat add --from rq-cron app/cron_config.py         those of the file that `rq cron` loads
    beat add --from celery app/celery.py --dry-run     what would be added, and what would not
    beat add --from celery app.celery:app --import     run the file, to learn all it says
    crontab -l | beat add --from crontab -             each command as a function that runs it
    beat add --from rq-scheduler --add                 add them to what beat fires

    With --from nothing is changed without --add, and nothing of the application is run without --import. What cannot
    come along is told with the reason, and it ends with 1 if something cannot.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    own = {each: value for each, value in given.items() if each in _OWN and value}
    how = {each: given[each] for each in ("replace", "dry_run", "as_json")}
    if source is not None:
        _refuse_both("--from", own.keys() - {"tz"}, file)
        return migrate.move(source, name, **{each: given[each] for each in given.keys() - (_OWN - {"tz"})})
    if any(given[each] for each in ("adding", "system", "importing")):
        raise click.UsageError("--add, --system and --import go with --from")
    if file is None and name is None:
        raise click.UsageError("add one schedule (beat add ID --func app.tasks.report --every 15m), or those of --file")
    if file is None:
        return _one(common_options.client(given["url"], given["by"]), _wanted(schedule_id=str(name), **own), **how)
    _refuse_both("--file", own.keys() | ({"name"} if name else set()))
    entries, warnings = json_files.read(_text(file))
    for warning in warnings:
        output.complaint("warning", warning, err=True)
    return _many(common_options.client(given["url"], given["by"]), entries, **how)


def _refuse_both(option: str, others: Collection[str], file: TextIO | None = None) -> None:
    """Refuse options of a single schedule beside --file or --from, which describe whole schedules."""
    spelt = {
        "named": "--arg",
        "others": "--option",
        "name": "the id",
        "queues": "--queue",
        "slow_queue": "--slow-queue",
    }
    given = [*(spelt.get(each, f"--{each}") for each in sorted(others)), *(["--file"] if file else [])]
    if given:
        raise click.UsageError(f"{option} brings what it says itself: leave out {', '.join(given)}")


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
    queues: Sequence[str] = (),
    **more: Any,
) -> Wanted:
    """Return one schedule from its options. Raise UsageError if they are incomplete or contradict each other."""
    if func is None:
        raise click.UsageError("which function? Say --func app.tasks.report")
    if (cron is not None) + ("every" in more) + ("follows" in more) != 1:
        raise click.UsageError("when is it to tick? Give one of --cron '0 9 * * *', --every 15m and --follows ID")
    positional, keyed = values.arguments(args, named)
    named_so = values.pairs(others, "--option")
    options.refuse_unknown(named_so, "The expression is --cron, as in --cron '0 9 * * *'.")
    more |= {"queue": queues[0]} if len(queues) == 1 and "route" not in more else {"queues": queues} if queues else {}
    own = {name: value for name, value in {"args": positional, "kwargs": keyed, **more}.items() if value is not None}
    if twice := [name for name in named_so if name in {"id", *own}]:
        raise click.UsageError(f"--option {twice[0]} says what was said already: leave it out")
    return Wanted(schedule_id, func, cron, json_files.given({**named_so, **own}))


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
        found, now = client.get(wanted.id), client.now()
        where = zone(found.tz)
        rows = [[common_options.when(tick, where, now)] for tick in next_ticks(found, _SHOWN, now)]
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
    """Add the entries and yield the result of each, in their order."""
    added = client.add_all((each for each in entries if isinstance(each, Wanted)), **how)
    for each in entries:
        if isinstance(each, Wanted):
            yield _plain(next(added))
        elif each.error is None:
            yield {"id": each.id, "result": "left", "reason": None}
        else:
            yield _plain(Added(each.id, "refused", each.error))


def _plain(done: Added) -> dict[str, Any]:
    mistakes = done.error.mistakes if isinstance(done.error, DeclarationError) else filter(None, [done.error])
    reason = "; ".join(_in_a_line(str(mistake)) for mistake in mistakes) or None
    return {"id": done.id, "result": done.result, "reason": reason}


def _in_a_line(message: str) -> str:
    """Return the message as one line, without the indented expression and the caret under it."""
    return ". ".join(line.rstrip(".") for line in message.split("\n") if not line.startswith(" "))


def _would(dry_run: bool) -> str:  # noqa: FBT001 (the only argument)
    return "would be " if dry_run else ""
