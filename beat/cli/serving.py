"""The page, for the commands that serve it: its libraries are an extra, and are imported when it is asked for."""

from __future__ import annotations

import importlib
from typing import Any

from beat.errors import ConfigError

_EXTRA = {"anyio", "jinja2", "markupsafe", "starlette", "uvicorn"}
HOW = "pip install 'rq-beat[web]'"


def room(name: str) -> Any:
    """That module of `beat.web`; says what is missing, and how to get it."""
    try:
        return importlib.import_module(f"beat.web.{name}")
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise ConfigError(f"the web UI needs {e.name}, which is not installed: {HOW}") from None
