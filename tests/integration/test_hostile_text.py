"""Text from Redis is never a format: hostile text in any field of a schedule or its ledger is shown as it is."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest

from beat import cli
from beat.history import ledger
from beat.timing import clock
from tests.support.builders import hash_of, put
from tests.support.lines import MINUTE, NINE, Ledger

if TYPE_CHECKING:
    from pathlib import Path

    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

HOSTILE = "{x} {0:400000000} {app:400000000} {id} %s %(x)s %d %1 %n ${x} \\1"
NOT_FOUND = 3
DAY = 1440 * MINUTE
OTHERS = (
    "last_error", "paused_by", "pause_reason", "paused_until", "overridden_by", "overridden_at", "override", "declared",
    "unannounced_at", "deferred_by", "slow", "source", "app", "description", "cron", "every", "group",
    "last_success", "last_failure", "monitor", "route", "queues", "follows", "requires", "exclude", "finished",
)  # fmt: skip
"""Fields that a plain schedule lacks, and keys of definitions; what beat does not read does no harm."""


@pytest.fixture
def beat(
    server: PrivateRedis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """A call of `beat` in this process: its exit code, and all that it printed."""
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BEAT_REDIS_URL", server.url)

    def call(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as end:
            cli.main(arguments)
        printed = capsys.readouterr()
        return int(str(end.value.code)), printed.out + printed.err

    return call


def sound(beat: Any, *arguments: str) -> str:
    """What both forms print: neither is a bug of beat's."""
    told = []
    for form in ((), ("--json",)):
        code, printed = beat(*arguments, *form)
        assert code in {0, 1, NOT_FOUND}, (arguments, form, printed)
        assert len(printed) < 1_000_000
        told.append(printed)
    if code != NOT_FOUND:
        json.loads(told[1])
    return str(told[0])


def test_text_in_the_hash_of_a_schedule_is_never_a_format(store: Store, redis: Redis, beat: Any) -> None:
    put(store, "base")
    plain = hash_of(store, "base")
    definition = json.loads(plain["definition"]) if "definition" in plain else {"func": "tests.x", "every": "1m"}
    ids = []
    for place, name in enumerate(sorted({*plain, *OTHERS})):
        ids.append(f"field{place}")
        put(store, ids[-1])
        redis.hset(f"beat:schedule:{ids[-1]}", name, HOSTILE)
    for place, name in enumerate(sorted({*definition, *OTHERS})):
        ids.append(f"key{place}")
        put(store, ids[-1], definition=json.dumps({**definition, "id": ids[-1], name: HOSTILE}))
    texts = ("source", "last_error", "pause_reason", "paused_by", "overridden_by")
    put(store, "all", state="paused")
    redis.hset("beat:schedule:all", mapping=dict.fromkeys(texts, HOSTILE))
    put(store, "code", app=HOSTILE)
    assert sound(beat, "show", "all").count(HOSTILE) == len(texts) - 1  # nothing is overridden
    assert f"the code of the application {HOSTILE}" in sound(beat, "show", "code")
    for each in ids:
        sound(beat, "show", each)
        sound(beat, "why", each, "03:00")
    for command in ("list", "history", "doctor", "verify", "timeline"):
        sound(beat, command)
    assert redis.scard("beat:schedules") == len(ids) + 3


def full() -> Ledger:
    """One line of each kind."""
    book = Ledger("full").registered(NINE - DAY, NINE)
    book.fired(NINE, queue="a", why="b", after="c").ended(
        NINE, "failed", error=ledger.Error("a", "b", "c"), reason="d", message="e", details={"f": "g"}
    )
    tick = NINE + MINUTE
    book.skipped(tick, tick, 1, behind="a", why="b", after="c")
    book.entries.append(ledger.Waiting(tick + MINUTE, "a", "b", tick + MINUTE, "c", "d"))
    book.entries.append(ledger.Reopened(NINE, book.job(NINE), "failed", 2, tick + MINUTE, "a"))
    for number, kind in enumerate(ledger.ACTIONS):
        book.acted(kind, tick + (2 + number) * MINUTE, reason="a", until=tick + DAY)
    return book.changed(tick + DAY / 2, {"every": "5m", "tz": "UTC"}, tick + DAY, "rescheduled")


def planted(entry: ledger.Entry) -> ledger.Entry:
    """The same, with hostile text in each field that holds words of its own."""
    own: dict[str, Any] = {
        field.name: HOSTILE
        for field in dataclasses.fields(entry)
        if isinstance(getattr(entry, field.name), str) and field.name not in {"type", "job"}
    }
    if isinstance(entry, ledger.Outcome):
        own |= {"error": ledger.Error(HOSTILE, HOSTILE, HOSTILE), "details": {HOSTILE: HOSTILE}}
    return dataclasses.replace(entry, **own)


def test_text_in_a_ledger_is_never_a_format(redis: Redis, beat: Any) -> None:
    book = full()
    book.entries = [planted(entry) for entry in book.entries]
    book.keep(redis)
    assert HOSTILE in sound(beat, "history", "full")
    assert HOSTILE in sound(beat, "history", "full", "-v")
    for n in range(8):
        sound(beat, "why", "full", clock.text(NINE + n * MINUTE))
    for command in (["show", "full"], ["verify", "full"], ["list"], ["doctor"], ["timeline"], ["history", "--failed"]):
        sound(beat, *command)
