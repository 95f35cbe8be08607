"""Declare the endpoints of the API, and read the JSON documents that programs send to them.

One declaration has the fields of the request, the shape of the answer, and the function that answers. Documents are
read strictly, so that no value is taken for another one.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.responses import Response

from beat.client.describe import SCHEMA_VERSION
from beat.config import masking
from beat.errors import BadOption, DeclarationError
from beat.web.api import fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from beat.client.client import Client
    from beat.web.api.fields import Field
    from beat.web.api.models import Shape
    from beat.web.request import Asked
    from beat.web.site import Site

    Answer = Callable[["Question"], dict[str, Any]]


_DEEPEST = 32


def read(sent: bytes) -> dict[str, Any]:
    """Return the JSON object of a body; an empty body is an empty object. Raise BadOption for everything else."""
    if not sent:
        return {}
    try:
        text = sent.decode()
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
        json.dumps(found, ensure_ascii=False).encode()  # a lone surrogate cannot be written
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
    """Return how many levels of lists and objects there are. It does not recurse, so any depth is safe."""
    level, depth = [value], 0
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return depth


def document(content: dict[str, Any], status: int, headers: dict[str, str]) -> Response:
    """Return a document as a JSON answer in ASCII, which every program can read.

    Every answer goes through here, so none has an unmasked secret or invalid JSON.
    """
    text = json.dumps({"schema_version": SCHEMA_VERSION, **masking.shown(content)}, allow_nan=False)
    return Response(text, status, {"cache-control": "private, no-cache", **headers}, media_type="application/json")


PREFIX = "/api/v1"


@dataclass(frozen=True)
class Question:
    """A request to the API with its fields read."""

    site: Site
    asked: Asked
    given: Mapping[str, Any]
    """The values of the fields by name, including those of the path."""

    @property
    def client(self) -> Client:
        """Return the client, which records the user of the request as the author of changes."""
        return self.asked.client

    def __getitem__(self, name: str) -> Any:
        return self.given[name]


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """The declaration of one endpoint."""

    path: str
    """The path below `/api/v1`."""
    name: str
    summary: str
    about: str = ""
    answer: Answer
    shape: Shape
    within: tuple[Field, ...] = ()
    """The fields of the path."""
    query: tuple[Field, ...] = ()
    body: tuple[Field, ...] | None = None
    """The fields in the body of a change; None if the endpoint changes nothing."""
    shown: tuple[str, ...] = ()
    """The names of the fields in its example."""
    status: int = 200
    goes_to: Callable[[dict[str, Any]], str] | None = None
    """Returns the path of a new resource below `/api/v1`, from the content of the answer."""
    refusals: tuple[int, ...] = field(default=())
    """The error statuses of this endpoint, besides those that every endpoint has."""

    @property
    def method(self) -> str:
        """Return POST if the endpoint changes something, else GET."""
        return "GET" if self.body is None else "POST"

    @property
    def example(self) -> dict[str, Any]:
        """Return example values of the query or the body, by field name."""
        named = {each.name: each.example for each in (*self.query, *(self.body or ()))}
        return {name: named[name] for name in self.shown}

    def curl(self, root: str) -> str:
        """Return the example as a curl command for the app at `root`."""
        path = self.path.format(**{each.name: each.example for each in self.within})
        if self.body is None:
            query = urlencode(self.example, safe=":,/*")
            return f"curl '{root}{PREFIX}{path}{'?' if query else ''}{query}'"
        sent = json.dumps(self.example, ensure_ascii=False)
        return f"curl -H 'Content-Type: application/json' -d '{sent}' {root}{PREFIX}{path}"

    def handle(self, site: Site, asked: Asked) -> Response:
        """Return the answer to a request. Raise an error for a request that is invalid or refused."""
        given = {each.name: asked.path[each.name] for each in self.within}
        given |= fields.query(self.query, asked.request.query_params.multi_items())
        if self.body is not None:
            given |= fields.body(self.body, read(asked.body))
        try:
            content = self.answer(Question(site, asked, given))
        except DeclarationError as e:
            e.message = e.message.replace("=True", ": true")  # the message is written for Python
            raise
        place = {"location": asked.url(PREFIX + self.goes_to(content))} if self.goes_to else {}
        return document(content, self.status, place)
