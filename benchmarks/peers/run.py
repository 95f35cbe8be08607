"""Run three, kill one: count lost and doubled ticks of beat and its peers, each on its own private Redis.

    python benchmarks/peers/run.py [--seconds 30] [--only beat,rq-cron] [--json FILE] [--markdown]

README.md in this directory describes what is counted, and how.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import platform
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from beat.dev import embedded
from beat.timing import clock
from benchmarks.peers.celery_beat import CELERY_BEAT
from benchmarks.peers.counting import Count, count_by_grid, count_named
from benchmarks.peers.redbeat import REDBEAT, REDBEAT_TUNED
from benchmarks.peers.rq_beat import BEAT
from benchmarks.peers.rq_cron import RQ_CRON
from benchmarks.peers.rq_scheduler import RQ_SCHEDULER
from benchmarks.peers.stage import Crew, Drain, private_redis
from tests.resilience.harm import drop_reply
from tests.resilience.proxy import Command, Proxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.peers.contender import Contender

CONTENDERS = {c.name: c for c in (RQ_CRON, RQ_SCHEDULER, CELERY_BEAT, REDBEAT, REDBEAT_TUNED, BEAT)}
PATIENCE = 60.0  # seconds until a contender that enqueues nothing is given up
SETTLE = 4.0  # seconds from its first message until counting begins: all processes are up by then
SHORTEST = 20  # seconds: the longest fault and what follows must fit in
COLUMNS = ("contender", "what happens", "due", "lost", "doubled", "longest silence")
NAMES = 2  # columns of words; the others are figures


class Play(NamedTuple):
    """The arguments of a scenario; `began` is on the monotonic clock."""

    contender: Contender
    crew: Crew
    proxy: Proxy
    began: float
    seconds: int


class Scenario(NamedTuple):
    """The number of processes, the fault, and whether the proxy is between them and Redis."""

    title: str
    processes: int
    fault: Callable[[Play], object]
    proxied: bool = False


class Row(NamedTuple):
    """One line of the table."""

    contender: str
    scenario: str
    counted: Count
    exits: int

    def cells(self) -> tuple[str, ...]:
        """Return the cells for COLUMNS."""
        due, lost, doubled, silence = self.counted
        return self.contender, self.scenario, str(due), str(lost), str(doubled), f"{silence:.1f} s"


def kill_in_turn(play: Play) -> None:
    for turn in every_five_seconds(play):
        play.crew.kill(turn % 3)
        play.crew.start(turn % 3)


def lose_replies(play: Play) -> None:
    planned = [play.proxy.plan(pushing(play.contender), drop_reply()) for _ in every_five_seconds(play)]
    play.crew.watch(play.began + play.seconds)
    if not planned[0].hits:
        raise AssertionError(f"no reply was lost: {play.contender.title} enqueues with something else")


def pushing(contender: Contender) -> Callable[[Command], bool]:
    """Return a matcher for the next command that fills the queue; in a transaction, it matches the EXEC."""
    queue, named = contender.queue.encode(), False

    def matches(command: Command) -> bool:
        nonlocal named
        named = named or (queue in command.args and command.name != "SADD")  # RQ's list of queues names it, too
        return named and command.name.startswith(contender.push)

    return matches


def every_five_seconds(play: Play) -> Iterator[int]:
    dice = random.Random(2026)  # noqa: S311 (each time at another phase, the same ones for each contender)
    for turn, after in enumerate(range(2, play.seconds - 1, 5)):
        play.crew.watch(play.began + after + dice.random())
        yield turn


def pause_the_first(play: Play) -> None:
    play.crew.watch(play.began + play.seconds / 6 + 0.3)
    play.crew.pause(0, seconds=13)


def kill_the_only(play: Play) -> None:
    play.crew.watch(play.began + play.seconds / 3 + 0.3)
    play.crew.kill(0)
    play.crew.watch(time.monotonic() + 7)
    play.crew.start(0)


SCENARIOS = (
    Scenario("three, nothing goes wrong", 3, lambda _: None),
    Scenario("three, one kill -9 every 5 s", 3, kill_in_turn),
    Scenario("three, the first SIGSTOP for 13 s", 3, pause_the_first),
    Scenario("three, one reply lost every 5 s", 3, lose_replies, proxied=True),
    Scenario("one, kill -9, back after 7 s", 1, kill_the_only),
)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    rows: list[Row] = []
    silent = False
    for contender, scenario in itertools.product(options.only, SCENARIOS):
        print(f"{contender.title}: {scenario.title}", file=sys.stderr, flush=True)
        try:
            rows.append(perform(contender, scenario, options.seconds))
        except TimeoutError as e:  # what the others did is not thrown away
            silent = True
            print(f"error: {e}", file=sys.stderr, flush=True)
        else:
            print(f"    due, lost, doubled, longest silence: {', '.join(rows[-1].cells()[NAMES:])}", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps(document(rows), indent=2) + "\n", encoding="utf-8")
    table = [COLUMNS, *(row.cells() for row in rows)]
    print(f"{circumstances()}\n\n{markdown(table) if options.markdown else aligned(table)}")
    return int(silent)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run three, kill one: lost and doubled ticks of beat and its peers.")
    parser.add_argument("--seconds", type=int, default=30, help=f"counted for each line, at least {SHORTEST}")
    parser.add_argument("--only", type=chosen, default=[*CONTENDERS.values()], help=",".join(CONTENDERS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts as one JSON document, too")
    parser.add_argument("--markdown", action="store_true", help="the table in Markdown")
    options = parser.parse_args(arguments)
    if options.seconds < SHORTEST:
        parser.error(f"--seconds must be at least {SHORTEST}: a pause of 13 s and what follows must fit in")
    return options


def chosen(names: str) -> list[Contender]:
    if unknown := [name for name in names.split(",") if name not in CONTENDERS]:
        raise argparse.ArgumentTypeError(f"there is no contender {unknown[0]!r}: choose among {', '.join(CONTENDERS)}")
    return [CONTENDERS[name] for name in names.split(",")]


def perform(contender: Contender, scenario: Scenario, seconds: int) -> Row:
    with tempfile.TemporaryDirectory(prefix="peers-") as scratch:
        directory = Path(scratch)
        server, url = private_redis(directory / "redis")
        drain = Drain(url, contender)
        drain.start()
        with server, Proxy(url) as proxy:
            crew = Crew(contender, proxy.url if scenario.proxied else url, directory)
            try:
                begin = raise_the_curtain(crew, drain, scenario.processes)
                play = Play(contender, crew, proxy, time.monotonic() + begin - drain.now(), seconds)
                scenario.fault(play)
                # A named tick may come late, by the life of a lock: wait for it. Others are known only if in time.
                crew.watch(play.began + seconds + (15 if contender.tick else 2))
            finally:
                crew.close()
                drain.close()
    return Row(contender.title, scenario.title, count(contender, drain, begin, begin + seconds), crew.exits)


def raise_the_curtain(crew: Crew, drain: Drain, processes: int) -> int:
    """Start the first process, then the others once it has enqueued; return the second from which to count."""
    crew.start(0)
    deadline = time.monotonic() + PATIENCE
    while not drain.messages:
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing enqueued within {PATIENCE:.0f} s; the process said last:\n{crew.last_words()}")
        time.sleep(0.02)
    for n in range(1, processes):
        crew.start(n)
    crew.watch(time.monotonic() + SETTLE)
    return math.ceil(drain.now())


def count(contender: Contender, drain: Drain, begin: int, end: int) -> Count:
    if tick := contender.tick:
        return count_named([(arrived, tick(body)) for arrived, body in drain.messages], begin, end)
    return count_by_grid([arrived for arrived, _ in drain.messages], begin, end)


def circumstances() -> str:
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    server = "{0.name} {0.version}, AOF everysec".format(embedded.candidates()[0])
    return f"{clock.now().date()}, {machine}, Python {platform.python_version()}, {server}"


def document(rows: Sequence[Row]) -> dict[str, object]:
    lines = [{"contender": r.contender, "scenario": r.scenario, **r.counted._asdict(), "exits": r.exits} for r in rows]
    return {"schema_version": 1, "circumstances": circumstances(), "rows": lines}


def aligned(table: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    shape = "  ".join(f"{{:{'<' if n < NAMES else '>'}{width}}}" for n, width in enumerate(widths))
    return "\n".join(shape.format(*line) for line in table)


def markdown(table: Sequence[Sequence[str]]) -> str:
    header, *lines = table
    return "\n".join(
        f"| {' | '.join(line)} |" for line in (header, (*["---"] * NAMES, *["---:"] * (len(header) - NAMES)), *lines)
    )


if __name__ == "__main__":
    sys.exit(main())
