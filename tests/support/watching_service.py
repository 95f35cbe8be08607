"""A service that watches over runs, as a server of this machine: what it was told, run by run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.support.stand_in import Answer, Request, StandIn

if TYPE_CHECKING:
    from collections.abc import Callable


class Told(NamedTuple):
    """One ping or check-in."""

    path: str
    run: str
    """The `rid` of a ping, or the id of a check-in."""
    body: str

    @property
    def check_in(self) -> dict[str, Any]:
        """What an envelope holds."""
        found: dict[str, Any] = json.loads(self.body.split("\n")[2])
        return found


class Watch(StandIn):
    """Takes everything, unless `answer` says otherwise: what it makes of a request is the status, or all of it."""

    def __init__(self, answer: Callable[[Told], int | Answer] = lambda _: 200) -> None:
        super().__init__(lambda request: answer(_read(request)))

    @property
    def told(self) -> list[Told]:
        """In the order in which it came."""
        return [_read(each) for each in self.requests]

    @property
    def paths(self) -> list[str]:
        """What it was told of."""
        return [each.path for each in self.told]


def _read(request: Request) -> Told:
    parts, body = urlsplit(request.path), request.body.decode()
    run = parse_qs(parts.query).get("rid", [""])[0]
    told = Told(parts.path, run, body)
    return told if run else told._replace(run=told.check_in["check_in_id"])
