"""What leaves the API: one document, with nothing secret in it, and nothing that JSON has no word for.

Everything that is answered goes through here.
"""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from beat.client.describe import SCHEMA_VERSION
from beat.config import masking


def document(content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """The answer, as JSON in ASCII: every program can read it."""
    text = json.dumps({"schema_version": SCHEMA_VERSION, **masking.shown(content)}, allow_nan=False)
    kept = {"cache-control": "private, no-cache", **(headers or {})}
    return Response(text, status, kept, media_type="application/json")
