"""docs/reference/api.md, made from the OpenAPI document.

python -m tests.web.reference        writes it
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from beat.web import api
from beat.web.api import openapi

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parent.parent.parent / "docs/reference/api.md"
ROOT = "http://127.0.0.1:8420"
ABOUT = """\
# The JSON API

`beat web` serves all that its pages show and do as JSON, too, below `/api/v1`. The document `/api/v1/openapi.json`
(OpenAPI 3.1) has every field and every answer, for tools that write clients; the page `/api` lists the same for people.
This page is made from it: `make reference`.

```sh
curl 'http://127.0.0.1:8420/api/v1/overview'
curl -H 'Authorization: Bearer TOKEN' 'https://beat.example/api/v1/schedules?failing=true'
```

- **Documents** are those that the command line prints with `--json`: `schema_version`, times as RFC 3339 in UTC,
  durations in seconds.
- **Errors** are `{"error": "a sentence", "status": 404}` with the status below; the sentence names the field, and often
  what was meant.
- **Changes** are POSTs with `Content-Type: application/json`. Who asked stands in the ledger: `web`, or `web:ann` where
  names are known. With `expected_version` a change is refused if another client was faster; with `request` a run
  that is asked for twice is one run. A script in a browser, of the same site, sends with it the `X-CSRF-Token` that
  came with an answer before; other programs need none.
- **Pages**: a page of `/schedules` ends with `next`: give it as `after` to read on. At most 500 come at once.
- **Unchanged answers**: an answer to a GET has an `ETag`. Send it as `If-None-Match`, and an answer that is still the
  same comes as 304, without a body. With `Accept-Encoding: gzip` answers are compressed.
- **Secrets**: values of arguments, meta and reports whose names look secret (`password`, `api_token`, `dsn` …), and
  passwords in URLs in any text, are `•••`, in every answer.
- A field that is not known is refused, as is one that comes twice: a typing error changes nothing.

| status | when |
|---|---|
"""
PROBES = """
## For machines

| address | what |
|---|---|
| `/metrics` | what Prometheus reads, as `metrics_port` serves it ([monitoring](../guides/monitoring.md)) |
| `/healthz` | 200 `ok`: the process of the web UI answers |
| `/readyz` | 200 `ok` if Redis answers and a scheduler has checked lately, as `beat health` judges; else 503 and why |

`/healthz` and `/readyz` ask nobody who they are, and name nobody.
"""


def text() -> str:
    """The whole page."""
    found = openapi.made(api.ENDPOINTS)
    statuses = found["components"]["responses"].items()
    lines = [ABOUT + "".join(f"| {status} | {each['description']} |\n" for status, each in statuses)]
    for title, method in (("Look", "get"), ("Change", "post")):
        lines.append(f"\n## {title}\n")
        for endpoint in api.ENDPOINTS:
            if endpoint.method.lower() == method:
                lines += _endpoint(endpoint, found["paths"][endpoint.path][method])
    return "".join([*lines, PROBES])


def _endpoint(endpoint: api.Endpoint, told: dict[str, Any]) -> Iterator[str]:
    yield f"\n### `{endpoint.method} /api/v1{endpoint.path}`\n\n{told['summary']}.\n"
    if "description" in told:
        yield f"{told['description']}\n"
    yield f"\n```sh\n{endpoint.curl(ROOT)}\n```\n"
    body = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    fields = [(each["name"], each["schema"], each) for each in told["parameters"] if each["in"] == "query"]
    fields += [(name, schema, schema) for name, schema in body.get("properties", {}).items()]
    if fields:
        yield "\n| field | what |\n|---|---|\n"
        yield from (f"| `{name}` | {about['description']}{_bounds(schema)} |\n" for name, schema, about in fields)
    [answer] = (each for status, each in told["responses"].items() if status.startswith("2"))
    names = answer["content"]["application/json"]["schema"]["properties"]
    yield f"\nAnswers with {', '.join(f'`{name}`' for name in names if name != 'schema_version')}.\n"


def _bounds(schema: dict[str, Any]) -> str:
    """What a table has room for."""
    words = []
    if "minimum" in schema:
        words.append(f"{schema['minimum']:,} to {schema['maximum']:,}")
    if enum := schema.get("enum") or schema.get("items", {}).get("enum"):
        words.append(", ".join(f"`{each}`" for each in enum if each))
    if schema.get("default") not in (None, False):
        words.append(f"default {schema['default']}")
    return f" ({'; '.join(words)})" if words else ""


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
