"""Provide what a contender needs: its environment, its processes, and a thread that collects its messages."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import venv
from pathlib import Path
from typing import TYPE_CHECKING

from redis import Redis

from beat.dev import embedded
from benchmarks.peers.contender import PINS

if TYPE_CHECKING:
    from benchmarks.peers.contender import Contender

ROOM = Path(".beat/peers")


def programs(group: str | None) -> Path:
    """Return the directory with the programs of a group's environment; create the environment if it is missing."""
    if group is None:
        return Path(sys.executable).parent
    home, wanted = ROOM / f"venv-{group}", [f"{name}=={pin}" for name, pin in PINS[group].items()]
    ready = home / "pins.json"
    if not ready.exists() or json.loads(ready.read_text(encoding="utf-8")) != wanted:
        print(f"installing {' '.join(wanted)}", file=sys.stderr, flush=True)
        venv.create(home, clear=True, with_pip=True)
        subprocess.run([home / "bin/python", "-m", "pip", "install", "-qq", *wanted], check=True)  # noqa: S603
        ready.write_text(json.dumps(wanted), encoding="utf-8")
    return (home / "bin").absolute()


def free_port() -> int:
    """Return a free port on 127.0.0.1, because not every peer supports the URL of a Unix socket."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def private_redis(directory: Path) -> tuple[embedded.PrivateRedis, str]:
    """Start a Redis server with AOF everysec; return it with its URL."""
    port = free_port()
    return embedded.start(directory, options=["--port", str(port)]), f"redis://127.0.0.1:{port}/0"


class Drain(threading.Thread):
    """Pop every message as it arrives and note Redis' time, in place of workers."""

    def __init__(self, url: str, contender: Contender) -> None:
        super().__init__(daemon=True)
        self.messages: list[tuple[float, str]] = []
        self._redis, self._contender = Redis.from_url(url, decode_responses=True), contender
        self._over = threading.Event()

    def run(self) -> None:
        """Pop messages until `close`."""
        while not self._over.is_set():
            if taken := self._redis.blpop([self._contender.queue], timeout=0.2):
                self.messages.append((self.now(), str(taken[1])))
                if self._contender.tick:  # as after a run with result_ttl=0: no job hash may hide a second job
                    self._redis.delete(f"rq:job:{taken[1]!s}")

    def now(self) -> float:
        """Return the time by Redis' clock, in seconds."""
        seconds, micros = self._redis.time()
        return float(seconds) + float(micros) / 1e6

    def close(self) -> None:
        """Stop the thread and close its connection."""
        self._over.set()
        self.join()
        self._redis.close()


class Crew:
    """The schedulers of a contender, and their supervisor, which restarts a process that exits by itself."""

    def __init__(self, contender: Contender, url: str, directory: Path) -> None:
        self.exits = 0
        self.prepared = 0
        """The exit status of `prepare`."""
        self._contender, self._directory = contender, directory
        self._places = {"bin": str(programs(contender.group)), "url": url}
        self._env = os.environ | {"PEER_REDIS_URL": url}
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        for name, text in contender.files.items():
            (directory / name).write_text(text, encoding="utf-8")
        if contender.prepare:
            self.prepared = self._popen(contender.prepare, "prepare").wait()

    def start(self, n: int) -> None:
        """Start or restart process number `n`."""
        self._running[n] = self._popen(self._contender.command, str(n))

    def process(self, n: int) -> subprocess.Popen[bytes]:
        """Return the process that was last started as number `n`."""
        return self._running[n]

    def kill(self, n: int) -> None:
        """Kill process `n` with SIGKILL. The supervisor does not restart it."""
        process = self._running.pop(n)
        process.kill()
        process.wait()

    def pause(self, n: int, seconds: float) -> None:
        """Stop process `n` with SIGSTOP, and resume it after `seconds` with SIGCONT."""
        self._running[n].send_signal(signal.SIGSTOP)
        self.watch(time.monotonic() + seconds)
        self._running[n].send_signal(signal.SIGCONT)

    def watch(self, until: float) -> None:
        """Supervise the processes until `until` on the monotonic clock."""
        while (left := until - time.monotonic()) > 0:
            for n in [n for n, process in self._running.items() if process.poll() is not None]:
                self.exits += 1
                self.start(n)
            time.sleep(min(left, 0.05))

    def last_words(self, n: str = "0") -> str:
        """Return the end of the log of process `n`, by default the first."""
        return (self._directory / f"{n}.log").read_text(encoding="utf-8", errors="replace")[-2000:]

    def close(self) -> None:
        """Kill all processes."""
        for n in list(self._running):
            self.kill(n)

    def _popen(self, words: tuple[str, ...], n: str) -> subprocess.Popen[bytes]:
        command = [word.format(n=n, **self._places) for word in words]
        with (self._directory / f"{n}.log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603 (the contenders' own commands)
                command, cwd=self._directory, env=self._env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
