"""A stage for the browser: a private Redis, the page, and if wanted real beats and a worker.

python -m tests.browser.stage        a page with schedules of all kinds, to be looked at by hand
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from beat import Client
from beat.dev import embedded
from beat.web.app import made
from beat.web.security import Access
from beat.web.server import Serving

if TYPE_CHECKING:
    from beat.dev.embedded import PrivateRedis

ROOT = Path(__file__).parent.parent.parent
SCHEDULES = "tests.browser.schedules"
EVERYBODY = (Path(__file__).parent / "schedules.py").read_text(encoding="utf-8").count("\n@periodic(")
"""How many schedules there are."""


class Stage:
    """Everything that one test, or a file of tests, needs; ends what it has started."""

    def __init__(self, *, access: Access | None = None, port: int = 0, redis_port: int = 0) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="beat-"))
        options = ["--port", str(redis_port)] if redis_port else []
        self.redis: PrivateRedis = embedded.start(self.home / "redis", options=options)
        self.url = f"redis://127.0.0.1:{redis_port}/0" if redis_port else self.redis.url
        self.client = Client(self.url, by="tester")
        self._app = made(Client(self.url), access or Access())
        self.serving = Serving(self._app, "127.0.0.1", port).start()
        self._children: list[subprocess.Popen[bytes]] = []

    @property
    def address(self) -> str:
        """Without the last slash."""
        return self.serving.address

    def beat(self, modules: str = SCHEDULES) -> subprocess.Popen[bytes]:
        """A real beat."""
        return self._start("-m", "beat", "run", modules, "--redis-url", self.url)

    def worker(self, *queues: str) -> subprocess.Popen[bytes]:
        """A stock RQ worker."""
        return self._start("-m", "rq.cli", "worker", "--url", self.url, *(queues or ("default",)))

    def serve_again(self) -> None:
        """The page, at the same address, after its server was stopped."""
        self.serving = Serving(self._app, "127.0.0.1", self.serving.port).start()

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        with (self.home / f"{len(self._children)}.log").open("wb") as log:
            made = subprocess.Popen([sys.executable, *words], cwd=ROOT, stdout=log, stderr=log)
        self._children.append(made)
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._children:
            each.send_signal(signal.SIGTERM)
        for each in self._children:
            try:
                each.wait(2)
            except subprocess.TimeoutExpired:  # a worker waits for its job
                each.kill()
                each.wait()
        self.serving.stop()
        self.redis.stop()
        shutil.rmtree(self.home, ignore_errors=True)


def wait_for(what: Any, seconds: float = 20) -> Any:
    """What a function returns once that is something."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds} s for {what} in vain")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that what was started is ended
    with Stage(port=int(sys.argv[1]) if len(sys.argv) > 1 else 0) as stage:
        stage.beat()
        stage.worker("default", "slow")
        sys.stdout.write(f"{stage.address}  ({stage.redis.url})\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
