"""Run a command, and kill it and all its descendants when the command ends or when stdin is closed.

The process that starts this program holds the other end of stdin, which is closed even if that process is killed with
-9. All descendants are killed, because a worker runs each job in a process of its own, which outlives the worker.
This program imports nothing of beat, so that it starts in a few milliseconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NoReturn

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_STDIN = 0
_NOT_STARTED = 127


def main(command: list[str]) -> int:
    """Run `command` and return its exit code, or 128 + n if signal n ended it.

    If stdin is closed first, kill the command and return 137, as for SIGKILL.
    """
    told, telling = os.pipe()
    for end in (told, telling):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(telling)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # only to wake up `select`
    _ask_the_kernel(_PR_SET_CHILD_SUBREAPER, 1)  # orphaned descendants become children of this process
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # until there is a child to pass it on to
    keeper, pid = os.getpid(), os.fork()
    if pid == 0:
        _become(command, keeper)
    signal.signal(signal.SIGTERM, lambda *_: _kill(pid, signal.SIGTERM))
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    code = None
    while code is None:
        readable, _, _ = select.select([_STDIN, told], [], [])
        if _STDIN in readable and not os.read(_STDIN, 1):
            break
        with contextlib.suppress(BlockingIOError):
            os.read(told, 512)
        code = _reaped(pid)
    while family := _descendants(os.getpid()):
        for member in family:
            _kill(member, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)
    return 128 + signal.SIGKILL if code is None else code


def _become(command: list[str], keeper: int) -> NoReturn:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    _ask_the_kernel(_PR_SET_PDEATHSIG, signal.SIGKILL)  # in case the reaper itself is killed
    if os.getppid() != keeper:  # the reaper died before prctl()
        os._exit(_NOT_STARTED)
    os.dup2(os.open(os.devnull, os.O_RDONLY), _STDIN)
    try:
        os.execvp(command[0], command)  # noqa: S606 (the command is our caller's)
    except OSError as e:
        os.write(2, f"{command[0]} cannot be started: {e.strerror}\n".encode())
        os._exit(_NOT_STARTED)


def _reaped(pid: int) -> int | None:
    """Collect every child that has ended, and return the exit code of `pid` if it is one of them."""
    code = None
    with contextlib.suppress(ChildProcessError):
        while (dead := os.waitpid(-1, os.WNOHANG))[0]:
            if dead[0] == pid:
                ended = os.waitstatus_to_exitcode(dead[1])
                code = ended if ended >= 0 else 128 - ended
    return code


def _descendants(ancestor: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found = list(children.get(ancestor, []))
    for pid in found:  # the loop appends to this list
        found += children.get(pid, [])
    return found


def _parents() -> list[tuple[int, int]]:
    """Return the id of every process with the id of its parent."""
    if not Path("/proc/self/stat").exists():
        with subprocess.Popen(["/bin/ps", "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE) as ps:
            listed = [line.split() for line in ps.communicate()[0].splitlines()]
        return [(int(pid), int(parent)) for pid, parent in listed if int(pid) != ps.pid]
    pairs = []
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process has ended meanwhile
            # "pid (name) state parent …": the name may contain any character, even brackets
            pairs.append((int(directory.name), int((directory / "stat").read_text().rpartition(")")[2].split()[1])))
    return pairs


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _ask_the_kernel(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
