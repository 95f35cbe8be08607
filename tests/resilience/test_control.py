"""An operator acts at the very moment at which a beat is killed, stopped or cut off while it fires a tick.

Whatever comes first, every tick has one verdict and no job is doubled; and what the operator did is done.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from beat import Client
from beat.errors import BadInstant
from beat.history.history import Fired
from beat.storage import scripts
from tests.resilience import harm
from tests.resilience.proxy import Proxy
from tests.resilience.test_commands import SCRIPTS, SHORT_LOCKS, Scene
from tests.support.facts import wait_until
from tests.support.schedulers import TASKS, Beat, Drain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from redis import Redis

    from beat.dev.embedded import PrivateRedis
    from tests.resilience.harm import Action, Fault


@pytest.fixture
def scene(home: Path, server: PrivateRedis, redis: Redis) -> Iterator[Scene]:
    (home / "tasks.py").write_text(TASKS)
    for name in scripts.names():
        redis.script_load(scripts.script(name).text)
    started: dict[str, Beat] = {}
    one_at_a_time = threading.Lock()

    def beat(name: str, url: str) -> Beat:
        with one_at_a_time:
            if name not in started:
                started[name] = Beat(home, url, **SHORT_LOCKS)
            return started[name]

    with Proxy(server.url, SCRIPTS) as proxy, Drain(server.url) as drain:
        yield Scene(proxy, drain, lambda: beat("victim", proxy.url), lambda: beat("other", server.url))
        for each in started.values():
            each.__exit__()


@pytest.fixture
def client(server: PrivateRedis) -> Client:
    return Client(server.url, by="ann")


# What an operator does


def pauses(client: Client) -> None:
    client.pause("tick", "2s", "a short one")


def runs_it_instead(client: Client) -> None:
    client.trigger("tick", skip_next=True)


def reschedules(client: Client) -> None:
    client.reschedule("tick", every="2s")


def moves_the_next_tick(client: Client) -> None:
    found = client.reschedule("tick", every="3s")  # so that there is room before the one that follows
    with contextlib.suppress(BadInstant):  # the machine is slow, and there is none
        client.reschedule("tick", at=max(client.now(), found.next_run or client.now()) + timedelta(milliseconds=400))


ACTS = [pauses, runs_it_instead, reschedules, moves_the_next_tick]


# What befalls the beat while its `fire` is on its way


def killed_before(scene: Scene, act: Action) -> Fault:
    return harm.before(_then_kill(scene, act))


def killed_after(scene: Scene, act: Action) -> Fault:
    return harm.after(_then_kill(scene, act))


def killed_when_it_came_too_late(scene: Scene, act: Action) -> Fault:
    return _first(act, harm.after(lambda: scene.victim().kill()))


def reply_dropped(scene: Scene, act: Action) -> Fault:  # noqa: ARG001 (all cases are made alike)
    return harm.after(act)


def reply_dropped_when_it_came_too_late(scene: Scene, act: Action) -> Fault:  # noqa: ARG001 (the same)
    return _first(act, harm.drop_reply())


def stopped_after(scene: Scene, act: Action) -> Fault:
    return harm.pause(_stopped(scene, act), _has_gone_on(scene), lambda: scene.victim().thaw())


def stopped_before(scene: Scene, act: Action) -> Fault:
    return harm.stopped_before(_stopped(scene, act), _has_gone_on(scene), lambda: scene.victim().thaw())


CASES = [
    killed_before,
    killed_after,
    killed_when_it_came_too_late,
    reply_dropped,
    reply_dropped_when_it_came_too_late,
    stopped_after,
    stopped_before,
]


def _first(act: Action, fault: Fault) -> Fault:
    def both(link: Any) -> None:
        act()
        fault(link)

    return both


def _then_kill(scene: Scene, act: Action) -> Action:
    def both() -> None:
        act()
        scene.victim().kill()

    return both


def _stopped(scene: Scene, act: Action) -> Action:
    def stop() -> None:
        scene.victim().freeze()
        act()
        scene.other()

    return stop


def _has_gone_on(scene: Scene) -> Callable[[], bool]:
    seen = len(scene.drain.jobs)
    return lambda: len(scene.drain.jobs) >= seen + 2


def one_verdict_each(client: Client, drain: Drain) -> None:
    """No beat runs any more."""
    [found] = client.verify("tick")
    assert (found.missing, found.double, found.problems) == ((), (), ()), client.history("tick")
    enqueued = Counter(line.job_id for line in client.history("tick") if isinstance(line, Fired))
    wait_until(lambda: len(drain.jobs) == len(enqueued), what=lambda: f"{drain.jobs} {enqueued}")
    assert drain.jobs == enqueued
    assert max(enqueued.values()) == 1


EVERY = 1 if os.environ.get("LONG_TESTS") else 3  # `make survive` has all of them
PAIRS = [(act, case) for n, act in enumerate(ACTS) for m, case in enumerate(CASES) if (n + m) % EVERY == 0]


@pytest.mark.parametrize(("act", "case"), PAIRS, ids=[f"{act.__name__}-{case.__name__}" for act, case in PAIRS])
def test_every_tick_has_one_verdict(
    act: Callable[[Client], None], case: Callable[[Scene, Action], Fault], scene: Scene, client: Client
) -> None:
    victim = scene.victim()
    wait_until(lambda: scene.drain.jobs, what=lambda: victim.log)
    rule = scene.proxy.plan("evalsha fire", case(scene, lambda: act(client)))
    wait_until(lambda: rule.hits, what=lambda: f"{victim.process.poll()} {victim.log}")
    assert rule.done.wait(30), victim.log
    other = scene.other()
    other.says("registered")
    seen = len(scene.drain.jobs)
    wait_until(lambda: len(scene.drain.jobs) >= seen + 2, what=lambda: other.log)
    if victim.process.poll() is None:
        assert victim.end() == 0
    assert other.end() == 0
    assert [line for line in client.history("tick") if line.beat == "ann"], (
        "what the operator did stands in the history"
    )
    one_verdict_each(client, scene.drain)
