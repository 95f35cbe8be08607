"""The rules of the architecture, checked on the syntax trees; each rule is shown failing on a planted breach."""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BEAT = Path(__file__).parent.parent / "beat"

ORDER = (
    "_version", "errors", "timing", "config", "schedule", "policies", "history", "jobs", "storage", "events", "engine",
    "client", "telemetry", "notify", "doctor", "migrate", "dev", "testing", "web", "scheduler", "", "cli", "contrib",
    "__main__",
)  # fmt: skip
"""The packages in import order: each may import only what stands before it. `""` is `beat` itself."""

DOORS = {
    "croniter": ["timing.cron"],
    "zoneinfo": ["timing.zones"],
    "pydantic": ["config.settings", "config.types"],
    "pydantic_settings": ["config.settings"],
    "rq": ["jobs"],
    "redis": ["storage", "cli", "testing"],
    "fakeredis": ["testing"],
    "opentelemetry": ["telemetry.tracing"],
    "prometheus_client": ["telemetry.metrics"],
    "click": ["cli"],
    "starlette": ["web"],
    "jinja2": ["web"],
    "markupsafe": ["web"],
    "uvicorn": ["web"],
}
"""The modules that may import a third-party library."""
FORMATS = {
    "client.change", "jobs.job_template", "notify.alerts.templates", "policies.lint", "telemetry.logs",
    "web.api.endpoint",
}  # fmt: skip
"""Modules whose templates are constants, or come from RQ or from the settings: never text from Redis."""
CLOCK = "timing.clock"
KEYS = "storage.keys"
CLOCKS = {"now", "utcnow", "today", "time", "time_ns", "localtime", "gmtime"}
VAGUE = {"utils", "helpers", "common", "misc", "manager"}


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    name: str
    """Dotted, without `beat.`; empty for `beat/__init__.py`."""
    text: str

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]

    @functools.cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)


def modules(root: Path) -> list[Module]:
    return [Module(_dotted(file.relative_to(root)), file.read_text("utf-8")) for file in sorted(root.rglob("*.py"))]


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the dotted name of everything that is imported below `node`."""
    for child in ast.walk(node):
        if isinstance(child, ast.Import):
            yield from ((child.lineno, alias.name) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            source = "beat" if child.level else child.module or ""
            yield from ((child.lineno, f"{source}.{alias.name}") for alias in child.names)


def packages_used(module: Module, known: set[str]) -> Iterator[tuple[int, str]]:
    for line, name in imports(module.tree):
        top, _, rest = name.partition(".")
        if top == "beat":
            package = rest.partition(".")[0]
            yield line, package if package in known else ""


def law_every_package_stands_in_the_order(beat: list[Module]) -> Iterator[str]:
    for module in beat:
        if module.package not in ORDER:
            yield f"{module.name}: {module.package} has no place in the import order"


def law_imports_follow_the_order(beat: list[Module]) -> Iterator[str]:
    known = set(ORDER)
    for module in beat:
        for line, package in packages_used(module, known):
            if module.package in known and ORDER.index(package) > ORDER.index(module.package):
                yield f"{module.name}:{line}: imports {package or 'beat itself'}, which stands after {module.package}"


def law_no_cycles(beat: list[Module]) -> Iterator[str]:
    names = {module.name for module in beat}
    uses = {module.name: set(_files_used(module, names)) - {module.name} for module in beat}
    while free := [name for name, used in uses.items() if not used & uses.keys() or not _users(name, uses)]:
        for name in free:
            del uses[name]
    if uses:
        yield f"cycle among {', '.join(sorted(uses))}"


def _users(name: str, uses: dict[str, set[str]]) -> set[str]:
    return {user for user, used in uses.items() if name in used}


def _files_used(module: Module, names: set[str]) -> Iterator[str]:
    """Yield the files that a module imports: of `beat.timing.cron.fields.DAY`, `timing.cron.fields`."""
    for _, imported in imports(module.tree):
        parts = imported.split(".")[1:] if imported.startswith("beat.") else []
        known = [".".join(parts[:n]) for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in names]
        yield from known[:1]


def law_no_lazy_imports_of_beat(beat: list[Module]) -> Iterator[str]:
    for module in beat:
        for function in functions(module.tree):
            for line, name in imports(function):
                if name.partition(".")[0] == "beat":
                    yield f"{module.name}:{line}: imports {name} inside {function.name}"


def law_one_door_for_each_library(beat: list[Module]) -> Iterator[str]:
    for module in beat:
        for line, name in imports(module.tree):
            library = name.partition(".")[0]
            doors = DOORS.get(library, [])
            if doors and not any(f"{module.name}.".startswith(f"{door}.") for door in doors):
                yield f"{module.name}:{line}: imports {library}, which only {' and '.join(doors)} may import"


def law_wall_time_only_in_clock(beat: list[Module]) -> Iterator[str]:
    for module in beat:
        if module.name != CLOCK:
            yield from (f"{module.name}:{line}: reads {what}" for line, what in _clocks_read(module.tree))


def _clocks_read(tree: ast.Module) -> Iterator[tuple[int, str]]:
    owners = {"datetime", "date", "time"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in {"datetime", "time"}:
            owners |= {alias.asname for alias in node.names if alias.asname and alias.name in owners}
            if node.module == "time":
                yield from ((node.lineno, f"time.{alias.name}") for alias in node.names if alias.name in CLOCKS)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in CLOCKS:
            owner = ast.unparse(node.value)
            if owner.rpartition(".")[2] in owners:
                yield node.lineno, f"{owner}.{node.attr}"


def law_key_names_only_in_keys(beat: list[Module]) -> Iterator[str]:
    for module in beat:
        for node in ast.walk(module.tree):
            text = node.value if isinstance(node, ast.Constant) else None
            if module.name != KEYS and isinstance(text, str) and re.match(r"beat:[a-z]", text):
                yield f"{module.name}: names the key {text!r}"


def law_no_value_is_a_format(beat: list[Module]) -> Iterator[str]:
    """Only a text in quotes, plain or in `Markup(...)`, has a `format` method called."""
    for module in beat:
        for node in ast.walk(module.tree) if module.name not in FORMATS else []:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                text = node.func.value
                if isinstance(text, ast.Call) and ast.unparse(text.func) == "Markup":
                    text = text.args[0]
                if node.func.attr in {"format", "format_map"} and not isinstance(text, ast.Constant):
                    yield f"{module.name}:{node.lineno}: formats {ast.unparse(text)}, which may come from Redis"


def law_no_vague_names(beat: list[Module]) -> Iterator[str]:
    for module in beat:
        for name in VAGUE.intersection(module.name.split(".")):
            yield f"{module.name}: {name} does not say what the module does"


def law_every_module_has_a_docstring(beat: list[Module]) -> Iterator[str]:
    for module in beat:
        if not ast.get_docstring(module.tree):
            yield f"{module.name}: has no docstring"


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


LAWS = [law for name, law in sorted(globals().items()) if name.startswith("law_")]


@pytest.fixture(scope="module")
def beat() -> list[Module]:
    return modules(BEAT)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_beat_keeps_the_law(law: Callable[[list[Module]], Iterator[str]], beat: list[Module]) -> None:
    assert list(law(beat)) == []


PLANTED: dict[str, tuple[str, str]] = {
    "law_every_package_stands_in_the_order": ("attic.py", '"""Old things."""'),
    "law_imports_follow_the_order": ("timing/x.py", '"""X."""\nfrom beat.cli import main'),
    "law_no_cycles": ("errors.py", '"""Errors."""\nfrom beat.timing import clock'),
    "law_no_lazy_imports_of_beat": ("timing/x.py", '"""X."""\ndef f():\n    from beat.timing.cron import Cron'),
    "law_one_door_for_each_library": ("timing/x.py", '"""X."""\nimport croniter.croniter'),
    "law_wall_time_only_in_clock": ("timing/x.py", '"""X."""\nimport datetime\nnow = datetime.datetime.now(None)'),
    "law_key_names_only_in_keys": ("timing/x.py", '"""X."""\nKEY = f\'beat:schedule:{1}\''),
    "law_no_vague_names": ("timing/utils.py", '"""X."""'),
    "law_no_value_is_a_format": ("timing/x.py", '"""X."""\ndef f(source):\n    return source.format(app=1)'),
    "law_every_module_has_a_docstring": ("timing/silent.py", ""),
}


BREACHES = [
    *PLANTED.items(),
    ("law_imports_follow_the_order", ("timing/x.py", '"""X."""\nfrom beat import Client')),
    ("law_no_cycles", ("timing/a.py", '"""A."""\nfrom beat.timing import a\nfrom beat.timing.b import x')),
    ("law_wall_time_only_in_clock", ("timing/x.py", '"""X."""\nfrom time import time')),
    ("law_wall_time_only_in_clock", ("timing/x.py", '"""X."""\nfrom datetime import datetime as d\nd.now()')),
]


def test_every_law_has_a_planted_breach() -> None:
    assert sorted(PLANTED) == [law.__name__ for law in LAWS]


@pytest.mark.parametrize(("name", "breach"), BREACHES, ids=[f"{name}-{text!r}" for name, (_, text) in BREACHES])
def test_the_law_is_seen_failing_where_it_is_broken(name: str, breach: tuple[str, str], tmp_path: Path) -> None:
    law = globals()[name]
    (tmp_path / "timing").mkdir()
    (tmp_path / "timing/b.py").write_text('"""B."""\nfrom beat.timing import a\n')
    (tmp_path / "timing/clock.py").write_text('"""Wall time."""\nfrom beat import errors\n')
    (tmp_path / "errors.py").write_text('"""Errors."""\n')
    assert list(law(modules(tmp_path))) == []
    file, text = breach
    (tmp_path / file).write_text(text)
    assert list(law(modules(tmp_path))) != []
