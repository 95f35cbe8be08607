"""`beat web`: the page by itself, beside any number of beats or none."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import click

from beat import interrupts, logs, redis_url, settings
from beat.cli import asking, output, serving
from beat.client import Client
from beat.errors import ConfigError
from beat.event import Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from beat.settings import Settings

_LOOK_S = 0.5


@click.command("web")
@asking.the_url
@click.option("--host", "--web-host", "web_host", metavar="HOST", help="Serve at this address.  [default: 127.0.0.1]")
@click.option(
    "--port", "--web-port", "web_port", metavar="PORT", help="Serve at this port; 0 for any.  [default: 8420]"
)
@click.option("--read-only", is_flag=True, help="Refuse every change, whoever asks.")
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
    where = asking.where(url)
    mine = settings.load(flags).settings
    logs.configure(mine.log_level, mine.log_format)
    with contextlib.closing(Client(where)) as client:
        app = serving.room("app").served(mine, client)
        page = serving.room("serving").Serving(app, mine.web_host, mine.web_port)
        _serve(page, lambda: _say(mine, f"{page.address}{mine.web_path}/", redis_url.masked(where)))


def _say(mine: Settings, address: str, redis: str) -> None:
    """Where machines read, this is a line like all others."""
    if mine.log_format == "json":
        logs.listen(Event("page_served", fields={"address": address}))
    else:
        output.say(f"the web UI is served at {address} (of Redis at {redis})", err=True)


def _serve(page: Any, say: Callable[[], None]) -> None:
    done = threading.Event()
    with interrupts.stopping(done.set), page:
        say()
        while not done.wait(_LOOK_S):
            if not page.is_alive:
                raise ConfigError(f"the server of the web UI at {page.address} has ended by itself")
