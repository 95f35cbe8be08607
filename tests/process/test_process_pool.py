"""A process from the nursery is what `python -m` would be."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from tests.process.commands import ended, environment
from tests.support.files import lay_out
from tests.support.process_pool import Forked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedRandom
    from pathlib import Path

PROBE = """
import json, os, signal, sys, threading, warnings
from beat.schedule.registry import default_registry

streams = sys.stdin, sys.stdout, sys.stderr
print(json.dumps({
    "name": [__name__, sys.argv],
    "place": [os.getcwd(), list(dict.fromkeys(sys.path))],
    "environment": {name: value for name, value in os.environ.items() if name != "LC_CTYPE"},  # of Python's own making
    "leads": [os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid()],
    "streams": [(stream.isatty(), stream.encoding, stream.errors) for stream in streams],
    "read": sys.stdin.read(),
    "open": [fd for fd in range(100) if os.path.exists(f"/proc/self/fd/{fd}")],
    "handlers": [str(signal.getsignal(each)) for each in sorted(signal.valid_signals())],
    "threads": threading.active_count(),
    "warnings": warnings.filters[0][0],
    "schedules": len(default_registry),
}))
print("words", file=sys.stderr)
sys.exit(7)
"""

ENDS = {
    "by itself": "print('a')",
    "with a code": "print('a'); sys.exit(3)",
    "with words": "print('a'); sys.exit('b')",
    "with an error": "print('a'); 1 / 0",
    "interrupted": "signal.raise_signal(signal.SIGINT)",
    "with a last wish": "atexit.register(print, 'b'); print('a'); sys.exit(3)",
    "with a file that was left open": "f = open(os.devnull); g = [f]; g.append(g); f = g = 0; sys.exit(3)",
    "while others work": "threading.Thread(target=lambda: (time.sleep(0.1), print('b'))).start(); sys.exit(3)",
    "while others sleep": "threading.Thread(target=time.sleep, args=[60], daemon=True).start(); sys.exit(3)",
    "where nobody reads": "ours, theirs = os.pipe(); os.dup2(theirs, 1); os.close(ours); print('a'); sys.exit(3)",
    "in silence": "sys.stdout.close(); sys.exit(3)",
}
LAST = "import atexit, os, signal, sys, threading, time\n"


@pytest.fixture
def here(home: Path) -> Path:
    return lay_out(home, {"probe.py": PROBE, "pausing.py": "import signal\nsignal.pause()\n"})


@contextlib.contextmanager
def streams() -> Iterator[list[BufferedRandom]]:
    """Something to read, and two files to write into."""
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        os.pwrite(made[0].fileno(), "é".encode(), 0)
        yield made


def written(stream: BufferedRandom) -> str:
    return os.pread(stream.fileno(), 100_000, 0).decode()


def test_it_finds_and_leaves_everything_as_one_that_was_started_does(here: Path) -> None:
    told, arguments = environment(TZ="Asia/Tokyo"), ["probe", "-x", "y z"]
    with streams() as given, streams() as same:
        command = [sys.executable, "-m", *arguments]
        done = subprocess.run(
            command, cwd=here, env=told, stdin=given[0], stdout=given[1], stderr=given[2], check=False,
            start_new_session=True,
        )  # fmt: skip
        forked = Forked(*arguments, cwd=here, env=told, streams=[each.fileno() for each in same])
        assert forked.wait(30) == done.returncode == 7
        assert written(same[2]) == written(given[2]) == "words\n"
        assert json.loads(written(same[1])) == json.loads(written(given[1]))


@pytest.mark.parametrize("last", ENDS.values(), ids=ENDS)
def test_it_ends_as_one_that_was_started_does(last: str, home: Path) -> None:
    lay_out(home, {"ending.py": LAST + last})
    told = environment(PYTHONUNBUFFERED="1")  # as the nursery
    done = subprocess.run(
        [sys.executable, "-m", "ending"], cwd=home, env=told, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    forked = ended(["ending"], home, told)
    assert (forked.returncode, forked.stdout) == (done.returncode, done.stdout)
    assert forked.stderr.splitlines()[-1:] == done.stderr.splitlines()[-1:]  # a traceback begins in the nursery


def test_it_can_be_waited_for_and_killed(here: Path) -> None:
    with streams() as given:
        forked = Forked("pausing", cwd=here, env=environment(), streams=[each.fileno() for each in given])
        assert forked.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            forked.wait(0.1)
        forked.kill()
        assert forked.wait(30) == forked.poll() == -signal.SIGKILL
        forked.terminate()  # it is gone, and nobody else is meant
