"""How soon a command answers: wall time beyond that of a bare Python, which no command can do without.

The three take turns, so that a slow moment hits all of them; each turn gives one difference. They run in a directory of
their own, as nobody's project. What they import is compiled beforehand, as pip leaves it, also where the environment
forbids Python to keep what it compiles.
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
    """Once to compile and to warm the caches of files, then in turns."""
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
    """From the start of a process to its end."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("BEAT_", "PYTHONDONTWRITE"))}
    env["PYTHONPYCACHEPREFIX"] = f"{home}/compiled"
    began = time.perf_counter()
    subprocess.run([sys.executable, *words], cwd=home, env=env, stdout=subprocess.DEVNULL, check=True)  # noqa: S603
    return (time.perf_counter() - began) * 1000


def figures(taken: Mapping[str, Sequence[float]]) -> Iterator[Figure]:
    """For each command what it took longer than the bare Python (the one without a name) of the same turn."""
    for name in COMMANDS:
        beyond = tuple(whole - bare for whole, bare in zip(taken[name], taken[""], strict=True))
        yield Figure(SUITE, "start-up over bare Python", beyond, "ms", at={"command": name})
