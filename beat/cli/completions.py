"""`beat completions`: the script with which a shell completes commands, options and the ids of schedules.

Whatever is wrong, a shell hears nothing but what fits; and it hears it soon, so that nothing is imported for an id.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from beat import embedded, probe, redis_url, sources
from beat.keys import Keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import ShellComplete

VARIABLE = "_BEAT_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
IDS_FIRST = (
    "show", "history", "why", "verify", "trigger", "pause", "resume", "reschedule", "backfill", "remove",
)  # fmt: skip
"""The commands whose first word is an id: their modules need not be imported to know that."""
_PATIENCE_S = 0.2
_MOST = 200
_FLAG = "--redis-url"


@click.command("completions")
@click.argument("shell", type=click.Choice(SHELLS), metavar="bash|zsh|fish")
def command(*, shell: str) -> None:
    """Print the script with which your shell completes commands, options and the ids of schedules.

    \b
    source <(beat completions bash)                               now; or in ~/.bashrc
    source <(beat completions zsh)                                now; or in ~/.zshrc, after compinit
    beat completions fish > ~/.config/fish/completions/beat.fish  from the next shell on

    Ids are those of the Redis that is set, or that beat dev runs here. Without a Redis there is nothing to complete,
    and nothing is said.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    kind = get_completion_class(shell)
    if kind is None:
        raise click.ClickException(f"this version of click knows nothing of {shell}")
    click.echo(kind(click.Group(), {}, "beat", VARIABLE).source())


def complete(cli: click.Group, instruction: str) -> int:
    """Answers the shell that runs the script."""
    kind = get_completion_class(instruction.partition("_")[0])
    if kind is None:
        return 1
    made: ShellComplete = type("Completing", (_Completing, kind), {})(cli, {}, "beat", VARIABLE)
    click.echo(made.complete())
    return 0


class _Completing:
    """What fits, as soon as it can be known."""

    cli: click.Group

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """Ids where an id is to stand, without importing the command that takes it."""
        if len(args) == 1 and args[0] in IDS_FIRST and not incomplete.startswith("-"):
            return ids(incomplete, args)
        found = self.cli.get_command(click.Context(self.cli), args[0]) if args else None
        for each in found.params if found else ():
            if _is_id(each):
                each.type = _Id(args)
        asked: Any = super()
        told: list[CompletionItem] = asked.get_completions(args, incomplete)
        return told


def _is_id(parameter: click.Parameter) -> bool:
    """What the help calls so."""
    return (parameter.metavar or "").strip("[].") == "ID"


class _Id(click.types.StringParamType):
    """The id of a schedule."""

    def __init__(self, args: Sequence[str]) -> None:
        self._args = args

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 (click's signature)
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Those that begin so."""
        return ids(incomplete, self._args)


def ids(start: str, args: Sequence[str] = ()) -> list[CompletionItem]:
    """The ids that begin so, in order, if a Redis tells them soon; nothing whatever else is the case."""
    try:
        return [CompletionItem(each) for each in _asked(start, _given(args))]
    except Exception:  # noqa: BLE001 (a shell that completes has no place for errors)
        return []


def _asked(start: str, url: str | None) -> list[str]:
    if set(start) & set("*?[]\\"):
        return []
    values = sources.find({"redis_url": url}).values
    url = str(values["redis_url"].value) if "redis_url" in values else embedded.running() or redis_url.DEFAULT
    keys = Keys(str(values["prefix"].value)) if "prefix" in values else Keys()
    place = probe.place(url)
    if place is None:  # only redis-py understands it, which takes too long
        return []
    with probe.line(place, _PATIENCE_S) as line:
        low, high = (f"[{start}", f"({start}\x7f") if start else ("-", "+")
        [found] = line.ask([["ZRANGEBYLEX", keys.index("all"), low, high, "LIMIT", "0", str(_MOST)]])
        if not isinstance(found, list) or not found:  # nobody has made the index yet
            [scanned] = line.ask([["SSCAN", keys.schedules, "0", "MATCH", f"{start}*", "COUNT", "10000"]])
            found = scanned[1] if isinstance(scanned, list) and isinstance(scanned[1], list) else []
    told = (each.decode() for each in found if isinstance(each, bytes))
    return sorted(each for each in told if each.isprintable())[:_MOST]


def _given(args: Sequence[str]) -> str | None:
    """The Redis that stands in the line."""
    for word, following in itertools.pairwise([*args, ""]):
        if word == _FLAG:
            return following or None
        if word.startswith(f"{_FLAG}="):
            return word.partition("=")[2]
    return None
