"""Processes that are spared their imports: forked from one that has imported beat and rq, and otherwise as any other.

A beat that is started anew works half a second on its imports, which tests with hundreds of beats cannot afford. The
nursery has no thread, no connection and no schedule, so that a child begins where `python -m` is after its imports, in
a session, a directory and an environment of its own. What depends on how Python itself is started (what a command
imports, most PYTHON… variables) needs `subprocess`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beat.cli import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT = Path(__file__).parent.parent.parent
IMPORTED = [*(f"beat.cli.{name}" for group in COMMANDS.values() for name in group), "rq.cli", "tests.support.rq_worker"]
IMPORTED += ["beat.web.service"]
CALL = b"!"
SIZE = 4
"""The bytes of a process id or an exit code."""


# --- for the tests ---------------------------------------------------------------------------------------------------


class Forked:
    """What `python -m command` would be, with as much of `Popen` as the tests need; `streams` are its 0, 1 and 2."""

    def __init__(self, *command: str, cwd: Path, env: Mapping[str, str], streams: Iterable[int]) -> None:
        self.args = command
        self.returncode: int | None = None
        self._keeper, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(_nursery(), [CALL], [theirs.fileno(), *streams])
        self._keeper.sendall(json.dumps([command, str(cwd), dict(env)]).encode())
        self._keeper.shutdown(socket.SHUT_WR)
        self.pid = self._heard()

    def poll(self) -> int | None:
        """The exit code, if it has ended; that of a signal is negative."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Waits until it has ended; its exit code."""
        if self.returncode is None:
            self._keeper.settimeout(timeout)
            try:
                self.returncode = self._heard()
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self._keeper.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _heard(self) -> int:
        said = self._keeper.recv(SIZE)
        assert said, "the nursery has died"
        return int.from_bytes(said, signed=True)

    def __del__(self) -> None:
        self._keeper.close()


def logged(log: Path, command: Iterable[str], cwd: Path, env: Mapping[str, str]) -> Forked:
    """One that reads nothing, and writes all that it has to say into a file."""
    with log.open("wb") as written, Path(os.devnull).open("rb") as nothing:
        said = written.fileno()
        return Forked(*command, cwd=cwd, env=env, streams=[nothing.fileno(), said, said])


@functools.cache
def _nursery() -> socket.socket:
    """The way to the nursery of this process, which ends when it is closed."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [
                sys.executable,
                "-Bu",
                "-m",
                "tests.support.process_pool",
                str(theirs.fileno()),
            ],  # -B: tests rewrite their modules
            cwd=ROOT,
            env={"PATH": os.environ["PATH"]},
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # Ctrl-C is for the tests, which end what they started
        )
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


# --- the nursery -----------------------------------------------------------------------------------------------------


def main(calls: socket.socket) -> None:
    """Forks a child for each call, until nobody is left who could call."""
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # so that no child copies what it only looks through
    living: dict[int, socket.socket] = {}
    woken, waker = socket.socketpair()  # a signal that comes just before one waits would be seen after that only
    for each in (woken, waker):
        each.settimeout(0)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([calls, woken], [], [])
        if woken in ready:
            woken.recv(4096)
            _reap(living)
        if calls not in ready:
            continue
        call, fds, *_ = socket.recv_fds(calls, len(CALL), 4)
        if not call:
            return
        caller, *streams = fds
        answer = socket.socket(fileno=caller)
        with answer.makefile("r") as asked:
            command, cwd, env = json.load(asked)
        if not (child := os.fork()):
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.set_wakeup_fd(-1)
            for each in (calls, answer, woken, waker, *living.values()):
                each.close()
            _become(command, cwd, env, streams)
            return
        for fd in streams:
            os.close(fd)
        living[child] = answer
        _say(answer, child)


def _reap(living: dict[int, socket.socket]) -> None:
    """Says of those that have ended how they did; the time that they took is counted as ours."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            child, status = ended
            with living.pop(child) as answer:
                _say(answer, os.waitstatus_to_exitcode(status))


def _say(answer: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # nobody listens any longer
        answer.sendall(number.to_bytes(SIZE, signed=True))


def _become(command: list[str], cwd: str, env: Mapping[str, str], streams: Iterable[int]) -> None:
    """This process is `python -m command` from here on."""
    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if "PYTHONWARNINGS" in env:
        warnings.simplefilter(env["PYTHONWARNINGS"])  # type: ignore[arg-type]
    sys.path[:1] = [cwd, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = command
    if (code := _ran(command[0])) is not None:
        _end(code)
        sys.exit(code)


def _ran(module: str) -> int | None:
    """The code with which it ended; `None` if it just came to its end."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        return end.code or 0
    return None


def _end(code: int) -> None:
    """Ends it as Python would, but leaves what the nursery imported as it is: to take it apart is to write into each
    page of its memory, which takes longer than most commands. Where there are threads, or nobody reads what it has
    written, this returns, and the end is Python's own.
    """
    if threading.active_count() > 1:
        return
    atexit._run_exitfuncs()  # noqa: SLF001 (as Python does, and multiprocessing in its children)
    sys.unraisablehook = _of_no_place
    gc.collect()  # what warns when it is thrown away
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        return
    os._exit(code)


def _of_no_place(said: Any) -> None:
    """What Python throws away at its end is thrown away by no line of a program."""
    sys.__unraisablehook__(type(said)((said.exc_type, said.exc_value, None, said.err_msg, said.object)))


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
