"""An endpoint: one declaration of what may be asked, what is answered, and who answers.

The JSON documents that programs send: read strictly, so that nothing is taken for what it is not.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from beat.errors import BadOption, DeclarationError
from beat.web.api import fields, response

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.responses import Response

    from beat.client import Client
    from beat.web.api.fields import Field
    from beat.web.api.models import Shape
    from beat.web.request import Asked
    from beat.web.site import Site

    Answer = Callable[["Question"], dict[str, Any]]


_DEEPEST = 32


def read(sent: bytes) -> dict[str, Any]:
    """The object that was sent; nothing at all is an empty one. Refuses everything else in a sentence."""
    if not sent:
        return {}
    try:
        text = sent.decode()
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
        json.dumps(found, ensure_ascii=False).encode()  # half of a character cannot be written
    except UnicodeError as e:
        raise BadOption("the document is no text in UTF-8") from e
    except RecursionError as e:
        raise _too_deep() from e
    except ValueError as e:
        raise BadOption(f"the document is no JSON: {str(e)[:100]}") from e
    if not isinstance(found, dict):
        raise BadOption('the document must be an object, as in {"reason": "the disk is full"}')
    if _depth(found) > _DEEPEST:
        raise _too_deep()
    return found


def _too_deep() -> BadOption:
    return BadOption(f"the document is nested too deep: {_DEEPEST} levels are the most")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {ascii(twice)[:60]} is there twice")
    return found


def _constant(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is too large for a number")
    return number


def _depth(value: Any) -> int:
    """How many levels of lists and objects there are; walked by level, whatever the depth."""
    level, depth = [value], 0
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return depth


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
            given |= fields.body(self.body, read(asked.body))
        try:
            content = self.answer(Question(site, asked, given))
        except DeclarationError as e:
            e.message = e.message.replace("=True", ": true")  # written for Python
            raise
        place = {"location": asked.url(PREFIX + self.goes_to(content))} if self.goes_to else {}
        return response.document(content, self.status, place)
