"""What is shipped for Prometheus and Grafana names metrics and labels that exist, and all of them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from beat.telemetry.metrics.families import HISTOGRAM, families

CONTRIB = Path(__file__).parent.parent.parent.parent / "contrib"
BOARD, RULES = CONTRIB / "grafana/beat.json", CONTRIB / "prometheus/beat.rules.yml"
GUIDE = CONTRIB.parent / "docs/guides/monitoring.md"
LABELS = {label for family in families().values() for label in family.labels} | {"job"}
"""Ours, and the one by which Prometheus tells the beats of one Redis from those of another."""


def known() -> set[str]:
    """Every name that the page has."""
    plain = {each.name for each in families().values() if each.kind != HISTOGRAM}
    histograms = {each.name for each in families().values() if each.kind == HISTOGRAM}
    return plain | {f"{name}{part}" for name in histograms for part in ("_bucket", "_sum", "_count")}


def named(text: str) -> set[str]:
    return set(re.findall(r"\bbeat_[a-z_]+", text))


def labels(text: str) -> set[str]:
    """Those by which something is grouped, chosen or told."""
    grouped = ", ".join(re.findall(r"\bby \(([^)]*)\)", text)).split(", ")
    return {*grouped, *re.findall(r"[{,](\w+)=~?\"", text), *re.findall(r"\$labels\.(\w+)", text)} - {""}


@pytest.mark.parametrize("file", [BOARD, RULES], ids=lambda file: file.name)
def test_every_metric_and_label_that_is_named_exists(file: Path) -> None:
    text = file.read_text(encoding="utf-8").replace('\\"', '"')
    assert len(named(text)) > 5
    assert named(text) <= known()
    assert labels(text) <= LABELS


def test_a_name_that_does_not_exist_would_be_seen() -> None:
    assert named("rate(beat_runs_totals[5m])") - known() == {"beat_runs_totals"}
    assert named("beat_run_duration_seconds > 1") - known()  # a histogram has only parts
    assert labels('sum by (shedule, status) (x{reson="y"}) {{ $labels.beast }}') - LABELS == {
        "shedule",
        "reson",
        "beast",
    }


def test_every_metric_is_shown_by_the_dashboard() -> None:
    shown = {re.sub(r"_(bucket|sum|count)$", "", name) for name in named(BOARD.read_text(encoding="utf-8"))}
    assert shown == families().keys()


def test_what_two_redis_tell_is_not_mixed() -> None:
    panels = json.loads(BOARD.read_text(encoding="utf-8"))["panels"]
    for shown in (target["expr"] for panel in panels for target in panel.get("targets", ())):
        assert not re.findall(r'\bbeat_[a-z_]+(?!\w|{job="\$job")', shown), shown
    grouped = re.findall(r"\b(?:max|sum|count) *(by \([^)]*\))? *\(", RULES.read_text(encoding="utf-8"))
    assert len(grouped) > 10
    assert not [each for each in grouped if not each.startswith("by (job")]


def test_the_dashboard_is_whole() -> None:
    board: dict[str, Any] = json.loads(BOARD.read_text(encoding="utf-8"))
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [{(x, y) for x in _span(p["gridPos"], "x", "w") for y in _span(p["gridPos"], "y", "h")} for p in panels]
    assert sum(map(len, places)) == len(set.union(*places)), "panels lie upon each other"
    assert max(x for x, _ in set.union(*places)) < 24
    for panel in panels:
        assert panel["title"]
        assert panel["type"] == "row" or all(
            target["expr"].count("(") == target["expr"].count(")") for target in panel["targets"]
        )


def _span(place: dict[str, int], start: str, length: str) -> range:
    return range(place[start], place[start] + place[length])


def rules() -> list[dict[str, str]]:
    """The alerts, read by their indentation: YAML that is no plainer than this is not to be here."""
    _, *parts = RULES.read_text(encoding="utf-8").split("      - alert: ")
    return [
        {"alert": part.partition("\n")[0], **dict(re.findall(r"^ +(\w+): (.+)$", part, re.MULTILINE))} for part in parts
    ]


def test_every_alert_says_what_is_wrong_and_how_bad_it_is() -> None:
    found = rules()
    assert len({rule["alert"] for rule in found}) == len(found) >= 7
    for rule in found:
        assert rule["expr"]
        assert rule["severity"] in {"warning", "critical"}
        assert rule["summary"]
        assert rule["description"].endswith(".")
        plain = {
            name: re.sub(r"{{[^}]*}}", "", text) for name, text in rule.items() if name in {"summary", "description"}
        }
        assert not [text for text in plain.values() if ": " in text or " #" in text or text[0] in "`'\"{["], (
            "YAML would read more into it"
        )


def test_promtool_has_nothing_against_the_rules() -> None:
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("promtool is not installed: it comes with Prometheus")
    done = subprocess.run([promtool, "check", "rules", RULES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_metric_is_in_the_table_of_the_guide() -> None:
    told = re.findall(r"^\| `(beat_\w+)` \| (\w+) \|([^|]*)\|", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    shown = {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in told}
    assert shown == {
        each.name: (each.kind, tuple(label for label in each.labels if label != "le")) for each in families().values()
    }
