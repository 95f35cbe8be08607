"""Check Redis URLs, and mask their secrets."""

from __future__ import annotations

import re

DEFAULT = "redis://localhost:6379/0"
# Patterns are text, so `re` compiles each on first use and most commands do not pay for it.
_URL = (
    r"(?a)(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)?"
    r"(?:(?P<user>[^\s:/?#@]*)(?P<password>:[^\s/?#]*)?@)?"
    r"(?P<host>(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?P<port>:\d*)?)?"
    r"(?P<path>/[A-Za-z0-9_./-]*)?(?:\?(?P<query>[^\s#@]*))?"
)
_PLAIN_QUERY = r"(?a)(?:(?:db|protocol|\w*timeout)=\d{0,5}|ssl_cert_reqs=(?:none|optional|required))"
_HOST = r"rediss?://(?:[^/?]*@)?(?:[^]:/?@[]+|\[[0-9A-Fa-f:.%]+\])"
_PORT = r":(?:[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])"
_SECRET = r"(?i)(rediss?://|unix://)[^\s'\"]*@|(://)[^\s/?#@'\"]*@|((?:password|secret)=)[^\s&'\"]+"  # noqa: S105 (a pattern)
# The first pattern that a URL matches names its mistake. redis-py would accept most of these with another meaning.
_WRONG = [
    (r"\s*", "is empty: write redis://localhost:6379/0"),
    (r".*[\s\0-\x1f\x7f-\x9f].*", "holds a space or a control character, often at its end: take it out"),
    (r"(?!.*://).*", "has no scheme: write redis://{meant}"),
    (r"(?!(redis|rediss|unix)://).*", "is not the URL of a Redis: begin with redis://, rediss:// or unix://"),
    (r".*#.*|\w+://[^/?]*[/?].*@.*", "is cut short: in a password write %40 for @, %2F for /, %3F for ?, %23 for #"),
    (r"unix://(?!([^/?]*@)?/[^?]).*", "names no socket: write unix:///run/redis.sock?db=0, with three slashes"),
    (rf"(?!unix|{_HOST}).*", "names no host: write redis://localhost:6379/0"),
    (rf"(?!unix|{_HOST}({_PORT})?([/?]|$)).*", "needs a port from 1 to 65535, as in redis://localhost:6379/0"),
    (r"redis\w*://[^?]*/(?!\d{0,9}([?]|$)).*", "needs a number for its database, as in redis://localhost:6379/0"),
    (r".*[?&]db=(?!\d{1,9}(&|$)).*", "needs a number for its database, as in ?db=0"),
    (r"redis\w*://[^?]*/\d+[?](.*&)?db=.*", "names its database twice: leave out ?db="),
    (r".*[?&]decode_responses=.*", "sets decode_responses, but jobs are bytes: leave it out"),
]


def problem(url: str) -> str:
    """Return what is wrong with `url`, as the predicate of a sentence about it; "" if it is valid."""
    for pattern, words in _WRONG:
        if re.fullmatch(pattern, url, re.ASCII | re.DOTALL):
            shown = masked(url)
            meant = "localhost:6379/0" if shown == "***" else shown if "/" in shown else f"{shown}/0"
            return words.replace("{meant}", meant)
    return ""


def masked(url: str) -> str:
    """Return a Redis URL with its secrets masked; mask everything if the text is not clearly a URL."""
    found = re.fullmatch(_URL, url)
    bare = found and not found["scheme"] and not found["port"] and found["host"] != "localhost"
    if not found or bare:
        scheme = re.match(r"[a-z][a-z0-9+]*://", url, re.ASCII)
        return f"{scheme[0] if scheme else ''}***" if url else ""
    user = ""
    if found["user"] is not None:
        # Redis reads a user without a colon as a name, but people put the password there.
        user = f"{found['user']}:***@" if found["password"] else "***@"
    pairs = (pair if re.fullmatch(_PLAIN_QUERY, pair) else _hidden(pair) for pair in (found["query"] or "").split("&"))
    query = f"?{'&'.join(pairs)}" if found["query"] else ""
    return f"{found['scheme'] or ''}{user}{found['host'] or ''}{found['path'] or ''}{query}"


def hidden(text: str) -> str:
    """Return any text with possible passwords of URLs masked."""
    if "@" not in text and "=" not in text:
        return text
    return re.sub(_SECRET, lambda found: f"{found[3]}***" if found[3] else f"{found[1] or found[2]}***@", text)


def _hidden(pair: str) -> str:
    name = pair.partition("=")[0]
    return f"{name}=***" if re.fullmatch(r"[a-z_]+", name) and "=" in pair else "***"
