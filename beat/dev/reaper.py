"""A program: runs a command, and leaves nothing of it behind once the command ends or stdin is closed.

Whoever starts it holds the other end of stdin, and lets go of it even when killed with -9. A worker's job is a process
of its own, which the death of the worker does not end: so all that descends from the command is killed, not it alone.
Nothing of beat is imported here, so that it starts at once.
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
    """Runs `command` to its end, and returns its exit code: 128 + n when signal n ended it."""
    told, telling = os.pipe()
    for end in (told, telling):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(telling)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # only to wake up
    _ask_the_kernel(_PR_SET_CHILD_SUBREAPER, 1)  # who loses its parent becomes our child
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # until there is somebody to hand it to
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
    _ask_the_kernel(_PR_SET_PDEATHSIG, signal.SIGKILL)  # should the keeper itself be killed
    if os.getppid() != keeper:  # before the kernel was asked
        os._exit(_NOT_STARTED)
    os.dup2(os.open(os.devnull, os.O_RDONLY), _STDIN)
    try:
        os.execvp(command[0], command)  # noqa: S606 (the command is our caller's)
    except OSError as e:
        os.write(2, f"{command[0]} cannot be started: {e.strerror}\n".encode())
        os._exit(_NOT_STARTED)


def _reaped(pid: int) -> int | None:
    """Buries whoever has died; the exit code if `pid` is among them."""
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
    for pid in found:  # it grows while we walk it
        found += children.get(pid, [])
    return found


def _parents() -> list[tuple[int, int]]:
    """Every process with its parent."""
    if not Path("/proc/self/stat").exists():
        with subprocess.Popen(["/bin/ps", "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE) as ps:
            listed = [line.split() for line in ps.communicate()[0].splitlines()]
        return [(int(pid), int(parent)) for pid, parent in listed if int(pid) != ps.pid]
    pairs = []
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            # "pid (name) state parent …": the name may hold anything, even brackets
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
