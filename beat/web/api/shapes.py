"""The shapes of answers, as JSON Schema: small words to write them with."""

from __future__ import annotations

from typing import Any

Shape = dict[str, Any]


def text(about: str = "", **more: Any) -> Shape:
    """A string."""
    return _told({"type": "string", **more}, about)


def word(*of: str, about: str = "") -> Shape:
    """One of a few."""
    return _told({"type": "string", "enum": list(of)}, about)


def instant(about: str = "") -> Shape:
    """A time, as RFC 3339 has it."""
    return _told({"type": "string", "format": "date-time"}, about)


def number(about: str = "") -> Shape:
    """A whole number."""
    return _told({"type": "integer"}, about)


def seconds(about: str = "") -> Shape:
    """A length of time."""
    return _told({"type": "number"}, about)


def flag(about: str = "") -> Shape:
    """Yes or no."""
    return _told({"type": "boolean"}, about)


def anything(about: str = "") -> Shape:
    """Whatever somebody wrote."""
    return _told({}, about)


def things(about: str = "") -> Shape:
    """An object of whatever names."""
    return _told({"type": "object", "additionalProperties": True}, about)


def many(of: Shape, about: str = "") -> Shape:
    """A list of these."""
    return _told({"type": "array", "items": of}, about)


def record(**fields: Shape) -> Shape:
    """An object with all of these."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def opened(shape: Shape) -> Shape:
    """The same, with other fields beside them."""
    return {**shape, "additionalProperties": True}


def maybe(shape: Shape) -> Shape:
    """The same, or null."""
    if "$ref" in shape:
        return {"anyOf": [shape, {"type": "null"}]}
    kind = shape.get("type")
    found = {**shape, "type": [kind, "null"]}
    return {**found, "enum": [*shape["enum"], None]} if "enum" in shape else found


def of(name: str) -> Shape:
    """The one that is called so among the components."""
    return {"$ref": f"#/components/schemas/{name}"}


def _told(shape: Shape, about: str) -> Shape:
    return {**shape, "description": about} if about else shape
