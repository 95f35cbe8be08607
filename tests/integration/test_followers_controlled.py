"""What operators do to a schedule that follows another: it has no times, so some things mean nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from beat.errors import Refused
from beat.history.history import Fired, Passed
from beat.storage.messages import Claim
from beat.timing import clock
from tests.support.builders import claim, hash_of, score
from tests.support.schedulers_in_turn import Crew, follower, hourly

if TYPE_CHECKING:
    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store


@pytest.fixture
def crew(store: Store, server: PrivateRedis) -> Crew:
    return Crew(store, server, hourly("extract"), follower())


def verdicts(crew: Crew) -> list[str]:
    """What became of the ticks of `load`, oldest first."""
    lines = crew.client.history("load")[::-1]
    told = (
        line.reason if isinstance(line, Passed) else "enqueued" for line in lines if isinstance(line, Fired | Passed)
    )
    return list(told)


def test_a_follower_fires_after_a_success(crew: Crew) -> None:
    parent = crew.run("extract")
    crew.attend()
    (run,) = crew.client.history("load", outcome="open")
    assert isinstance(run, Fired)
    assert (run.triggered_by, run.after) == ("follows", parent.job_id)


def test_what_a_pause_holds_passes_tick_by_tick_and_then_it_goes_on(crew: Crew) -> None:
    crew.client.pause("load", reason="migration")
    for _ in range(2):
        crew.run("extract")
        crew.attend()
    assert verdicts(crew) == ["paused", "paused"]
    standing = crew.client.resume("load")
    assert (standing.state, standing.next_run, standing.pause) == ("active", None, None)
    assert score(crew.store, "load") is None
    crew.run("extract")
    crew.attend()
    assert verdicts(crew) == ["paused", "paused", "enqueued"]


def test_a_pause_with_an_end_ends_by_itself(crew: Crew) -> None:
    until = clock.at(clock.floor(crew.store.time()) + 3600)
    crew.client.pause("load", until)
    assert score(crew.store, "load") == clock.to_ms(until)
    assert crew.client.get("load").state == "paused"
    past = clock.at(clock.floor(crew.store.time()) - 5)
    crew.store.client.hset("beat:schedule:load", "pause_until", clock.text(past))
    crew.store.client.zadd("beat:due", {"load": clock.to_ms(past)})
    crew.tick()
    found = hash_of(crew.store, "load")
    assert found["state"] == "active"
    assert not {"next_run", "due_at", "pause_until", "paused_by"} & found.keys()
    assert score(crew.store, "load") is None
    assert [event.schedule_id for event in crew.told("resumed")] == ["load"]


def test_the_claim_of_a_follower_whose_pause_has_ended_has_no_tick(crew: Crew) -> None:
    until = clock.at(clock.floor(crew.store.time()) + 3600)
    crew.client.pause("load", until)
    assert claim(crew.store).claims == ()
    crew.store.client.zadd("beat:due", {"load": 0})
    assert claim(crew.store).claims == (), "the hash decides, not the index"
    assert score(crew.store, "load") == clock.to_ms(until)
    past = clock.text(clock.at(1))
    crew.store.client.hset("beat:schedule:load", "pause_until", past)
    crew.store.client.zadd("beat:due", {"load": 0})
    assert claim(crew.store).claims == (Claim("load", follower().rev, "", 1000, "normal", past),)


def test_an_active_follower_is_not_handed_out_whatever_the_index_says(crew: Crew) -> None:
    crew.store.client.zadd("beat:due", {"load": 0})
    claimed = claim(crew.store)
    assert (claimed.claims, claimed.troubles, score(crew.store, "load")) == ((), (), None)
    assert hash_of(crew.store, "load")["state"] == "active"


def test_a_pause_may_get_another_end(crew: Crew) -> None:
    soon, later = (clock.at(clock.floor(crew.store.time()) + hours * 3600) for hours in (1, 2))
    crew.client.pause("load", soon)
    crew.client.pause("load", later)
    assert score(crew.store, "load") == clock.to_ms(later)
    crew.client.pause("load")
    assert score(crew.store, "load") is None
    assert crew.client.resume("load").state == "active"


def test_all_are_paused_and_resumed_with_followers_among_them(crew: Crew) -> None:
    assert crew.client.pause_all() == 2
    assert crew.client.resume_all() == 2
    assert crew.client.get("load").state == "active"


def test_what_is_not_paused_cannot_be_resumed(crew: Crew) -> None:
    with pytest.raises(Refused, match="load is active, not paused"):
        crew.client.resume("load")


NO_TIMES = "load follows extract: it has no times of its own"


def test_it_cannot_be_rescheduled(crew: Crew) -> None:
    for wish in (
        {"expression": "0 9 * * *"},
        {"every": "1h"},
        {"tz": "Europe/Berlin"},
        {"at": clock.at(2_000_000_000)},
    ):
        with pytest.raises(Refused, match=NO_TIMES):
            crew.client.reschedule("load", **wish)


def test_it_cannot_be_backfilled(crew: Crew) -> None:
    now = crew.store.time()
    with pytest.raises(Refused, match=NO_TIMES):
        crew.client.plan_backfill("load", now, now)
    with pytest.raises(Refused, match=NO_TIMES):
        list(crew.client.backfill("load", now, now))


def test_it_has_no_next_tick_to_skip(crew: Crew) -> None:
    with pytest.raises(Refused, match=NO_TIMES):
        crew.client.trigger("load", skip_next=True)


def test_it_can_be_triggered(crew: Crew) -> None:
    run = crew.client.trigger("load")
    assert (run.tick, run.triggered_by, run.after) == (None, "manual", "")
    assert crew.client.next_ticks("load") == []
