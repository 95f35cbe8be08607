"""Tell from a script's text which commands it runs on which keys, and write the lists that it checks before it writes.

Redis does not undo what a script wrote before it was denied a command. So a script first asks whether it may run all of
its commands. In its text, `COMMANDS` stands for the list, and `COMMANDS_ON(key, ...)` for the commands on these keys
alone: those that only some items need, or that may be denied for one item and not for another. `COMMANDS` has the rest.

A key is known by a name in the header: one of KEYS, a prefix in ARGV, or a field of an item that a `COMMANDS_ON` names.
The key of each call is followed through parameters and local variables to such a name. If it leads to none, the script
does not load.
"""

from __future__ import annotations

import functools
import itertools
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_FUNCTION = re.compile(r"^local function (\w+)\(([^)]*)\)(?:(.* end)$|((?:(?!end$).*\n)*)end$)", re.MULTILINE)
_CALL = re.compile(r"(?<![\w.])(redis\.p?call|\w+)\(")
_ASSIGNED = re.compile(r"(?<![\w.])(\w+(?:, \w+)*) = (.+)")
_PROTECTED = re.compile(r"(?<![\w.])pcall\((\w+), ")
_PLACE = re.compile(r"\bCOMMANDS\b(?!_)|\bCOMMANDS_ON\(([^)]*)\)")
_TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|[(){}\[\],]")
_ROW = re.compile(r"\[([^\[\]]+)\] = '(?:hash|list|set|stream|string|zset)'")
_CONTAINERS = {"xinfo"}
_KEYS = {"time": 0, "copy": 2, "del": None, "exists": None}
"""How many keys a command has, if not one; None stands for any number."""

_Key = str | int
"""A name in the header, or the position of a parameter."""


class Use(NamedTuple):
    """A command and the keys on which it is run."""

    command: str
    """With its subcommand: `xinfo|stream`."""
    keys: tuple[_Key, ...]


class _Function:
    def __init__(self, params: str, body: str) -> None:
        self.params, self.body = params.split(", "), body

    @functools.cached_property
    def assigned(self) -> list[tuple[list[str], str]]:
        """Return the names on the left of each assignment, and what stands on the right."""
        return [(names.split(", "), values) for names, values in _ASSIGNED.findall(self.body)]


def expand(name: str, text: str, header: Mapping[str, Sequence[str]]) -> str:
    """Return the text with the lists in place; `header` has its names by KEYS, ARGV and ITEM."""
    if not _PLACE.search(text):
        return text
    reader = Reader(name, text, header)
    uses, apart = reader.uses(), reader.apart()
    rest = {use for use in uses if not any(keys.keys() & use.keys for keys in apart.values())}
    if rest and not re.search(r"\bCOMMANDS\b(?!_)", text):
        raise ValueError(f"{name}.lua: nothing checks {sorted(rest)}")

    def written(place: re.Match[str]) -> str:
        keys = apart.get(place[1], {})
        return reader.table([use for use in uses if keys.keys() & use.keys] if keys else rest, keys)

    return _PLACE.sub(written, text)


class Reader:
    """The functions of a script, and what each does."""

    def __init__(self, name: str, text: str, header: Mapping[str, Sequence[str]]) -> None:
        self.name = name
        self._prefixes = {each for each in header["ARGV"] if each.endswith("_prefix")}
        apart = ", ".join(words for words in _PLACE.findall(text)).split(", ")
        self._keys = header["KEYS"]
        self._names = {*header["KEYS"], *self._prefixes, *(each for each in header["ITEM"] if each in apart)}
        code = _PROTECTED.sub(r"\1(", re.sub(r" *--.*", "", text))
        self._functions = {found[1]: _Function(found[2], found[3] or found[4]) for found in _FUNCTION.finditer(code)}
        self._chunk = _Function("", _FUNCTION.sub("", code))
        self._seen: dict[_Function, set[Use]] = {}
        self._values: dict[tuple[str, _Function], set[str]] = {}

    def uses(self) -> set[Use]:
        """Return every use of a key by the script, in functions only if they are called."""
        return self._of(self._chunk)

    def apart(self) -> dict[str, dict[_Key, str]]:
        """Return the keys of each COMMANDS_ON by the words in its parentheses: their names in the header, and here."""
        return {
            place[1]: {key: word for word in place[1].split(", ") for key in self._follow(word, function)}
            for function in (*self._functions.values(), self._chunk)
            for place in _PLACE.finditer(function.body)
            if place[1]
        }

    def table(self, uses: Iterable[Use], words: Mapping[_Key, str]) -> str:
        """Return the uses as a Lua table of lists: commands with a blank between, then the words that follow them."""
        commands: dict[str, list[str]] = {}
        for use in sorted(uses):
            command, _, subcommand = use.command.partition("|")
            keys = [self._example(words.get(key, str(key))) for key in use.keys]
            after = ", ".join([f"'{subcommand}'", *keys] if subcommand else keys)
            commands.setdefault(after, []).append(command)
        return "{" + ", ".join(f"{{'{' '.join(names)}', {after}}}" for after, names in commands.items()) + "}"

    def _example(self, word: str) -> str:
        return f"{word} .. 'x'" if word in self._prefixes else word

    def _of(self, function: _Function) -> set[Use]:
        if function not in self._seen:
            self._seen[function] = set(self._read(function))
        return self._seen[function]

    def _read(self, function: _Function) -> Iterator[Use]:
        for call in _CALL.finditer(function.body):
            if call[1] in self._functions:
                args = _arguments(function.body, call.end())
                for use in self._of(self._functions[call[1]]):
                    keys = [self._follow(args[key], function) if isinstance(key, int) else {key} for key in use.keys]
                    yield from (Use(use.command, each) for each in itertools.product(*keys))
            elif call[1].startswith("redis."):
                args = _arguments(function.body, call.end())
                for command in re.findall(r"'(\w+)'", args[0]):  # both of `x and 'SADD' or 'SREM'`
                    yield from self._called(command.lower(), args[1:], function)

    def _called(self, command: str, args: list[str], function: _Function) -> Iterator[Use]:
        if command in _CONTAINERS:
            command, args = f"{command}|{args[0][1:-1].lower()}", args[1:]
        keys = [self._follow(each, function) for each in args[: _KEYS.get(command, 1)]]
        yield from (Use(command, each) for each in itertools.product(*keys) if each)

    def _follow(self, expression: str, function: _Function) -> set[_Key]:
        """Return the names to which a key leads."""
        found = re.match(r"(?:unpack\()?(\w+)(?![\w(])", expression)
        name = found[1] if found else expression
        if name in self._names:
            return {name}
        if name in function.params:
            return {function.params.index(name)}
        if name == "KEYS":
            return {*self._keys}
        for scope in (function, self._chunk):
            if (name, scope) not in self._values:
                self._values[name, scope] = {*_values(name, scope)}
            if values := self._values[name, scope]:
                return {key for value in values for key in self._follow(value, scope)}
        raise ValueError(f"{self.name}.lua: the key {expression!r} leads to no name in the header")


def _arguments(code: str, at: int) -> list[str]:
    """Return what stands between a parenthesis that ends at `at` and the one that closes it."""
    depth, begin, found = 1, at, []
    for token in _TOKEN.finditer(code, at):
        depth += (token[0] in "([{") - (token[0] in ")]}")
        if not depth or (depth == 1 and token[0] == ","):
            found.append(code[begin : token.start()].strip())
            begin = token.end()
        if not depth:
            break
    return found


def _values(name: str, scope: _Function) -> Iterator[str]:
    """Yield what a variable is set to, what a table is filled with, and the keys of a table that a loop reads."""
    code = scope.body
    for names, values in scope.assigned:
        if name in names:
            value = _arguments(f"{values})", 0)[names.index(name) :][:1]
            yield from (each for each in value if each not in {"nil", "{}"} and not re.match(rf"{name}\b", each))
    yield from re.findall(rf"(?<!\w){name}\[[^\]]*\] = ([^,\n]+)", code)
    for table in re.findall(rf"\bfor {name}, \w+ in pairs\((\w*)", code):
        lines = re.findall(rf"\b{table}(?: = {{[^}}]*|\[.*)", code) if table else [code]
        yield from _ROW.findall("\n".join(lines))
    if re.search(rf"\bfor \w+, {name} in ipairs\(KEYS\)", code):
        yield "KEYS"
