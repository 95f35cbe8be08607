"""`beat show`: show the state, the options and the statistics of one schedule."""

from __future__ import annotations

import click

from beat.cli import common_options, output, schedule_ids
from beat.client.describe import decisions, relations, show, workers
from beat.timing import clock
from beat.timing.zones import zone


@click.command("show")
@click.argument("schedule_id", metavar="ID", shell_complete=schedule_ids.complete)
@common_options.reveal
@common_options.the_url
@common_options.as_json
def command(*, schedule_id: str, reveal: bool, url: str | None, as_json: bool) -> None:
    """Show one schedule: where it stands, what it does, and how it has been doing.

    \b
    beat show report
    beat show report --json | jq .statistics.duration.p95

    The statistics are those of the runs that the ledger holds; the counts are of all time. p50 and p95: half of the
    runs, and 95 of a hundred, were no worse. Values whose names look secret, and passwords in URLs, are masked.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    found = common_options.client(url).show(schedule_id)
    if as_json:
        runs = [decisions.plain(run) for run in found.open_runs]
        waiting = [clock.text(tick) for tick in found.waiting]
        told = {"schedule": show.plain(found.standing, reveal=reveal), "statistics": show.measured(found.statistics)}
        places = {"places": relations.plain(found.places)}
        whole = {**told, "open_runs": runs, "waiting": waiting, "queues": workers.plain(found.queues), **places}
        output.document(**common_options.shown(whole, reveal=reveal))
        return
    where = zone(found.standing.tz)
    facts = common_options.shown(show.state(found, where), reveal=reveal)
    output.table(["schedule", schedule_id], [[name, value] for name, value in facts.items() if value])
    rows = show.statistics(found.statistics)
    if rows:
        output.echo()
        output.table(["of the ledger", show.since(found.statistics, where)], rows)
