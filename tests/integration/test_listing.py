"""Lists of schedules: every order and every filter, page by page, without a gap and without a repeat."""

from __future__ import annotations

import itertools
import json
import math
import operator
import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from beat import Client
from beat.client.ordering import ById
from beat.errors import BadOption, NoRedis, UnknownSchedule
from beat.history.history import Passed
from beat.storage.store import pages
from beat.timing import clock
from tests.support.builders import registration, second
from tests.support.lines import MINUTE, NINE, Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from beat.storage.store import Store

    Row = Mapping[str, str]

STATES = ("active", "active", "active", "paused", "disabled", "finished", "retired", "broken")
ORDERS: Mapping[str, Callable[[Row], Any]] = {
    "id": operator.itemgetter("id"),
    "next": lambda row: (_due(row), row["id"]),
    "last": lambda row: (-_ms(row.get("last_enqueued")), row["id"]),
    "failures": lambda row: (-int(row["consecutive_failures"]), row["id"]),
}
FILTERS: Mapping[str, tuple[dict[str, Any], Callable[[Row], bool]]] = {
    "all": ({}, bool),
    "active": ({"state": "active"}, lambda row: row["state"] == "active"),
    "paused": ({"state": "paused"}, lambda row: row["state"] == "paused"),
    "failing": ({"failing": True}, lambda row: row["consecutive_failures"] != "0"),
    "overridden": ({"overridden": True}, lambda row: "override" in row),
    "api": ({"source": "api"}, lambda row: row["source"] == "api"),
    "app": ({"app": "shop"}, lambda row: row["app"] == "shop"),
    "queue": ({"queue": "low"}, lambda row: row["queue"] == "low"),
    "func": ({"func": "app.tasks.*"}, lambda row: row["func"].startswith("app.tasks.")),
    "glob": ({"match": "customer_1*_report"}, lambda row: row["id"].startswith("customer_1")),
    "part": ({"match": "er_42"}, lambda row: "er_42" in row["id"]),
    "several": (
        {"state": "retired", "failing": True, "queue": "low", "match": "customer_*"},
        lambda row: row["state"] == "retired" and row["consecutive_failures"] != "0" and row["queue"] == "low",
    ),
}


def _ms(text: str | None) -> int:
    return clock.to_ms(clock.read(text)) if text else 0


def _due(row: Row) -> float:
    if row["state"] == "active":
        return _ms(row["due_at"])
    return _ms(row["pause_until"]) if row["state"] == "paused" and "pause_until" in row else math.inf


def crowd(store: Store, number: int) -> dict[str, dict[Any, Any]]:
    """So many schedules of every kind, whose indexes a repair has made."""
    chance, now = random.Random(number), clock.at(second(store))  # noqa: S311 (no secret)
    rows: dict[str, dict[Any, Any]] = {}
    for n in range(number):
        due = clock.text(now + timedelta(minutes=chance.choice([5, 5, chance.randrange(1, 10_000)])))  # many at once
        queue, func = chance.choice(["default", "low"]), chance.choice(["app.tasks.report", "shop.jobs.poll"])
        row = {
            "state": chance.choice(STATES),
            "rev": "r1",
            "next_run": due,
            "due_at": due,
            "run_count": "0",
            "tz": "UTC",
        }
        row |= {"source": chance.choice(["code", "api"]), "app": chance.choice(["default", "shop"]), "queue": queue}
        row |= {"func": func, "rule": json.dumps({"cron": "* * * * *", "tz": "UTC"}), "skip_count": "0"}
        row |= {"consecutive_failures": str(chance.choice([0, 0, 0, 0, 1, 2, 30])), "last_error": "definition is odd"}
        if chance.random() < 0.7:
            row["last_enqueued"] = clock.text(now - timedelta(milliseconds=chance.randrange(10_000)))
        if chance.random() < 0.1:
            row["override"] = json.dumps({"every": "5m"})
        if row["state"] == "paused" and chance.random() < 0.5:
            row["pause_until"] = clock.text(now + timedelta(minutes=chance.randrange(1, 10_000)))
        rows[f"customer_{n}_report"] = row
    keys = store.keys
    for page in pages(rows):
        with store.client.pipeline() as pipe:
            for each in page:
                pipe.hset(keys.schedule(each), mapping=rows[each])
            pipe.execute()
        store.repair(page)
    return rows


@pytest.fixture
def client(redis: Redis, server: PrivateRedis) -> Client:  # noqa: ARG001 (it empties the server)
    return Client(server.url)


def ids(rows: Any) -> list[str]:
    return [each.standing.schedule_id for each in rows]


def wanted(rows: Mapping[str, Row], order: str, chosen: str) -> list[str]:
    """As whoever has them all before him would list them."""
    named = ({**row, "id": each} for each, row in rows.items())
    return [row["id"] for row in sorted(filter(FILTERS[chosen][1], named), key=ORDERS[order])]


# --- orders, filters, pages ------------------------------------------------------------------------------------------


def paged(client: Client, number: int, **asked: Any) -> list[str]:
    """All of them, each page by a list of its own that goes on where the last one ended."""
    found: list[str] = []
    after = None
    while page := list(itertools.islice(client.schedules(**asked, after=after, page=number), number)):
        found += ids(page)
        after = page[-1].place
    return found


def test_fifteen_hundred_in_every_order_page_by_page(store: Store, client: Client) -> None:
    rows = crowd(store, 1500)
    for order in ORDERS:
        assert paged(client, 400, sort=order) == wanted(rows, order, "all"), order


def test_every_filter_in_every_order_page_by_page(store: Store, client: Client) -> None:
    rows = crowd(store, 300)
    for order, chosen in itertools.product(ORDERS, FILTERS):
        expected = wanted(rows, order, chosen)
        assert expected, chosen
        asked = FILTERS[chosen][0]
        assert paged(client, 37, sort=order, **asked) == expected, f"{chosen} by {order}, page by page"
        assert ids(client.schedules(sort=order, **asked)) == expected, f"{chosen} by {order}"


def test_what_many_are_is_looked_for_among_all(store: Store, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an index holds too many to be sorted here."""
    monkeypatch.setattr("beat.client.listing.FEW", 3)
    test_every_filter_in_every_order_page_by_page(store, client)


def test_a_list_goes_on_after_an_id(store: Store, client: Client) -> None:
    rows = crowd(store, 300)
    for order in ORDERS:
        expected = wanted(rows, order, "all")
        assert ids(client.schedules(sort=order, after=expected[99])) == expected[100:], order


def test_a_list_by_id_goes_on_after_one_that_is_gone(store: Store, client: Client) -> None:
    rows = crowd(store, 50)
    assert ids(client.schedules(after="customer_10")) == sorted(each for each in rows if each > "customer_10")
    with pytest.raises(UnknownSchedule, match="there is no schedule 'customer_10'"):
        list(client.schedules(after="customer_10", sort="next"))


def test_what_fires_between_two_pages_hides_nobody(store: Store, client: Client) -> None:
    """By when they are due, and the one after which the list goes on moves to the end."""
    crowd(store, 600)
    due = ids(client.schedules(sort="next", state="active"))
    first = list(itertools.islice(client.schedules(sort="next"), 100))
    store.client.zadd(store.keys.due, {first[-1].standing.schedule_id: 10**13})
    rest = ids(client.schedules(sort="next", after=first[-1].place))
    assert set(due) <= {*ids(first), *rest}
    assert len(set(rest)) == len(rest)


def test_of_a_first_page_no_more_is_read_than_is_shown(store: Store, client: Client, redis: Redis) -> None:
    crowd(store, 2000)
    for order in ("id", "next"):
        redis.config_resetstat()
        assert len(list(itertools.islice(client.schedules(sort=order, runs=20, page=50), 50))) == 50
        calls = {name: told["calls"] for name, told in redis.info("commandstats").items()}
        assert calls["cmdstat_hgetall"] == calls["cmdstat_lrange"] == 50, calls
        assert sum(calls.values()) < 110, calls
        assert not {"cmdstat_sscan", "cmdstat_scan", "cmdstat_smembers", "cmdstat_sort"} & calls.keys()


# --- the index of all ids --------------------------------------------------------------------------------------------


def test_the_index_of_ids_follows_what_is_registered_and_removed(store: Store, client: Client) -> None:
    everybody = store.keys.index("all")
    store.register([registration(each, second(store) + 60) for each in ("b", "c", "a")], beat="web-1")
    assert store.client.zrange(everybody, 0, -1) == [b"a", b"b", b"c"]
    client.remove("b")
    assert store.client.zrange(everybody, 0, -1) == [b"a", b"c"]
    store.client.delete(store.keys.schedule("a"))
    store.repair(["a"])
    assert store.client.zrange(everybody, 0, -1) == [b"c"]


@pytest.mark.parametrize("harm", ["deleted", "partial", "another type"])
def test_without_an_index_the_list_is_the_same_and_a_repair_makes_it_anew(
    store: Store, client: Client, harm: str
) -> None:
    rows = crowd(store, 300)
    everybody = store.keys.index("all")
    if harm == "partial":
        store.client.zrem(everybody, "customer_7_report")
    else:
        store.client.delete(everybody)
    if harm == "another type":
        store.client.set(everybody, "x")
    for order in ORDERS:
        assert ids(client.schedules(sort=order)) == wanted(rows, order, "all"), order
    for page in store.ids():
        store.repair(page)
    assert store.client.zrange(everybody, 0, -1) == [each.encode() for each in sorted(rows)]


def test_a_part_of_all_ids_is_read_where_the_glob_begins_with_it(store: Store) -> None:
    crowd(store, 2000)
    order = ById(store, "customer_19")
    found = [each.id for page in order.walk() for each in page]
    assert len(found) == 111
    assert all(each.startswith("customer_19") for each in found)


# --- rows ------------------------------------------------------------------------------------------------------------


def test_a_row_has_where_it_stands_and_its_newest_runs(redis: Redis, client: Client) -> None:
    book = Ledger("often").registered(NINE - MINUTE, NINE)
    for n in range(30):
        book.fired(NINE + n * MINUTE).ended(NINE + n * MINUTE, "failed" if n == 28 else "succeeded")
    book.skipped(NINE + 30 * MINUTE, NINE + 33 * MINUTE, 4).fired(NINE + 34 * MINUTE).keep(redis)
    job = book.job(NINE + 34 * MINUTE)
    redis.hset(f"rq:job:{job}", mapping={"status": "started", "started_at": "2026-11-16T09:34:02.000000Z"})
    [row] = client.schedules(runs=20)
    assert row.standing.run_count == 31
    assert row.last
    assert (row.last.job_id, row.last.state) == (job, "started")
    assert isinstance(row.runs[1], Passed)
    assert [getattr(line, "state", "skipped") for line in row.runs] == [
        "started", "skipped", "succeeded", "failed", *["succeeded"] * 16,
    ]  # fmt: skip
    assert [each.runs for each in client.schedules()] == [()]
    redis.delete(f"rq:job:{job}")


def test_who_asks_again_sees_what_has_changed_meanwhile(redis: Redis, client: Client) -> None:
    book = Ledger("often").registered(NINE - MINUTE, NINE)
    book.fired(NINE).ended(NINE).fired(NINE + MINUTE).keep(redis)
    states = []
    for change in (lambda: None, lambda: book.ended(NINE + MINUTE, "failed").keep(redis), lambda: book.keep(redis)):
        change()
        states.append([getattr(line, "state", "") for [row] in [client.schedules(runs=5)] for line in row.runs])
    assert states == [["open", "succeeded"], ["failed", "succeeded"], ["failed", "succeeded"]]
    assert [len(row.runs) for row in client.schedules(runs=1)] == [1]


def test_what_is_no_hash_is_listed_as_broken(store: Store, client: Client) -> None:
    crowd(store, 3)
    store.client.delete(store.keys.schedule("customer_1_report"))
    store.client.set(store.keys.schedule("customer_1_report"), "x")
    found = {each.standing.schedule_id: each.standing for each in client.schedules(runs=5)}
    assert found["customer_1_report"].state == "broken"
    assert found["customer_1_report"].last_error == "beat:schedule:customer_1_report is no hash"


def test_what_goes_while_it_is_listed_is_left_out(store: Store, client: Client) -> None:
    crowd(store, 10)
    rows = client.schedules(page=5)
    found = ids(itertools.islice(rows, 5))
    store.client.delete(store.keys.schedule("customer_7_report"))
    assert "customer_7_report" not in found + ids(rows)


def test_how_many_there_are(store: Store, client: Client) -> None:
    rows = crowd(store, 500)
    found = client.counts()
    assert found.schedules == 500
    for state in set(STATES):
        assert getattr(found, state) == sum(row["state"] == state for row in rows.values()), state
    assert found.failing == sum(row["consecutive_failures"] != "0" for row in rows.values())
    assert found.overridden == sum("override" in row for row in rows.values())


def test_of_nothing_the_list_is_empty(client: Client) -> None:
    assert [list(client.schedules(sort=order)) for order in ORDERS] == [[], [], [], []]
    assert set(client.counts()) == {0}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"state": "pausd"}, "state 'pausd' must be one of active, paused, .* Did you mean 'paused'?"),
        ({"sort": "name"}, "sort 'name' must be one of id, next, last, failures"),
        ({"match": "a b"}, "match 'a b' must be an id, with"),
        ({"runs": -1}, "runs -1 must be a whole number from 0 to 100"),
        ({"page": 0}, "page 0 must be a whole number from 1 to 5,000"),
        ({"page": True}, "page True must be"),
    ],
    ids=lambda value: str(sorted(value)) if isinstance(value, dict) else "",
)
def test_what_cannot_be_listed_is_refused_at_once(client: Client, given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadOption, match=words):
        client.schedules(**given)


def test_a_place_that_is_none_is_refused(store: Store, client: Client) -> None:
    crowd(store, 2)
    with pytest.raises(BadOption, match="after 'soon:customer_1_report' must be an id"):
        list(client.schedules(sort="next", after="soon:customer_1_report"))


def test_a_list_without_a_redis_says_so(tmp_path: Any) -> None:
    with pytest.raises(NoRedis, match="no Redis answers at"):
        list(Client(f"unix://{tmp_path}/none.sock").schedules())
