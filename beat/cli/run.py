"""`beat run`: load the modules and run a scheduler."""

from __future__ import annotations

import gc
import os
import threading
from typing import TYPE_CHECKING, Any, NoReturn

import click

from beat.cli import modules, output
from beat.cli import web as web_command
from beat.config import settings
from beat.engine.events import Event
from beat.errors import Stuck
from beat.schedule.registry import default_registry
from beat.scheduler import Scheduler
from beat.telemetry import logs

if TYPE_CHECKING:
    from beat.config.settings import Loaded

_LAST_WORDS_S = 2


@click.command("run")
@click.argument("names", metavar="[MODULES]...", nargs=-1)
@click.option("--redis-url", metavar="URL", help="Use this Redis for beat and RQ.  [default: the setting redis_url]")
@click.option("--setup", metavar="MODULE:CALLABLE", help="Call this before importing, to prepare the application.")
@click.option("--only", metavar="GLOB", help="Register and fire only schedules with matching ids, as a canary.")
@click.option("--metrics-port", metavar="PORT", help="Serve metrics for Prometheus at this port.")
@click.option("--metrics-host", metavar="HOST", help="Serve metrics at this address.  [default: 127.0.0.1]")
@click.option("--web", is_flag=True, help="Serve the web UI in this process, too.")
@click.option("--web-port", metavar="PORT", help="Serve the web UI at this port.  [default: 8420]")
@click.option("--web-host", metavar="HOST", help="Serve the web UI at this address.  [default: 127.0.0.1]")
@click.option("--log-level", metavar="LEVEL", help="Log from this level on: debug, info, warning or error.")
@click.option("--log-format", metavar="FORMAT", help="Write log lines as text for people, or as json for machines.")
def command(*, names: tuple[str, ...], only: str | None, web: bool, **flags: str | None) -> None:
    """Fire every tick of every schedule, exactly once, beside any number of other schedulers.

    \b
    beat run app.tasks                  a module, a package with its sub-modules, or a file
    beat run                            the modules of BEAT_MODULES or [tool.beat], else ./tasks.py
    beat run app.tasks --only 'report*' a canary
    beat run app.tasks --metrics-port 9108   numbers for Prometheus, to this machine alone
    beat run app.tasks --web            the web UI as well, at http://127.0.0.1:8420/

    Start as many as you like, on as many machines as you like: no one leads. A stock `rq worker` runs the jobs.
    SIGTERM and Ctrl-C end it within two seconds. If one of its threads hangs, it says where and ends with 70.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    page = [web_command.load_module("service").Page] if web else []
    loaded = settings.load({**flags, "modules": names or None})
    logs.configure(loaded.settings.log_level, loaded.settings.log_format)
    _load(loaded, modules.choose(names, loaded))
    gc.collect()
    gc.freeze()  # modules and schedules stay for ever, so do not let every collection scan 100,000 schedules
    given: dict[str, Any] = {name: value for name, value in flags.items() if value is not None}
    try:
        Scheduler(only=only, beside=page, **given).run()
    except Stuck as e:
        _end(e)


def _end(stuck: Stuck) -> NoReturn:
    """Print where the threads hang, and exit without waiting for them; wait at most 2 s for a blocked stderr."""
    words = f"{stuck}; where its threads are:\n\n{stuck.stacks}"
    telling = threading.Thread(target=output.echo, args=(words,), kwargs={"err": True}, daemon=True)
    telling.start()
    telling.join(_LAST_WORDS_S)
    os._exit(stuck.exit_code)


def _load(loaded: Loaded, chosen: modules.Chosen) -> None:
    for warning in loaded.warnings:
        _warn(loaded, warning)
    if chosen.why:
        logs.listen(Event("modules", fields={"words": chosen.why}))
    done = default_registry.load(*chosen.names, setup=loaded.settings.setup)
    for name in done.silent:
        _warn(loaded, f"{name} declares no schedule with beat.periodic")
    for name in done.unseen:
        _warn(loaded, f"{name} holds schedules but no __init__.py, and was not imported")


def _warn(loaded: Loaded, words: str) -> None:
    """Print a warning, or log it if the log format is JSON."""
    if loaded.settings.log_format == "json":
        logs.listen(Event("advice", fields={"words": words}))
    else:
        output.complaint("warning", words, err=True)
