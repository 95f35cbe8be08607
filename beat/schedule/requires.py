"""Define what a schedule requires of others: a recent success, or one since its own previous tick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beat.config import validators
from beat.errors import BadOption
from beat.timing import durations

if TYPE_CHECKING:
    from datetime import timedelta

    from beat.timing.durations import Duration

MOST = 10
_WITHIN = " within "


@dataclass(frozen=True, init=False)
class Requires:
    """The requirement that another schedule succeeded at most `within` ago or, without it, since the previous tick."""

    id: str
    within: timedelta | None

    def __init__(self, id: str, within: Duration | None = None) -> None:  # noqa: A002 (as everywhere else)
        object.__setattr__(self, "id", validators.identifier(id, "requires"))
        object.__setattr__(self, "within", validators.span(within, "within"))

    @classmethod
    def read(cls, text: str) -> Requires:
        """Parse the text of `str`, such as `extract` or `extract within 1h`."""
        schedule_id, said, within = text.partition(_WITHIN)
        return cls(schedule_id, within if said else None)

    def __str__(self) -> str:
        return self.id if self.within is None else f"{self.id}{_WITHIN}{durations.short(self.within)}"


def read(value: object, name: str = "requires") -> tuple[Requires, ...]:
    """Return the requirements in order, given as one or a list; raise BadOption if an id is repeated."""
    if value is None or value == ():
        return ()
    alone = isinstance(value, str | Requires)
    if not alone and not isinstance(value, list | tuple):
        raise BadOption(
            f"{name} {value!r:.60} must be an id, a beat.Requires('extract', within='1h'), or a list of them"
        )
    given: Any = value
    each = [given] if alone else list(given)
    if len(each) > MOST:
        raise BadOption(f"{name} has {len(each):,} entries, and may have {MOST}: require the last of a chain")
    found = tuple(map(_one, each))
    for n, one in enumerate(found):
        if one.id in {other.id for other in found[:n]}:
            raise BadOption(f"{name} has {one.id!r} twice: leave one of them out")
    return found


def _one(value: object) -> Requires:
    if isinstance(value, Requires):
        return value
    return Requires.read(validators.text(value)) if isinstance(value, str) else Requires(value)  # type: ignore[arg-type]  # raises BadOption
