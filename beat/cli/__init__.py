"""The command line: a table of sub-commands, and the one place where errors become exit codes.

Each sub-command is loaded when it is called: `beat --help` and `beat next` start at once, without rq and pydantic.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from typing import TYPE_CHECKING

import click

from beat._version import __version__
from beat.errors import BeatError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

_INTERRUPTED, _BUG = 130, 70

# group → sub-command → what it does, in one line; the module of the same name holds `command`
COMMANDS: Mapping[str, Mapping[str, str]] = {
    "Look": {"next": "When will this expression tick? Teaches cron, zones and DST."},
    "Check": {
        "check": "Import modules and report every wrong or surprising schedule.",
        "config": "Show the effective settings and where each came from.",
    },
}


class _Commands(click.Group):
    """Sub-commands in groups; a module is imported only when its command runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return [name for group in COMMANDS.values() for name in group]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"beat.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.list_commands(ctx):
            hint = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(f"there is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (click's signature)
        for group, commands in COMMANDS.items():
            with formatter.section(group):
                formatter.write_dl(list(commands.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="beat")
def cli() -> None:
    """Periodic tasks for RQ: any number of beats, every tick exactly one job.

    \b
    Write a schedule:         @periodic("0 9 * * mon-fri", tz="Europe/Paris")
    See when it will tick:    beat next "0 9 * * mon-fri" --tz Europe/Paris
    Check all of them:        beat check app.tasks

    Exit codes: 0 fine, 1 the thing asked about is bad, 2 usage or bad input, 78 bad configuration, 70 a bug.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line and ends the process with its exit code."""
    try:
        code = cli.main(arguments, prog_name="beat", standalone_mode=False) or 0
    except BeatError as e:
        code = _said(str(e), e.exit_code)
    except click.ClickException as e:
        e.show()
        code = e.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = _INTERRUPTED
    except BrokenPipeError:  # `beat next … | head`: whoever read has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception:  # noqa: BLE001 (the last line of defence: say that it is ours)
        traceback.print_exc()
        code = _said("this is a bug in beat, not in what you did; please report it with the lines above", _BUG)
    sys.exit(code)


def _said(message: str, code: int) -> int:
    click.echo(click.style("error: ", fg="red", bold=True) + message, err=True)
    return code
