"""Claiming: the earliest due schedules, each to one beat at a time; what cannot be used stands in nobody's way."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from redis.exceptions import OutOfMemoryError

from beat.storage.messages import Claim, Reply
from beat.storage.store import Store, pages
from tests.support.builders import (
    LONG,
    OTHER,
    REV,
    TOKEN,
    another_client,
    changed,
    claim,
    everything,
    hash_of,
    put,
    registration,
    retried,
    score,
    second,
    shows,
    text,
)
from tests.support.chance import examples
from tests.support.facts import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from beat.storage.messages import Claimed


def ids(claimed: Claimed) -> list[str]:
    return [each.id for each in claimed.claims]


def put_many(store: Store, many: list[str], at: int) -> None:
    for page in pages(many):
        store.register([registration(each, at) for each in page], beat="tests")


# --- what is handed out ----------------------------------------------------------------------------------------------


@shows("claim", "OK")
def test_a_claim_tells_all_that_is_needed_to_decide(store: Store) -> None:
    at = second(store) - 10
    put(store, "report", at, last_run=text(at - 60), priority="high")
    claimed = claim(store)
    assert claimed.claims == (Claim("report", REV, text(at), at * 1000, "high"),)
    assert (claimed.code, claimed.troubles) == ("OK", ())
    assert abs(claimed.now - second(store) * 1000) < 5_000


def test_the_earliest_come_first_and_no_more_than_the_limit(store: Store) -> None:
    now = second(store)
    for ago in (2, 5, 1, 4, 3):
        put(store, f"s{ago}", now - ago)
    assert ids(claim(store, limit=3)) == ["s5", "s4", "s3"]
    assert ids(claim(store, limit=3)) == ["s2", "s1"]


def test_high_priority_comes_first_in_a_page_and_the_earliest_first_within_a_priority(store: Store) -> None:
    now = second(store)
    given = [("low1", "low"), ("normal1", "normal"), ("high1", "high"), ("none", ""), ("low2", "low"),
             ("high2", "high"), ("strange", "urgent"), ("normal2", "normal")]  # fmt: skip
    for n, (schedule_id, priority) in enumerate(given):
        put(store, schedule_id, now - 20 + n, priority=priority)
    assert ids(claim(store)) == ["high1", "high2", "normal1", "none", "strange", "normal2", "low1", "low2"]


def test_a_page_is_chosen_by_time_and_not_by_priority(store: Store) -> None:
    now = second(store)
    for n, priority in enumerate(["low", "normal", "high"]):
        put(store, priority, now - 10 + n, priority=priority)
    assert ids(claim(store, limit=2)) == ["normal", "low"]


def test_what_is_not_due_is_handed_out_within_the_lookahead_alone(store: Store) -> None:
    at = second(store) + 30
    put(store, "report", at)
    before = everything(store)
    assert ids(claim(store)) == ids(claim(store, lookahead=10_000)) == []
    assert not changed(before, store)
    assert ids(claim(store, lookahead=40_000)) == ["report"]


def test_an_index_that_is_too_early_is_put_right_and_hands_nothing_out(store: Store) -> None:
    at = second(store) + 60
    put(store, "report", at)
    store.client.zadd(store.keys.due, {"report": 5})
    assert ids(claim(store)) == []
    assert score(store) == at * 1000
    assert not store.client.exists("beat:lock:report")


@pytest.mark.parametrize("only", ["^rep", "port$", "^report$", "^[a-r]eport$"])
def test_only_ids_that_match_are_handed_out(only: str, store: Store) -> None:
    at = second(store) - 10
    for schedule_id in ("alpha", "report", "zeta"):
        put(store, schedule_id, at)
    assert ids(claim(store, only=only, limit=1)) == ["report"]
    assert score(store, "alpha") == score(store, "zeta") == at * 1000
    assert not store.client.exists("beat:lock:alpha", "beat:lock:zeta")


def test_one_that_matches_is_found_behind_a_thousand_that_do_not(store: Store) -> None:
    now = second(store)
    put_many(store, [f"other{n}" for n in range(1_500)], now - 20)
    put(store, "report", now - 10)
    assert ids(claim(store, only="^report$")) == ["report"]


@pytest.mark.parametrize("state", ["paused", "disabled", "finished", "broken", ""])
def test_what_is_not_active_leaves_the_index(state: str, store: Store) -> None:
    put(store, "report", second(store) - 10, state=state)
    claimed = claim(store)
    assert (ids(claimed), claimed.troubles) == ([], ())
    assert score(store) is None
    assert not store.client.exists("beat:lock:report")


# --- one beat at a time ----------------------------------------------------------------------------------------------


def test_what_is_claimed_is_hidden_until_its_lock_runs_out(store: Store) -> None:
    put(store, "report", second(store) - 10)
    assert ids(claim(store)) == ["report"]
    assert store.client.get("beat:lock:report") == TOKEN.encode()
    assert score(store) == store.client.pexpiretime("beat:lock:report")
    before = everything(store)
    for token in ("another", TOKEN):
        claimed = claim(store, token=token)
        assert (ids(claimed), claimed.troubles) == ([], ())
    assert not changed(before, store)


def test_a_claim_changes_nothing_but_the_lock_and_the_index(store: Store) -> None:
    put(store, "report", second(store) - 10)
    before = everything(store)
    claim(store)
    assert changed(before, store) == {"beat:lock:report", "beat:due"}


def test_what_is_claimed_ahead_is_hidden_beyond_the_lookahead(store: Store) -> None:
    put(store, "report", second(store) + 2)
    claimed = claim(store, lock_ttl=1_000, lookahead=LONG)
    assert ids(claimed) == ["report"]
    assert score(store) == claimed.now + LONG + 1


def test_after_the_lock_ran_out_another_beat_gets_it(store: Store) -> None:
    at = second(store) - 10
    put(store, "report", at)
    assert ids(claim(store, lock_ttl=50)) == ["report"]
    claimed = wait_until(lambda: claim(store, token=OTHER).claims)
    assert claimed[0].tick == text(at)
    assert store.client.get("beat:lock:report") == b"another"


@pytest.fixture
def stores(store: Store) -> Iterator[list[Store]]:
    made = [Store(another_client(store), store.keys) for _ in range(10)]
    yield made
    for each in made:
        each.client.close()


def test_of_ten_that_claim_at_once_one_gets_it(stores: list[Store], store: Store) -> None:
    barrier = threading.Barrier(10)

    def at_once(one: Store) -> list[str]:
        barrier.wait()
        return ids(claim(one, token=str(id(one))))

    with ThreadPoolExecutor(10) as threads:
        for n in range(20):
            put(store, f"s{n}", second(store) - 10)
            assert sorted(threads.map(at_once, stores)) == [[]] * 9 + [[f"s{n}"]]


def test_ten_that_claim_at_once_share_without_overlap(stores: list[Store], store: Store) -> None:
    given = [f"s{n:02}" for n in range(50)]
    put_many(store, given, second(store) - 10)
    barrier = threading.Barrier(10)

    def at_once(one: Store) -> list[str]:
        barrier.wait()
        return ids(claim(one, token=str(id(one)), limit=5))

    with ThreadPoolExecutor(10) as threads:
        handed_out = list(threads.map(at_once, stores))
    assert sorted(each for some in handed_out for each in some) == given
    assert [len(some) for some in handed_out] == [5] * 10


def test_five_thousand_that_a_dead_beat_claimed_stand_in_nobodys_way(store: Store) -> None:
    now = second(store)
    put_many(store, [f"dead{n}" for n in range(5_000)], now - 20)
    while claim(store, token=OTHER, limit=1_000).claims:
        pass
    put(store, "report", now - 10)
    assert ids(claim(store, limit=1)) == ["report"]


def test_five_thousand_that_are_locked_and_not_hidden_are_passed_in_a_few_steps(store: Store) -> None:
    now, dead = second(store), [f"dead{n}" for n in range(5_000)]
    put_many(store, dead, now - 20)
    put(store, "report", now - 10)
    with store.client.pipeline(transaction=False) as pipe:
        for each in dead:
            pipe.set(f"beat:lock:{each}", "dead", px=LONG)
        pipe.execute()
    steps = [ids(claim(store, limit=1)) for _ in range(6)]
    assert steps == [[], [], [], [], [], ["report"]]


# --- what cannot be handed out ---------------------------------------------------------------------------------------


def assert_hidden(store: Store, now: int, due: int | None = None) -> None:
    """It is retried after a while, and no scheduler has it."""
    assert score(store) == retried(now, due)
    assert not store.client.exists("beat:lock:report")
    assert ids(claim(store)) == []


@shows("claim", "LOCKED")
def test_one_that_is_locked_is_hidden_until_that_lock_runs_out(store: Store) -> None:
    put(store, "report", second(store) - 10)
    store.client.set("beat:lock:report", "another", px=LONG // 2)
    claimed = claim(store)
    expires = store.client.pexpiretime("beat:lock:report")
    ((each, reply),) = claimed.troubles
    assert (each, reply.code) == ("report", "LOCKED")
    assert abs(claimed.now + int(reply.words) - expires) <= 1
    assert abs((score(store) or 0) - expires) <= 1
    assert store.client.get("beat:lock:report") == b"another"
    assert claim(store).troubles == ()


@pytest.mark.parametrize("kind", ["for ever", "a list"])
def test_a_lock_that_never_runs_out_is_made_to(kind: str, store: Store) -> None:
    put(store, "report", second(store) - 10)
    if kind == "a list":
        store.client.rpush("beat:lock:report", "garbage")
    else:
        store.client.set("beat:lock:report", "another")
    claimed = claim(store)
    assert claimed.troubles == (("report", Reply("LOCKED", str(LONG))),)
    assert score(store) == claimed.now + LONG
    assert 0 < store.client.pttl("beat:lock:report") <= LONG


@shows("claim", "GONE")
def test_one_that_has_no_hash_leaves_the_index(store: Store) -> None:
    store.client.zadd(store.keys.due, {"report": 5})
    claimed = claim(store)
    assert claimed.troubles == (("report", Reply("GONE", "there is no beat:schedule:report")),)
    assert not store.client.keys()


@shows("claim", "BADTYPE")
def test_one_whose_key_is_no_hash_is_hidden_for_a_while(store: Store) -> None:
    store.client.zadd(store.keys.due, {"report": 5})
    store.client.set("beat:schedule:report", "garbage")
    before = everything(store)
    claimed = claim(store)
    assert claimed.troubles == (("report", Reply("BADTYPE", "beat:schedule:report is a string")),)
    assert changed(before, store) == {"beat:due"}
    assert_hidden(store, claimed.now)


BAD_STATES = {
    "next_run abc": ({"next_run": "abc"}, "next_run is not a time: abc"),
    "next_run -1": ({"next_run": "-1"}, "next_run is not a time: -1"),
    "next_run of nothing": ({"next_run": ""}, "next_run is not a time: "),
    "next_run of month 13": ({"next_run": "2026-13-01T00:00:00Z"}, "next_run is not a time: 2026-13-01T00:00:00Z"),
    "next_run without a zone": ({"next_run": "2026-11-16T09:00:00"}, "next_run is not a time: 2026-11-16T09:00:00"),
    "next_run of a megabyte": ({"next_run": "x" * 1_000_000}, "next_run is not a time: " + "x" * 40),
    "due_at garbage": ({"due_at": "\x00garbage"}, "due_at is not a time: \x00garbage"),
    "due_at -1": ({"due_at": "-1"}, "due_at is not a time: -1"),
    "due_at missing": ({"due_at": None}, "due_at is missing"),
    "run_count abc": ({"run_count": "abc"}, "run_count is not a number: abc"),
    "run_count -1": ({"run_count": "-1"}, "run_count is not a number: -1"),
    "run_count 1.5": ({"run_count": "1.5"}, "run_count is not a number: 1.5"),
    "run_count nan": ({"run_count": "nan"}, "run_count is not a number: nan"),
    "run_count of nothing": ({"run_count": ""}, "run_count is not a number: "),
    "run_count without end": ({"run_count": "9" * 400}, "run_count is not a number: " + "9" * 40),
    "skip_count abc": ({"skip_count": "abc"}, "skip_count is not a number: abc"),
    "next_run before 1970": ({"next_run": "1960-01-01T00:00:00Z"}, "next_run lies before 1970: 1960-01-01T00:00:00Z"),
    "due_at before next_run": ({"next_run": "2099-01-01T00:00:00Z"}, "due_at lies before next_run"),
    "rev no digest": ({"rev": "r\u00e9v"}, "rev is not a digest"),
    "next_run missing": ({"next_run": None}, "next_run is missing"),
    "next_run and due_at missing": ({"next_run": None, "due_at": None}, "next_run is missing"),
    "rev missing": ({"rev": None}, "rev is missing"),
    "rev of nothing": ({"rev": ""}, "rev is missing"),
}


@pytest.mark.parametrize(("fields", "words"), BAD_STATES.values(), ids=BAD_STATES)
@shows("claim", "BADSTATE")
def test_one_whose_hash_cannot_be_used_is_retried_by_how_late_it_is(
    fields: dict[str, str | None], words: str, store: Store
) -> None:
    put(store, "report", at := second(store) - 10)
    for name, value in fields.items():
        if value is None:
            store.client.hdel("beat:schedule:report", name)
        else:
            store.client.hset("beat:schedule:report", name, value)
    before = everything(store)
    claimed = claim(store)
    assert (ids(claimed), claimed.troubles) == ([], (("report", Reply("BADSTATE", words)),))
    assert changed(before, store) == {"beat:due"}
    assert_hidden(store, claimed.now, None if "due_at" in fields else at * 1000)


@pytest.mark.parametrize("field", ["run_count", "skip_count"])
def test_a_counter_that_is_missing_counts_as_nothing(field: str, store: Store) -> None:
    put(store, "report", second(store) - 10)
    store.client.hdel("beat:schedule:report", field)
    assert ids(claim(store)) == ["report"]


def test_those_that_cannot_be_used_take_no_place_in_a_page(store: Store) -> None:
    now = second(store)
    for n in range(200):
        put(store, f"bad{n}", now - 20, run_count="abc")
    put(store, "report", now - 10)
    claimed = claim(store, limit=1)
    assert ids(claimed) == ["report"]
    assert len(claimed.troubles) == 200
    assert hash_of(store, "bad7")["run_count"] == "abc"


def test_those_that_cannot_be_used_do_not_stretch_the_limit(store: Store) -> None:
    now = second(store)
    put(store, "bad", now - 20, run_count="abc")
    for n in range(5):
        put(store, f"good{n}", now - 10 + n)
    assert ids(claim(store, limit=2)) == ["good0", "good1"]


def to_list(store: Store) -> None:
    store.client.delete(store.keys.due)
    store.client.rpush(store.keys.due, "garbage")


def to_string(store: Store) -> None:
    store.client.delete(store.keys.meta)
    store.client.set(store.keys.meta, "garbage")


@pytest.mark.parametrize(
    ("words", "spoil"),
    [("beat:due is a list, not a zset", to_list), ("beat:meta is a string, not a hash", to_string)],
)
@shows("claim", "BADTYPE")
def test_an_index_or_meta_of_the_wrong_type_is_refused_before_any_write(
    words: str, spoil: Callable[[Store], None], store: Store
) -> None:
    put(store, "report", second(store) - 10)
    spoil(store)
    before = everything(store)
    claimed = claim(store)
    assert (claimed.code, claimed.claims, claimed.troubles) == ("BADTYPE", (), (("", Reply("BADTYPE", words)),))
    assert not changed(before, store)


def test_what_this_beat_cannot_read_is_passed_over(store: Store) -> None:
    at = second(store) - 10
    for each in ("a", "b", "c"):
        put(store, each, at)
    assert sorted(ids(claim(store, unread=["b", "x"]))) == ["a", "c"]
    assert ids(claim(store)) == ["b"]


def test_a_canary_is_not_kept_from_its_ticks_by_thousands_of_others(store: Store) -> None:
    put(store, "canary", second(store) - 10)
    store.client.zadd("beat:due", {f"other{n}": 1 for n in range(12_000)})
    assert ids(claim(store, only="^can.*$", limit=10)) == ["canary"]


def test_a_lock_in_its_last_millisecond_hides_nobody_for_long(store: Store) -> None:
    put(store, "report", second(store) - 10)
    met = 0
    for _ in range(examples(3_000)):
        store.client.set("beat:lock:report", "dead beat", px=1)
        claimed = claim(store, lock_ttl=1_000)
        met += bool(claimed.troubles)
        assert (score(store) or 0) <= claimed.now + 1_000
        if claimed.claims:
            store.client.delete("beat:lock:report")
        store.client.zadd("beat:due", {"report": 0})
    assert met


# --- the clock and Redis itself --------------------------------------------------------------------------------------


@shows("claim", "NEWER")
def test_what_a_newer_beat_wrote_is_left_alone(store: Store) -> None:
    put(store, "report", second(store) - 10)
    store.client.hset("beat:meta", "format", "2")
    before = everything(store)
    claimed = claim(store)
    assert (claimed.code, claimed.claims, claimed.troubles) == ("NEWER", (), (("", Reply("NEWER", "2")),))
    assert not changed(before, store)


@shows("claim", "HOLD")
def test_nothing_is_handed_out_while_the_clock_proves_itself(store: Store) -> None:
    now = second(store)
    put(store, "report", now - 10)
    store.hold((now - 5) * 1000, (now + 60) * 1000)
    before = everything(store)
    claimed = claim(store)
    assert (claimed.code, claimed.claims, claimed.troubles) == ("HOLD", (), (("", Reply("HOLD")),))
    assert claimed.now >= now * 1000
    assert not changed(before, store)


@pytest.mark.parametrize(
    ("since", "until"), [(-60, -5), (60, 120)], ids=["it is over", "the clock was set back before it"]
)
def test_a_hold_is_for_its_own_time_alone(since: int, until: int, store: Store) -> None:
    now = second(store)
    put(store, "report", now - 10)
    store.hold((now + since) * 1000, (now + until) * 1000)
    assert ids(claim(store)) == ["report"]


def test_a_hold_that_cannot_be_read_holds_nothing(store: Store) -> None:
    put(store, "report", second(store) - 10)
    store.client.hset(store.keys.meta, mapping={"hold_from": "abc", "hold_until": "9e99x"})
    assert ids(claim(store)) == ["report"]


def test_a_redis_that_is_full_refuses_a_claim_as_a_whole(store: Store) -> None:
    put(store, "report", second(store) - 10)
    store.client.zadd(store.keys.due, {"ghost": 5})  # taking it out needs no memory, and would be done
    claim(store, only="^nothing$")  # the script is known from here on
    before = everything(store)
    store.client.config_set("maxmemory", 1)
    try:
        with pytest.raises(OutOfMemoryError):
            claim(store)
    finally:
        store.client.config_set("maxmemory", 0)
    assert not changed(before, store)
    assert ids(claim(store)) == ["report"]
