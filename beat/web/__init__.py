"""The page and its JSON API: did it run, will it run, why not. An ASGI app over the client, for a server or a mount.

It asks Redis, as the command line does: it never imports the application, and never unpickles an object.
"""

from __future__ import annotations

from beat.web.app import create_app

__all__ = ["create_app"]
