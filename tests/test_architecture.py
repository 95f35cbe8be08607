"""The laws of the house, kept by walking the syntax trees; each law is shown failing on a planted house."""

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

HOUSE = Path(__file__).parent.parent / "beat"

# From the ground up: a room may use the rooms of its own storey and of those below, never those above.
STOREYS = {
    "leaves": [
        "_version", "errors", "clock", "durations", "zones", "redis_url", "sentry_dsn", "checks", "groups",
        "shell", "secrecy", "sources", "alert_settings", "web_settings", "settings", "setting_types", "keys",
        "lifetimes",
    ],
    "domain": [
        "cron", "every", "timing", "exclusions", "policy_options", "policies", "functions", "arguments", "options",
        "rq_options", "place_options", "follows", "requires", "monitor", "grouping", "relations", "place", "refusals",
        "kinds", "schedule", "declaring", "loader", "registry", "lint", "run", "state", "definitions", "placement",
        "prepare", "event", "guard", "globs", "ledger", "history", "verification", "statistics", "report", "sighting",
        "shards", "planning",
        "blocks", "outcomes", "overrides", "instance", "pulse", "setback", "hearing", "facts", "routing",
        "dependencies",
    ],
    "doors": [
        "scripts", "connection", "jobs", "server", "protocol", "crowds", "names", "store", "groups_kept", "dialogue",
        "lock", "runs", "slots", "outbox", "operations", "glance", "staff", "inquiry", "notify", "probe",
        "announcements", "provenance",
        "posting",
    ],
    "engine": [
        "timekeeper", "health", "obstacles", "pace", "desk", "book", "verdicts", "arrivals", "holding", "replies",
        "ticker", "sync", "neighbours", "watcher", "attendant", "lookout", "housekeeper", "current",
        "registrations", "retirement", "vitals", "watchdog",
    ],
    "control": ["client", "words", "events", "moving", "doctor"],
    "observers": ["observers", "logs", "log_forms", "tracing", "metrics", "monitors", "alerts"],
    "house": ["service", "assembly", "interrupts", "companions", "embedded", "dev", "testing"],
    "faces": ["cli", "web", "__main__"],
}  # fmt: skip
FRONT = "__init__"  # `import beat` shows what users need: it stands above the house and below the faces

# One door for each outer thing.
DOORS = {
    "croniter": ["cron"],
    "rq": ["jobs"],
    "redis": ["connection", "server", "cli", "testing"],
    "click": ["cli"],
    "fakeredis": ["testing"],
    "opentelemetry": ["tracing"],
    "prometheus_client": ["metrics"],
    "pydantic": ["settings", "setting_types"],
    "pydantic_settings": ["settings"],
    "zoneinfo": ["zones"],
    "starlette": ["web"],
    "jinja2": ["web"],
    "markupsafe": ["web"],
    "uvicorn": ["web"],
}
# Templates that are constants, or that come from RQ or from the settings: never text from Redis.
FORMATS = {
    "alerts.words", "client.changing", "jobs", "lint", "logs", "web.api.endpoint",
}  # fmt: skip
CLOCKS = {"now", "utcnow", "today", "time", "time_ns", "localtime", "gmtime"}
NO_NAMES = {"utils", "helpers", "models", "base", "manager"}


@dataclass(frozen=True)
class Module:
    """One file of the house."""

    name: str
    """Dotted, without `beat.`."""
    text: str

    @property
    def room(self) -> str:
        return self.name.partition(".")[0]

    @functools.cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)


def modules(house: Path) -> list[Module]:
    files = sorted(house.rglob("*.py"))
    return [Module(_dotted(file.relative_to(house)), file.read_text(encoding="utf-8")) for file in files]


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def imports(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Every module that is imported below `node`: for `from beat import x`, `beat.x`."""
    for found in ast.walk(node):
        if isinstance(found, ast.Import):
            yield from ((found.lineno, alias.name) for alias in found.names)
        elif isinstance(found, ast.ImportFrom):
            source = "beat" if found.level else found.module or ""
            yield from ((found.lineno, f"{source}.{alias.name}") for alias in found.names)


def rooms_used(module: Module) -> Iterator[tuple[int, str]]:
    known = {room for storey in STOREYS.values() for room in storey}
    for line, name in imports(module.tree):
        top, _, rest = name.partition(".")
        if top == "beat":
            room = rest.partition(".")[0]
            yield line, room if room in known else FRONT


def height(room: str) -> int:
    storeys = list(STOREYS)
    if room == FRONT:
        return storeys.index("house")
    return next((i for i, storey in enumerate(storeys) if room in STOREYS[storey]), -1)


def law_every_room_has_a_storey(house: list[Module]) -> Iterator[str]:
    for module in house:
        if module.room != FRONT and height(module.room) < 0:
            yield f"{module.name}: is on no storey"


def law_imports_point_down(house: list[Module]) -> Iterator[str]:
    for module in house:
        for line, used in rooms_used(module):
            if height(used) > height(module.room):
                yield f"{module.name}:{line}: imports {used} from a storey above"
            if used == FRONT and module.room not in STOREYS["faces"]:
                yield f"{module.name}:{line}: imports the front door from inside"


def law_no_cycles(house: list[Module]) -> Iterator[str]:
    names = {module.name for module in house}
    uses = {module.name: set(_files_used(module, names)) - {module.name} for module in house}
    while free := [name for name, used in uses.items() if not used & uses.keys()]:
        for name in free:
            del uses[name]
    if uses:
        yield f"cycle among {', '.join(sorted(uses))}"


def _files_used(module: Module, names: set[str]) -> Iterator[str]:
    """The files of the house that a module imports: of `beat.cron.fields.DAY`, `cron.fields`."""
    for _, imported in imports(module.tree):
        parts = imported.split(".")[1:] if imported.startswith("beat.") else []
        known = [".".join(parts[:n]) for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in names]
        yield from known[:1]


def law_no_lazy_imports_of_beat(house: list[Module]) -> Iterator[str]:
    for module in house:
        for function in functions(module.tree):
            for line, name in imports(function):
                if name.partition(".")[0] == "beat":
                    yield f"{module.name}:{line}: imports {name} inside {function.name}"


def law_one_door_for_each_outer_thing(house: list[Module]) -> Iterator[str]:
    for module in house:
        for line, name in imports(module.tree):
            thing = name.partition(".")[0]
            if thing in DOORS and module.room not in DOORS[thing]:
                yield f"{module.name}:{line}: imports {thing}, whose door is {' or '.join(DOORS[thing]) or 'not built'}"


def law_wall_time_only_in_clock(house: list[Module]) -> Iterator[str]:
    for module in house:
        if module.room != "clock":
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


def law_key_names_only_in_keys(house: list[Module]) -> Iterator[str]:
    for module in house:
        for node in ast.walk(module.tree):
            text = node.value if isinstance(node, ast.Constant) else None
            if module.room != "keys" and isinstance(text, str) and re.match(r"beat:[a-z]", text):
                yield f"{module.name}: names the key {text!r}"


def law_no_value_is_a_format(house: list[Module]) -> Iterator[str]:
    """Only a text in quotes, plain or in `Markup(...)`, has a `format` method called."""
    for module in house:
        for node in ast.walk(module.tree) if module.name not in FORMATS else []:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                text = node.func.value
                if isinstance(text, ast.Call) and ast.unparse(text.func) == "Markup":
                    text = text.args[0]
                if node.func.attr in {"format", "format_map"} and not isinstance(text, ast.Constant):
                    yield f"{module.name}:{node.lineno}: formats {ast.unparse(text)}, which may come from Redis"


def law_no_room_for_everything(house: list[Module]) -> Iterator[str]:
    for module in house:
        for name in NO_NAMES.intersection(module.name.split(".")):
            yield f"{module.name}: {name} says nothing about what it does"


def law_every_module_says_its_job(house: list[Module]) -> Iterator[str]:
    for module in house:
        if not ast.get_docstring(module.tree):
            yield f"{module.name}: does not say what it is for"


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


LAWS = [law for name, law in sorted(globals().items()) if name.startswith("law_")]


@pytest.fixture(scope="module")
def house() -> list[Module]:
    return modules(HOUSE)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_the_house_keeps_the_law(law: Callable[[list[Module]], Iterator[str]], house: list[Module]) -> None:
    assert list(law(house)) == []


PLANTED: dict[str, tuple[str, str]] = {
    "law_every_room_has_a_storey": ("attic.py", ""),
    "law_imports_point_down": ("cron/x.py", "from beat.cli import main"),
    "law_no_cycles": ("errors.py", "from beat import clock"),
    "law_no_lazy_imports_of_beat": ("every.py", "def f():\n    from beat.cron import Cron"),
    "law_one_door_for_each_outer_thing": ("every.py", "import croniter.croniter"),
    "law_wall_time_only_in_clock": ("lint.py", "import datetime\nnow = datetime.datetime.now(None)"),
    "law_key_names_only_in_keys": ("schedule.py", "KEY = f'beat:schedule:{1}'"),
    "law_no_room_for_everything": ("cron/utils.py", ""),
    "law_no_value_is_a_format": ("every.py", "def f(source):\n    return source.format(app=1)"),
    "law_every_module_says_its_job": ("cron/silent.py", ""),
}


BREACHES = [
    *PLANTED.items(),
    ("law_no_cycles", ("cron/a.py", "from beat.cron import a\nfrom beat.cron.b import x")),
    ("law_wall_time_only_in_clock", ("lint.py", "from time import time")),
    ("law_wall_time_only_in_clock", ("lint.py", "from datetime import datetime as d\nd.now()")),
]


def test_every_law_has_a_planted_breach() -> None:
    assert sorted(PLANTED) == [law.__name__ for law in LAWS]


@pytest.mark.parametrize(("name", "breach"), BREACHES, ids=[f"{name}-{text!r}" for name, (_, text) in BREACHES])
def test_the_law_is_seen_failing_where_it_is_broken(name: str, breach: tuple[str, str], tmp_path: Path) -> None:
    law = globals()[name]
    (tmp_path / "cron").mkdir()
    (tmp_path / "cron/b.py").write_text('"""B."""\nfrom beat.cron import a\n')
    (tmp_path / "clock.py").write_text('"""Wall time."""\nfrom beat import errors\n')
    (tmp_path / "errors.py").write_text('"""Errors."""\n')
    assert list(law(modules(tmp_path))) == []
    file, text = breach
    (tmp_path / file).write_text(text)
    assert list(law(modules(tmp_path))) != []
