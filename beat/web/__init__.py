"""The web UI and its JSON API, as an ASGI app for a server of its own or a mount in another app.

It only talks to Redis, as the command line does. It never imports the application and never unpickles an object.
"""

from __future__ import annotations

from beat.web.app import create_app

__all__ = ["create_app"]
