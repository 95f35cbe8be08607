"""The filters of the schedule list: read from an address, applied, and written into an address again."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from beat.client.listing import STATES
from beat.errors import BadOption
from beat.errors import nearest as most_like

if TYPE_CHECKING:
    from collections.abc import Mapping

    from beat.client.client import Client
    from beat.client.listing import Counts, Listed

PAGE, RUNS = 50, 30
_LONGEST = 200
_YES, _NO = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")
_NAMES = ("match", "state", "failing", "overridden", "queue", "app", "func", "sort", "after")
_FLAGS = ("failing", "overridden")
NAMES = {"id": "id", "next": "next tick", "last": "last run", "failures": "failures in a row"}
"""The labels of the sort orders."""
_NEAR = 100  # ids to compare with a misspelled one
_FEWEST = 3


@dataclass(frozen=True, kw_only=True)
class Search:
    """The filters of one search; an empty filter restricts nothing."""

    match: str = ""
    """Part of an id, or a glob."""
    state: str = ""
    failing: bool = False
    overridden: bool = False
    queue: str = ""
    app: str = ""
    func: str = ""
    sort: str = "id"
    after: str = ""
    """The position of the last row of the previous page."""
    problem: str = field(default="", compare=False)
    """Why the address is invalid; the list is not read then."""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Self:
        """Return the search of a query string; an invalid value is left out and becomes its `problem`."""
        given: dict[str, Any] = {}
        problem = ""
        for name in _NAMES:
            word = query.get(name, "").strip()
            if len(word) > _LONGEST or not word.isprintable():
                problem, word = f"{name} {word!r:.60} must be one line of at most {_LONGEST} characters", ""
            if name in _FLAGS and word.lower() not in (*_YES, *_NO):
                problem, word = f"{name} {word!r:.60} must be 1, or be left out", ""
            given |= {name: word.lower() in _YES if name in _FLAGS else word} if word else {}
        return cls(**given, problem=problem)

    @property
    def query(self) -> dict[str, str]:
        """Return the query parameters of the search, without those at their defaults."""
        own = {name: getattr(self, name) for name in _NAMES}
        return {name: "1" if word is True else word for name, word in own.items() if word != getattr(Search, name)}

    @property
    def narrowed(self) -> dict[str, str]:
        """Return the filters that hide schedules: all but the order and the position."""
        return {name: word for name, word in self.query.items() if name not in {"sort", "after"}}

    @property
    def is_fine(self) -> bool:
        """Return whether the search filters by more than the id."""
        return bool(self.narrowed.keys() - {"match"})

    def but(self, **changes: Any) -> Self:
        """Return the search with these changes, at its first page."""
        return replace(self, **{"after": "", **changes})

    def read(self, client: Client) -> Found:
        """Return one page of schedules. Raise BadOption if the search is invalid."""
        if self.problem:
            raise BadOption(self.problem)
        asked: dict[str, Any] = {name: own for name in _NAMES if (own := getattr(self, name))}
        rows = list(itertools.islice(client.schedules(**asked, runs=RUNS, page=PAGE + 1), PAGE + 1))
        following = self.but(after=rows[PAGE - 1].place) if len(rows) > PAGE else None
        return Found(rows[:PAGE], following)


class Found(NamedTuple):
    """One page of the schedule list."""

    rows: list[Listed]
    following: Search | None
    """The search for the next page; None on the last one."""


def told(asked: Search, found: Found, counts: Counts) -> str:
    """Say how many schedules are shown, of how many, and in which order."""
    number = len(found.rows)
    if not number:
        return "There are no more schedules after that place." if asked.after else "No schedule is like that."
    order = f", by {NAMES[asked.sort]}" if asked.sort != "id" else ""
    if number == counts.schedules:
        return f"{'All ' if number > 1 else ''}{number:,} schedule{'s' * (number > 1)}{order}."
    first = "The first " if found.following and not asked.after else ""
    if asked.narrowed:
        return f"{first}{number:,} schedule{'s that match' if number > 1 else ' that matches'}{order}."
    return f"{first}{number:,} of {counts.schedules:,} schedules{order}."


class Tab(NamedTuple):
    """One kind of schedules, their number, and the search that shows them."""

    name: str
    number: int
    search: Search
    is_current: bool


def tabs(counts: Counts, now: Search) -> list[Tab]:
    """Return the tabs: all, the current one, and each kind that has schedules.

    A tab drops all filters but its own, so it shows exactly as many schedules as its number says.
    """
    searches = {"all": Search(sort=now.sort), **{name: Search(sort=now.sort, **{name: True}) for name in _FLAGS}}  # type: ignore[arg-type]
    searches |= {name: Search(sort=now.sort, state=name) for name in STATES}
    made = []
    for name in ("all", "failing", *STATES, "overridden"):
        number = counts.schedules if name == "all" else getattr(counts, name)
        search = searches[name]
        is_current = all(getattr(search, each) == getattr(now, each) for each in ("state", *_FLAGS))
        if is_current or name == "all" or (number and (name != "active" or number < counts.schedules)):
            made.append(Tab(name.capitalize(), number, search, is_current))
    return made


def nearest(client: Client, word: str) -> str:
    """Return the existing id that is most similar to `word`; empty if none is similar."""
    for begin in (word[: max(_FEWEST, len(word) // 2)], word[:1], ""):
        try:
            found = client.schedules(match=f"{begin}*", page=_NEAR)
            ids = [each.standing.schedule_id for each in itertools.islice(found, _NEAR)]
        except BadOption:
            return ""
        if like := most_like(word, ids):
            return like
    return ""
