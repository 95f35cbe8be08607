from __future__ import annotations

import functools
import json
import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import beat
from beat.errors import BadCron, ConfigError, DeclarationError, LoadError
from beat.schedule import loader
from beat.schedule.loader import Loaded, load, prepare
from tests.support.files import lay_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Write = Callable[[Mapping[str, str]], Path]

PROJECT = Path(loader.__file__).parents[4]
EXAMPLES = "write a dotted name such as 'app.tasks', or a path such as 'app/tasks.py'"


@pytest.fixture(autouse=True)
def _imports_are_undone() -> Iterator[None]:
    path, meta_path, modules = sys.path[:], sys.meta_path[:], dict(sys.modules)
    yield
    assert sys.meta_path == meta_path, "load left a finder behind"
    sys.path[:] = path
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory, beside which a test may put other places."""
    directory = tmp_path / "here"
    directory.mkdir()
    monkeypatch.chdir(directory)
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE", raising=False)
    return directory


@pytest.fixture
def write(here: Path) -> Write:
    return functools.partial(lay_out, here)


def only_problem(*names: str) -> str:
    loaded = load(*names)
    assert loaded.modules == ()
    assert len(loaded.problems) == 1, loaded.problems
    return str(loaded.problems[0])


PACKAGE = {
    "app/__init__.py": "",
    "app/tasks.py": "",
    "app/jobs/__init__.py": "",
    "app/jobs/nightly.py": "",
}
WHOLE = ("app", "app.jobs", "app.jobs.nightly", "app.tasks")


# What a name means


@pytest.mark.parametrize(
    ("name", "modules"),
    [
        ("app.tasks", ("app.tasks",)),
        ("app/tasks.py", ("app.tasks",)),
        ("./app/tasks.py", ("app.tasks",)),
        ("app/../app//tasks.py", ("app.tasks",)),
        ("app", WHOLE),
        ("app/", WHOLE),
        ("./app", WHOLE),
        ("app/__init__.py", WHOLE),
        ("app.jobs", ("app.jobs", "app.jobs.nightly")),
        ("app/jobs", ("app.jobs", "app.jobs.nightly")),
    ],
)
def test_a_name_is_dotted_or_a_file_or_a_package(write: Write, name: str, modules: tuple[str, ...]) -> None:
    write(PACKAGE)
    assert load(name) == Loaded(modules, ())
    assert set(modules) <= set(sys.modules)


def test_a_file_may_be_named_by_its_absolute_path(write: Write) -> None:
    here = write(PACKAGE)
    assert load(f"{here}/app/tasks.py").modules == ("app.tasks",)


def test_a_lone_file_in_the_current_directory_is_named_by_its_stem(write: Write) -> None:
    write({"tasks.py": ""})
    assert load("tasks.py", "./tasks.py", "tasks").modules == ("tasks",)


def test_a_directory_without_init_below_the_current_one_gives_the_name_that_a_worker_can_import(write: Write) -> None:
    write({"samples/tasks.py": "", "samples/more.py": ""})
    assert load("samples/tasks.py").modules == ("samples.tasks",)
    assert load("samples/").modules == ("samples", "samples.more", "samples.tasks")


def test_modules_are_in_the_order_given_without_doubles(write: Write) -> None:
    write({**PACKAGE, "first.py": ""})
    assert load("first", "app.tasks", "app/tasks.py", "app", "first.py") == Loaded(
        ("first", "app.tasks", "app", "app.jobs", "app.jobs.nightly"), ()
    )


def test_nothing_asked_is_nothing_loaded(here: Path) -> None:
    assert here.is_dir()
    assert load() == Loaded((), ())


def test_the_current_directory_is_first_on_the_path_and_only_once(write: Write) -> None:
    here = write(PACKAGE)
    load("app.tasks")
    load("app.tasks", "app.jobs")
    prepare()
    assert sys.path[0] == str(here)
    assert sys.path.count(str(here)) == 1


def test_a_file_in_a_package_elsewhere_gets_the_dotted_name_of_its_package(write: Write) -> None:
    here = write({"../there/lib/shop/__init__.py": "", "../there/lib/shop/tasks.py": "from . import other"})
    (here / "../there/lib/shop/other.py").touch()
    assert load("../there/lib/shop/tasks.py") == Loaded(("shop.tasks",), ())
    assert load("../there/lib/shop").modules == ("shop", "shop.other", "shop.tasks")
    assert sys.path[:2] == [str(here), str(here.parent / "there" / "lib")]


def test_any_other_file_is_named_by_its_stem_with_its_directory_on_the_path(write: Write) -> None:
    here = write({"../there/chores.py": "import beside", "../there/beside.py": ""})
    assert load("../there/chores.py") == Loaded(("chores",), ())
    assert str(here.parent / "there") in sys.path


def test_the_current_directory_goes_before_that_of_a_file_elsewhere(write: Write) -> None:
    write({"../there/chores.py": "import beside", "../there/beside.py": "1/0", "beside.py": ""})
    assert load("../there/chores.py").problems == ()


def test_a_linked_file_is_named_by_the_link(write: Write) -> None:
    here = write({"../there/original.py": ""})
    (here / "linked.py").symlink_to(here.parent / "there" / "original.py")
    assert load("linked.py") == Loaded(("linked",), ())


def test_a_path_through_a_link_to_the_current_directory_is_below_it(write: Write) -> None:
    here = write(PACKAGE)
    (here.parent / "link").symlink_to(here)
    assert load(f"{here.parent}/link/app/tasks.py") == Loaded(("app.tasks",), ())


def test_names_are_understood_before_a_module_can_change_the_directory(write: Write) -> None:
    write({"mover.py": "import os; os.chdir('/')", "tasks.py": ""})
    assert load("mover.py", "tasks.py") == Loaded(("mover", "tasks"), ())


# Which sub-modules a package brings


@pytest.mark.parametrize(
    "skipped",
    [
        "app/__main__.py",
        "app/conftest.py",
        "app/test_tasks.py",
        "app/tests/__init__.py",
        "app/jobs/tests/__init__.py",
        "app/jobs/test_more/__init__.py",
        "app/0001_initial.py",
        "app/my-script.py",
        "app/templates/model.py",  # a directory without __init__.py
    ],
)
def test_a_package_does_not_bring_what_is_no_part_of_the_application(write: Write, skipped: str) -> None:
    write({**PACKAGE, skipped: "raise AssertionError('imported')"})
    assert load("app") == Loaded(WHOLE, ())


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("app/tests/__init__.py", "app.tests"),
        ("app/test_tasks.py", "app.test_tasks"),
        ("app/conftest.py", "app/conftest.py"),
        ("app/templates/model.py", "app.templates.model"),
    ],
)
def test_what_a_package_does_not_bring_is_loaded_when_named(write: Write, file: str, name: str) -> None:
    write({**PACKAGE, file: ""})
    assert load(name).modules == (name.removesuffix(".py").replace("/", "."),)


def test_a_broken_sub_module_is_a_problem_of_its_own_and_the_rest_go_on(write: Write) -> None:
    write({**PACKAGE, "app/aaa.py": "1/0", "app/jobs/__init__.py": "import nowhere"})
    loaded = load("app")
    assert loaded.modules == ("app", "app.tasks")
    assert [str(problem) for problem in loaded.problems] == [
        "app.aaa: ZeroDivisionError: division by zero (app/aaa.py:1: 1/0)",
        "app.jobs: ModuleNotFoundError: No module named 'nowhere' (app/jobs/__init__.py:1: import nowhere)",
    ]


def test_all_problems_are_known_at_once(write: Write) -> None:
    write({"a.py": "1/0", "b.py": "", "c.py": "import sys; sys.exit()"})
    loaded = load("a", "b", "c", "a", "a b", "a b")
    assert loaded.modules == ("b",)
    assert sorted(str(problem).partition(" ")[0] for problem in loaded.problems) == ["'a", "a:", "c"]


# A module that has failed


COUNTED = """\
from pathlib import Path
runs = Path("runs")
runs.write_text(runs.read_text() + "x")
raise ValueError("once")
"""


@pytest.mark.parametrize("names", [("app.broken", "app.user"), ("app.user", "app.broken"), ("app",)])
def test_a_broken_module_runs_once_however_many_import_it(write: Write, names: tuple[str, ...]) -> None:
    files = {"runs": "", "app/__init__.py": "", "app/broken.py": COUNTED, "app/user.py": "from app import broken"}
    here = write(files)
    first, second = load(*names).problems
    assert (here / "runs").read_text(encoding="utf-8") == "x"
    assert str(first).endswith('ValueError: once (app/broken.py:4: raise ValueError("once"))')
    assert "not imported, for the same reason as app." in str(second)
    assert second.__cause__ is first.__cause__


def test_a_module_may_still_catch_the_error_of_one_that_failed(write: Write) -> None:
    write({"aaa.py": "import nowhere", "bbb.py": "try:\n    import aaa\nexcept ImportError:\n    aaa = None\n"})
    loaded = load("aaa", "bbb")
    assert loaded.modules == ("bbb",)
    assert len(loaded.problems) == 1


def test_a_module_that_was_mended_loads_the_next_time(write: Write) -> None:
    write({"tasks.py": "1/0"})
    assert only_problem("tasks").endswith("(tasks.py:1: 1/0)")
    write({"tasks.py": "1/0  # a text of another length, so that no cached code is used"})
    assert "used)" in only_problem("tasks")
    write({"tasks.py": "pass"})
    assert load("tasks") == Loaded(("tasks",), ())


def test_a_module_written_a_moment_ago_is_found(write: Write) -> None:
    here = write({})
    before = here.stat()
    assert load("tasks").problems
    write({"tasks.py": ""})
    os.utime(here, ns=(before.st_atime_ns, before.st_mtime_ns))  # as when the file system's clock is coarse
    assert load("tasks") == Loaded(("tasks",), ())


def test_a_package_that_fails_is_one_problem_for_all_its_modules(write: Write) -> None:
    write({**PACKAGE, "app/__init__.py": "1/0"})
    first, second = load("app.tasks", "app").problems
    assert str(first) == "app.tasks: ZeroDivisionError: division by zero (app/__init__.py:1: 1/0)"
    assert str(second) == "app: not imported, for the same reason as app.tasks"


# Names that mean nothing


NO_NAMES = ("", " ", "a b", " app", "app.tasks\n", "a\0b", "a/\0.py", "..", ".", ".tasks", "app.", "app..tasks", "-x")
NOR_THESE = ("5", "5.tasks", "app-tasks", "app,jobs", ":f", "__main__", "🎉", "-" * 10_000, None, 5, b"app", ["app"])


@pytest.mark.parametrize("name", [*NO_NAMES, *NOR_THESE])
def test_what_cannot_name_a_module_is_refused_with_an_example(here: Path, name: str) -> None:
    assert here.is_dir()
    problem = only_problem(name)
    assert problem == f"{name!r:.80} is not the name of a module: {EXAMPLES}"


NOWHERE = "in the current directory or on sys.path."
START = "Start beat in the directory that holds 'zzzzzz', or put that directory on PYTHONPATH."


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("app.tasks:f", "{} names something in a module, and beat loads whole modules: write 'app.tasks'"),
        ("app/tasks.py:f", "there is no file {}. Did you mean 'app/tasks.py'?"),
        ("app/tasks.py::f", "there is no file {}. Did you mean 'app/tasks.py'?"),
        ("app/tasks", "there is no file {}. Did you mean 'app/tasks.py'?"),
        ("app/tasks/", "there is no file {}. Did you mean 'app/tasks.py'?"),
        ("app.tasks.py", "there is no file {}. Did you mean 'app/tasks.py'?"),
        ("app/taskz.py", "there is no file {}. Did you mean 'app/tasks.py'?"),
        ("./app/job", "there is no file {}. Did you mean './app/jobs'?"),
        ("nowhere/at/all.py", "there is no file {}."),
        ("app.tasks.f", "no module named {}: 'app.tasks' is a module, not a package, so write 'app.tasks'"),
        ("lone_tasks.f", "no module named {}: 'lone_tasks' is a module, not a package, so write 'lone_tasks'"),
        ("app.taskz", "no module named {} in the package 'app'. Did you mean 'app.tasks'?"),
        ("app.Tasks", "no module named {} in the package 'app'. Did you mean 'app.tasks'?"),
        ("app.zzz", "no module named {} in the package 'app'."),
        ("app.job.x", "no module named {}: there is no 'app.job' in the package 'app'. Did you mean 'app.jobs'?"),
        ("lone_taskz", f"no module named {{}} {NOWHERE} Did you mean 'lone_tasks'?"),
        ("baree.x", f"no module named {{}}: there is no 'baree' {NOWHERE} Did you mean 'bare'?"),
        ("zzzzzz.x", f"no module named {{}}: there is no 'zzzzzz' {NOWHERE} {START}"),
        ("my-tasks.py", "{} cannot be imported: 'my-tasks' is not a Python name, so rename it 'my_tasks'"),
        ("2fa.py", "{} cannot be imported: '2fa' is not a Python name, so rename it '_2fa'"),
        ("a.b.py", "{} cannot be imported: 'a.b' is not a Python name, so rename it 'a_b'"),
        ("my-app/tasks.py", "{} cannot be imported: 'my-app' is not a Python name, so rename it 'my_app'"),
        ("notes.txt", f"{{}} is not a Python file: {EXAMPLES}"),
        ("app/notes", f"{{}} is not a Python file: {EXAMPLES}"),
        ("./", f"{{}} is the current directory, not a module: {EXAMPLES}"),
        ("../here", f"{{}} is the current directory, not a module: {EXAMPLES}"),
        ("../there", "{} has no __init__.py, so it is not a package: add one, or name its files"),
        ("docs", f"the directory 'docs' holds no modules to import: {EXAMPLES}"),
        ("docs/", f"the directory 'docs' holds no modules to import: {EXAMPLES}"),
    ],
)
def test_a_name_that_leads_nowhere_is_a_sentence_with_what_was_meant(write: Write, name: str, problem: str) -> None:
    files = ("my-tasks.py", "2fa.py", "a.b.py", "my-app/tasks.py", "notes.txt", "app/notes", "../there/tasks.py")
    write({**PACKAGE, **dict.fromkeys((*files, "lone_tasks.py", "bare/tasks.py", "docs/index.md"), "")})
    assert only_problem(name) == problem.format(repr(name))


def test_a_long_common_beginning_makes_no_name_near(write: Write) -> None:
    write({"a_long_company_name/__init__.py": "", "a_long_company_name/web.py": ""})
    assert "Did you mean" not in only_problem("a_long_company_name.tasks")


@pytest.mark.parametrize("name", ["a" * 5_000, "a" * 5_000 + ".py", "b/" * 3_000 + "tasks.py"])
def test_a_name_too_long_for_the_file_system_is_a_problem_like_any_other(here: Path, name: str) -> None:
    assert here.is_dir()
    assert only_problem(name).startswith(("no module named", "there is no file"))


def test_a_current_directory_that_was_removed_is_a_sentence(here: Path) -> None:
    here.rmdir()
    assert only_problem("app") == "the current directory was removed: change into one that exists"
    with pytest.raises(LoadError, match=r"^the current directory was removed"):
        prepare()


# Another module of the same name


@pytest.mark.parametrize("name", ["json", "json.py", "./json.py"])
def test_a_file_that_hides_behind_the_standard_library_is_not_silently_another_module(write: Write, name: str) -> None:
    write({"json.py": ""})
    problem = only_problem(name)
    assert problem == f"json.py cannot be imported: 'json' is already the module at {json.__file__}, so rename the file"
    assert sys.modules["json"] is json


@pytest.mark.parametrize("name", ["sys.py", "sys"])
def test_a_file_named_as_a_module_without_a_file_is_told_so(write: Write, name: str) -> None:
    write({"sys.py": ""})
    assert (
        only_problem(name) == "sys.py cannot be imported: 'sys' is already a module of Python's own, so rename the file"
    )


def test_a_package_named_as_a_module_of_the_standard_library_is_told_so(write: Write) -> None:
    write({"random/__init__.py": "", "random/tasks.py": ""})
    assert only_problem("random/").startswith(
        "random/__init__.py cannot be imported: 'random' is already the module at"
    )
    assert sys.modules["random"] is random


@pytest.mark.parametrize("file", ["beat.py", "beat/__init__.py"])
def test_a_file_with_the_name_of_the_package_is_refused_before_anything_is_imported(write: Write, file: str) -> None:
    write({file: "", "tasks.py": ""})
    message = (
        f"{file.removesuffix('/__init__.py')} has the name of the package beat, and a worker that starts here imports "
        "it instead: rename it, for example to schedules.py"
    )
    with pytest.raises(LoadError) as caught:
        prepare()
    assert str(caught.value) == message.replace("schedules.py", "schedules.py" if file == "beat.py" else "schedules")
    assert "tasks" not in sys.modules


@pytest.mark.parametrize("name", ["../lib/beat.py", "../lib/beat/__init__.py", "../lib/beat", "../lib/beat/tasks.py"])
def test_a_path_whose_module_has_the_name_of_the_package_is_refused(write: Write, name: str) -> None:
    write(
        {"../lib/beat.py": ""}
        if name == "../lib/beat.py"
        else {"../lib/beat/__init__.py": "", "../lib/beat/tasks.py": ""}
    )
    assert "has the name of the package beat" in only_problem(name)


def test_a_module_of_that_name_inside_a_package_is_loaded(write: Write) -> None:
    write({"shop/__init__.py": "", "shop/beat.py": ""})
    prepare()
    assert load("shop/beat.py").modules == ("shop.beat",)


def test_the_name_of_the_package_is_no_module_with_schedules(here: Path) -> None:  # noqa: ARG001 (the directory)
    assert only_problem("beat") == (
        "'beat' is the package beat itself: name the module that declares your schedules, as in 'app.tasks'"
    )


def test_the_checkout_of_the_package_itself_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(beat.__file__).parent.parent)
    prepare()


def test_an_application_that_is_installed_may_be_loaded_from_its_checkout_by_its_dotted_name(write: Write) -> None:
    here = write({**PACKAGE, "lib/site-packages/app/__init__.py": "", "lib/site-packages/app/tasks.py": ""})
    sys.path.insert(0, str(here / "lib" / "site-packages"))
    sys.path.insert(1, str(here))
    assert load("app.tasks") == Loaded(("app.tasks",), ())
    assert only_problem("app/tasks.py") == (
        "app/tasks.py cannot be imported:"
        " 'app.tasks' is already the module at lib/site-packages/app/tasks.py, so rename the file"
    )


def test_two_files_of_one_stem_are_not_taken_for_one_another(write: Write) -> None:
    write({"../one/chores.py": "", "../two/chores.py": ""})
    loaded = load("../one/chores.py", "../two/chores.py")
    assert loaded.modules == ("chores",)
    assert "two/chores.py cannot be imported: 'chores' is already the module at" in str(loaded.problems[0])


def test_a_package_wins_over_a_file_of_its_name_and_the_file_is_a_problem(write: Write) -> None:
    write({"shop.py": "", "shop/__init__.py": ""})
    assert load("shop") == Loaded(("shop",), ())
    assert str(load("shop.py").problems[0]).startswith(
        "shop.py cannot be imported: 'shop' is already the module at shop/"
    )


def test_a_compiled_module_beside_its_source_is_the_module_asked_for(write: Write) -> None:
    write({"tasks.py": "__file__ = __file__.removesuffix('.py') + '.so'"})
    assert load("tasks.py") == Loaded(("tasks",), ())


def test_a_module_may_put_an_object_in_its_place(write: Write) -> None:
    write({"tasks.py": "import sys; sys.modules[__name__] = object()"})
    assert load("tasks.py") == Loaded(("tasks",), ())


# What a module does while being imported


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "import os\n\nimport requestz\n",
            "ModuleNotFoundError: No module named 'requestz' (app/tasks.py:3: import requestz)",
        ),
        ("import app.no", "ModuleNotFoundError: No module named 'app.no' (app/tasks.py:1: import app.no)"),
        (
            "from app import no",
            "ImportError: cannot import name 'no' from 'app' (app/__init__.py) (app/tasks.py:1: from app import no)",
        ),
        (
            "from ... import x",
            "ImportError: attempted relative import beyond top-level package (app/tasks.py:1: from ... import x)",
        ),
        ("\nraise ValueError", "ValueError (app/tasks.py:2: raise ValueError)"),
        ("import random\nrandom.sample([], -1)", "ValueError: Sample larger than population or is negative {2}"),
        ("def f():\n    return {}['k']\n\nf()\n", "KeyError: 'k' (app/tasks.py:2: return {}['k'])"),
        ("exec('1/0')", "ZeroDivisionError: division by zero {1}"),
        ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded {1}"),
        ("raise GeneratorExit('x')", "GeneratorExit: x {1}"),
        ("raise StopIteration('x')", "StopIteration: x {1}"),
        ("class Own(BaseException): pass\nraise Own('x')", "Own: x {2}"),
        ("import sys; del sys.modules[__name__]", "KeyError: 'app.tasks'"),
        ("def f(:\n", "SyntaxError: invalid syntax {1}"),
        ("if 1:\nx = 1\n", "IndentationError: expected an indented block after 'if' statement on line 1 {2}"),
        ("# coding: nope", "SyntaxError: unknown encoding: nope (app/tasks.py:1)"),
        ("compile('(', 'made up', 'exec')", "SyntaxError: '(' was never closed {1}"),
        ("raise SyntaxError", "SyntaxError: None {1}"),
    ],
)
def test_what_a_module_raises_is_one_sentence_with_the_last_line_of_the_users_code(
    write: Write, text: str, problem: str
) -> None:
    write({"app/__init__.py": "", "app/tasks.py": text})
    for number, line in enumerate(text.splitlines(), 1):
        problem = problem.replace(f"{{{number}}}", f"(app/tasks.py:{number}: {line})")
    assert only_problem("app.tasks") == f"app.tasks: {problem}"


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("import sys\n\n\n\n\n\nsys.exit(3)\n", "sys.exit(3) while being imported (app/tasks.py:7)"),
        ("import sys; sys.exit()", "sys.exit() while being imported (app/tasks.py:1)"),
        ("raise SystemExit('no\\nway')", r"sys.exit('no\nway') while being imported (app/tasks.py:1)"),
        (
            "import argparse\nargparse.ArgumentParser().parse_args(['--nope'])",
            "sys.exit(2) while being imported (app/tasks.py:2)",
        ),
        (
            "class Code:\n    def __repr__(self): raise ValueError\nraise SystemExit(Code())",
            "sys.exit((its message cannot be shown)) while being imported (app/tasks.py:3)",
        ),
    ],
)
def test_a_module_that_exits_does_not_end_beat(write: Write, text: str, called: str) -> None:
    write({"app/__init__.py": "", "app/tasks.py": text})
    assert only_problem("app.tasks") == f"app.tasks called {called}"


def test_a_circular_import_is_one_sentence(write: Write) -> None:
    write({"app/__init__.py": "", "app/a.py": "from app.b import g", "app/b.py": "from app.a import f"})
    assert str(load("app.a").problems[0]) == (
        "app.a: ImportError: cannot import name 'f' from partially initialized module 'app.a'"
        " (most likely due to a circular import) (app/a.py) (app/b.py:1: from app.a import f)"
    )


def test_a_module_missing_in_the_package_that_asks_for_it_is_not_blamed_on_the_caller(write: Write) -> None:
    write({"app/__init__.py": "import app.tasks"})
    assert only_problem("app.tasks") == (
        "app.tasks: ModuleNotFoundError: No module named 'app.tasks' (app/__init__.py:1: import app.tasks)"
    )


def test_null_bytes_in_a_file_are_one_sentence(here: Path) -> None:
    (here / "tasks.py").write_bytes(b"a = 1\0\n")
    assert only_problem("tasks").startswith("tasks: SyntaxError: source code string cannot contain null bytes")


def test_the_syntax_of_a_module_that_is_imported_is_shown_at_its_own_place(write: Write) -> None:
    write({"tasks.py": "import helper", "helper.py": "\nx = = 1"})
    assert only_problem("tasks") == "tasks: SyntaxError: invalid syntax (helper.py:2: x = = 1)"


def test_the_frame_of_a_library_is_passed_over_for_the_users_own(write: Write) -> None:
    lib = {"lib/site-packages/boom.py": "def now():\n    raise ValueError('deep')"}
    here = write({**lib, "tasks.py": "import boom\nboom.now()"})
    sys.path.append(str(here / "lib" / "site-packages"))
    assert only_problem("tasks") == "tasks: ValueError: deep (tasks.py:2: boom.now())"


def test_an_installed_application_is_the_users_own_when_it_is_the_one_asked_for(write: Write) -> None:
    here = write({"lib/site-packages/shop/__init__.py": "", "lib/site-packages/shop/tasks.py": "raise ValueError('x')"})
    sys.path.append(str(here / "lib" / "site-packages"))
    assert only_problem("shop.tasks") == (
        "shop.tasks: ValueError: x (lib/site-packages/shop/tasks.py:1: raise ValueError('x'))"
    )


def test_a_file_elsewhere_is_shown_by_its_whole_path(write: Write) -> None:
    here = write({"../there/chores.py": "1/0"})
    place = here.parent / "there" / "chores.py"
    assert only_problem("../there/chores.py") == f"chores: ZeroDivisionError: division by zero ({place}:1: 1/0)"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("'first\\nsecond'", ": first"),
        ("'\\n\\n  first\\r\\nsecond'", ": first"),
        ("'a\\tb\\x1b[31m\\x00c'", r": a\tb\x1b[31m\x00c"),
        ("'\\udcff'", r": \udcff"),
        ("'x' * 10**6", f": {'x' * 299}…"),
        ("'x' * 300", f": {'x' * 300}"),
        ("'\\x1b' * 300", ": " + ("\\x1b" * 75)[:299] + "…"),
        ("''", ""),
        ("'\\n'", ""),
        ("'naïve ☃'", ": naïve ☃"),
    ],
)
def test_a_message_is_shown_as_one_short_printable_line(write: Write, message: str, shown: str) -> None:
    write({"tasks.py": f"text = {message}\nraise ValueError(text)"})
    assert only_problem("tasks") == f"tasks: ValueError{shown} (tasks.py:2: raise ValueError(text))"


@pytest.mark.parametrize("body", ["raise ValueError", "return 5", "raise SystemExit", "return self.nothing"])
def test_an_exception_that_cannot_say_what_it_is_is_still_a_problem(write: Write, body: str) -> None:
    write({"tasks.py": f"class Mute(Exception):\n    def __str__(self): {body}\nraise Mute"})
    assert only_problem("tasks") == "tasks: Mute: (its message cannot be shown) (tasks.py:3: raise Mute)"


@pytest.mark.parametrize(
    "url", ["redis://me:s3cret@host/0", "redis://:s3c@s3cret@host/0", "redis://:s3c/s3cret@host/0"]
)
def test_the_password_of_a_url_is_shown_neither_in_a_message_nor_in_a_line(write: Write, url: str) -> None:
    write({"tasks.py": f"raise ValueError('no {url} today')"})
    said = "no redis://***@host/0 today"
    assert only_problem("tasks") == f"tasks: ValueError: {said} (tasks.py:1: raise ValueError('{said}'))"


def test_an_interrupt_passes_through(write: Write) -> None:
    write({"tasks.py": "raise KeyboardInterrupt"})
    with pytest.raises(KeyboardInterrupt):
        load("tasks")
    with pytest.raises(KeyboardInterrupt):
        prepare("tasks:setup")


def test_the_cause_is_what_the_module_raised_and_a_problem_is_bad_configuration(write: Write) -> None:
    write({"tasks.py": "1/0"})
    (problem,) = load("tasks").problems
    assert isinstance(problem.__cause__, ZeroDivisionError)
    assert isinstance(problem, ConfigError)
    assert problem.exit_code == 78
    assert load("a b").problems[0].__cause__ is None


def test_a_declaration_that_is_refused_keeps_its_whole_message(write: Write) -> None:
    write(
        {
            "tasks.py": """
        from beat.errors import BadCron
        error = BadCron("60 * * * *", "minute 60 is not in 0-59", (0, 2))
        error.where = "tasks.py:9"
        raise error
        """
        }
    )
    (problem,) = load("tasks").problems
    assert str(problem) == "tasks.py:9: cron '60 * * * *': minute 60 is not in 0-59\n    60 * * * *\n    ^^"
    assert isinstance(problem.__cause__, BadCron)
    assert str(problem) == str(problem.__cause__)


def test_a_declaration_without_a_place_gets_that_of_the_users_line(write: Write) -> None:
    write({"tasks.py": "from beat.errors import DeclarationError\nraise DeclarationError('no\\nway')"})
    (problem,) = load("tasks").problems
    assert str(problem) == "tasks.py:2: no\nway"
    assert isinstance(problem.__cause__, DeclarationError)


def test_a_declaration_in_a_library_gets_the_name_of_what_was_called(write: Write) -> None:
    text = "from beat.errors import DeclarationError\n\ndef setup():\n    raise DeclarationError('no way')"
    here = write({"lib/site-packages/boom.py": text, "boot.py": "from boom import setup"})
    sys.path.append(str(here / "lib" / "site-packages"))
    with pytest.raises(LoadError, match=r"^setup 'boot:setup': no way$"):
        prepare("boot:setup", {})


def test_a_module_that_loads_another_and_fails_is_told_where(write: Write) -> None:
    write({"tasks.py": "from beat.schedule.loader import load\nraise load('a b').problems[0]"})
    said = only_problem("tasks")
    assert said.startswith("tasks: LoadError: 'a b' is not the name of a module")
    assert said.endswith("(tasks.py:2: raise load('a b').problems[0])")


# prepare


@pytest.mark.parametrize("environ", [{}, {"DJANGO_SETTINGS_MODULE": ""}])
def test_without_settings_django_is_not_even_imported(
    here: Path, monkeypatch: pytest.MonkeyPatch, environ: Mapping[str, str]
) -> None:
    monkeypatch.setitem(sys.modules, "django", None)  # importing it would raise
    prepare(environ=environ)
    assert sys.path[0] == str(here)


def test_setup_is_imported_from_the_current_directory_and_called(write: Write) -> None:
    write({"app/__init__.py": "", "app/boot.py": "done = []\ndef setup(): done.append(1)"})
    prepare("app.boot:setup", {})
    assert sys.modules["app.boot"].done == [1]


def test_any_callable_will_do_for_setup(write: Write) -> None:
    write({"boot.py": "done = []\nclass Setup:\n    def __init__(self): done.append(1)"})
    prepare("boot:Setup", {})
    assert sys.modules["boot"].done == [1]


FORM = "is not of the form 'module:callable': write 'app.boot:setup', for example"
PLAIN = "and beat needs a plain function to call"


@pytest.mark.parametrize(
    ("setup", "problem"),
    [
        *(
            (wrong, FORM)
            for wrong in ("", "boot", "boot:", ":setup", "boot.setup", "a b:c", "boot:a.b", "boot:f()", "a:b:c", 5)
        ),
        ("boot:setpu", "boot has no 'setpu'. Did you mean 'setup'?"),
        ("boot:zzzzz", "boot has no 'zzzzz'."),
        ("boot:tables", "boot has no 'tables'."),
        ("boot:table", f"'table' is of type dict, {PLAIN}"),
        ("boot:nothing", f"'nothing' is of type NoneType, {PLAIN}"),
        ("boot:later", f"'later' is an async function, {PLAIN}"),
        ("boot:fails", "ValueError: no luck (boot.py:5: def fails(): raise ValueError('no luck'))"),
        ("boot:leaves", "called sys.exit(3) (boot.py:6)"),
        ("boot:needs", "TypeError: needs() missing 1 required positional argument: 'what'"),
        ("mute:setup", "mute has no 'setup'."),
        ("boat:setup", "no module named 'boat' in the current directory or on sys.path. Did you mean 'boot'?"),
        ("broken:setup", "ZeroDivisionError: division by zero (broken.py:1: 1/0)"),
        (
            "lazy:anything",
            "ValueError: lazy:anything (lazy.py:1: def __getattr__(name): raise ValueError('lazy:' + name))",
        ),
    ],
)
def test_a_setup_that_cannot_be_called_is_one_sentence(write: Write, setup: str, problem: str) -> None:
    boot = """\
        import sys
        table, nothing = {}, None
        def setup(): pass
        async def later(): pass
        def fails(): raise ValueError('no luck')
        def leaves(): sys.exit(3)
        def needs(what): pass
        """
    lazy = "def __getattr__(name): raise ValueError('lazy:' + name)"
    mute = "import sys; sys.modules[__name__] = object()"
    write({"boot.py": boot, "broken.py": "1/0", "lazy.py": lazy, "mute.py": mute})
    with pytest.raises(LoadError) as refused:
        prepare(setup, {})
    separator = " " if problem == FORM or problem.startswith("called") else ": "
    assert str(refused.value) == f"setup {setup!r}{separator}{problem}"


def test_django_that_is_not_installed_is_one_sentence(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert here.is_dir()
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "")  # so that it is put back
    monkeypatch.setitem(sys.modules, "django", None)
    with pytest.raises(LoadError) as refused:
        prepare(environ={"DJANGO_SETTINGS_MODULE": "site1.settings"})
    assert str(refused.value) == "DJANGO_SETTINGS_MODULE is set, but Django is not installed: install it, or unset it"


SITE = {
    "site1/__init__.py": "",
    "site1/settings.py": """\
        SECRET_KEY = "x"
        INSTALLED_APPS = ["shop"]
        DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
        DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
        """,
    "shop/__init__.py": "",
    "shop/models.py": """\
        from django.db import models

        class Order(models.Model):
            paid = models.BooleanField(default=False)
        """,
    "shop/migrations/__init__.py": "",
    "shop/migrations/0001_initial.py": "raise AssertionError('imported')",
    "shop/tasks.py": "from shop.models import Order\n\ndef unpaid():\n    return Order.objects.filter(paid=False)",
    "boot.py": "from django.apps import apps\n\ndef setup():\n    print('ready' if apps.ready else 'too early')",
}


def in_django(here: Path, program: str, settings: str = "site1.settings") -> str:
    """What `program` prints in a process of its own, because Django's settings are global."""
    path = os.pathsep.join([str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": settings, "PYTHONPATH": path}
    prelude = (
        "import sys; sys.path.remove('')\nfrom beat.schedule.loader import load, prepare\n"
        "from beat.errors import LoadError\n"
    )
    command = [sys.executable, "-W", "error", "-c", prelude + textwrap.dedent(program)]
    done = subprocess.run(command, cwd=here, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


PREPARE = """
try:
    prepare()
except LoadError as e:
    print(e)
"""


def test_a_django_project_is_set_up_before_setup_is_called_and_its_tasks_load(write: Write) -> None:
    program = "prepare('boot:setup')\nprepare()\nprint(*load('shop').modules)\nprint(*load('shop.tasks').problems)"
    assert in_django(write(SITE), program).splitlines() == [
        "ready",
        "shop shop.migrations shop.models shop.tasks",
        "",
    ]


def test_without_prepare_the_models_of_a_django_project_are_a_problem(write: Write) -> None:
    said = in_django(write(SITE), "print(*load('shop.tasks').problems)")
    assert said == (
        "shop.tasks: AppRegistryNotReady: Apps aren't loaded yet. (shop/models.py:3: class Order(models.Model):)\n"
    )


def test_settings_are_taken_from_the_environment_that_is_given(write: Write) -> None:
    program = "prepare('boot:setup', {'DJANGO_SETTINGS_MODULE': 'site1.settings'})"
    assert in_django(write(SITE), program, settings="") == "ready\n"


@pytest.mark.parametrize(
    ("files", "settings", "problem"),
    [
        (
            {},
            "site1.settingz",
            ": no module named 'site1.settingz' in the package 'site1'. Did you mean 'site1.settings'?",
        ),
        (
            {},
            "site2.settings",
            f": no module named 'site2.settings': there is no 'site2' {NOWHERE} Did you mean 'site1'?",
        ),
        (
            {"site1/settings.py": "import os\nos.environ['NOPE']"},
            "",
            ": KeyError: 'NOPE' (site1/settings.py:2: os.environ['NOPE'])",
        ),
        ({"site1/settings.py": "import sys\nsys.exit(3)"}, "", " called sys.exit(3) (site1/settings.py:2)"),
        (
            {"site1/settings.py": "INSTALLED_APPS = ["},
            "",
            ": SyntaxError: '[' was never closed (site1/settings.py:1: INSTALLED_APPS = [)",
        ),
        ({"site1/settings.py": "INSTALLED_APPS = ['shopp']"}, "", ": ModuleNotFoundError: No module named 'shopp'"),
        (
            {"shop/models.py": "import requestz"},
            "",
            ": ModuleNotFoundError: No module named 'requestz' (shop/models.py:1: import requestz)",
        ),
    ],
)
def test_a_django_project_that_cannot_be_set_up_is_one_sentence(
    write: Write, files: Mapping[str, str], settings: str, problem: str
) -> None:
    settings = settings or "site1.settings"
    said = in_django(write({**SITE, **files}), PREPARE, settings)
    assert said == f"django.setup() with DJANGO_SETTINGS_MODULE={settings!r}{problem}\n"
