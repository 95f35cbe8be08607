"""Measure the start-up of commands: their wall time beyond that of a bare Python.

The two commands and the bare Python take turns, so that a slow moment affects all of them. Each turn gives one
difference per command. They run in their own directory, outside any project. Their imports are compiled beforehand, as
pip does, even if the environment sets PYTHONDONTWRITEBYTECODE.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from benchmarks.figures import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.figures import Say, Scale

TITLE = "Start-up of the command line"
SUITE = "commands"
BARE = ("-c", "pass")
COMMANDS = {
    "beat --help": ("-m", "beat", "--help"),
    "beat next": ("-m", "beat", "next", "0 9 * * mon-fri", "--tz", "Europe/Paris", "-n", "3"),
}


def run(scale: Scale, say: Say) -> Iterator[Figure]:
    """Run each command once to compile and to warm the file caches, then measure in turns."""
    turns = scale.pick((25,), (5,))[0]
    taken: dict[str, list[float]] = {name: [] for name in ("", *COMMANDS)}
    with tempfile.TemporaryDirectory(prefix="beat-") as home:
        for turn in range(turns + 1):
            say(f"turn {turn} of {turns}")
            for name, words in {"": BARE, **COMMANDS}.items():
                took = wall_ms(words, home)
                taken[name] += [took] if turn else []
    yield from figures(taken)


def wall_ms(words: Sequence[str], home: str) -> float:
    """Return the wall time of a process from start to end, in ms."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("BEAT_", "PYTHONDONTWRITE"))}
    env["PYTHONPYCACHEPREFIX"] = f"{home}/compiled"
    began = time.perf_counter()
    subprocess.run([sys.executable, *words], cwd=home, env=env, stdout=subprocess.DEVNULL, check=True)  # noqa: S603
    return (time.perf_counter() - began) * 1000


def figures(taken: Mapping[str, Sequence[float]]) -> Iterator[Figure]:
    """Yield for each command how much longer it took than the bare Python (named "") of the same turn."""
    for name in COMMANDS:
        beyond = tuple(whole - bare for whole, bare in zip(taken[name], taken[""], strict=True))
        yield Figure(SUITE, "start-up over bare Python", beyond, "ms", at={"command": name})
