"""Quote names for commands that people paste into a shell.

Names come from Redis and may hold anything. Each stays one word, so the shell never executes a part of it.
"""

from __future__ import annotations

import shlex


def word(text: str) -> str:
    """Return `text` as one word of a shell's command line, on one line."""
    if text.isprintable():
        return shlex.quote(text)
    escaped = text.encode("unicode_escape").decode().replace("'", "\\'")
    return f"$'{escaped}'"  # bash, zsh and POSIX 2024 read the escapes


def arguments(*texts: str) -> str:
    """Return quoted arguments of a command, behind `--` if one could be taken for an option."""
    words = " ".join(map(word, texts))
    return f"-- {words}" if any(text.startswith("-") for text in texts) else words
