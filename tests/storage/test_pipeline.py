"""Several scripts with one message, and several messages on their way: nobody ever reads what was meant for another."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from redis import exceptions

from beat.storage import connection, scripts
from beat.storage.connection import Call, Line
from beat.storage.pipelined import Dialogue
from tests.resilience import harm
from tests.resilience.proxy import Proxy
from tests.support.builders import TOKEN, Calls, claim, put, put_and_claim, queued, restricted, second, verdict
from tests.support.facts import wait_until

if TYPE_CHECKING:
    from beat.dev.embedded import PrivateRedis
    from beat.storage.messages import Item
    from beat.storage.store import Store

SCRIPTS = {scripts.script("acquire").sha: "acquire"}
ASKED: dict[str, Any] = {"token": TOKEN, "lock_ttl": 60_000, "lookahead": 0, "limit": 100, "only": ""}


def acquire(key: str) -> Call:
    return Call("acquire", (), {"lock": key, "token": "mine", "ttl": 60_000})


def say(store: Store, *calls: Call) -> list[Any]:
    line = Line(store.client)
    line.ask(calls)
    return line.answer()


def test_the_replies_come_in_the_order_of_the_calls(store: Store) -> None:
    assert say(store, acquire("beat:lock:a"), acquire("beat:lock:a"), acquire("beat:lock:b")) == [b"OK", b"HELD", b"OK"]


def test_what_redis_refuses_stands_in_the_place_of_its_reply(store: Store) -> None:
    bad = Call("acquire", (), {"lock": "beat:lock:b", "token": "mine", "ttl": "soon"})
    first, refused, last = say(store, acquire("beat:lock:a"), bad, acquire("beat:lock:c"))
    assert (first, last) == (b"OK", b"OK")
    assert isinstance(refused, connection.Refused)


def test_a_script_that_redis_does_not_know_is_sent_whole(store: Store) -> None:
    store.client.script_flush()
    assert say(store, acquire("beat:lock:a"), acquire("beat:lock:b")) == [b"OK", b"OK"]
    assert store.client.script_exists(scripts.script("acquire").sha) == [True]


def test_redis_works_while_nobody_waits_for_the_answer(store: Store) -> None:
    line = Line(store.client)
    line.ask([acquire("beat:lock:a")])
    assert wait_until(lambda: store.client.exists("beat:lock:a"))
    assert line.answer() == [b"OK"]


def test_two_questions_on_their_way_are_answered_in_order(store: Store) -> None:
    line = Line(store.client)
    line.ask([acquire("beat:lock:a")])
    line.ask([acquire("beat:lock:a"), acquire("beat:lock:b")])
    assert line.answer() == [b"OK"]
    line.ask([acquire("beat:lock:b")])
    assert line.answer() == [b"HELD", b"OK"]
    assert line.answer() == [b"HELD"]


def test_between_two_talks_the_connection_is_there_for_others(server: PrivateRedis) -> None:
    client = connection.connect(server.url)
    for _ in range(3):
        line = Line(client)
        line.ask([acquire("beat:lock:a")])
        line.answer()
        client.ping()
    assert len(client.connection_pool._available_connections) == 1  # noqa: SLF001
    client.close()


def test_who_hangs_up_leaves_no_reply_for_the_next_to_read(store: Store, server: PrivateRedis) -> None:
    with Proxy(server.url, SCRIPTS) as proxy:
        client, late = connection.connect(proxy.url), threading.Event()
        client.ping()
        proxy.plan("evalsha acquire", harm.delay_reply(late))  # so that nobody can see it coming
        line = Line(client)
        line.ask([acquire("beat:lock:a"), acquire("beat:lock:b")])
        line.hang_up()
        threading.Timer(0.2, late.set).start()
        assert client.echo("mine") == b"mine"
        line.ask([acquire("beat:lock:c")])
        assert line.answer() == [b"OK"], "it is as good as new"
        client.close()
    assert store.client.exists("beat:lock:a")


def test_half_of_the_replies_leaves_nothing_for_the_next_to_read(store: Store, server: PrivateRedis) -> None:
    with Proxy(server.url, SCRIPTS) as proxy:
        client = connection.connect(proxy.url)
        client.ping()
        proxy.plan(lambda command: command.name == "evalsha acquire" and command.number == 2, harm.drop_reply())
        line = Line(client)
        line.ask([acquire("beat:lock:a"), acquire("beat:lock:b"), acquire("beat:lock:c")])
        line.ask([acquire("beat:lock:d")])
        with pytest.raises(connection.Errors):
            line.answer()
        assert client.echo("mine") == b"mine"
        line.ask([acquire("beat:lock:a")])
        assert line.answer() == [b"HELD"], "what was asked before is forgotten"
        client.close()
    assert store.client.exists("beat:lock:a", "beat:lock:b")


@pytest.mark.parametrize("word", ["text", b"\x00\xff\r\n$3\r\n", "", "ünïcode\r\n", 0, -7, 10**15])
def test_every_word_arrives_as_it_was_sent(word: Any, store: Store) -> None:
    named = {
        "announced": "beat:announced:d",
        "announcements": "beat:announcements",
        "meta": "beat:meta",
        "functions": "beat:functions",
        "signatures": "beat:signatures:default",
    }
    call = Call(
        "announce",
        [("id", "rev", ""), (word, "rev" if word == "" else word, "")],
        {**named, "digest": "d", "ttl": 60_000, "format": 1, "kept": 1},
    )
    [reply] = say(store, call)
    assert reply == [b"OK", b""]
    sent = word if isinstance(word, bytes) else str(word).encode()
    assert store.client.hgetall("beat:announced:d") == {b"id": b"rev", sent: sent or b"rev"}


# --- fire, then claim ------------------------------------------------------------------------------------------------


def asked(store: Store, *items: Item) -> tuple[Any, Any]:
    """What came of the items, and what was handed out."""
    dialogue = Dialogue(store.client, store.keys)
    dialogue.ask(items, [], **ASKED)
    return dialogue.answer()


def test_a_page_fires_and_the_next_is_handed_out(store: Store) -> None:
    at = put_and_claim(store)
    put(store, "other", second(store) - 5)
    decided, claimed = asked(store, verdict(at))
    assert [reply.code for reply in decided.replies] == ["OK"]
    assert [each.id for each in claimed.claims] == ["other"]
    assert queued(store) == [f"beat_report_{at}"]


def test_with_nothing_to_fire_only_a_claim_goes_out(store: Store) -> None:
    put(store, "other", second(store) - 5)
    calls = Calls(store)
    decided, claimed = asked(store)
    assert (decided.replies, [each.id for each in claimed.claims]) == ((), ["other"])
    assert "mget" not in calls.count()


def test_what_changed_while_it_was_prepared_is_handed_out_again_at_once(store: Store) -> None:
    at = put_and_claim(store)
    store.client.hset("beat:schedule:report", "rev", "r2")
    decided, claimed = asked(store, verdict(at))
    assert [reply.code for reply in decided.replies] == ["CHANGED"]
    assert [(each.id, each.rev) for each in claimed.claims] == [("report", "r2")]


def test_a_fire_that_redis_refuses_does_not_cost_the_claims(store: Store) -> None:
    at = put_and_claim(store)
    put(store, "other", second(store) - 5)
    with restricted(store, "-lpush") as half:
        decided, claimed = asked(half, verdict(at))
    assert isinstance(decided, exceptions.ResponseError)
    assert [each.id for each in claimed.claims] == ["other"]
    assert queued(store) == []


def test_each_answer_is_about_the_items_of_its_question(store: Store) -> None:
    at = second(store) - 5
    for each in ("a", "b", "c"):
        put(store, each, at)
    claim(store)
    store.client.hset("beat:schedule:b", "state", "paused")
    dialogue = Dialogue(store.client, store.keys)
    dialogue.ask([verdict(at, "a"), verdict(at, "b")], [], **ASKED)
    dialogue.ask([verdict(at, "c")], [], **ASKED)
    answers: list[Any] = [dialogue.answer()[0], dialogue.answer()[0]]
    assert [[reply.code for reply in decided.replies] for decided in answers] == [["OK", "INACTIVE"], ["OK"]]


def test_only_what_is_not_ok_is_named_and_each_reply_is_that_of_its_item(store: Store) -> None:
    ids = [f"s{n}" for n in range(5)]
    at = second(store) - 5
    for each in ids:
        put(store, each, at)
    claim(store)
    store.client.hset("beat:schedule:s1", "rev", "r2")
    store.client.hset("beat:schedule:s3", "state", "paused")
    decided = store.fire([verdict(at, each) for each in ids], token=TOKEN)
    assert [reply.code for reply in decided.replies] == ["OK", "CHANGED", "OK", "INACTIVE", "OK"]
    assert decided.replies[3].words == "paused"
