"""Add imported schedules to an installation one by one; a schedule that beat rejects does not stop the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from beat.errors import BeatError, ConfigError, NoRedis

if TYPE_CHECKING:
    from collections.abc import Iterator

    from beat.migrate.result import Found, Reading
    from beat.schedule.options import Options

_COMMAND = "it is a command, and only a function can be added: save the Python that this prints, and let beat load it"


class Adder(Protocol):
    """The part of `Client` that adds a schedule."""

    def add(
        self, schedule_id: str, /, *, func: str, cron: str | None, replace: bool, **given: Unpack[Options]
    ) -> object:
        """Add one schedule, or raise BeatError."""


@dataclass(frozen=True)
class Added:
    """The result for one schedule."""

    found: Found
    refused: str | None = None
    """Why it was not added; None if it was."""


def add(client: Adder, reading: Reading, *, replace: bool = False) -> Iterator[Added]:
    """Add each schedule and yield the results; raise NoRedis or ConfigError, which would stop every schedule."""
    for found in reading.found:
        yield Added(found, _COMMAND if found.command else _refusal(client, found, replace=replace))


def _refusal(client: Adder, found: Found, *, replace: bool) -> str | None:
    given: Any = found.given()
    try:
        client.add(found.id, func=found.func, cron=found.cron, replace=replace, **given)
    except (NoRedis, ConfigError):
        raise
    except BeatError as e:
        return str(e)
    return None
