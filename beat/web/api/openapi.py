"""Build the OpenAPI document from the declarations of the endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat._version import __version__
from beat.web.api.endpoint import PREFIX
from beat.web.api.fields import Choices
from beat.web.api.models import SCHEMAS, number, of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from beat.web.api.endpoint import Endpoint
    from beat.web.api.fields import Field

_ABOUT = """\
Did it run, will it run, why not: all that beat's pages show and do, for programs.

Documents are those that the command line prints with `--json`: times are RFC 3339 in UTC, durations are seconds. Each
error is an object with `error`, a sentence for people, and `status`. A change is a POST with `Content-Type:
application/json`, from a browser also with the `X-CSRF-Token` of an answer before it; who asked for it stands in the
ledger. Values whose names look secret are masked as `•••`.
"""
_REFUSALS = {
    400: "Something in the request cannot be; the sentence names the field.",
    401: "Say who you are: a token, or a name and a password.",
    403: "You may not; or the web UI is read-only; or another site asked.",
    404: "There is no such schedule or run; the sentence may know a similar name.",
    409: "What stands in Redis speaks against it, or another client was faster; nothing was done.",
    413: "More was sent than anybody reads.",
    415: "A change is asked for with Content-Type: application/json.",
    421: "The web UI is not known by that host name.",
    429: "Too many wrong passwords came from your address: wait as long as Retry-After says.",
    503: "Redis does not answer; nothing is lost.",
}
_ALL, _CHANGING = (400, 401, 403, 421, 429, 503), (413, 415)


def made(endpoints: Iterable[Endpoint], root: str = "") -> dict[str, Any]:
    """Return the document for an app that is mounted at `root`."""
    listed = sorted(endpoints, key=lambda each: each.path)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "beat",
            "version": __version__,
            "summary": "Periodic tasks for RQ",
            "description": _ABOUT,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": f"{root}{PREFIX}"}],
        "security": [{"token": []}, {"password": []}, {}],
        "tags": [
            {"name": "look", "description": "Questions: nothing is changed."},
            {"name": "change", "description": "Changes: each bears the name of who asked for it."},
        ],
        "paths": {each.path: {each.method.lower(): _operation(each)} for each in listed},
        "components": {
            "schemas": SCHEMAS,
            "responses": {str(status): _problem(status) for status in _REFUSALS},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "The setting web_token."},
                "password": {"type": "http", "scheme": "basic", "description": "A name and password of web_users."},
            },
        },
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    changes = endpoint.body is not None
    statuses = sorted({*_ALL, *endpoint.refusals, *(_CHANGING if changes else ())})
    found = {
        "operationId": endpoint.name,
        "tags": ["change" if changes else "look"],
        "summary": endpoint.summary,
        **({"description": endpoint.about} if endpoint.about else {}),
        "parameters": [
            *(_parameter(each, "path") for each in endpoint.within),
            *(_parameter(each, "query") for each in endpoint.query),
        ],
        "responses": {
            str(endpoint.status): _answer(endpoint),
            **{str(status): {"$ref": f"#/components/responses/{status}"} for status in statuses},
        },
    }
    return found | ({"requestBody": _body(endpoint.body, endpoint.example)} if endpoint.body is not None else {})


def _parameter(field: Field, place: str) -> dict[str, Any]:
    default = {"default": field.default} if field.default is not None else {}
    return {
        "name": field.name,
        "in": place,
        "description": field.about,
        "required": field.required,
        "schema": {**field.schema(), **default},
        **({"style": "form", "explode": False} if isinstance(field, Choices) else {}),
        **({"example": _example(field)} if field.example is not None else {}),
    }


def _example(field: Field) -> Any:
    return field.example.split(",") if isinstance(field, Choices) else field.example


def _body(fields: Iterable[Field], example: dict[str, Any]) -> dict[str, Any]:
    properties = {each.name: _property(each) for each in fields}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {
        "required": False,
        "description": "Every field may be left out, or null; so may be all of them, but for the Content-Type.",
        "content": {"application/json": {"schema": schema, "example": example}},
    }


def _property(field: Field) -> dict[str, Any]:
    schema = field.schema()
    default = {"default": field.default} if field.default is not None else {}
    return {**schema, "type": [schema["type"], "null"], "description": field.about, **default}


def _answer(endpoint: Endpoint) -> dict[str, Any]:
    shape = endpoint.shape
    named = {"schema_version": number("Of this form of documents"), **shape["properties"]}
    whole = {**shape, "properties": named, "required": ["schema_version", *shape["required"]]}
    found = {"description": endpoint.summary, "content": {"application/json": {"schema": whole}}}
    if endpoint.goes_to:
        place = {"description": "Where the run is found.", "required": True, "schema": {"type": "string"}}
        found["headers"] = {"Location": place}
    return found


def _problem(status: int) -> dict[str, Any]:
    found = {
        "description": _REFUSALS[status],
        "content": {"application/json": {"schema": of("Problem")}},
    }
    if status in {429, 503}:
        wait = {"description": "Seconds until it is worth to try again.", "schema": {"type": "integer"}}
        found["headers"] = {"Retry-After": wait}
    return found
