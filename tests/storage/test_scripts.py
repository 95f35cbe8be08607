"""A script's header, its bindings and the Python that calls it agree; each law is shown failing on a planted defect."""

from __future__ import annotations

import ast
import inspect
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from beat.doctor import acl, schedule_rows
from beat.notify.outbox import Item as Alerted
from beat.notify.outbox import Kept
from beat.storage import scripts
from beat.storage.batches import counted
from beat.storage.event_stream import Outbox
from beat.storage.keys import Keys
from beat.storage.lock import Lock
from beat.storage.messages import Closing, Item, Registration
from beat.storage.operations import Operations, Stretch
from beat.storage.queue_workers import Seen, note, staff
from beat.storage.runs import Runs
from beat.storage.slots import Slots
from beat.storage.store import Store, glance
from beat.telemetry.metrics import folding
from tests.support.builders import shows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOUSE = Path(scripts.__file__).parent
NAMES = [file.stem for file in sorted(HOUSE.glob("*.lua"))]

METHODS: dict[str, Callable[..., Any]] = {
    "claim": Store.claim,
    "fire": Store.fire,
    "look": Store.look,
    "glance": glance,
    "may": acl.may,
    "staff": staff,
    "unread": note,
    "fold": folding.fold,
    "tally": folding.tell,
    "survey": schedule_rows.page,
    "register": Store.register,
    "repair": Store.repair,
    "pause": Operations.pause,
    "defer": Operations.defer,
    "remove": Operations.remove,
    "retire": Operations.retire,
    "observe": Runs.observe,
    "close": Runs.close,
    "take": Outbox.take,
    "announce": Store.announce,
    "heartbeat": Store.heartbeat,
    "attend": Slots.attend,
    "follow": Slots.follow,
    "withdraw": Slots.withdraw,
    "decide": Kept.decide,
    "hand": Kept.hand,
    "acquire": Lock.acquire,
    "extend": Lock.extend,
    "release": Lock.release,
}
ITEMS = {
    "fire": Item._fields,
    "register": Registration._fields,
    "close": Closing._fields,
    "retire": Stretch._fields,
    "unread": Seen._fields,
    "decide": Alerted._fields,
}
FILLED_IN = {
    "schedule_prefix", "template_prefix", "lock_prefix", "job_prefix", "announced_prefix", "runs_prefix",
    "results_prefix", "executions_prefix", "execution_prefix", "worker_prefix", "channel_prefix", "queue_prefix",
    "running_prefix", "waiting_prefix", "scheduled_prefix", "index_prefix",
    "workers_prefix", "app_prefix", "request_prefix", "followers_prefix", "slow_prefix", "shards_prefix",
    "fanout_prefix", "deliveries_prefix", "messages_prefix", "told_prefix", "format", "history_limit", "events_limit",
    "watched_limit", "instance_prefix", "longest_lock", "hidden", "furthest_waiting", "furthest_open", "open_share",
    "furthest_delivery", "cycle", "misfire_limit", "early",
}  # fmt: skip
"""What Store knows by itself."""
LOCKS_OWN = {"token", "ttl"}
"""What a Lock is made with."""
OPTIONS = {"NX", "XX", "LT", "PX", "EX", "SADD", "SREM", "LIMIT", "COUNT", "REPLACE", "MAXLEN", "NUMSUB"}
"""Words in capitals that Redis understands."""


# --- what is written -------------------------------------------------------------------------------------------------


class Header(NamedTuple):
    """A header, read without any help of beat's."""

    keys: list[str]
    args: list[str]
    item: list[str]
    items_at: int | None
    replies: set[str]


class Written(NamedTuple):
    """One script, as its author wrote it."""

    name: str
    text: str
    header: Header

    @property
    def code(self) -> str:
        """All that is no comment."""
        return re.sub(r"--.*", "", self.text)


def read(name: str, house: Path) -> Written:
    text = (house / f"{name}.lua").read_text(encoding="utf-8")
    comments = re.match(r"(?:#!.*\n)?((?:--.*\n)*)", text)
    assert comments
    about, _, replies = comments[1].partition("-- Replies")
    lines = re.findall(r"^-- (KEYS|ARGV|ITEM)\[(\d+)(…?)\]\s+(\w+)", about, re.MULTILINE)
    named = {kind: [word for k, _, more, word in lines if k == kind and not more] for kind in ("KEYS", "ARGV", "ITEM")}
    items_at = [int(number) for kind, number, more, word in lines if kind == "ARGV" and more and word == "items"]
    header = Header(
        keys=named["KEYS"],
        args=named["ARGV"],
        item=named["ITEM"],
        items_at=items_at[0] if items_at else None,
        replies=set(re.findall(r"^-- +([A-Z]{2,}) ", replies, re.MULTILINE)),
    )
    return Written(name, text, header)


def bindings(written: Written, what: str) -> list[str]:
    """The names that are bound to KEYS or to the single ARGV, in the order of their numbers."""
    found: dict[int, str] = {}
    for names, values in re.findall(r"^local ([\w, ]+) = (.+)$", written.code, re.MULTILINE):
        words = names.split(", ")
        if re.fullmatch(rf"unpack\({what}\)|unpack\({what}, 1, {len(words)}\)", values):
            found |= dict(enumerate(words, 1))
        elif numbers := re.findall(rf"{what}\[(\d+)\]", values):
            found |= dict(zip(map(int, numbers), words, strict=True))
    return [found[number] for number in sorted(found)]


# --- the laws --------------------------------------------------------------------------------------------------------


def law_the_first_line_has_the_whole_script_refused(written: Written, _: Path) -> Iterator[str]:
    if written.text.partition("\n")[0] not in {"#!lua", "#!lua flags=no-writes"}:
        yield "does not begin with #!lua: without it Redis could refuse to write in the middle"


def law_the_header_is_what_beat_reads(written: Written, _: Path) -> Iterator[str]:
    script, header = scripts.script(written.name), written.header
    if [*script.keys] != header.keys:
        yield f"KEYS {header.keys} are read as {script.keys}"
    if [*script.args] != header.args or [*script.item] != header.item:
        yield f"ARGV {header.args + header.item} are read as {script.args + script.item}"
    if set(script.replies) != header.replies:
        yield f"the replies {sorted(header.replies)} are read as {sorted(script.replies)}"


def law_the_bindings_are_the_header(written: Written, _: Path) -> Iterator[str]:
    for what, names in (("KEYS", written.header.keys), ("ARGV", written.header.args)):
        wanted = list(names)
        if (bound := bindings(written, what)) != wanted:
            yield f"{what}: the header says {wanted}, the script binds {bound}"


def law_items_are_the_header(written: Written, _: Path) -> Iterator[str]:
    header, code = written.header, written.code
    begins = r"unpack\(ARGV, (\d+)\)|\w+ = (\d+), #ARGV|local first, width = (\d+),"
    starts = re.findall(rf"{begins}|local replies, at = {{now}}, (\d+)", code)
    at = {int(number) for numbers in starts for number in numbers if number}
    if at != ({header.items_at} - {None}) or header.items_at not in {None, len(header.args) + 1}:
        yield f"the header says that items begin at {header.items_at}, the script says {at}"
    if bool(header.item) != bool(header.items_at):
        yield "items are named and not announced, or announced and not named"
    for names in re.findall(r"local ([\w, ]+) = unpack\(ARGV, (?:i|at), (?:i|at) \+ width - 1\)", code):
        if names.split(", ") != header.item:
            yield f"ITEM: the header says {header.item}, the script binds {names}"
        widths = re.findall(r"local width = (\d+)|local first, width = \d+, (\d+)", code)
        if [int("".join(width)) for width in widths] != [len(header.item)]:
            yield f"an item has {len(header.item)} parts, not {widths}"


def law_the_python_is_the_header(written: Written, _: Path) -> Iterator[str]:
    header = written.header
    if written.name not in METHODS:
        yield "no method calls it"
        return
    parameters = inspect.signature(METHODS[written.name]).parameters.values()
    taken = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    filled_in = LOCKS_OWN if METHODS[written.name].__qualname__.startswith("Lock.") else FILLED_IN
    wanted = [name for name in header.args if name not in filled_in]
    if taken != wanted:
        yield f"the header says {wanted}, the method takes {taken}"
    if written.name in ITEMS and [*ITEMS[written.name]] != header.item:
        yield f"ITEM: the header says {header.item}, Python says {ITEMS[written.name]}"


def law_time_is_read_once(written: Written, house: Path) -> Iterator[str]:
    whole = re.sub(r"--.*", "", scripts.script(written.name).text)
    needed = int(bool(re.search(r"\b(now|now_text|time)\b", written.code)))
    if (times := whole.count("redis.call('TIME')")) != needed:
        yield f"reads the clock {times} times, not {needed}"
    if "'TIME'" in written.text or (house / "parts/now.lua").read_text(encoding="utf-8").count("'TIME'") != 1:
        yield "reads the clock elsewhere than in parts/now.lua"


def law_every_reply_is_documented(written: Written, _: Path) -> Iterator[str]:
    whole = re.sub(r"--.*", "", scripts.script(written.name).text)
    said = set(re.findall(r"'([A-Z]{2,})'", re.sub(r"redis\.p?call\('[A-Z]+'", "", whole))) - OPTIONS
    if said != written.header.replies:
        yield f"the header says {sorted(written.header.replies)}, the script {sorted(said)}"


def law_every_part_exists_and_comes_once(written: Written, house: Path) -> Iterator[str]:
    parts = re.findall(r"^-- include (.*)$", written.text, re.MULTILINE)
    for part in parts:
        if not (house / "parts" / f"{part}.lua").is_file():
            yield f"there is no part {part!r}"
    if len(parts) != len(set(parts)):
        yield f"includes a part twice: {parts}"


def law_no_key_is_named(written: Written, house: Path) -> Iterator[str]:
    for text in [written.text, *(part.read_text(encoding="utf-8") for part in sorted(house.glob("parts/*.lua")))]:
        yield from (f"names the key {name}" for name in re.findall(r"""['"](?:beat|rq):[^'"]*""", text))


LAWS = [law for name, law in sorted(globals().items()) if name.startswith("law_")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_every_script_keeps_the_law(law: Callable[[Written, Path], Iterator[str]], name: str) -> None:
    assert list(law(read(name, HOUSE), HOUSE)) == []


def test_every_script_is_known() -> None:
    assert scripts.names() == NAMES == sorted(METHODS)


def test_what_items_share_is_said_once_in_the_order_of_the_header() -> None:
    header, code = read("fire", HOUSE).header, read("fire", HOUSE).code
    part = (HOUSE / "parts/plain.lua").read_text(encoding="utf-8")
    [names] = re.findall(r"((?:crowd\.\w+,\s+)+crowd\.\w+) = unpack\(ARGV, at \+ 1, at \+ shared\)", code)
    *shared, before, after = re.findall(r"crowd\.(\w+)", names)
    [own] = re.findall(r"local ([\w, ]+) = ARGV\[i\], ARGV\[i \+ 1\], ARGV\[i \+ 2\]\n", part)
    assert f"shared, each, known = first, {len(shared) + 2}, {len(own.split(', '))}, {{}}\n" in code
    at_most = header.item.index("by") + 1
    assert {"kind", "job", *shared, *own.split(", ")} == {*header.item[:at_most], "slot", "max_runs", "group"}
    words: dict[str, Any] = {name: f"the {name}" for name in (*shared, *own.split(", "))}
    alike = [Item(kind="fire", **{**words, "id": each, "job": f"beat_{each}_1"}) for each in ("x", "y")]
    other = alike[0]._replace(tick="another")
    special = [other._replace(kind="skip"), other._replace(job="by chance"), other._replace(why="who knows")]
    found = [*counted([*alike, other, *special, alike[0]])]
    both = [[getattr(item, name) for name in own.split(", ")] for item in alike]
    assert (before, after) == ("before", "after")
    assert found[0] == (0, *(words[name] for name in shared), "beat_", "_1")
    assert found[1] == (-1, 2, *both[0], *both[1])
    assert (found[2][:2], found[3]) == ((0, "another"), (-2, 1, *both[0]))
    assert found[4:7] == [(len(Item._fields), *item) for item in special]
    assert found[7:] == [(-1, 1, *both[0])]


def test_every_part_is_used() -> None:
    used = {part for name in NAMES for part in re.findall(r"^-- include (\w+)", read(name, HOUSE).text, re.MULTILINE)}
    assert used == {file.stem for file in HOUSE.glob("parts/*.lua")}


# Each defect: the law that sees it, the script, what stands there, and what is planted instead.
DEFECTS: list[tuple[str, str, str, str]] = [
    ("the_first_line_has_the_whole_script_refused", "claim", "#!lua\n", ""),
    ("the_header_is_what_beat_reads", "fire", "--   STALE     next_run", "--   STALE next_run"),
    ("the_header_is_what_beat_reads", "claim", "-- ARGV[12] early ", "-- ARGV[12] early, "),
    ("the_header_is_what_beat_reads", "release", "-- KEYS[1] lock ", "-- KEYS[1]\tlock "),
    ("the_bindings_are_the_header", "fire", "local due_index, queues, ann", "local queues, due_index, ann"),
    ("the_bindings_are_the_header", "register", "due, meta, events, announcements, functions",
     "due, events, meta, announcements, functions"),
    ("the_bindings_are_the_header", "claim", "lookahead, limit, only, format =", "limit, lookahead, only, format ="),
    ("the_bindings_are_the_header", "announce", "unpack(ARGV, 1, 4)", "unpack(ARGV, 2, 5)"),
    ("the_bindings_are_the_header", "heartbeat", "instance, instances, announced,", "instances, instance, announced,"),
    ("the_bindings_are_the_header", "extend", "-- ARGV[2] ttl    ms", "-- ARGV[2] lock_ttl    ms"),
    ("items_are_the_header", "fire", "local kind, id, rev, tick, due,", "local kind, id, tick, rev, due,"),
    ("items_are_the_header", "fire", "local first, width = 18, 23", "local first, width = 18, 22"),
    ("items_are_the_header", "fire", "local first, width = 18, 23", "local first, width = 17, 23"),
    ("items_are_the_header", "register", "local first, width = 12, 17", "local first, width = 12, 16"),
    ("items_are_the_header", "register", "local first, width = 12,", "local first, width = 11,"),
    ("items_are_the_header", "close", "local kind, job, seen, record,", "local kind, seen, job, record,"),
    ("items_are_the_header", "observe", "local job, queue, scheduled,", "local queue, job, scheduled,"),
    ("items_are_the_header", "repair", "for i = 9, #ARGV", "for i = 8, #ARGV"),
    ("items_are_the_header", "announce", "for i = 5, #ARGV", "for i = 4, #ARGV"),
    ("items_are_the_header", "heartbeat", "-- ARGV[9…] items, each of\n", ""),
    ("the_python_is_the_header", "claim", "-- ARGV[7] only ", "-- ARGV[7] pattern "),
    ("the_python_is_the_header", "fire", "-- ITEM[13] number ", "-- ITEM[13] count "),
    ("the_python_is_the_header", "register", "-- ITEM[3]  seen_rev ", "-- ITEM[3]  seen "),
    ("the_python_is_the_header", "close", "-- ITEM[15] ttl ", "-- ITEM[15] time "),
    ("the_python_is_the_header", "acquire", "-- ARGV[2] ttl ", "-- ARGV[2] lasts "),
    ("time_is_read_once", "fire", "-- include sane\n", "-- include sane\nredis.call('TIME')\n"),
    ("time_is_read_once", "repair", "-- include now\n", "-- include now\n-- include now\n"),
    ("time_is_read_once", "repair", "-- include now\n", ""),
    ("time_is_read_once", "release", "local lock = KEYS[1]\n", "local lock = KEYS[1]\n-- include now\n"),
    ("every_reply_is_documented", "fire", "return 'FENCED', ''", "return 'FENCE', ''"),
    ("every_reply_is_documented", "repair", "--   MENDED   it", "-- MENDED: it"),
    ("every_reply_is_documented", "heartbeat", "--   LOST ", "--   HELD  never said\n--   LOST "),
    ("every_part_exists_and_comes_once", "announce", "-- include sane\n", "-- include insane\n"),
    ("every_part_exists_and_comes_once", "announce", "-- include sane\n", "-- include sane\n-- include sane\n"),
    ("no_key_is_named", "claim", "lock = schedule_prefix .. id,", "lock = 'beat:schedule:' .. id,"),
    ("no_key_is_named", "parts/sane", "redis.call('TYPE', key)", "redis.call('TYPE', 'beat:due')"),
]  # fmt: skip


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the scripts, which beat reads instead of its own."""
    house = tmp_path / "scripts"
    shutil.copytree(HOUSE, house, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(scripts, "_HERE", house)
    scripts.script.cache_clear()
    yield house
    scripts.script.cache_clear()


def test_every_law_has_a_planted_defect() -> None:
    assert {f"law_{law}" for law, *_ in DEFECTS} == {law.__name__ for law in LAWS}


@pytest.mark.parametrize(("law", "name", "before", "after"), DEFECTS)
def test_the_law_is_seen_failing(law: str, name: str, before: str, after: str, planted: Path) -> None:
    script = "claim" if "/" in name else name
    kept = globals()[f"law_{law}"]
    assert list(kept(read(script, planted), planted)) == []
    file = planted / f"{name}.lua"
    text = file.read_text(encoding="utf-8")
    assert text.count(before) == 1
    file.write_text(text.replace(before, after), encoding="utf-8")
    scripts.script.cache_clear()
    try:
        found = list(kept(read(script, planted), planted))
    except FileNotFoundError:  # a part that beat itself does not find
        found = ["not found"]
    assert found != []


# --- calls -----------------------------------------------------------------------------------------------------------


def named(script: scripts.Script) -> dict[str, Any]:
    return {name: f"<{name}>" for name in (*script.keys, *script.args)}


@pytest.mark.parametrize("name", NAMES)
def test_names_are_put_into_the_headers_order(name: str) -> None:
    script, header = scripts.script(name), read(name, HOUSE).header
    backwards = dict(reversed(named(script).items()))
    numkeys, values = script.arrange(backwards, [["i1", "i2"], ["i3"]])
    keys = [f"<{key}>" for key in header.keys]
    assert (numkeys, values) == (len(keys), [*keys, *(f"<{each}>" for each in header.args), "i1", "i2", "i3"])


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_missing_or_too_many_is_refused(name: str) -> None:
    script = scripts.script(name)
    for missing in named(script):
        with pytest.raises(TypeError, match=rf"{name}\.lua takes"):
            script.arrange({each: value for each, value in named(script).items() if each != missing}, [])
    with pytest.raises(TypeError, match=rf"{name}\.lua takes .* not .*'stranger'"):
        script.arrange({**named(script), "stranger": ""}, [])


def test_a_header_out_of_order_is_refused(planted: Path) -> None:
    file = planted / "claim.lua"
    file.write_text(file.read_text(encoding="utf-8").replace("-- ARGV[4] lock_ttl", "-- ARGV[5] lock_ttl"))
    with pytest.raises(ValueError, match=r"claim\.lua: ARGV\[5\] is out of order"):
        scripts.script("claim")


class Recorder:
    """In the place of a client: notes what would have been sent."""

    def __init__(self, reply: Any) -> None:
        self.reply = reply
        self.sent: list[tuple[str, int, tuple[Any, ...]]] = []

    def evalsha(self, sha: str, numkeys: int, *values: Any) -> Any:
        self.sent.append((sha, numkeys, values))
        return self.reply


def test_a_lock_sends_its_key_token_and_time() -> None:
    client: Any = Recorder(b"OK")
    lock = Lock(client, "the-lock", 1234)
    assert (lock.acquire(), lock.extend(), lock.release()) == (True, True, True)
    assert client.sent == [
        (scripts.script("acquire").sha, 1, ("the-lock", lock.token, 1234)),
        (scripts.script("extend").sha, 1, ("the-lock", lock.token, 1234)),
        (scripts.script("release").sha, 1, ("the-lock", lock.token)),
    ]


def test_a_registration_counts_its_fields() -> None:
    client: Any = Recorder([0, [b"NEW", b""]])
    item = Registration("a", "r2", "r1", "n", "s", "active", "keep", 7, "{}", "code", "r2", "app", "f", "", "p",
                        {"x": "1", "y": "2"}, {"data": b"d"})  # fmt: skip
    Store(client, Keys()).register([item], beat="me")
    ((_, numkeys, values),) = client.sent
    keys = ("schedules", "due", "meta", "events", "announcements", "functions")
    assert values[:numkeys] == tuple(f"beat:{key}" for key in keys)
    assert values[numkeys:] == (
        "beat:schedule:", "beat:template:", "beat:announced:", "beat:runs:", 1, "me", 1000, 10_000,
        "beat:in:", "beat:app:", "beat:followers:",
        "a", "r2", "r1", "n", "s", "active", "keep", 7, "{}", "code", "r2", "app", "f", "", "p", 4, 2,
        "x", "1", "y", "2", "data", b"d",
    )  # fmt: skip


# --- every reply is shown --------------------------------------------------------------------------------------------


def documented(house: Path) -> set[tuple[str, str]]:
    return {(file.stem, code) for file in house.glob("*.lua") for code in read(file.stem, house).header.replies}


def shown() -> set[tuple[str, str]]:
    """What tests say that they show, by `@shows(script, code, …)`; it is checked while they run."""
    found = set()
    tests = Path(__file__).parent.parent
    for file in [*tests.glob("storage/test_*.py"), *tests.glob("integration/test_*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for call in node.decorator_list:
                    if isinstance(call, ast.Call) and ast.unparse(call.func) == "shows":
                        script, *codes = map(ast.literal_eval, call.args)
                        found |= {(script, code) for code in codes}
    return found


def test_every_reply_of_every_script_is_shown_by_a_test() -> None:
    assert documented(HOUSE) == shown()


@pytest.mark.parametrize(("code", "heard"), [("HELD", b"OK"), ("OK", b"HELD")])
def test_a_test_that_does_not_show_what_it_says_fails(code: str, heard: bytes) -> None:
    client: Any = Recorder(heard)

    @shows("acquire", code)
    def acquire() -> None:
        Lock(client, "the-lock", 1234).acquire()

    with pytest.raises(AssertionError, match=rf"acquire\.lua never said \['{code}'\]"):
        acquire()


def test_a_reply_that_no_test_shows_is_seen(planted: Path) -> None:
    file = planted / "repair.lua"
    file.write_text(file.read_text(encoding="utf-8").replace("--   MENDED ", "--   NOVEL  new\n--   MENDED "))
    assert documented(planted) - documented(HOUSE) == {("repair", "NOVEL")}
