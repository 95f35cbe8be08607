"""Advice on runs that failed before their function began, from what RQ's own code raises; none on any other failure."""

from __future__ import annotations

import base64
import pickle
import traceback
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from rq.job import Job
from rq.serializers import JSONSerializer

from beat.history.ledger import LONGEST_TRACEBACK, Error
from beat.jobs import report

if TYPE_CHECKING:
    from pathlib import Path

NOWHERE: Any = object()
MODULE = """
import json

def good(day="x"): pass

def needs(day): pass

def imports_late(): import no_such_module

def calls_badly(): good(nope=1)

def raises(): raise ValueError("Invalid attribute name: code_of_the_worker.good")

def raises_alike(): raise TypeError("good() got an unexpected keyword argument 'nope'")

def runs_another():
    from rq.job import Job
    Job.create("no_such_module.good", connection=object())._execute()

class Kept: pass
"""


@pytest.fixture(autouse=True)
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the code of the worker, as far as it has any."""
    (tmp_path / "code_of_the_worker.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "needs_another.py").write_text("import no_such_module\n", encoding="utf-8")
    (tmp_path / "fails_to_import.py").write_text("1 / 0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)


def failure(func: str, *args: Any, **kwargs: Any) -> Error:
    """What RQ records when this job is executed here."""
    return of(Job.create(func, args=args, kwargs=kwargs, connection=NOWHERE))


def of(job: Job) -> Error:
    try:
        job._execute()  # noqa: SLF001 (its frames are those of a worker)
    except Exception:  # noqa: BLE001 (any, as RQ catches)
        return recorded(traceback.format_exc())
    pytest.fail("the job ended well")


def recorded(text: str) -> Error:
    return report.error(base64.b64encode(zlib.compress(text.encode())))


START = "Start it where the code and all that it imports are installed (`rq worker -P DIR low`, or set PYTHONPATH)"
DEPLOY = "Deploy the same version to the worker and restart it"
RECOGNIZED: dict[str, tuple[str, list[Any], dict[str, Any], str, str]] = {
    "no such module": ("no_such_module.good", [], {}, "The worker could not import no_such_module.good.", START),
    "a module that imports another": ("needs_another.good", [], {}, "could not import needs_another.good.", START),
    "no such function": ("code_of_the_worker.gone", [], {}, "code has no code_of_the_worker.gone:", DEPLOY),
    "no such class": ("code_of_the_worker.K.run", [], {}, "could not import code_of_the_worker.K.run.", START),
    "no such method": ("code_of_the_worker.Kept.run", [], {}, "code has no code_of_the_worker.Kept.run:", DEPLOY),
    "a module that raises": ("fails_to_import.good", [], {}, "its module raised ZeroDivisionError.", "environment"),
    "an unknown argument": ("code_of_the_worker.good", [], {"nope": 1}, "does not take these arguments", DEPLOY),
    "too many arguments": ("code_of_the_worker.good", [1, 2], {}, "does not take these arguments", DEPLOY),
    "too few arguments": ("code_of_the_worker.needs", [], {}, "does not take these arguments", DEPLOY),
}  # fmt: skip


@pytest.mark.parametrize("case", RECOGNIZED)
def test_a_function_that_rq_could_not_call_is_recognized(case: str) -> None:
    func, args, kwargs, problem, remedy = RECOGNIZED[case]
    found = report.advice(failure(func, *args, **kwargs), "low")
    assert found is not None
    assert problem in found.problem
    assert remedy in found.remedy
    assert str(found) == f"{found.problem} {found.remedy}"


@pytest.mark.parametrize("func", ["imports_late", "calls_badly", "raises", "raises_alike", "runs_another"])
def test_an_error_of_the_function_itself_is_not_misread(func: str) -> None:
    assert report.advice(failure(f"code_of_the_worker.{func}")) is None


def test_without_a_queue_the_place_for_its_name_is_shown() -> None:
    found = report.advice(failure("no_such_module.good"))
    assert found is not None
    assert "`rq worker -P DIR QUEUE`" in found.remedy


def test_the_name_of_a_queue_is_quoted_for_the_shell() -> None:
    found = report.advice(failure("no_such_module.good"), "low; rm -rf ~")
    assert found is not None
    assert "`rq worker -P DIR 'low; rm -rf ~'`" in found.remedy
    option = report.advice(failure("no_such_module.good"), "--burst")
    assert option is not None
    assert "`rq worker -P DIR -- --burst`" in option.remedy


def written(data: bytes, **options: Any) -> Job:
    """A job whose data lies in Redis."""
    job = Job(id="job", connection=NOWHERE, **options)
    job.data = data
    return job


class Gone:
    """An argument whose class the worker does not have."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Gone, ()


def test_another_serializer_is_recognized() -> None:
    in_json, in_pickle = b'["code_of_the_worker.good", null, [], {}]', pickle.dumps(("f", None, (), {}))
    found = report.advice(of(written(in_json)), "low")
    assert found == (
        "The worker reads pickles, and the schedule writes JSON.",
        "Start it with `rq worker --serializer rq.serializers.JSONSerializer low`.",
    )
    found = report.advice(of(written(in_pickle, serializer=JSONSerializer)), "low")
    assert found is not None
    assert found.problem == "The worker reads JSON, and the schedule writes pickles."


def test_a_class_in_the_arguments_that_the_worker_lacks_is_recognized() -> None:
    data = pickle.dumps(("f", None, (Gone(),), {})).replace(b"Gone", b"Lost")
    found = report.advice(of(written(data)))
    assert found is not None
    assert "could not read the arguments of the job: AttributeError" in found.problem
    assert "Lost" in found.problem


@pytest.mark.parametrize("text", ["", "Traceback", "x" * 5000, 'File "rq/job.py", line 1, in _execute', "\x00"])
@pytest.mark.parametrize("kind", ["", "TypeError", "ValueError", "rq.exceptions.DeserializationError"])
def test_what_shows_no_frames_is_not_recognized(text: str, kind: str) -> None:
    assert report.advice(Error(kind, "got an unexpected keyword argument 'x'", text)) is None
    assert report.advice(None) is None


def test_a_traceback_that_was_cut_shows_no_end() -> None:
    """Whether the function itself raised it stood in what was cut off."""
    error = failure("code_of_the_worker.good", nope=1)
    long = replace(error, traceback=error.traceback.ljust(LONGEST_TRACEBACK))
    assert report.advice(error) is not None
    assert report.advice(long) is None
