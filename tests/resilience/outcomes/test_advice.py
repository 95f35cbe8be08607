"""Workers that cannot call the function of a job: beat says what happened and what to do, beside RQ's own words."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.support.process_pool import ROOT
from tests.support.rq_worker import RQ, environment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.resilience.outcomes.stage import Stage

OLD = "def good(): ...\n"
"""The function as it was before it had an argument."""


def work(stage: Stage, queue: str, code: Path) -> None:
    """A worker does what work there is, where only this code can be imported."""
    env = environment(stage.steps) | {"PYTHONPATH": str(code)}
    command = [*RQ, "worker", "--burst", "--url", stage.url, queue]
    subprocess.run(command, check=True, capture_output=True, env=env, cwd=code)


def beat(stage: Stage, *words: str) -> str:
    """What `beat` prints."""
    command = [sys.executable, "-m", "beat", *words, "--redis-url", stage.url]
    env = environment(stage.steps) | {"PYTHONPATH": str(ROOT), "COLUMNS": "10000"}
    return subprocess.run(command, check=False, capture_output=True, text=True, env=env).stdout


def deployed(home: Path, module: str | None) -> Path:
    """A place where the application is another one: with this module in the place of `tasks`, or without any."""
    package = home / "tests" / "resilience" / "outcomes"
    package.mkdir(parents=True)
    for each in (package.parent.parent, package.parent, package):
        (each / "__init__.py").touch()
    if module is not None:
        (package / "tasks.py").write_text(module, encoding="utf-8")
    return home


def tells(stage: Stage, schedule_id: str, rqs: str, problem: str, remedy: str) -> None:
    """All who tell about the newest run of a schedule tell RQ's words, the problem and the remedy."""
    job = stage.state(schedule_id)["last_job"]
    line = stage.ended(job, "failed")
    whole = f"{problem} {remedy}"
    asked: dict[str, str] = {
        "why": beat(stage, "why", schedule_id, line["tick"]),
        "history": beat(stage, "history", schedule_id, "-n", "1"),
        "history at length": beat(stage, "history", schedule_id, "-n", "1", "-v"),
    }
    for said in asked.values():
        assert rqs in said
        assert whole in " ".join(said.split())
    [run] = json.loads(beat(stage, "history", schedule_id, "-n", "1", "--json"))["lines"]
    assert (run["advice"], rqs in f"{run['error']['type']}: {run['error']['message']}") == (whole, True)
    [run] = json.loads(beat(stage, "why", schedule_id, line["tick"], "--json"))["runs"]
    assert run["advice"] == whole
    found: list[dict[str, Any]] = json.loads(beat(stage, "doctor", "--json"))["findings"]
    [finding] = [each for each in found if each["check"] == "code" and schedule_id in each["what"]]
    assert finding["level"] == "problem"


START = (
    "Start it where the code and all that it imports are installed (`rq worker -P DIR QUEUE`, or set PYTHONPATH), in"
    " the same version."
)
DEPLOY = "Deploy the same version to the worker and restart it, or correct the arguments."
DOES_NOT_TAKE = (
    "The function in the worker does not take these arguments: the worker runs another version of the code, or the"
    " arguments are wrong."
)


def test_a_worker_that_cannot_import_the_function_is_told_where_to_start(stage: Stage, tmp_path: Path) -> None:
    stage.fire("good")
    work(stage, "good", deployed(tmp_path, None))
    name = "tests.resilience.outcomes.tasks.good"
    tells(stage, "good", "ValueError: Invalid attribute name: good", f"The worker could not import {name}.", START)
    found = json.loads(beat(stage, "doctor", "--json"))["findings"]
    [finding] = [each for each in found if each["check"] == "code"]
    assert "1 schedule fails before the function begins: good: " in finding["what"]
    assert "`rq worker -P DIR good`" in finding["remedy"]
    stage.fire("good")
    with stage.worker("good"):
        stage.ended(stage.state("good")["last_job"], "succeeded")
    assert '"check": "code"' not in beat(stage, "doctor", "--json")


def test_a_worker_with_an_older_signature_is_told_to_be_deployed(stage: Stage, tmp_path: Path) -> None:
    stage.fire("good-by-name")
    work(stage, "good-by-name", deployed(tmp_path, OLD))
    rqs = "TypeError: good() got an unexpected keyword argument 'result'"
    tells(stage, "good-by-name", rqs, DOES_NOT_TAKE, DEPLOY)


def test_an_error_of_the_function_gets_no_advice(stage: Stage) -> None:
    job = stage.fire("bad")
    with stage.worker("bad"):
        line = stage.ended(job, "failed")
    [run] = json.loads(beat(stage, "why", "bad", line["tick"], "--json"))["runs"]
    assert (run["advice"], run["error"]["type"]) == (None, "KeyError")
