"""Start a process that ends with this one, even after `kill -9`, and that Ctrl-C does not reach.

The process begins as a few lines of Python, which tie it to its parent and then become the program. `preexec_fn` is no
alternative, because running code between fork and exec is not safe in a process with threads.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Linux signals a child when its parent dies. The parent may die before prctl(), so check for it afterwards.
BY_SIGNAL = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG, parent, command = 1, int(sys.argv[1]), sys.argv[2:]
signal.pthread_sigmask(signal.SIG_SETMASK, ())
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
if os.getppid() == parent:
    os.execv(command[0], command)
"""
# Elsewhere a watcher reads from a pipe that the parent never writes to, so the read returns when the parent ends. The
# watcher is a child of the program, so its parent id tells whether the program still runs.
BY_PIPE = """
import os, signal, sys
program, command = os.getpid(), sys.argv[2:]
signal.pthread_sigmask(signal.SIG_SETMASK, ())
if os.fork() == 0:
    os.closerange(1, 256)
    os.read(0, 1)
    if os.getppid() == program:
        os.kill(program, signal.SIGTERM)
    os._exit(0)
os.execv(command[0], command)
"""
TIE = BY_SIGNAL if sys.platform == "linux" else BY_PIPE


class Child:
    """A running program that ends with this process.

    `output` is the file descriptor of its stdout and stderr. It keeps the descriptor `kept` open while it runs.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], *, output: int, kept: int) -> None:
        self._let_go = threading.Event()

        def begin() -> subprocess.Popen[bytes]:
            return subprocess.Popen(  # noqa: S603 (a server that this user has installed)
                [sys.executable, "-I", "-S", "-c", TIE, str(os.getpid()), *command],
                env=environ,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=(kept,),
                start_new_session=True,
            )

        self._process = self._in_a_thread_that_stays(begin)

    @property
    def pid(self) -> int:
        """Return the process id, which stays the same when the process becomes the program."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Return whether the program still runs."""
        return self._process.poll() is None

    def end(self, patience: float) -> None:
        """Terminate the program, and kill it if it has not ended after `patience` seconds."""
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self.kill()

    def kill(self) -> None:
        """Kill the program with -9 and wait until it has ended."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin:
            self._process.stdin.close()
        self._let_go.set()

    def _in_a_thread_that_stays(self, begin: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        """Start the process in a thread that lives as long as the process does.

        Linux sends the death signal when the *thread* that started the child ends, not only when the process does.
        """
        if threading.current_thread() is threading.main_thread():
            return begin()
        begun: Future[subprocess.Popen[bytes]] = Future()

        def stay() -> None:
            try:
                begun.set_result(begin())
            except OSError as e:
                begun.set_exception(e)
            else:
                self._let_go.wait()

        threading.Thread(target=stay, name="private-redis", daemon=True).start()
        return begun.result()
