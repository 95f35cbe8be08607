"""What is made quickly is what its class would have made."""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, fields

import pytest

from beat import clock, frozen
from beat.history import Fired
from beat.ledger import Acted, Changed, Enqueued, Outcome, Reopened, Skipped, Waiting

KINDS = [Enqueued, Skipped, Waiting, Outcome, Reopened, Changed, Acted, Fired]
AT = clock.at(1_794_804_190)


def values(kind: type, *, every: bool) -> dict[str, object]:
    needed = [own.name for own in fields(kind) if every or own.default is own.default_factory is MISSING]
    return {name: f"the {name}" for name in needed}


@pytest.mark.parametrize("every", [True, False], ids=["all is said", "the rest is not said"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_same_as_if_its_class_had_made_it(kind: type, *, every: bool) -> None:
    told = values(kind, every=every)
    one: object = frozen.made(kind, told)
    other = kind(**told)
    assert (type(one), one, vars(one)) == (kind, other, vars(other))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_missing_is_refused_as_its_class_would(kind: type) -> None:
    told = values(kind, every=True)
    del told["at"]
    with pytest.raises(TypeError, match="'at'"):
        frozen.made(kind, told)
    with pytest.raises(TypeError, match="'at'"):
        kind(**told)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_field_is_refused_as_its_class_would(kind: type) -> None:
    told = values(kind, every=False) | {"atr": AT}
    with pytest.raises(TypeError, match="'atr'"):
        frozen.made(kind, told)
    with pytest.raises(TypeError, match="'atr'"):
        kind(**told)


def test_what_may_change_is_shared_with_nobody() -> None:
    one, other = (frozen.made(Outcome, values(Outcome, every=False)) for _ in range(2))
    assert one.details == other.details == {}
    assert one.details is not other.details


def test_it_cannot_be_changed() -> None:
    one = frozen.made(Acted, {"type": "paused", "at": AT, "beat": "web-1"})
    with pytest.raises(FrozenInstanceError):
        one.beat = "web-2"  # type: ignore[misc]
