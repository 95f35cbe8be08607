"""Write metrics in Prometheus' text format; prometheus_client's own writer takes ten times as long."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from beat.telemetry.metrics.families import HISTOGRAM

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from beat.telemetry.metrics.families import Family

TYPE = "text/plain; version=0.0.4; charset=utf-8"


def text(families: Iterable[Family]) -> str:
    """Return these metrics in the text format."""
    return "".join(line for family in families for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    name, rows = family.name, family.rows
    yield f"# HELP {name} {family.meaning}\n# TYPE {name} {family.kind}\n"
    labels = ",".join(f'{label}="%s"' for label in family.labels)
    line = f"{name}{'_bucket' * (family.kind == HISTOGRAM)}{f'{{{labels}}}' if labels else ''} %s\n"
    yield from (line % (*map(_escaped, row[:-1]), row[-1]) for row in rows)
    for total in family.sums:
        yield f"{name}_sum {total}\n{name}_count {rows[-1][-1]}\n"


@functools.lru_cache(maxsize=50_000)
def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
