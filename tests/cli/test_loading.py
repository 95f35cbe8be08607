"""Applications of every layout, loaded in a process of their own as `beat check` and a worker load them."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.files import lay_out

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Lay = Callable[[Mapping[str, str]], Path]

JOB = "from beat import periodic\n@periodic('@daily')\ndef job(): ...\n"


@pytest.fixture
def lay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lay:
    """Writes the files of an application into the current directory."""
    monkeypatch.chdir(tmp_path)
    return functools.partial(lay_out, tmp_path)


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env={**os.environ, **environ}, capture_output=True, text=True, check=False, timeout=60
    )


def python(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return run("-c", textwrap.dedent(code), **environ)


def loaded(*names: str, **environ: str) -> dict[str, Any]:
    """What a registry of one's own gets from these names."""
    done = python(
        f"""
        import json
        from beat import Registry
        registry = Registry()
        load = registry.load(*{names!r})
        print(json.dumps({{"ids": [s.id for s in registry], "funcs": [s.func for s in registry],
                           "silent": load.silent, "unseen": load.unseen}}))
        """,
        **environ,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return run("-m", "beat", "check", *arguments, **environ)


def test_django_is_set_up_before_the_first_model_is_imported(lay: Lay) -> None:
    lay(
        {
            "conf.py": "SECRET_KEY = 'x'\nINSTALLED_APPS = ['shop']\n",
            "shop/__init__.py": "",
            "shop/models.py": "from django.db import models\nclass Order(models.Model): ...\n",
            "shop/tasks.py": "from shop.models import Order\n" + JOB,
        }
    )
    assert loaded("shop.tasks", DJANGO_SETTINGS_MODULE="conf")["ids"] == ["job"]


def test_a_schedule_made_by_a_decorator_of_the_house_belongs_to_the_module_that_uses_it(lay: Lay) -> None:
    lay(
        {
            "house.py": "from beat import periodic\ndef nightly(func):\n    return periodic('0 3 * * *')(func)\n",
            "tasks.py": "from house import nightly\n@nightly\ndef job(): ...\n",
        }
    )
    assert loaded("tasks") == {"ids": ["job"], "funcs": ["tasks.job"], "silent": [], "unseen": []}


def test_a_module_that_only_imports_the_tasks_brings_their_schedules(lay: Lay) -> None:
    lay({"entry.py": "import jobs\n", "jobs.py": JOB})
    assert loaded("entry") == {"ids": ["job"], "funcs": ["jobs.job"], "silent": [], "unseen": []}


def test_only_the_name_that_declared_nothing_is_named(lay: Lay) -> None:
    lay({"tasks.py": JOB, "empty.py": ""})
    assert loaded("tasks", "empty")["silent"] == ["empty"]
    assert loaded("empty", "tasks")["silent"] == ["empty"]


def test_a_directory_of_schedules_that_is_no_package_is_named(lay: Lay) -> None:
    lay({"app/__init__.py": "", "app/tasks.py": JOB, "app/more/nightly.py": JOB, "app/static/build.py": ""})
    assert loaded("app")["unseen"] == ["app.more"]
    done = check("app")
    assert done.stdout == (
        "warning: app.more holds schedules but no __init__.py, and was not imported: add one, or name app.more\n"
    )
    assert done.returncode == 0


def test_a_file_below_src_has_the_name_by_which_the_application_imports_it(lay: Lay, tmp_path: Path) -> None:
    lay({"src/app/__init__.py": "", "src/app/tasks.py": JOB, "src/app/web.py": "from app.tasks import job\n"})
    found = loaded("src/app", PYTHONPATH=str(tmp_path / "src"))
    assert found["funcs"] == ["app.tasks.job"]


def test_a_file_imported_under_two_names_is_told_as_such(lay: Lay) -> None:
    lay(
        {"app/__init__.py": "", "app/tasks.py": JOB, "app/web.py": "import sys; sys.path.append('app'); import tasks\n"}
    )
    done = check("app")
    assert "this file was imported as app.tasks and as tasks: use one name" in done.stdout
    assert done.returncode == 1


def test_a_module_that_failed_half_way_can_be_imported_again(lay: Lay) -> None:
    lay({"flaky.py": JOB + "import os\nif os.environ.pop('DOWN', ''):\n    raise RuntimeError('no database')\n"})
    done = python("try:\n    import flaky\nexcept RuntimeError:\n    import flaky\nprint(flaky.job)", DOWN="yes")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reload_declares_the_same_schedules_again(lay: Lay) -> None:
    lay({"tasks.py": JOB})
    done = python(
        """
        import importlib, tasks
        from beat.schedule.registry import default_registry
        importlib.reload(tasks)
        print(len(default_registry))
        """
    )
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_worker_whose_directory_was_removed_can_still_import_the_tasks(lay: Lay, tmp_path: Path) -> None:
    lay({"tasks.py": JOB, "gone/here.txt": ""})
    done = python(
        f"""
        import os, shutil, sys
        sys.path.insert(0, {str(tmp_path)!r})
        os.chdir("gone")
        shutil.rmtree({str(tmp_path / "gone")!r})
        import tasks
        print(tasks.job.__name__)
        """
    )
    assert (done.stdout, done.stderr) == ("job\n", "")
