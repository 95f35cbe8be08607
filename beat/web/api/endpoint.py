"""An endpoint: one declaration of what may be asked, what is answered, and who answers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from beat.errors import DeclarationError
from beat.web.api import bodies, fields, told

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.responses import Response

    from beat.client import Client
    from beat.web.api.fields import Field
    from beat.web.api.shapes import Shape
    from beat.web.asked import Asked
    from beat.web.site import Site

    Answer = Callable[["Question"], dict[str, Any]]

PREFIX = "/api/v1"


@dataclass(frozen=True)
class Question:
    """What was asked."""

    site: Site
    asked: Asked
    given: Mapping[str, Any]
    """The values of the fields, by name: those of the path, too."""

    @property
    def client(self) -> Client:
        """Who answers; its changes bear the name of who asks."""
        return self.asked.client

    def __getitem__(self, name: str) -> Any:
        return self.given[name]


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One of them."""

    path: str
    """Below `/api/v1`."""
    name: str
    summary: str
    about: str = ""
    answer: Answer
    shape: Shape
    within: tuple[Field, ...] = ()
    """The fields of the path."""
    query: tuple[Field, ...] = ()
    body: tuple[Field, ...] | None = None
    """What a change takes; None where nothing is changed."""
    shown: tuple[str, ...] = ()
    """The fields of its example."""
    status: int = 200
    goes_to: Callable[[dict[str, Any]], str] | None = None
    """Where what was made is found, below `/api/v1`."""
    refusals: tuple[int, ...] = field(default=())
    """The statuses that it may answer with, beside those of all."""

    @property
    def method(self) -> str:
        """GET looks, POST changes."""
        return "GET" if self.body is None else "POST"

    @property
    def example(self) -> dict[str, Any]:
        """What somebody may ask: the fields of the query or of the body, by name."""
        named = {each.name: each.example for each in (*self.query, *(self.body or ()))}
        return {name: named[name] for name in self.shown}

    def curl(self, root: str) -> str:
        """The same, for a terminal."""
        path = self.path.format(**{each.name: each.example for each in self.within})
        if self.body is None:
            query = urlencode(self.example, safe=":,/*")
            return f"curl '{root}{PREFIX}{path}{'?' if query else ''}{query}'"
        sent = json.dumps(self.example, ensure_ascii=False)
        return f"curl -H 'Content-Type: application/json' -d '{sent}' {root}{PREFIX}{path}"

    def handle(self, site: Site, asked: Asked) -> Response:
        """The answer to a request; what it cannot take is raised."""
        given = {each.name: asked.path[each.name] for each in self.within}
        given |= fields.query(self.query, asked.request.query_params.multi_items())
        if self.body is not None:
            given |= fields.body(self.body, bodies.read(asked.body))
        try:
            content = self.answer(Question(site, asked, given))
        except DeclarationError as e:
            e.message = e.message.replace("=True", ": true")  # written for Python
            raise
        place = {"location": asked.url(PREFIX + self.goes_to(content))} if self.goes_to else {}
        return told.document(content, self.status, place)
