"""`beat config`: show the settings in force and where each one came from, without asking Redis.

Every secret is masked before anything is printed: passwords, tokens, and the URLs of alert channels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import click

from beat.cli import output
from beat.config import redis_url, secrets, sentry_dsn, settings
from beat.timing import durations


@dataclass(frozen=True)
class Row:
    """One setting, ready to be shown."""

    name: str
    value: object
    source: str
    default: object
    kind: str
    range: str
    meaning: str

    @property
    def accepts(self) -> str:
        """Return which values are accepted, and the default."""
        return f"{self.kind} ({self.range}), default {text(self.default)}"


def rows(loaded: settings.Loaded) -> list[Row]:
    """Return every setting in the order of its declaration, with secrets masked."""
    fields = settings.Settings.model_fields
    values = {name: getattr(loaded.settings, name) for name in fields}
    values["redis_url"] = redis_url.masked(loaded.settings.redis_url)
    values["sentry_dsn"] = (dsn := loaded.settings.sentry_dsn) and sentry_dsn.masked(dsn)
    values["misfire_after"] = loaded.settings.misfire_limit  # the value in force, even if the setting is absent
    values["alerts"] = secrets.count_alerts(loaded.settings.alerts) or None  # the URLs are secrets
    values["web_token"] = loaded.settings.web_token and secrets.HIDDEN
    values["web_users"] = secrets.count_users(loaded.settings.web_users) or None
    return [
        Row(
            name,
            values[name],
            loaded.origins[name],
            info.default,
            *settings.kind_and_range(name),
            str(info.description),
        )
        for name, info in fields.items()
    ]


def text(value: object) -> str:
    """Return a value as people write it."""
    if isinstance(value, timedelta):
        return durations.short(value)
    if isinstance(value, Mapping):
        value = tuple(f"{name}={item}" for name, item in value.items())
    if isinstance(value, tuple):
        value = ", ".join(value) or None
    return "-" if value is None else str(value)


def data(value: object) -> object:
    """Return a value for JSON, with durations in seconds."""
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
        return int(seconds) if seconds.is_integer() else seconds
    return value


@click.command("config")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document; durations are in seconds.")
@click.option("-v", "--verbose", is_flag=True, help="Show what each setting accepts and means, too.")
def command(*, as_json: bool, verbose: bool) -> None:
    """Show the settings in force, and where each one came from.

    \b
    beat config --verbose
    BEAT_INTERVAL=2s beat config
    beat config --json | jq .settings.redis_url

    The first place that has a setting wins:

    \b
    1. a flag of the command          --redis-url redis://cache:6379/0
    2. the environment                BEAT_REDIS_URL=redis://cache:6379/0
       for redis_url also             RQ_REDIS_URL, then REDIS_URL
       for sentry_dsn also            SENTRY_DSN
    3. the nearest pyproject.toml     [tool.beat]
       here or in a parent directory  redis_url = "redis://cache:6379/0"
    4. the default

    An empty variable counts as not set. Passwords are never shown.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    loaded = settings.load()
    shown = rows(loaded)
    if as_json:
        listed = {row.name: {key: data(getattr(row, key)) for key in ("value", "source", "default")} for row in shown}
        output.document(settings=listed, warnings=loaded.warnings)
        return
    for warning in loaded.warnings:
        click.echo(f"warning: {warning}", err=True)
    _show(shown, verbose=verbose)


def _show(shown: list[Row], *, verbose: bool) -> None:
    output.table(["setting", "value", "source"], [[row.name, text(row.value), row.source] for row in shown])
    if verbose:  # a second table, so that both fit a terminal
        click.echo()
        output.table(["setting", "accepts", "meaning"], [[row.name, row.accepts, row.meaning] for row in shown])
