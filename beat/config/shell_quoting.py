"""Commands to paste into a shell: whatever a name from Redis holds, it stays one word and runs nothing."""

from __future__ import annotations

import shlex


def word(text: str) -> str:
    """Return `text` as one word of a shell's command line, on one line."""
    if text.isprintable():
        return shlex.quote(text)
    escaped = text.encode("unicode_escape").decode().replace("'", "\\'")
    return f"$'{escaped}'"  # bash, zsh and POSIX 2024 read the escapes


def arguments(*texts: str) -> str:
    """Return these as arguments of a command, none of which it takes for an option."""
    words = " ".join(map(word, texts))
    return f"-- {words}" if any(text.startswith("-") for text in texts) else words
