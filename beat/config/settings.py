"""Define the settings, with the name, type, default, range and meaning of each, and load them.

A `Settings` is complete, valid and immutable. If values are invalid, `load` raises one error with a line for each. The
line names where the value was set, and never shows a password.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self, cast, get_args

from pydantic import Field, ValidationError, field_serializer, model_validator
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from beat.config import redis_url, secrets, sentry_dsn, sources
from beat.config.types import (
    Alerts,
    App,
    Count,
    Dsn,
    Duration,
    Format,
    Globs,
    Groups,
    Host,
    HostGlobs,
    Level,
    MaybeDuration,
    Modules,
    Place,
    Port,
    Prefix,
    Presets,
    Queues,
    Reads,
    Setup,
    Switch,
    Token,
    Url,
    Users,
    ZoneName,
)
from beat.errors import BeatError, ConfigError, did_you_mean
from beat.timing import durations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

_S = timedelta(seconds=1)


class _FoundSource(PydanticBaseSettingsSource):
    """A pydantic source of the values that `sources` found; unknown names are errors only if given as flags."""

    def __init__(self, settings_cls: type[BaseSettings], found: sources.Found) -> None:
        super().__init__(settings_cls)
        self.found = found

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002 (pydantic's)
        return self.found.values[field_name].value, field_name, False

    def __call__(self) -> dict[str, Any]:
        known, found = self.settings_cls.model_fields, self.found.values
        return {name: raw.value for name, raw in found.items() if name in known or raw.origin.startswith("--")}


class Settings(BaseSettings):
    """All settings that an operator can change."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, regex_engine="python-re")

    redis_url: Url = Field(default=redis_url.DEFAULT, repr=False, description="The Redis of beat and of RQ.")
    prefix: Prefix = Field(default="beat:", description="What every key begins with; it keeps installations apart.")
    modules: Modules = Field(default=(), description="Imported at start, in this order, to declare their schedules.")
    setup: Setup = Field(default=None, description="Called before the modules are imported, without arguments.")
    tz: ZoneName = Field(default="UTC", description="The time zone of schedules that name none.")
    presets: Presets = Field(default={}, description="Names for expressions that several schedules share.")
    queues: Queues = Field(default=sources.QUEUES, description="The queue that each priority stands for.")
    groups: Groups = Field(default={}, description="How many runs each group of schedules may have at once.")
    interval: Duration = Field(default=_S, ge=_S / 10, le=_S * 60, description="How often a beat looks for due ticks.")
    lookahead: Duration = Field(
        default=_S, ge=_S * 0, le=_S * 10, description="How early, before it is due, a tick is claimed."
    )
    lock_ttl: Duration = Field(default=_S * 10, ge=_S, le=_S * 600, description="How long a dead beat's locks last.")
    misfire_after: MaybeDuration = Field(
        default=None,
        ge=_S,
        le=_S * 604_800,
        description="How late a tick may fire; if not set, 2 lock_ttl and at least 10s.",
    )
    catchup_window: Duration = Field(
        default=_S * 86_400 * 366, ge=_S, le=_S * 86_400 * 366, description="How old a tick may be that fires at all."
    )
    catchup_limit: Count = Field(
        default=10, ge=1, le=100, description="How many missed ticks of a schedule fire at once, with misfire='all'."
    )
    page_size: Count = Field(default=100, ge=1, le=1000, description="How many schedules a beat claims at once.")
    history_limit: Count = Field(
        default=1000, ge=1, le=100_000, description="How many ticks of each schedule are kept."
    )
    events_limit: Count = Field(
        default=10_000, ge=100, le=10_000_000, description="About how many events are kept for other programs to read."
    )
    app: App = Field(
        default=sources.UNNAMED,
        description="The application, named after the project unless it is set; each retires only its own schedules.",
    )
    retire_after: Duration = Field(
        default=_S * 900,
        ge=_S * 10,
        le=_S * 86_400 * 30,
        description="How long a schedule stays that the code no longer declares.",
    )
    sentry_dsn: Dsn = Field(default=None, repr=False, description="Where monitors of Sentry Crons check in.")
    monitor_hosts: HostGlobs = Field(
        default=("hc-ping.com",), description="Hosts to which the monitors of schedules from data may go."
    )
    alerts: Alerts = Field(default={}, repr=False, description="Who is told of what, through which channel.")
    log_level: Level = Field(default="info", description="The least serious log lines that are written.")
    log_format: Format = Field(default="text", description="Log lines for people (text) or for machines (json).")
    traces: Switch = Field(default="on", description="Whether fires are spans, where OpenTelemetry is set up.")
    metrics_port: Port = Field(default=None, ge=1, le=65_535, description="Where metrics are served, if at all.")
    metrics_host: Host = Field(default="127.0.0.1", description="The address at which they are: only this machine's.")
    metrics_schedules: Globs = Field(default=("*",), description="The schedules that have metrics of their own.")
    web_host: Host = Field(default="127.0.0.1", description="The address of the web UI: only this machine's.")
    web_port: Count = Field(default=8420, ge=0, le=65_535, description="Its port; with 0 any that is free.")
    web_path: Place = Field(
        default="", description="The path below which a proxy shows the web UI, if not at its root."
    )
    web_token: Token = Field(default=None, repr=False, description="What opens the web UI, as a bearer or a password.")
    web_users: Users = Field(default={}, repr=False, description="The users of the web UI, each with a password.")
    web_hosts: HostGlobs = Field(default=(), description="Names of the web UI, beside addresses and localhost.")
    web_read_only: Switch = Field(default="off", description="Whether the web UI is read-only.")

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, *_: Any, **__: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return a single source, because `sources` merges them all; values given in Python count as flags."""
        given = dict(cast("InitSettingsSource", init_settings).init_kwargs)
        return (_FoundSource(settings_cls, given.pop("_found", None) or sources.find(given)),)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.lookahead >= self.lock_ttl:
            raise ValueError("lookahead must be shorter than lock_ttl, or locks expire before their ticks are due")
        return self

    @field_serializer("redis_url")
    def _without_password(self, url: str) -> str:
        return redis_url.masked(url)

    @field_serializer("sentry_dsn")
    def _without_key(self, dsn: str | None) -> str | None:
        return dsn and sentry_dsn.masked(dsn)

    @field_serializer("alerts")
    def _without_channels(self, table: Any) -> str:
        return secrets.count_alerts(table)

    @field_serializer("web_token")
    def _without_token(self, token: str | None) -> str | None:
        return token and secrets.HIDDEN

    @field_serializer("web_users")
    def _without_users(self, users: Any) -> str:
        return secrets.count_users(users)

    @property
    def misfire_limit(self) -> timedelta:
        """Return `misfire_after`, or its default of twice `lock_ttl` and at least 10 seconds."""
        return self.misfire_after or max(2 * self.lock_ttl, _S * 10)


@dataclass(frozen=True)
class Loaded:
    """The settings, the origin of each (`default` if it is not set), and warnings for the operator."""

    settings: Settings
    origins: Mapping[str, str]
    warnings: tuple[str, ...]


def load(
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    *,
    module: str = "",
) -> Loaded:
    """Return the effective settings; raise ConfigError if any is invalid.

    `flags` maps names of settings to values; None means that the flag was not given. If `app` is not set, the
    application is named after the distribution that contains `module` or, without it, the first of `modules`.
    """
    found = sources.find(flags, environ, cwd)
    origins = {name: found.values[name].origin if name in found.values else "default" for name in Settings.model_fields}
    problems, given = [*found.problems], {"_found": found}
    try:
        settings = Settings(**cast("Any", given))
    except ValidationError as e:
        problems += [_sentence(error, found, origins) for error in e.errors(include_url=False)]
    if problems:
        raise ConfigError("\n".join(problems))
    module = module or next(iter(settings.modules), "")
    if "app" not in found.values and (app := sources.distribution(module, cwd)):
        settings, origins["app"] = settings.model_copy(update={"app": app.value}), app.origin
    return Loaded(settings, origins, tuple(sorted(_advice(settings, found, origins))))


def kind_and_range(name: str) -> tuple[str, str]:
    """Return the type and the range of a setting in words, such as `("a duration", "100ms to 1m")`."""
    info = Settings.model_fields[name]
    reads = next(item for item in info.metadata if isinstance(item, Reads))
    bounds = [getattr(item, side) for side in ("ge", "le") for item in info.metadata if hasattr(item, side)]
    words = [durations.short(bound) if isinstance(bound, timedelta) else f"{bound:,}" for bound in bounds]
    return reads.kind, reads.range or " to ".join(words) or ", ".join(get_args(info.annotation))


def _sentence(error: ErrorDetails, found: sources.Found, origins: Mapping[str, str]) -> str:
    cause = error.get("ctx", {}).get("error")
    if not error["loc"]:
        return f"{cause} ({', '.join(f'{name}: {origins[name]}' for name in origins if name in str(cause))})"
    name = str(error["loc"][0])
    raw = found.values[name]
    if name not in origins:
        return f"{raw.origin} is not a setting.{did_you_mean(name, origins)}"
    if isinstance(cause, BeatError):
        return f"{raw.origin}: {cause}"
    kind, span = kind_and_range(name)
    hint = did_you_mean(str(raw.value), get_args(Settings.model_fields[name].annotation)) if kind == "a word" else ""
    if cause:
        return f"{raw} {cause}{f' ({span})' if kind == 'a duration' else ''}"
    return f"{raw} must be {kind} ({span}){'.' if hint else ''}{hint}"


def _advice(loaded: Settings, found: sources.Found, origins: Mapping[str, str]) -> Iterator[str]:
    for name in found.values.keys() - origins.keys():
        hint, origin = did_you_mean(name, origins), found.values[name].origin
        if origin.startswith(sources.ENV):
            hint = re.sub(r"'(\w+)'", lambda word: f"'{sources.ENV}{word[1].upper()}'", hint)
        yield f"{origin} is not a setting.{hint}"
    if "***" in redis_url.masked(loaded.redis_url) and "pyproject.toml" in origins["redis_url"]:
        yield f"{origins['redis_url']} holds a password, which others can read there: set BEAT_REDIS_URL instead."
    for name in secrets.SECRETS:
        if "pyproject.toml" in origins[name]:
            yield f"{origins[name]} holds a secret, which others can read there: set BEAT_{name.upper()} instead."
    if loaded.misfire_limit < loaded.lock_ttl + loaded.interval:
        yield "misfire_after is shorter than lock_ttl and interval together: ticks of a beat that died become misfires."
