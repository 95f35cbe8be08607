"""`beat dev`: run Redis, a scheduler, workers and the web UI in one terminal."""

from __future__ import annotations

import click

from beat.cli import modules, output
from beat.config import settings
from beat.dev import supervisor
from beat.errors import ConfigError

_NOTHING_TO_RUN = f"""\
name the modules that hold schedules, as in 'beat dev tasks.py'. Three lines make one:
    from beat import periodic
    @periodic(every="2s")
    def hello(): print("hello")
{modules.REMEDY.capitalize()}."""


@click.command("dev")
@click.argument("names", metavar="[MODULES]...", nargs=-1)
@click.option("--redis-url", metavar="URL", help="Use this Redis instead of a private one.")
@click.option("--no-reload", is_flag=True, help="Do not restart when a file changes.")
@click.option("--no-web", is_flag=True, help="Do not serve the web UI.")
def command(*, names: tuple[str, ...], redis_url: str | None, no_reload: bool, no_web: bool) -> int:
    """Run Redis, a scheduler, a worker and the web UI in one terminal, and restart when a file changes.

    \b
    beat dev tasks.py                  a file
    beat dev app.tasks                 a module
    beat dev                           the modules of BEAT_MODULES or [tool.beat], else ./tasks.py

    Redis is the one that is set, or else a private one, which keeps its data in .beat/redis. The page is at
    http://127.0.0.1:8420/, or where the line says it is: did it run, will it run, why not.
    For one's own machine: in production run 'beat run' and 'rq worker' on their own. Ctrl-C ends everything.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    loaded = settings.load({"redis_url": redis_url})
    for warning in loaded.warnings:
        output.complaint("warning", warning, err=True)
    chosen = modules.choose(names, loaded)
    if not chosen.names:
        raise ConfigError(_NOTHING_TO_RUN)
    if chosen.why:
        output.say(chosen.why, err=True)
    private = loaded.origins["redis_url"] == "default"
    return supervisor.run(
        chosen.names, None if private else loaded.settings.redis_url, reload=not no_reload, web=not no_web
    )
