"""`beat remove`: delete schedules with their history, after asking."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from beat.cli import common_options, output, schedule_ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beat.client.client import Client

_NAMED = 20


@click.command("remove")
@click.argument("ids", nargs=-1, metavar="ID...", shell_complete=schedule_ids.complete)
@click.option("--retired", is_flag=True, help="Remove all retired schedules, which no scheduler declares any more.")
@common_options.sure
@common_options.the_version
@common_options.the_author
@common_options.the_url
@common_options.as_json
def command(
    *,
    ids: tuple[str, ...],
    retired: bool,
    yes: bool,
    version: int | None,
    by: str | None,
    url: str | None,
    as_json: bool,
) -> int:
    """Delete schedules, with their history, after asking.

    \b
    beat remove customer_42_report
    beat remove --retired             all whose code is gone
    beat remove --retired --yes       in a script

    Jobs that are enqueued stay in their queues and run. A schedule that a live scheduler declares is refused, because
    it would come back: take it out of the code, or pause it.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    wanted = common_options.named(ids, version, everything=retired, option="--retired")
    client = common_options.client(url, by)
    known = [client.get(each).schedule_id for each in wanted] or client.retired()
    lengths = dict(zip(known, client.ledger_lengths(known), strict=True))
    if known and not common_options.agreed(_question(known, sum(lengths.values())), yes=yes):
        return common_options.NOT_DONE
    removed, code = _removed(client, known, version, retired=retired)
    if as_json:
        output.document(removed=removed)
        return code
    for each in removed:
        output.say(f"{each}: removed, with {_lines(lengths[each])}")
    if not known:
        output.say("no schedule is retired: there is nothing to remove", err=True)
    return code


def _removed(client: Client, ids: Sequence[str], version: int | None, *, retired: bool) -> tuple[list[str], int]:
    if retired:
        return client.remove_retired(ids), 0

    def remove(schedule_id: str) -> str:
        client.remove(schedule_id, expected_version=version)
        return schedule_id

    return common_options.each(client, ids, remove)


def _question(ids: Sequence[str], lines: int) -> str:
    more = f" and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else ""
    return f"Remove {', '.join(ids[:_NAMED])}{more}, with {_lines(lines)}?"


def _lines(number: int) -> str:
    return f"{number:,} line{'s' * (number != 1)} of history"
