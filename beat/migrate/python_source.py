"""Read a Python file without running it: resolve its names, and evaluate the literals that it contains.

A value is known if it is a literal, a constant of the same file, arithmetic on known values, or one of the few calls
that the reader knows. Everything else is rejected, because only running the file could tell.
"""

from __future__ import annotations

import ast
import functools
import operator
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from beat.errors import BadSource
from beat.migrate.result import NotCarried

Calls = Mapping[str, Callable[..., Any]]

_DEEPEST = 60
_MOST_BITS = 64
_SHOWN = 60
_SUMS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
}
_CHANGING = {"append", "extend", "insert", "update", "setdefault", "pop", "popitem", "remove", "clear", "add"}
_MAYBE = (ast.If, ast.IfExp, ast.Match, ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.GeneratorExp, ast.DictComp)
_LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Code:
    """The syntax tree of a file, and its names."""

    shown: str
    module: str | None
    tree: ast.Module

    def where(self, node: ast.expr | ast.stmt) -> str:
        """Return the position of a node, as in `app/celery.py:12`."""
        return f"{self.shown}:{node.lineno}"

    @functools.cached_property
    def imports(self) -> dict[str, str]:
        """Return the dotted path of each imported name."""
        names: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    names[alias.asname or alias.name.partition(".")[0]] = (
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom) and (source := self._source(node)):
                names |= {alias.asname or alias.name: f"{source}.{alias.name}" for alias in node.names}
        return names

    def _source(self, node: ast.ImportFrom) -> str | None:
        if not node.level:
            return node.module
        if self.module is None:
            return None
        above = self.module.split(".")
        is_package = self.shown.endswith("__init__.py")
        package = above[: len(above) - node.level + is_package]
        return ".".join([*package, *([node.module] if node.module else [])]) if package else None

    @functools.cached_property
    def own(self) -> frozenset[str]:
        """Return the functions that the file itself defines at its top level."""
        return frozenset(n.name for n in self.tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))

    @functools.cached_property
    def constants(self) -> dict[str, ast.expr]:
        """Return the names that are assigned once, at the top level, and never changed."""
        given: dict[str, list[ast.expr | None]] = {}
        top = frozenset(self.tree.body)
        for node in ast.walk(self.tree):
            for name, value in _bindings(node, top=node in top):
                given.setdefault(name, []).append(value)
        return {name: values[0] for name, values in given.items() if len(values) == 1 and values[0] is not None}

    @functools.cached_property
    def maybe(self) -> frozenset[ast.AST]:
        """Return all nodes in conditions and loops, which may run never or several times."""
        return frozenset(inner for node in ast.walk(self.tree) if isinstance(node, _MAYBE) for inner in ast.walk(node))

    @functools.cached_property
    def unsure(self) -> frozenset[ast.AST]:
        """Return all nodes in conditions, loops and functions; a function may be called never or several times."""
        later = (inner for node in ast.walk(self.tree) if isinstance(node, _LATER) for inner in ast.walk(node))
        return self.maybe.union(later)

    def dotted(self, node: ast.expr) -> str | None:
        """Return the path that a name or `a.b.c` refers to, as far as imports and definitions tell."""
        if isinstance(node, ast.Name):
            mine = f"{self.module}.{node.id}" if self.module and node.id in self.own else None
            return self.imports.get(node.id, mine)
        if isinstance(node, ast.Attribute):
            owner = self.dotted(node.value)
            return f"{owner}.{node.attr}" if owner else None
        return None

    def value(self, node: ast.expr, calls: Calls = {}, depth: int = 0) -> Any:  # noqa: B006 (read only)
        """Return the value of an expression; raise NotCarried if only running the file could tell."""
        if depth > _DEEPEST:
            raise self._unknown(node)
        inner = functools.partial(self.value, calls=calls, depth=depth + 1)
        match node:
            case ast.Constant() if not isinstance(node.value, complex) and node.value is not ...:
                return node.value
            case ast.Tuple() | ast.List() | ast.Set():
                return self._collection(node, [inner(item) for item in node.elts])
            case ast.Dict():
                return self._dict(node, inner)
            case ast.UnaryOp(op=ast.USub()) if isinstance(found := inner(node.operand), int | float | timedelta):
                return -found
            case ast.BinOp() if type(node.op) in _SUMS:
                return self._sum(node, inner(node.left), inner(node.right))
            case ast.Name() if node.id in self.constants:
                return inner(self.constants[node.id])
            case ast.Call():
                return self._called(node, calls, inner)
        raise self._unknown(node)

    def _collection(self, node: ast.Tuple | ast.List | ast.Set, items: list[Any]) -> Any:
        if isinstance(node, ast.List):
            return items
        try:
            return tuple(items) if isinstance(node, ast.Tuple) else frozenset(items)
        except TypeError:
            raise self._unknown(node) from None

    def _dict(self, node: ast.Dict, inner: Callable[[ast.expr], Any]) -> dict[Any, Any]:
        pairs: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            try:
                pairs |= {inner(key): inner(value)} if key else inner(value)
            except TypeError:
                raise self._unknown(value) from None
        return pairs

    def _sum(self, node: ast.BinOp, left: Any, right: Any) -> Any:
        numbers = all(isinstance(each, int | float | timedelta) for each in (left, right))
        if not numbers or any(isinstance(each, int) and each.bit_length() > _MOST_BITS for each in (left, right)):
            raise self._unknown(node)
        try:
            return _SUMS[type(node.op)](left, right)
        except (ArithmeticError, TypeError) as e:
            raise NotCarried(f"line {node.lineno}: {shown(node)}: {e}") from e

    def _called(self, node: ast.Call, calls: Calls, inner: Callable[[ast.expr], Any]) -> Any:
        name = self.dotted(node.func) or (node.func.id if isinstance(node.func, ast.Name) else "")
        if name not in calls or any(isinstance(each, ast.Starred) for each in node.args):
            raise self._unknown(node)
        args = [inner(each) for each in node.args]
        keywords: dict[str, Any] = {}
        try:
            for each in node.keywords:
                keywords |= {each.arg: inner(each.value)} if each.arg else inner(each.value)
            return calls[name](*args, **keywords)
        except (TypeError, ValueError, ArithmeticError) as e:
            raise NotCarried(f"line {node.lineno}: {shown(node)}: {e}") from e

    def _unknown(self, node: ast.expr) -> NotCarried:
        return NotCarried(
            f"line {node.lineno}: {shown(node)} is known only when the file runs: add --import to let it run"
        )


def parsed(shown: str, module: str | None, text: str) -> Code:
    """Return the parsed file; raise BadSource with the line number if it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as invalid escapes in the file
            return Code(shown, module, ast.parse(text))
    except SyntaxError as e:
        raise BadSource(f"{shown}:{e.lineno or 1}: this is not Python: {e.msg}") from e
    except (ValueError, RecursionError, MemoryError) as e:
        raise BadSource(f"{shown}: this cannot be read as Python: {type(e).__name__}") from e


def _bindings(node: ast.AST, *, top: bool) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the names that a node binds or changes, each with its value; None stands for a change or unknown value."""
    match node:
        case ast.Assign():
            for target in node.targets:
                known = node.value if top and isinstance(target, ast.Name) else None
                yield from ((name, known) for name in _names(target))
        case ast.AnnAssign(value=ast.expr()):
            known = node.value if top and isinstance(node.target, ast.Name) else None
            yield from ((name, known) for name in _names(node.target))
        case ast.AugAssign() | ast.For() | ast.NamedExpr() | ast.AsyncFor():
            yield from ((name, None) for name in _names(node.target))
        case ast.Delete():
            yield from ((name, None) for target in node.targets for name in _names(target))
        case ast.Call(func=ast.Attribute(attr=attribute, value=ast.Name(id=name))) if attribute in _CHANGING:
            yield name, None


def _names(target: ast.expr) -> Iterator[str]:
    """Yield the names in an assignment's target: `x` for `x`, `x[0]` and `x.y`; `x` and `y` for `x, y`."""
    yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name))


def shown(node: ast.expr) -> str:
    """Return the expression on one line, shortened."""
    try:
        text = " ".join(ast.unparse(node).split())
    except RecursionError:  # a sum of a thousand terms
        return "an expression"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
