"""`beat add`: schedules from data; so far those of a predecessor."""

from __future__ import annotations

from typing import Any

import click

from beat.cli import asking, moving


@click.command("add")
@click.argument("place", required=False)
@moving.the_source
@moving.the_options
@asking.the_url
@asking.as_json
def command(*, place: str | None, source: str | None, **options: Any) -> int:
    """Move in from a predecessor: its schedules as Python, or added.

    \b
    beat add --from rq-scheduler                       print the schedules in Redis as Python
    beat add --from rq-cron app/cron_config.py         those of the file that `rq cron` loads
    beat add --from celery app/celery.py --dry-run     what would be added, and what would not
    beat add --from celery app.celery:app --import     run the file, to learn all it says
    crontab -l | beat add --from crontab -             each command as a function that runs it
    beat add --from rq-scheduler --add                 add them to what beat fires

    Nothing is changed without --add, and nothing of the application is run without --import. What cannot come along is
    told with the reason. Ends with 1 if some cannot, with 4 if beat refused to add some.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    if source is None:
        raise click.UsageError("name the predecessor, as in --from celery")
    return moving.move(source, place, **options)
