"""Choose the modules that `beat run`, `check`, `plan` and `dev` load.

They are the modules that the command line names, else those of the settings, else a tasks.py in the current directory.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from beat.config import sources

if TYPE_CHECKING:
    from beat.config.settings import Loaded

FILE = "tasks.py"
REMEDY = f"or set BEAT_MODULES, or modules in [tool.beat] of pyproject.toml, or write a {FILE} in this directory"


class Chosen(NamedTuple):
    """The modules to load, and where their names come from."""

    names: tuple[str, ...]
    why: str = ""
    """A sentence with the modules and their source; empty if the command line names them, or if there are none."""


def choose(named: tuple[str, ...], loaded: Loaded) -> Chosen:
    """Return the modules to load.

    If a pyproject.toml names them, this also changes to its directory, so that its names mean the same wherever beat
    is started below it.
    """
    project = sources.project()
    if project and _from_project(loaded, "setup"):
        sys.path.insert(0, project)
    if named:
        return Chosen(named)
    if names := loaded.settings.modules:
        why = f"loading {', '.join(names)}, named by {loaded.origins['modules']}"
        if project and _from_project(loaded, "modules"):
            if not Path(project).samefile(os.curdir):
                os.chdir(project)
                why += f", in {project}"
            sys.path.insert(0, project)
        return Chosen(names, why)
    if Path(FILE).is_file():
        return Chosen((FILE,), f"loading {FILE} from this directory: neither the command nor a setting names modules")
    return Chosen(())


def _from_project(loaded: Loaded, name: str) -> bool:
    return "pyproject.toml" in loaded.origins[name]
