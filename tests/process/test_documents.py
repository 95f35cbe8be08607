"""Every snippet of the README and the docs runs, and every console session shows what really comes out."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from beat.cli import COMMANDS
from beat.schedule.options import Options
from tests.process.commands import called, ended, environment
from tests.process.night_shift import night_shift

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = [file for file in sorted((ROOT / "examples").rglob("*.py")) if "periodic" in file.read_text("utf-8")]
"""Those that declare schedules; each of the others has a test of its own."""
STAGES: Mapping[str, Callable[[Path], AbstractContextManager[None]]] = {"operating.md": night_shift}
"""What has happened where a reader follows a document, by its name."""
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
_FILE = re.compile(r"# (\S+\.py)\n")


@dataclass
class Desk:
    """A directory in which a reader follows a document: files that it names are saved, commands are typed."""

    folder: Path

    def python(self, code: str) -> None:
        named = _FILE.match(code)
        file = self.folder / (named[1] if named else "snippet.py")
        file.write_text(code, encoding="utf-8")
        if named:
            return  # saved for what comes after
        # Imported, not run as a script: functions of __main__ are refused.
        (self.folder / "reader.py").write_text("import snippet\n", encoding="utf-8")
        left_with, printed = self._run(["reader"])
        assert left_with == 0, printed

    def console(self, session: str) -> None:
        last = 0
        for command, expected in _commands(session):
            if command == "echo $?":
                assert str(last) == expected.strip()
                continue
            last, printed = self._run(shlex.split(command)) if _is_plain(command) else self._in_a_shell(command)
            assert _matches(printed, expected), f"$ {command}\n{printed}\n--- the document says\n{expected}"

    def _run(self, command: list[str]) -> tuple[int, str]:
        """What `python -m command` ends with, and all that it prints."""
        done = ended(command, self.folder, self._environ, together=True)
        return done.returncode, done.stdout.decode()

    def _in_a_shell(self, command: str) -> tuple[int, str]:
        shell = ["sh", "-c", command]
        done = subprocess.run(
            shell,
            cwd=self.folder,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout

    @property
    def _environ(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return environment(PATH=path, HOME=str(self.folder))


def _is_plain(command: str) -> bool:
    """Whether it is a call of `beat`, and nothing in it is for a shell."""
    bare = re.sub(r"'[^']*'" + r'|"[^"$`\\]*"', "", command)
    return command.startswith("beat ") and not re.search(r"[|&;<>$`*?~(){}#\\]", bare)


def _commands(session: str) -> list[tuple[str, str]]:
    """`$ command` and the lines up to the next."""
    parts = re.split(r"^\$ (.*)\n", session, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def _matches(printed: str, expected: str) -> bool:
    """`…` in a document stands for what changes with the clock."""
    squeezed = [re.sub(r" +", " ", text).replace(" \n", "\n").strip() for text in (printed, expected)]
    pattern = ".*?".join(re.escape(part.strip()) for part in squeezed[1].split("…"))
    return re.fullmatch(pattern, squeezed[0], re.DOTALL) is not None


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_snippet_of_the_document_runs(document: Path, home: Path) -> None:
    with STAGES.get(document.name, contextlib.nullcontext)(home):
        _follow(document, Desk(home))


def _follow(document: Path, desk: Desk) -> None:
    for kind, code in _BLOCK.findall(document.read_text(encoding="utf-8")):
        if kind == "python":
            desk.python(code)
        elif kind == "console":
            desk.console(code)
        else:
            assert kind in {"sh", "text", "toml", "yaml", "json"}, f"a block of {kind} is not looked at"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_the_document_leads_somewhere(document: Path) -> None:
    links = _LINK.findall(document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_passes_beat_check(example: Path) -> None:
    done = called("check", "--strict", str(example.relative_to(ROOT)), cwd=ROOT)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


def test_every_option_of_a_schedule_is_documented() -> None:
    text = (ROOT / "docs/reference/declaring.md").read_text(encoding="utf-8")
    assert [option for option in Options.__annotations__ if f"`{option}`" not in text] == []


def test_every_command_is_documented() -> None:
    text = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8")
    commands = [name for group in COMMANDS.values() for name in group]
    assert [name for name in commands if f"`beat {name}" not in text] == []


def test_every_make_target_named_in_a_document_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {
        target
        for document in DOCUMENTS
        for target in re.findall(r"^make ([a-z-]+)", document.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert named
    assert named <= targets


@pytest.mark.parametrize(
    ("printed", "expected", "same"),
    [
        ("a  b\n", "a b", True),
        ("in 5h\n", "in …", True),
        ("a\nb\n", "a\n", False),
        ("a\n", "a\nb\n", False),
        ("a x c", "a … c", True),
        ("a x d", "a … c", False),
    ],
)
def test_a_console_session_that_lies_is_found(printed: str, expected: str, *, same: bool) -> None:
    assert _matches(printed, expected) is same
