"""Metrics as Prometheus sees them: a page read by its own parser, and a port that nobody uses."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Mapping

Page = dict[str, float]
"""`name{label="value"}` → number."""


class Answer(NamedTuple):
    """What a server said."""

    status: int
    kind: str
    text: str


def free_port() -> int:
    """One that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def get(port: int, path: str = "/metrics", host: str = "127.0.0.1") -> Answer:
    """Asks, whatever the answer is."""
    try:
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=30) as reply:
            return Answer(reply.status, reply.headers["Content-Type"], reply.read().decode())
    except urllib.error.HTTPError as e:
        with e:
            return Answer(e.code, e.headers["Content-Type"], e.read().decode())


def samples(text: str) -> Page:
    """Every sample of a page; none comes twice."""
    found: Page = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = shown(sample.name, sample.labels)
            assert name not in found, f"{name} comes twice"
            found[name] = sample.value
    return found


def shown(name: str, labels: Mapping[str, str]) -> str:
    """As Prometheus writes it, in the order of the alphabet."""
    inside = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    return f"{name}{{{inside}}}" if inside else name
