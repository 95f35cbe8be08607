"""What the commands that ask have in common: which Redis they ask, and in whose zone they tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from beat import embedded, secrecy, settings
from beat.cli import output
from beat.client import Client
from beat.errors import BeatError, NoRedis
from beat.zones import zone

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from beat.zones import Zone

the_url: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--redis-url", "url", metavar="URL", help="Use this Redis.  [default: the setting, or that of beat dev here]"
)
as_json: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document; durations are in seconds."
)


reveal: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--reveal", is_flag=True, help="Show secrets instead of masking them."
)


def shown(document: dict[str, Any], *, reveal: bool) -> dict[str, Any]:
    """Return the document as the web UI would show it, with its secrets masked, unless they are to be revealed."""
    masked: dict[str, Any] = secrecy.shown(document)
    return document if reveal else masked


def worded(text: str, *, reveal: bool) -> str:
    """Return the text without the passwords in it, unless they are to be revealed."""
    return text if reveal else secrecy.without_passwords(text)


def where(url: str | None) -> str:
    """The Redis that was named, or is set, or else the one that `beat dev` runs in this directory."""
    loaded = settings.load({"redis_url": url})
    for warning in loaded.warnings:
        output.complaint("warning", warning, err=True)
    here = embedded.running() if loaded.origins["redis_url"] == "default" else None
    return here or loaded.settings.redis_url


def client(url: str | None, by: str | None = None) -> Client:
    """A client of that Redis, whose changes bear that name."""
    return Client(where(url), by=by)


def zone_of(client: Client, schedule_id: str) -> Zone:
    """The zone of a schedule; UTC where nothing but its ledger is left."""
    try:
        return zone(client.get(schedule_id).tz)
    except NoRedis:
        raise
    except BeatError:
        return zone("UTC")
