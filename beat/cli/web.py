"""`beat web`: serve the web UI in a process of its own, with any number of schedulers or none.

The libraries of the web UI are an optional extra. So `load_module`, which `beat run --web` uses too, imports them only
when the web UI is served.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
from typing import TYPE_CHECKING, Any

import click

from beat.cli import common_options, output
from beat.client.client import Client
from beat.config import redis_url, settings
from beat.engine import signals
from beat.engine.events import Event
from beat.errors import ConfigError
from beat.telemetry import logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from beat.config.settings import Settings


_EXTRA = {"anyio", "jinja2", "markupsafe", "starlette", "uvicorn"}
HOW = "pip install 'rq-beat[web]'"


def load_module(name: str) -> Any:
    """Import a module of `beat.web`, or say which package is missing and how to install it."""
    try:
        return importlib.import_module(f"beat.web.{name}")
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise ConfigError(f"the web UI needs {e.name}, which is not installed: {HOW}") from None


_LOOK_S = 0.5


@click.command("web")
@common_options.the_url
@click.option("--host", "--web-host", "web_host", metavar="HOST", help="Serve at this address.  [default: 127.0.0.1]")
@click.option(
    "--port", "--web-port", "web_port", metavar="PORT", help="Serve at this port; 0 for any.  [default: 8420]"
)
@click.option("--read-only", is_flag=True, help="Refuse every change.")
def command(*, url: str | None, web_host: str | None, web_port: str | None, read_only: bool) -> None:
    """Serve the web UI: did it run, will it run, why not.

    \b
    beat web                               http://127.0.0.1:8420/, for this machine alone
    beat web --port 9000                   at another port
    beat web --read-only                   to look at, and not to touch
    BEAT_WEB_USERS=ann:correct-horse-battery beat web --host 0.0.0.0     with a password, for other machines

    The web UI asks Redis, as `beat list` does: it needs no scheduler, never imports the application, and says when
    Redis is away. The settings are web_host, web_port, web_path, web_token, web_users, web_hosts and web_read_only.
    Other machines need a token or a user's password. SIGTERM and Ctrl-C end it within two seconds.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    flags = {"web_host": web_host, "web_port": web_port, "web_read_only": "on" if read_only else None}
    where = common_options.where(url)
    mine = settings.load(flags).settings
    logs.configure(mine.log_level, mine.log_format)
    with contextlib.closing(Client(where)) as client:
        app = load_module("app").served(mine, client)
        page = load_module("server").Serving(app, mine.web_host, mine.web_port)
        _serve(page, lambda: _say(mine, f"{page.address}{mine.web_path}/", redis_url.masked(where)))


def _say(mine: Settings, address: str, redis: str) -> None:
    """Print the address of the web UI, or log it if the log format is JSON."""
    if mine.log_format == "json":
        logs.listen(Event("page_served", fields={"address": address}))
    else:
        output.say(f"the web UI is served at {address} (of Redis at {redis})", err=True)


def _serve(page: Any, say: Callable[[], None]) -> None:
    done = threading.Event()
    with signals.stopping(done.set), page:
        say()
        while not done.wait(_LOOK_S):
            if not page.is_alive:
                raise ConfigError(f"the server of the web UI at {page.address} has ended by itself")
