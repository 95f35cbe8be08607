"""A rehearsal decides as the real thing would, and writes nothing."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from beat import clock, definitions
from beat.book import Book
from beat.cron import Cron
from beat.event import Event
from beat.every import Every
from beat.health import Health
from beat.keys import Keys
from beat.protocol import Item
from beat.rehearsal import Rehearsal, cast
from beat.schedule import Schedule
from beat.state import State
from beat.sync import Sync
from beat.ticker import Ticker
from beat.verdicts import released
from tests.unit.desk import PACE, World

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from redis import Redis

    from beat.store import Store

NINE = datetime(2026, 11, 16, 9, tzinfo=UTC)
GOES_ON = threading.Event()


def schedule(schedule_id: str = "report", timing: Cron | Every | None = None, **given: Any) -> Schedule:
    return Schedule(id=schedule_id, func="app.tasks.report", timing=timing or Every("1h"), **given)


class Seen:
    """A store that can only be looked at: anything else is an AttributeError."""

    def __init__(self, now: datetime, states: dict[str, State] | None = None, **written: Schedule | str) -> None:
        self.now, self.states, self.written = now, states or {}, written

    def time(self) -> datetime:
        return self.now

    def ids(self) -> Iterator[list[str]]:
        yield [*self.states]
        yield [*self.states]  # a scan may show an id twice

    def definitions(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        found = [self.written.get(each, "") for each in ids]
        return [
            (f"rev of {each}", text if isinstance(text, str) else definitions.write(text))
            for each, text in zip(ids, found, strict=True)
        ]

    def look(self, ids: Sequence[str]) -> list[State | None]:
        return [self.states.get(each) for each in ids]


def state(made: Schedule, next_run: datetime | None, **given: str) -> State:
    text = clock.text(next_run) if next_run else ""
    values: dict[str, Any] = {
        "rev": made.rev,
        "timing_rev": made.timing_rev,
        "state": "active",
        "next_run": text,
        "due_at": text,
    }
    return State(**{**values, "last_run": "", **given})


def play(monkeypatch: pytest.MonkeyPatch, store: Any, schedules: Sequence[Schedule], seconds: int) -> list[Event]:
    """A ticker on a rehearsal, for so many seconds."""
    world, events = World.of(monkeypatch), list[Event]()
    world.redis_ms = clock.to_ms(store.time())
    parts = cast(store, schedules)
    desk = Rehearsal(parts, lambda: clock.from_ms(world.redis_ms), Keys())
    book = Book(desk, [(made, rev) for made, rev, _ in parts])
    ticker = Ticker(desk, book, PACE, token="beat-1", emit=events.append, health=Health(events.append))  # noqa: S106 (a name)
    for _ in range(seconds * 4):
        ticker.turn(GOES_ON)
        world.passes(250)
    return events


@pytest.mark.parametrize(
    "timing",
    [
        Every("1s"),
        Every("7s", phase=3),
        Cron("* * * * *"),
        Cron("*/20 * * * * *", "Europe/Berlin", seconds=True),
        Cron("1 9 * * *"),
    ],
    ids=str,
)
def test_a_rehearsal_fires_every_tick_once(timing: Cron | Every, monkeypatch: pytest.MonkeyPatch) -> None:
    made = schedule(timing=timing)
    events = play(monkeypatch, Seen(NINE), [made], 100)
    assert {event.name for event in events} <= {"fired"}
    expected = [clock.text(tick) for tick in made.ticks(NINE + timedelta(seconds=1), NINE + timedelta(seconds=100))]
    assert [event.fields["tick"] for event in events] == expected
    assert all(event.fields["late_ms"] < 500 for event in events)


def test_a_rehearsal_ends_with_its_schedules(monkeypatch: pytest.MonkeyPatch) -> None:
    ending = schedule(timing=Every("1s"), end=NINE + timedelta(seconds=3))
    assert len(play(monkeypatch, Seen(NINE), [ending], 10)) == 3


def test_what_was_due_long_ago_is_a_misfire_here_too(monkeypatch: pytest.MonkeyPatch) -> None:
    made = schedule()
    store = Seen(NINE + timedelta(minutes=5), {"report": state(made, NINE - timedelta(hours=3))})
    events = play(monkeypatch, store, [made], 2)
    assert [(event.name, event.fields["tick"][11:16]) for event in events] == [("skipped", "06:00"), ("fired", "09:00")]


def test_what_is_given_back_is_handed_out_again() -> None:
    desk = Rehearsal([(schedule(), "rev", NINE)], lambda: NINE, Keys())
    asked: Any = {"token": "t", "lock_ttl": 1, "lookahead": 0, "limit": 10, "only": ""}
    assert [claim.id for claim in desk.claim(**asked).claims] == ["report"]
    assert desk.claim(**asked).claims == ()
    desk.fire(released("report").items, token="t")  # noqa: S106 (a name)
    assert [claim.tick for claim in desk.claim(**asked).claims] == [clock.text(NINE)]


def test_a_tick_that_has_to_wait_is_not_handed_out_beside() -> None:
    desk = Rehearsal([(schedule(timing=Every("1s")), "rev", NINE)], lambda: NINE, Keys())
    asked: Any = {"token": "t", "lock_ttl": 1, "lookahead": 2000, "limit": 10, "only": ""}
    assert len(desk.claim(**asked).claims) == 1
    ms = clock.to_ms(NINE)
    items = [
        Item("fire", "report", "rev", "a", ms, "b", ms + 1000, "ja"),
        Item("fire", "report", "rev", "b", ms + 1000, "c", ms + 2000, "jb"),
    ]
    codes = [reply.code for reply in desk.fire(items, token="t").replies]  # noqa: S106 (a name)
    assert codes == ["OK", "EARLY"]
    assert desk.claim(**asked).claims == (), "whoever was told to wait has it"


def test_a_page_has_a_limit_and_the_earliest_come_first() -> None:
    parts = [(schedule(f"s{n}"), "rev", NINE - timedelta(seconds=n)) for n in range(5)]
    desk = Rehearsal(parts, lambda: NINE, Keys())
    asked: Any = {"token": "t", "lock_ttl": 1, "lookahead": 0, "limit": 3, "only": ""}
    assert [claim.id for claim in desk.claim(**asked).claims] == ["s4", "s3", "s2"]
    assert [claim.id for claim in desk.claim(**asked).claims] == ["s1", "s0"]


# --- who plays -------------------------------------------------------------------------------------------------------


def parts(store: Any, *schedules: Schedule) -> dict[str, tuple[str, datetime | None]]:
    return {made.id: (rev, tick) for made, rev, tick in cast(store, schedules)}


def test_a_new_schedule_plays_from_its_first_tick_on() -> None:
    made = schedule()
    assert parts(Seen(NINE), made) == {"report": (made.rev, NINE + timedelta(hours=1))}


def test_a_known_one_goes_on_where_redis_has_it() -> None:
    made, due = schedule(), NINE - timedelta(hours=5)
    assert parts(Seen(NINE, {"report": state(made, due)}), made) == {"report": (made.rev, due)}


def test_an_edited_one_goes_on_from_now() -> None:
    before, made = schedule(), schedule(timing=Every("5m"))
    store = Seen(NINE, {"report": state(before, NINE + timedelta(hours=1))})
    assert parts(store, made) == {"report": (made.rev, NINE + timedelta(minutes=5))}


def test_what_only_redis_knows_plays_too() -> None:
    other = schedule("other", args=[1])
    store = Seen(NINE, {"other": state(other, NINE)}, other=other)
    assert parts(store, schedule())["other"] == ("rev of other", NINE)


@pytest.mark.parametrize("found", ["paused", "disabled", "finished"])
def test_what_rests_does_not_play(found: str) -> None:
    other = schedule("other", enabled=found != "disabled")
    rests = state(other, NINE if found != "finished" else None, state=found, rev="rev of other")
    store = Seen(NINE, {"other": rests}, other=other)
    assert parts(store)["other"][1] is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_what_cannot_be_read_does_not_play_and_harms_nobody(text: str) -> None:
    other = schedule("other")
    store = Seen(NINE, {"other": state(other, NINE)}, other=text)
    assert set(parts(store, schedule())) == {"report"}


def test_a_definition_of_another_schedule_harms_nobody() -> None:
    other = schedule("other")
    store = Seen(NINE, {"copy": state(other, NINE)}, copy=other)
    assert "report" in parts(store, schedule())


def test_what_the_code_would_mend_plays() -> None:
    made = schedule()
    store = Seen(NINE, {"report": state(made, NINE, state="broken")})
    assert parts(store, made) == {"report": (made.rev, NINE)}


# --- on a real server ------------------------------------------------------------------------------------------------


def test_nothing_is_written(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    made = [schedule("a", Every("1s")), schedule("b", Every("2s"))]
    sync = Sync(store, made[:1], beat="beat-1", emit=list[Event]().append)
    sync.announce()
    sync.register()

    def everything() -> dict[bytes, Any]:
        return {key: _value(store.client, key) for key in store.client.scan_iter()}

    before = everything()
    events = play(monkeypatch, store, [*made, schedule("c", Every("3s"))], 12)
    assert {event.schedule_id for event in events if event.name == "fired"} == {"a", "b", "c"}
    assert everything() == before


def _value(redis: Redis, key: bytes) -> Any:
    match redis.type(key):
        case b"hash":
            return redis.hgetall(key)
        case b"zset":
            return redis.zrange(key, 0, -1, withscores=True)
        case b"set":
            return redis.smembers(key)
        case kind:
            return kind
