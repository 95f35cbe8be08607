"""The events that the code tells, found in its syntax trees: `Event("name", id, {"field": …})`."""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HOUSE = Path(__file__).parent.parent.parent / "beat"
# Names that are no literals where the event is made: by the variable that holds them.
NAMED = {
    "name": ["locked", "fenced", "gone", "unread", "passed_on"],
}
_TELLS = re.compile(r"\bEvent\(|\breplace\([^()]*\bname=")


@dataclass(frozen=True)
class Emitted:
    """One place that tells an event."""

    name: str
    fields: frozenset[str]
    with_schedule: bool
    place: str


@functools.cache
def emitted() -> list[Emitted]:
    return [each for file in sorted(HOUSE.rglob("*.py")) for each in _of(file)]


def _of(file: Path) -> Iterator[Emitted]:
    text = file.read_text(encoding="utf-8")
    tree = ast.parse(text if _TELLS.search(text) else "")  # every test process does this
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Event":
                    place = f"{file.name}:{call.lineno}"
                    fields = frozenset(_fields(call, function))
                    for name in _names(call.args[0]):
                        yield Emitted(name, fields, len(call.args) > 1, place)
                elif isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "replace":
                    new = [word.value for word in call.keywords if word.arg == "name"]
                    for value in new:
                        assert isinstance(value, ast.Constant)
                        yield Emitted(
                            str(value.value), frozenset(), with_schedule=True, place=f"{file.name}:{call.lineno}"
                        )


def _names(node: ast.expr) -> list[str]:
    return [str(node.value)] if isinstance(node, ast.Constant) else NAMED[ast.unparse(node)]


def _fields(call: ast.Call, function: ast.AST) -> Iterator[str]:
    given = [call.args[2]] if len(call.args) > 2 else [word.value for word in call.keywords if word.arg == "fields"]
    for node in given:
        yield from _keys(node, function, call.lineno)


def _keys(node: ast.expr, function: ast.AST, line: int) -> Iterator[str]:
    if isinstance(node, ast.Dict):
        yield from (str(key.value) for key in node.keys if isinstance(key, ast.Constant))
    elif isinstance(node, ast.BinOp):
        yield from _keys(node.left, function, line)
        yield from _keys(node.right, function, line)
    else:
        assert isinstance(node, ast.Name), ast.unparse(node)
        yield from _assigned(node.id, function, line)


def _assigned(name: str, function: ast.AST, line: int) -> Iterator[str]:
    """What the last assignment to a variable before that line holds, and what was added to it afterwards."""
    found: list[tuple[int, bool, ast.expr]] = []
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=other)], value=value) if other == name:
                found.append((node.lineno, True, value))
            case ast.AnnAssign(target=ast.Name(id=other), value=ast.expr() as value) if other == name:
                found.append((node.lineno, True, value))
            case ast.AugAssign(target=ast.Name(id=other), value=value) if other == name:
                found.append((node.lineno, False, value))
    before = sorted((each for each in found if each[0] <= line), key=lambda each: each[0])
    last = max(n for n, each in enumerate(before) if each[1])
    for at, _, value in before[last:]:
        yield from _keys(value, function, at)
