"""Adds what was found to an installation, one by one: what is refused is told, and the others go on."""

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
    """What `Client` can."""

    def add(
        self, schedule_id: str, /, *, func: str, cron: str | None, replace: bool, **given: Unpack[Options]
    ) -> object:
        """Adds one schedule, or raises."""


@dataclass(frozen=True)
class Added:
    """What became of one."""

    found: Found
    refused: str | None = None
    """Why it was not added."""


def add(client: Adder, reading: Reading, *, replace: bool = False) -> Iterator[Added]:
    """Adds each; where there is no Redis, or a wrong setting, it ends with that."""
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
