"""The client: asks and changes, with no beat alive and without importing the application.

What can be asked is in `questions`; every change is one atomic script, and says who made it.
"""

from __future__ import annotations

from beat.client.questions import Questions


class Client(Questions):
    """Asks and changes one installation. `redis` is a URL, a client, or what the settings say.

    Options are settings by name, as in `prefix="app:"`. Every method raises NoRedis when Redis does not answer.
    """
