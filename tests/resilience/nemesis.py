"""The nemesis: three beats on one Redis, one of them killed with -9 every few seconds and started again.

`make nemesis` runs it for two minutes; the tests run it shorter. It ends with 1 unless every tick became one job.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from pathlib import Path

from redis import Redis

from beat.dev import embedded
from tests.support.facts import wait_until
from tests.support.schedulers import TASKS, Beat, Drain, exactly_once, seconds_of


def run(home: Path, url: str, seconds: float, *, beats: int = 3, every_s: float = 5) -> str:
    """Lets it rage for so long; returns what happened, and fails when a tick was lost or doubled."""
    (home / "tasks.py").write_text(TASKS)
    kills = 0
    with Redis.from_url(url, decode_responses=True) as redis, Drain(url) as drain:
        running = [Beat(home, url) for _ in range(beats)]
        try:
            wait_until(lambda: drain.jobs, what=lambda: running[0].log)
            end = time.monotonic() + seconds  # that of the start, which may be slow, is not counted
            for victim in itertools.cycle(range(beats)):
                time.sleep(max(0, min(every_s, end - time.monotonic())))
                if time.monotonic() >= end:
                    break
                running[victim].kill()
                kills += 1
                running[victim] = Beat(home, url)
            for beat in running:
                beat.says("registered")
            wait_until(lambda: max(drain.ticks("tick")) >= seconds_of(redis) - 1)  # the locks of the dead have run out
            for beat in running:
                assert beat.end() == 0, beat.log
        finally:
            for beat in running:
                beat.__exit__()
        exactly_once(redis, drain, least=int(seconds) - 2)
        return f"{beats} beats, {kills} kills, {sum(drain.jobs.values())} ticks: each became exactly one job"


def main() -> int:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--beats", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="beat-") as place:
        home = Path(place)
        with embedded.start(home / "redis") as server:
            try:
                sys.stdout.write(run(home, server.url, given.seconds, beats=given.beats) + "\n")
            except AssertionError as e:
                sys.stdout.write(f"{e}\n")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
