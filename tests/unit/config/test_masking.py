"""What the page does not show: secrets, by their names, wherever they lie."""

from __future__ import annotations

import time
from typing import Any

import pytest

from beat.config.masking import MASK, looks_secret, masked

SECRET = [
    "password", "Password", "db_password", "dbPassword", "DB-PASSWORD", "passwd", "pwd", "secret", "client_secret",
    "clientSecret", "token", "api_token", "accessToken", "access_tokens", "api_key", "apikey", "API_KEY", "apiKey",
    "X-Api-Key", "auth", "authorization", "Authorization", "credential", "aws_credentials", "private_key", "privateKey",
    "ssh_key", "dsn", "SENTRY_DSN", "cookie", "session", "session_id", "sessionid", "mypassword", "secretvalue",
    "HTTPPassword", "refresh.token", "pass", "jwt", "otp",
]  # fmt: skip
HARMLESS = [
    "copies", "day", "key", "keys", "primary_key", "author", "authors", "compass", "passenger", "bypass", "surpass",
    "monkey", "tokyo", "", "pinned", "spin", "sessions_per_day_", "max_tokens", "obsession", "designs",
]  # fmt: skip


@pytest.mark.parametrize("name", SECRET)
def test_a_name_that_looks_secret_is_known(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_name_is_left_alone(name: str) -> None:
    assert not looks_secret(name)


@pytest.mark.parametrize("name", [None, 5, b"password", ("password",)], ids=repr)
def test_what_is_no_text_is_no_name(name: object) -> None:
    assert not looks_secret(name)


def test_secrets_are_masked_wherever_they_lie() -> None:
    value = {"to": [{"password": "hunter2", "name": "ann"}], "auth": {"user": "ann", "x": 1}, "n": (1, 2)}
    assert masked(value) == {"to": [{"password": MASK, "name": "ann"}], "auth": MASK, "n": [1, 2]}
    assert value["auth"] == {"user": "ann", "x": 1}, "what was given is not changed"


def test_a_value_is_masked_by_the_name_that_it_is_given() -> None:
    assert masked("hunter2", "api_token") == MASK
    assert masked(["a", "b"], "tokens") == MASK
    assert masked(None, "token") is None, "that there is none is no secret"
    no = False
    assert masked(no, "use_auth") is False, "nor is a yes or no"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("redis://ann:hunter2@host/0", f"redis://ann:{MASK}@host/0"),
        ("postgresql+psycopg://:hunter2@host", f"postgresql+psycopg://:{MASK}@host"),
        ("https://ann:hunter2@host/x", f"https://ann:{MASK}@host/x"),
        ("redis://ann:hun@ter2@host/0", f"redis://ann:{MASK}@host/0"),
        ("postgresql://ann:hun#ter?2@host", f"postgresql://ann:{MASK}@host"),
        ("rediss://:hun/ter2@host", f"rediss://:{MASK}@host"),
        ("redis://hunter2@host", f"redis://{MASK}@host"),
        ("https://ghp_hunter2@github.com/x", f"https://{MASK}@github.com/x"),
        ("redis://a:hunter2@b,redis://c:hunter2@d", f"redis://a:{MASK}@b,redis://c:{MASK}@d"),
        ("at redis://host:6379/0, ask ann@example.com", "at redis://host:6379/0, ask ann@example.com"),
        ("https://host/?to=ann@example.com", "https://host/?to=ann@example.com"),
        (f"redis://ann:{'x' * 2000}@host", f"redis://ann:{MASK}@host"),
        ("no answer: redis://ann:hunt …", f"no answer: redis://ann:{MASK} …"),
        ("no answer: redis://ann:hunt...", f"no answer: redis://ann:{MASK}..."),
        ("no answer: redis://ann:hunt", f"no answer: redis://ann:{MASK}"),
        ("no answer: redis://host:6379 …", "no answer: redis://host:6379 …"),
        ("no answer: redis://host:6379", "no answer: redis://host:6379"),
        ("no answer: redis://host:6379...", "no answer: redis://host:6379..."),
        ("no answer: redis://[::1]:6379", "no answer: redis://[::1]:6379"),
        ("https://host/?token=hunter2&n=1", f"https://host/?token={MASK}&n=1"),
        ("https://host/?n=1&X-Amz-Signature=hunter2", f"https://host/?n=1&X-Amz-Signature={MASK}"),
        ("see https://host/a:b@c", "see https://host/a:b@c"),
        ("Bearer abcdefgh12345", f"Bearer {MASK}"),
        ("bearer abcdEfgh", f"bearer {MASK}"),
        ("basic understanding, Basic Authentication", "basic understanding, Basic Authentication"),
        ("ann@example.com", "ann@example.com"),
    ],
)
def test_a_password_in_a_text_is_masked(text: str, shown: str) -> None:
    assert masked(text) == shown
    assert masked([{"url": text}, [text]]) == [{"url": shown}, [shown]]


def test_what_is_deep_or_large_takes_no_time() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    assert "…" in str(masked(deep))
    assert len(masked("a://" * 100_000)) == 400_000
    for part in ("a://x:", "a.b", "redis://a:b/", "redis://x ", "?a=b", "basic a"):
        for end in ("", "@", " @"):
            began = time.process_time()
            masked(part * 50_000 + end)
            assert time.process_time() - began < 2, (part, end)
    assert not looks_secret("x" * 1_000_000)
