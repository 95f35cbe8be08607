"""Read raw settings from flags, the environment and pyproject.toml, and record the origin of each.

Only this module knows the order of precedence, and its messages never show a password. It does not import pydantic or
other slow modules, so that a command that needs only the presets starts quickly.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from beat.config import groups, redis_url, secrets, sentry_dsn
from beat.errors import BadOption, ConfigError, did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

ENV = "BEAT_"
QUEUES: Mapping[str, str] = {"high": "high", "normal": "default", "low": "low"}
PRESET = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
LONGEST_QUEUE = 200
UNNAMED = "default"
"""The application name if neither the settings nor the project give one."""
_APP = re.compile(r"[a-z0-9-]{1,100}", re.ASCII)
_TABLES = {"presets": ";", "queues": ",", "groups": ","}  # separator of `name=value` pairs in the environment
_SHOWN = 60
_HIDDEN = {"alerts", *secrets.SECRETS}  # settings whose values are never shown
# A Kubernetes Service named `beat` or `beat-web` puts these variables into every pod of its namespace.
# They are not meant as settings.
_KUBERNETES = r"(?a)\w*(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)"
_NONE: Mapping[str, str] = MappingProxyType({})


class Raw(NamedTuple):
    """A value as it was written, and its origin."""

    name: str
    value: object
    origin: str

    def __repr__(self) -> str:
        return f"Raw(name={self.name!r}, origin={self.origin!r})"  # a value may be a password

    def __str__(self) -> str:
        """Return the origin and value for messages, such as `BEAT_INTERVAL='abc'`, with secrets masked."""
        if self.name in _HIDDEN:
            return self.origin
        if isinstance(self.value, str):
            return f"{self.origin}={_MASKS.get(self.name, safe)(self.value)!r}"
        plain = isinstance(self.value, int | float)
        return f"{self.origin}={self.value if plain else f'<{type(self.value).__name__}>'!s:.{_SHOWN}}"


class Found(NamedTuple):
    """The merged values by name, including unknown names, and one message for each malformed table."""

    values: Mapping[str, Raw]
    problems: tuple[str, ...] = ()


class Defaults(NamedTuple):
    """The settings that declarations depend on: the time zone, presets, queues and groups."""

    tz: str = "UTC"
    presets: Mapping[str, str] = _NONE
    queues: Mapping[str, str] = QUEUES
    groups: Mapping[str, str] = _NONE
    """The limits of each group as the line that Redis keeps: `wait 5 1000`."""


def find(
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Found:
    """Return every value that is set; flags override the environment, which overrides pyproject.toml.

    Tables are merged name by name. `REDIS_URL`, `RQ_REDIS_URL` and `SENTRY_DSN` rank between environment and file.
    """
    environ = os.environ if environ is None else environ
    layers = [_pyproject(cwd), _shared(environ), _environment(environ), _flags(flags or {})]
    values = {name: raw for layer in layers for name, raw in layer.items()}
    problems: list[str] = []
    for table in [name for name in _TABLES if name in values]:
        given = [layer[table] for layer in layers if table in layer]
        values[table] = _merged(table, given, problems)
    return Found(values, tuple(problems))


def defaults(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Defaults:
    """Return only `tz` and the tables; callers check the time zone and the expressions."""
    found = find(environ=environ, cwd=cwd)
    if found.problems:
        raise ConfigError("\n".join(found.problems))
    values: Any = {name: found.values[name].value for name in ("tz", *_TABLES) if name in found.values}
    if not isinstance(values.get("tz", ""), str):
        raise ConfigError(f"{found.values['tz']} must be the name of a time zone, such as 'Europe/Paris'")
    return Defaults(**values)


def safe(text: str) -> str:
    """Return `text` cut short for a message; if it contains a URL, mask the URL's secrets."""
    shown = redis_url.masked(text) if "://" in text else text
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"


_MASKS = {"redis_url": redis_url.masked, "sentry_dsn": sentry_dsn.masked}


def _flags(flags: Mapping[str, object]) -> dict[str, Raw]:
    given = ((name, value) for name, value in flags.items() if value not in (None, ()))  # click's "not given"
    return {name: Raw(name, value, f"--{name.replace('_', '-')}") for name, value in given}


def _environment(environ: Mapping[str, str]) -> dict[str, Raw]:
    found = {}
    for variable, value in environ.items():
        # Compose files and charts write `BEAT_TZ=` for "not set".
        if variable.startswith(ENV) and value.strip() and not _by_kubernetes(variable, value):
            name = variable.removeprefix(ENV).lower() if variable.isupper() else variable
            found[name] = Raw(name, value, variable)
    return found


def _by_kubernetes(variable: str, value: str) -> bool:
    if variable.endswith("_PORT"):
        return value.startswith(("tcp://", "udp://", "sctp://")) or variable.endswith("_SERVICE_PORT")
    return bool(re.fullmatch(_KUBERNETES, variable))


def _shared(environ: Mapping[str, str]) -> dict[str, Raw]:
    """Return values from the variables of RQ workers and Sentry; a SENTRY_DSN that is not a DSN is ignored."""
    found = {}
    for variable in ("REDIS_URL", "RQ_REDIS_URL"):
        if environ.get(variable, "").strip():
            found["redis_url"] = Raw("redis_url", environ[variable], variable)
    if (dsn := environ.get("SENTRY_DSN")) and sentry_dsn.read(dsn):
        found["sentry_dsn"] = Raw("sentry_dsn", dsn, "SENTRY_DSN")
    return found


def project(cwd: Path | None = None) -> str | None:
    """Return the nearest directory, from `cwd` upwards, that holds a pyproject.toml."""
    try:
        directory = os.path.abspath(cwd or os.curdir)
    except OSError:  # the directory was removed, as a deploy does to the old release of a running worker
        return None
    above = ""
    while directory != above:
        if os.path.lexists(os.path.join(directory, "pyproject.toml")):
            return directory
        above, directory = directory, os.path.dirname(directory)
    return None


def _pyproject(cwd: Path | None) -> dict[str, Raw]:
    directory = project(cwd)
    if directory is None:
        return {}
    path = os.path.join(directory, "pyproject.toml")
    return _tool_beat(path, os.path.relpath(path, cwd or os.curdir))


def _tool_beat(path: str, shown: str) -> dict[str, Raw]:
    table = _read(path, shown)
    project = _project(table, shown)
    for key, header in (("tool", "[tool]"), ("beat", "[tool.beat]")):
        inner = table.get(key, {})
        if not isinstance(inner, dict):
            raise ConfigError(
                f"{shown}: {header} must be a table, not {type(inner).__name__}: write settings below {header}"
            )
        table = inner
    headers = {
        name: f"[tool.beat.{name}]" if name in {*_TABLES, "alerts", "web_users"} else f"[tool.beat] {_printed(name)}"
        for name in table
    }
    return project | {name: Raw(name, value, f"{shown} {headers[name]}") for name, value in table.items()}


def _project(document: Mapping[str, object], shown: str) -> dict[str, Raw]:
    """Return the `app` setting from the project name in pyproject.toml, or nothing."""
    for header in ("project", "tool.poetry"):
        table: Any = document
        for key in (*header.split("."), "name"):
            table = table.get(key) if isinstance(table, dict) else None
        if isinstance(table, str) and (name := _app_name(table)):
            return {"app": Raw("app", name, f"{shown} [{header}] name")}
    return {}


def distribution(module: str, cwd: Path | None = None) -> Raw | None:
    """Return the `app` setting from the installed distribution that contains `module`, or None.

    A module in the current directory belongs to no distribution, even if one of that name is installed.
    """
    top, here = module.partition(".")[0], os.fspath(cwd or os.curdir)
    is_path = os.sep in module or module.endswith(".py")
    if not top or is_path or any(os.path.exists(os.path.join(here, f"{top}{end}")) for end in ("", ".py")):
        return None
    from importlib import metadata  # noqa: PLC0415 (slow: it scans all installed distributions)

    for holder in metadata.packages_distributions().get(top, ()):
        if name := _app_name(holder):
            return Raw("app", name, f"the distribution {holder}, which holds {top}")
    return None


def _app_name(name: str) -> str:
    """Return the name normalised for the setting `app`, or "" if it is not valid there."""
    plain = re.sub(r"[-_.]+", "-", name.strip()).lower()
    return plain if _APP.fullmatch(plain) else ""


def _printed(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key) else repr(safe(key))


def _read(path: str, shown: str) -> dict[str, object]:
    import tomllib  # noqa: PLC0415 (only needed if there is a file)

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as e:
        raise ConfigError(f"{shown} cannot be read: {e.strerror or e}") from e
    except (ValueError, RecursionError) as e:
        raise ConfigError(f"{shown} is not valid TOML: {e}") from e


def _merged(table: str, given: list[Raw], problems: list[str]) -> Raw:
    merged = dict(QUEUES) if table == "queues" else {}
    for raw in given:
        try:
            merged.update(_table(raw))
        except ConfigError as e:
            problems.append(str(e))
    return Raw(table, merged, " over ".join(raw.origin for raw in reversed(given)))


def _table(raw: Raw) -> dict[str, str]:
    table: dict[str, str] = {}
    for name, value in _pairs(raw):
        place = f"{raw.origin}: {safe(str(name))!r}"
        if name in table:
            raise ConfigError(f"{place} is given twice")
        table[name] = _group(place, name, value) if raw.name == "groups" else _line(place, value)
        if raw.name == "presets" and not PRESET.fullmatch(name):
            raise ConfigError(f"{place} cannot name a preset: use a-z, 0-9 and _, a letter first, such as 'nightly'")
        if raw.name == "queues":
            _check_queue(place, name, table[name])
    return table


def _line(place: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ConfigError(f"{place} must be one line of text, and not an empty one")
    return value


def _group(place: str, name: str, value: object) -> str:
    """Return the line that Redis keeps for a group; a JSON object arrives as a list of pairs."""
    try:
        return str(groups.configured(name, dict(value) if isinstance(value, list) else value))
    except (TypeError, ValueError) as e:
        told = isinstance(e, BadOption) and "://" not in str(value)  # a pasted URL may hold a secret
        words = str(e) if told else f"{safe(str(value))!r} is no group"
        example = f"{safe(str(name))} = 5, or {safe(str(name))} = {{max_running = 5, when_full = 'skip'}}"
        raise ConfigError(f"{place}: {words}: write {example}") from None


def _check_queue(place: str, priority: str, queue: str) -> None:
    if priority not in QUEUES:
        raise ConfigError(f"{place} is not a priority: there are {', '.join(QUEUES)}.{did_you_mean(priority, QUEUES)}")
    if queue != queue.strip() or len(queue) > LONGEST_QUEUE:
        raise ConfigError(
            f"{place} must name a queue, in at most {LONGEST_QUEUE} characters and without spaces around it"
        )


def _pairs(raw: Raw) -> list[tuple[str, object]]:
    separator = _TABLES[raw.name]
    if isinstance(raw.value, Mapping):
        return list(raw.value.items())
    text = raw.value.strip() if isinstance(raw.value, str) else ""
    if text.startswith("{"):
        import json  # noqa: PLC0415 (only needed for tables in JSON)

        try:
            pairs: list[tuple[str, object]] = json.loads(text, object_pairs_hook=list)
        except (ValueError, RecursionError) as e:
            raise ConfigError(f"{raw.origin} is not a JSON object: {e}") from None
        return pairs
    split = [pair.partition("=") for pair in text.split(separator) if pair.strip()]
    if not all(equals for _, equals, _ in split) or not split:
        raise ConfigError(f"{raw.origin} must be a table: write a JSON object, or name=value{separator}name=value")
    return [(name.strip(), value.strip()) for name, _, value in split]
