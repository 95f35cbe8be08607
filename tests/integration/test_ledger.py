"""The ledger of verdicts: one line for each, in the same step as the verdict, and no more of them than asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from redis.exceptions import NoPermissionError

from beat.events.event import Notice
from beat.history import ledger as lines
from beat.storage.keys import Keys
from beat.storage.messages import Reply
from beat.storage.runs import Runs
from beat.storage.store import Store
from beat.timing import clock
from tests.support.builders import (
    LONG,
    QUEUE,
    TOKEN,
    changed,
    claim,
    everything,
    hash_of,
    put,
    put_and_claim,
    queued,
    registration,
    restricted,
    retried,
    score,
    second,
    special,
    text,
    verdict,
)
from tests.support.hand_made import (
    ENDED,
    STARTED,
    close,
    closing,
    ledger,
    newest_line,
    open_runs,
    put_job,
    record,
    records,
    told,
)

if TYPE_CHECKING:
    from beat.storage.messages import Item

OK = Reply("OK")
SCHEDULE, RUNS, LOCK = "beat:schedule:report", "beat:runs:report", "beat:lock:report"
VERDICTS = ("enqueued", "skipped")


def limited(store: Store, limit: int) -> Store:
    return Store(store.client, Keys(), history_limit=limit)


def fire(store: Store, *items: Item, token: str = TOKEN) -> list[Reply]:
    return [*store.fire(items, token=token).replies]


class Life:
    """A schedule that fires again and again, whoever watches."""

    def __init__(self, store: Store, limit: int = 1000) -> None:
        self.store, self.now = limited(store, limit), put_and_claim(store, ago=100_000)
        self.fired: list[str] = []

    def fires(self, times: int = 1) -> None:
        for _ in range(times):
            item = verdict(self.now)
            self._decide(item)
            self.fired.append(item.job)

    def skips(self, number: int = 3) -> None:
        self._decide(verdict(self.now, kind="skip", number=number))

    def ends(self, *jobs: str) -> None:
        """Runs end, and are closed."""
        for job in jobs:
            put_job(self.store, job, "failed")
            found: Any = self.store.client.hget("beat:records", job)
            sign = f"failed|{STARTED}|{ENDED}"
            entry = f'{{"type":"failed","job":"{job}"'
            item = closing(job, seen=found.decode(), sign=sign, outcome="failed", entry=entry, error="e")
            assert close(Runs(self.store), item) == [OK]

    def _decide(self, item: Item) -> None:
        self.store.client.set(LOCK, TOKEN, px=LONG)
        assert fire(self.store, item) == [OK]
        self.now += 60

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        return [line for line in ledger(self.store) if line["type"] in VERDICTS]


# --- lines -----------------------------------------------------------------------------------------------------------


def test_the_line_of_a_tick_that_became_a_job(store: Store) -> None:
    at = put_and_claim(store, ago=7)
    now = store.fire([verdict(at)], token=TOKEN).now
    assert newest_line(store) == (
        f'{{"type":"enqueued","tick":"{text(at)}","job":"beat_report_{at}","by":"scheduler",'
        f'"late_ms":{now - at * 1000},"n":1,"at":"{stamp(now)}","beat":"ours"}}'
    )
    assert [line["type"] for line in ledger(store)] == ["enqueued", "registered"]


def test_the_line_of_ticks_that_were_skipped(store: Store) -> None:
    at = put_and_claim(store, ago=600)
    now = store.fire([verdict(at, kind="skip", number=9, last=text(at + 480), following=540)], token=TOKEN).now
    assert newest_line(store) == (
        f'{{"type":"skipped","tick":"{text(at)}","last":"{text(at + 480)}","count":9,"reason":"misfire","n":9,'
        f'"at":"{stamp(now)}","beat":"ours"}}'
    )


def stamp(ms: int) -> str:
    """As the scripts write the time, always with three digits."""
    return clock.text(clock.from_ms(ms)) if ms % 1000 else clock.text(clock.from_ms(ms)).replace("Z", ".000Z")


def test_the_numbers_of_verdicts_have_no_gaps(store: Store) -> None:
    life = Life(store)
    life.fires(3)
    life.skips(5)
    life.fires(2)
    life.skips(2)
    life.fires()
    assert [(line["type"], line["n"]) for line in reversed(life.verdicts)] == [
        ("enqueued", 1), ("enqueued", 2), ("enqueued", 3), ("skipped", 5), ("enqueued", 4), ("enqueued", 5),
        ("skipped", 7), ("enqueued", 6),
    ]  # fmt: skip
    state = hash_of(store)
    assert (state["run_count"], state["skip_count"], state["kept"]) == ("6", "7", "8")


def test_numbers_go_on_where_the_counters_are(store: Store) -> None:
    at = put_and_claim(store)
    store.client.hset(SCHEDULE, mapping={"run_count": 999_999_999_999, "skip_count": 41})
    assert fire(store, verdict(at), verdict(at + 60, due=0, kind="skip", number=1)) == [OK, OK]
    assert [line["n"] for line in ledger(store)[:2]] == [42, 10**12]


def test_every_verdict_of_a_chain_has_its_line(store: Store) -> None:
    at = put_and_claim(store, ago=400)
    skip = verdict(at, kind="skip", number=4, last=text(at + 180), following=240)
    late, on_time = verdict(at + 240, by="catchup"), verdict(at + 300)
    assert fire(store, skip, late, on_time) == [OK] * 3
    newest_first = [(line["type"], line["tick"], line.get("by")) for line in ledger(store)[:3]]
    assert newest_first == [
        ("enqueued", text(at + 300), "scheduler"), ("enqueued", text(at + 240), "catchup"), ("skipped", text(at), None),
    ]  # fmt: skip
    assert hash_of(store)["kept"] == "3"
    assert list(open_runs(store)) == [late.job, on_time.job]
    assert records(store).keys() == {late.job, on_time.job}  # a hash: Redis hands them out in an order of its own


def test_every_line_is_an_event_too_in_the_same_order(store: Store) -> None:
    life = Life(store)
    life.fires(2)
    life.skips()
    life.ends(life.fired[0])
    found: Any = store.client.lrange(RUNS, 0, -1)
    events = told(store)
    assert [event["entry"] for event in reversed(events)] == [line.decode() for line in found]
    verdict = {"type", "schedule", "entry"}
    assert [{*event} for event in events[1:4]] == [verdict] * 3, "its line says the rest"
    notices = [Notice.read("1-1", {name.encode(): value.encode() for name, value in each.items()}) for each in events]
    assert [(each.type, each.schedule_id, each.job_id, each.by) for each in notices if each] == [
        ("registered", "report", None, "tests"), ("enqueued", "report", life.fired[0], "ours"),
        ("enqueued", "report", life.fired[1], "ours"), ("skipped", "report", None, "ours"),
        ("failed", "report", life.fired[0], "ours"),
    ]  # fmt: skip
    ticks = [clock.read(json.loads(event["entry"])["tick"]) for event in events[1:4]]
    assert [each.tick for each in notices[1:4] if each] == ticks


def test_a_verdict_that_is_refused_has_no_line(store: Store) -> None:
    at = put_and_claim(store)
    before = everything(store)
    refused = [verdict(at - 60), verdict(at, rev="r0"), verdict(at, due=10**13), verdict(at, kind="nonsense")]
    assert {reply.code for reply in fire(store, *refused)} == {"STALE", "CHANGED", "EARLY", "BADARG"}
    assert not changed(before, store) & {RUNS, "beat:events", "beat:open", "beat:records"}


def test_the_same_verdict_sent_again_has_one_line(store: Store) -> None:
    at = put_and_claim(store)
    assert fire(store, verdict(at)) == [OK]
    before = everything(store)
    assert fire(store, verdict(at)) == [Reply("STALE", f"beat_report_{at}")]
    assert not changed(before, store)


def test_a_release_and_a_quarantine_are_no_verdicts(store: Store) -> None:
    at = put_and_claim(store)
    assert fire(store, verdict(at, kind="quarantine", error="cannot be read")) == [OK]
    assert [line["type"] for line in ledger(store)] == ["registered"]
    assert not store.client.exists("beat:open", "beat:records")


NAMES = ['web "2"', "back\\slash", "tab\tand\nline", "nul\x00", "é 🎉", "\x7f", ""]


@pytest.mark.parametrize("name", NAMES)
def test_whatever_a_beat_is_called_its_lines_are_json(name: str, store: Store) -> None:
    at = second(store) - 600
    put(store, "report", at)
    assert len(claim(store, token=name).claims) == 1
    skip = verdict(at, kind="skip", number=4, last=text(at + 180), following=240, reason=f"because {name}")
    assert fire(store, skip, verdict(at + 240, by=f"by {name}"), token=name) == [OK, OK]
    enqueued, skipped, _ = ledger(store)
    assert (enqueued["beat"], enqueued["by"]) == (name, f"by {name}")
    assert (skipped["beat"], skipped["reason"]) == (name, f"because {name}")


@pytest.mark.parametrize("job", NAMES[:-1])
def test_whatever_a_job_is_called_its_record_is_json(job: str, store: Store) -> None:
    at = put_and_claim(store)
    assert fire(store, verdict(at, job=job)) == [OK]
    assert list(records(store)) == list(open_runs(store)) == [job]
    assert len(ledger(store)) == 2


def test_every_line_is_read_by_the_reader(store: Store) -> None:
    at = put_and_claim(store, ago=600)
    skip = verdict(at, kind="skip", number=4, last=text(at + 180), following=240)
    assert fire(store, skip, verdict(at + 240)) == [OK, OK]
    found: Any = store.client.lrange(RUNS, 0, -1)
    enqueued, skipped, registered = map(lines.read, found)
    assert isinstance(enqueued, lines.Enqueued)
    assert isinstance(skipped, lines.Skipped)
    assert isinstance(registered, lines.Changed)
    assert (enqueued.tick, enqueued.number) == (clock.at(at + 240), 1)
    assert (skipped.tick, skipped.last, skipped.count, skipped.number) == (clock.at(at), clock.at(at + 180), 4, 4)
    assert registered.next == clock.at(at)


def test_a_tick_that_somebody_wrote_in_another_way_keeps_its_spelling(store: Store) -> None:
    at = second(store) - 10
    odd = text(at).replace("Z", ".000Z")
    put(store, "report", at, next_run=odd)
    assert [each.tick for each in claim(store).claims] == [odd]
    assert fire(store, verdict(at, tick=odd)) == [OK]
    found: Any = store.client.lindex(RUNS, 0)
    line = lines.read(found)
    assert isinstance(line, lines.Enqueued)
    assert line.tick == clock.at(at)


# --- open runs -------------------------------------------------------------------------------------------------------


def test_what_is_fired_is_an_open_run_with_its_record(store: Store) -> None:
    at = put_and_claim(store)
    item = verdict(at)
    now = store.fire([item], token=TOKEN).now
    assert open_runs(store) == {item.job: now}
    assert records(store) == {
        item.job: {
            "schedule": "report", "tick": text(at), "by": "scheduler", "queue": QUEUE, "enqueued": stamp(now), "n": 1,
            "life": hash_of(store)["created_at"],
        }
    }  # fmt: skip


def test_the_record_knows_retries_and_the_users_own_times(store: Store) -> None:
    at = put_and_claim(store)
    special(store)
    store.client.hset("beat:template:report", "retries_left", 3)
    store.client.hset(SCHEDULE, mapping={"result_ttl": 0, "failure_ttl": 7})
    item = verdict(at)
    assert fire(store, item) == [OK]
    kept = records(store)[item.job]
    assert (kept["retries"], kept["result_ttl"], kept["failure_ttl"]) == (3, 0, 7)


@pytest.mark.parametrize("garbage", ["abc", "-1", "1.5", "", "9" * 20, '","x":"'])
def test_times_that_are_no_numbers_are_left_out_of_the_record(garbage: str, store: Store) -> None:
    at = put_and_claim(store)
    special(store)
    store.client.hset("beat:template:report", "retries_left", garbage)
    store.client.hset(SCHEDULE, mapping={"result_ttl": garbage, "failure_ttl": garbage})
    item = verdict(at)
    assert fire(store, item) == [OK]
    assert not {"retries", "result_ttl", "failure_ttl"} & records(store)[item.job].keys()


def test_a_number_with_zeros_before_it_is_a_number_in_json_too(store: Store) -> None:
    at = put_and_claim(store)
    special(store)
    store.client.hset(SCHEDULE, "result_ttl", "007")
    item = verdict(at)
    assert fire(store, item) == [OK]
    assert records(store)[item.job]["result_ttl"] == 7


def test_a_page_opens_all_its_runs_in_one_step(store: Store) -> None:
    ats = {f"s{n}": put_and_claim(store, f"s{n}") for n in range(20)}
    assert fire(store, *(verdict(at, each) for each, at in ats.items())) == [OK] * 20
    jobs = {f"beat_{each}_{at}" for each, at in ats.items()}
    assert open_runs(store).keys() == records(store).keys() == jobs
    assert {kept["schedule"] for kept in records(store).values()} == ats.keys()


# --- no more than asked for ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 3])
def test_so_many_verdicts_are_kept_and_no_more(limit: int, store: Store) -> None:
    life = Life(store, limit)
    for n in range(12):
        life.skips() if n % 4 == 3 else life.fires()
        assert len(life.verdicts) == min(n + 1, limit)
        assert hash_of(store)["kept"] == str(len(life.verdicts))
    assert life.verdicts[0]["type"] == "skipped"


@pytest.mark.parametrize("limit", [1, 3])
def test_outcomes_between_them_do_not_count(limit: int, store: Store) -> None:
    life = Life(store, limit)
    for n in range(12):
        if n % 3 == 2:
            life.skips()
        else:
            life.fires()
            life.ends(life.fired[-1])
        assert len(life.verdicts) == min(n + 1, limit)
        assert len(ledger(store)) <= 2 * limit + 1 + (n < limit)
        assert hash_of(store)["kept"] == str(len(life.verdicts))


def test_outcomes_that_come_much_later_do_not_count(store: Store) -> None:
    life = Life(store, 3)
    life.fires(4)
    life.ends(*life.fired)
    life.fires(2)
    life.ends(*life.fired[4:])
    life.fires(3)
    assert [line["job"] for line in life.verdicts] == life.fired[::-1][:3]


def test_what_is_older_than_the_oldest_verdict_goes_with_it(store: Store) -> None:
    life = Life(store, 3)
    life.fires(4)
    assert [line["type"] for line in ledger(store)] == ["enqueued"] * 3, "the registration was older"


def test_a_limit_that_was_lowered_is_reached_a_hundred_lines_at_a_time(store: Store) -> None:
    life = Life(store, 200)
    life.fires(200)
    life.store = limited(store, 3)
    left = []
    for _ in range(4):
        life.fires()
        left.append((len(ledger(store)), len(life.verdicts)))
    # thirty-two lines are the most of any kind: the rest goes at once
    assert left == [(3, 3)] * 4


def test_a_limit_that_was_lowered_a_little_is_exact_at_once(store: Store) -> None:
    life = Life(store, 30)
    life.fires(30)
    life.store = limited(store, 20)
    life.fires()
    assert [line["job"] for line in life.verdicts] == life.fired[::-1][:20]


def test_a_limit_that_was_raised_is_reached(store: Store) -> None:
    life = Life(store, 3)
    life.fires(5)
    life.store = limited(store, 6)
    life.fires(7)
    assert [line["job"] for line in life.verdicts] == life.fired[::-1][:6]


@pytest.mark.parametrize("outcomes", [0, 1, 5])
def test_a_ledger_that_somebody_deleted_begins_anew(outcomes: int, store: Store) -> None:
    life = Life(store, 4)
    life.fires(6)
    store.client.delete(RUNS)
    life.ends(*life.fired[:outcomes])
    for n in range(8):
        life.fires()
        assert len(life.verdicts) == min(n + 1, 4)


@pytest.mark.parametrize("garbage", ["abc", "-1000", "1e300", "nan", "inf", "", "9" * 30, "0x10", None])
def test_a_count_of_verdicts_that_is_no_number_is_counted_anew(garbage: str | None, store: Store) -> None:
    life = Life(store, 4)
    for _ in range(6):
        life.fires()
        life.ends(life.fired[-1])
    if garbage is None:
        store.client.hdel(SCHEDULE, "kept")
    else:
        store.client.hset(SCHEDULE, "kept", garbage)
    for _ in range(8):
        life.fires()
        life.ends(life.fired[-1])
    assert [line["job"] for line in life.verdicts] == life.fired[::-1][:4]
    assert hash_of(store)["kept"] == "4"


@pytest.mark.parametrize("wrong", [0, 2, 7, 1000])
def test_with_a_count_of_verdicts_that_is_wrong_the_newest_are_there_and_the_ledger_is_bounded(
    wrong: int, store: Store
) -> None:
    life = Life(store, 4)
    for n in range(40):
        life.fires()
        life.ends(life.fired[-1])
        if n == 10:
            store.client.hset(SCHEDULE, "kept", wrong)
    found = [line["job"] for line in life.verdicts]
    assert found == life.fired[::-1][: len(found)]
    assert 2 <= len(found) <= 2 * 4
    assert len(ledger(store)) <= 4 * 4 + 20


def test_lines_that_are_not_ours_are_no_verdicts_and_go_in_their_turn(store: Store) -> None:
    life = Life(store, 3)
    for n in range(9):
        life.fires()
        if n in {2, 4}:
            store.client.lpush(RUNS, "garbage", b"\xff\xfe", "", '"text"', '["enqueued"]', '{"type": "enqueued"}')
        found: Any = store.client.lrange(RUNS, 0, -1)
        assert sum(line.startswith(b'{"type":"enqueued"') for line in found) == min(n + 1, 3)
    assert len(ledger(store)) == 3


def test_however_many_lines_are_no_verdicts_there_is_a_bound(store: Store) -> None:
    life = Life(store, 3)
    life.fires(3)
    store.client.lpush(RUNS, *["garbage"] * 10_000)
    life.fires()
    assert store.client.llen(RUNS) <= 4 * 3 + 20


def test_after_many_lines_that_are_no_verdicts_as_many_verdicts_are_kept_as_before(store: Store) -> None:
    life = Life(store, 4)
    life.fires(4)
    for job in life.fired:  # each run again and again, as if somebody requeued it
        for _ in range(12):
            life.ends(job)
            store.client.zadd("beat:open", {job: 0})
            store.client.hset("beat:records", job, record())
        assert hash_of(store)["kept"] == str(len(life.verdicts))
    assert len(ledger(store)) == 4 * 4 + 20
    for _ in range(12):
        life.fires()
        assert hash_of(store)["kept"] == str(len(life.verdicts))
    assert [line["job"] for line in life.verdicts] == life.fired[::-1][:4]


def test_a_verdict_that_pushes_another_out_of_a_full_ledger_is_counted_right(store: Store) -> None:
    life = Life(store, 4)
    life.fires(2)
    store.client.lpush(RUNS, *['{"type":"lost"}'] * 33)
    for _ in range(6):
        life.fires()
        assert hash_of(store)["kept"] == str(len(life.verdicts))
    assert [line["job"] for line in life.verdicts] == life.fired[::-1][:4]


def test_registrations_without_end_do_not_make_a_ledger_grow_without_end(store: Store) -> None:
    small = limited(store, 3)
    at = second(store) + 3600
    small.register([registration("report", at)], beat="tests")
    for n in range(60):
        seen = hash_of(store)
        again = registration("report", at, rev=f"r{n + 2}", seen_rev=seen["rev"], seen_next=text(at),
                             seen_state="active", next="keep")  # fmt: skip
        assert [reply.code for reply in small.register([again], beat="tests")] == ["UPDATED"]
    assert len(ledger(store)) == 4 * 3 + 20
    assert ledger(store)[0]["rev"] == "r61"


def test_the_events_are_bounded(store: Store) -> None:
    small = Store(store.client, Keys(), events_limit=100)
    at = put_and_claim(store)
    with store.client.pipeline(transaction=False) as pipe:
        for _ in range(2_000):
            pipe.xadd(store.keys.events, {"type": "old"})
        pipe.execute()
    assert fire(small, verdict(at)) == [OK]
    assert 100 <= store.client.xlen(store.keys.events) < 300


def test_a_tick_costs_no_more_memory_than_we_say(store: Store) -> None:
    """As the docs have it: a run with its outcome, two lines."""
    life = Life(store, 1000)
    life.now -= 60 * 2000
    store.client.hset(SCHEDULE, mapping={"next_run": text(life.now), "due_at": text(life.now)})
    for _ in range(1000):
        life.fires()
    verdicts: Any = store.client.memory_usage(RUNS, samples=0)
    for job in life.fired:
        kept: Any = store.client.hget("beat:records", job)
        put_job(store, job)
        outcome = {
            "type": "succeeded", "tick": text(life.now), "job": job, "started": "2026-11-16T09:00:00.020Z",
            "ended": "2026-11-16T09:00:03.120Z", "duration": 3.1, "worker": "6d1f9a2b3c4d4e5f8a9b0c1d2e3f4a5b",
            "attempts": 1,
        }  # fmt: skip
        entry = json.dumps(outcome, separators=(",", ":"))[:-1]
        assert close(Runs(store), closing(job, seen=kept.decode(), entry=entry)) == [OK]
    both: Any = store.client.memory_usage(RUNS, samples=0)
    assert store.client.llen(RUNS) == 2001
    assert verdicts / 1000 < 220
    assert both / 1000 < 550
    assert not store.client.exists("beat:open", "beat:records")


# --- keys that are not what they should be ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fire", "skip"])
@pytest.mark.parametrize(
    ("key", "wanted"), [(RUNS, "list"), ("beat:open", "zset"), ("beat:records", "hash"), ("beat:events", "stream")]
)
def test_a_key_that_is_not_what_it_should_be_keeps_the_tick_due(key: str, wanted: str, kind: str, store: Store) -> None:
    at = put_and_claim(store)
    store.client.delete(key)
    store.client.set(key, "garbage")
    before, was = everything(store), hash_of(store)
    decided = store.fire([item := verdict(at, kind=kind, number=1)], token=TOKEN)
    words = f"{key} is a string, not a {wanted}"
    assert decided.replies == (Reply("BADTYPE", words),)
    assert changed(before, store) == {SCHEDULE, "beat:due", LOCK}
    assert hash_of(store) == {**was, "last_error": words}
    assert score(store) == retried(decided.now, at * 1000, (at + 60) * 1000)
    store.client.delete(key)
    store.client.set(LOCK, TOKEN, px=LONG)
    assert fire(store, item) == [OK]
    assert queued(store) == ([item.job] if kind == "fire" else [])


def test_one_bad_ledger_between_two_good_ones_hurts_nobody(store: Store) -> None:
    ats = {each: put_and_claim(store, each) for each in ("good1", "bad", "good2")}
    store.client.delete("beat:runs:bad")
    store.client.set("beat:runs:bad", "garbage")
    replies = fire(store, *(verdict(at, each) for each, at in ats.items()))
    assert [reply.code for reply in replies] == ["OK", "BADTYPE", "OK"]
    assert {kept["schedule"] for kept in records(store).values()} == {"good1", "good2"}
    store.client.delete("beat:runs:bad")


def test_an_outbox_that_takes_no_more_costs_no_tick(store: Store) -> None:
    """Somebody has given an event the last id that there is."""
    ats = {each: put_and_claim(store, each) for each in ("a", "b")}
    store.client.xadd("beat:events", {"type": "last"}, id=f"{2**64 - 1}-{2**64 - 1}")
    assert fire(store, *(verdict(at, each) for each, at in ats.items())) == [OK, OK]
    assert queued(store) == list(open_runs(store)) == [f"beat_{each}_{at}" for each, at in ats.items()]
    for each, at in ats.items():
        assert hash_of(store, each)["next_run"] == text(at + 60)
        assert [line["type"] for line in ledger(store, each)] == ["enqueued", "registered"]


@pytest.mark.parametrize("denied", ["lpush", "rpop", "ltrim", "xadd", "zadd", "hset"])
def test_a_user_who_may_not_write_the_ledger_changes_nothing(denied: str, store: Store) -> None:
    at = put_and_claim(store)
    before = everything(store)
    with restricted(store, f"-{denied}") as other, pytest.raises(NoPermissionError, match=denied):
        other.fire([verdict(at)], token=TOKEN)
    assert not changed(before, store)


def test_lost_counts_of_many_long_ledgers_are_not_all_counted_in_one_step(store: Store) -> None:
    ids = ["a", "b", "c"]
    for each in ids:
        put_and_claim(store, each)
        lines = ['{"type":"enqueued"}'] * 300 + ['{"type":"succeeded"}'] * 1700
        store.client.rpush(store.keys.runs(each), *lines)
        store.client.hdel(store.keys.schedule(each), "kept")
    items = [verdict(int(clock.read(hash_of(store, each)["next_run"]).timestamp()), each) for each in ids]
    assert {reply.code for reply in store.fire(items, token=TOKEN).replies} == {"OK"}
    assert [int(hash_of(store, each)["kept"]) for each in ids[:2]] == [301, 301]
    assert int(hash_of(store, "c")["kept"]) > 900
