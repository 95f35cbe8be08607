"""Write the answers of the API. Every answer goes through here, so none has an unmasked secret or invalid JSON."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from beat.client.describe import SCHEMA_VERSION
from beat.config import masking


def document(content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a document as a JSON answer in ASCII, which every program can read."""
    text = json.dumps({"schema_version": SCHEMA_VERSION, **masking.shown(content)}, allow_nan=False)
    kept = {"cache-control": "private, no-cache", **(headers or {})}
    return Response(text, status, kept, media_type="application/json")
