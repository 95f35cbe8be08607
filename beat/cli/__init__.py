"""Define the command line: a table of commands, and the one place that turns errors into exit codes.

The module of a command is imported only when the command runs. So `beat --help` and `beat next` start fast, without rq
and pydantic.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING

import click

from beat._version import __version__
from beat.cli import output
from beat.config import redis_url, sources
from beat.errors import BeatError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from click.shell_completion import CompletionItem

_USAGE, _BUG, _INTERRUPTED = 2, 70, 130
_COMPLETE = "_BEAT_COMPLETE"
_SHARED = {"--redis-url": " URL", "--json": ""}
"""Options that may also stand before the command → how the usage error shows their value."""

# group → command → its help in one line; the module of the same name defines `command`
COMMANDS: Mapping[str, Mapping[str, str]] = {
    "Run": {
        "run": "Fire every tick of every schedule, exactly once.",
        "dev": "Start a private Redis, a scheduler, a worker and the web UI.",
        "web": "Serve the web UI: did it run, will it run, why not.",
    },
    "Look": {
        "list": "List the schedules: what is next, and how their runs ended.",
        "show": "Show one schedule: its state, policies and statistics.",
        "history": "Show what became of every tick, newest first.",
        "why": "Explain what became of one tick, or why there is none.",
        "verify": "Recompute all ticks, and compare them with the history.",
        "timeline": "Draw past and coming load, and show where schedules pile up.",
        "next": "Show when an expression ticks, with its zone and DST.",
    },
    "Change": {
        "trigger": "Run a schedule now; --wait for its end.",
        "pause": "Hold the ticks of schedules until a time, or until you resume.",
        "resume": "End pauses; nothing fires at once.",
        "reschedule": "Override the rule of the code, or move the next tick.",
        "backfill": "Run ticks of the past, a few at a time, none twice.",
        "add": "Add schedules from data: one, a file, or a predecessor's.",
        "remove": "Delete schedules with their history, after asking.",
    },
    "Check": {
        "check": "Import modules and report every wrong or surprising schedule.",
        "plan": "Show what a deploy of this code would change; write nothing.",
        "doctor": "Check everything that could be wrong; print remedies.",
        "health": "Tell container probes whether a scheduler is alive.",
        "config": "Show the effective settings and where each came from.",
        "alerts": "Show alert rules and open incidents; test channels.",
        "redis": "Send one command to Redis, for people without redis-cli.",
    },
}


class _Commands(click.Group):
    """The commands in groups. A module is imported only when its command runs."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._behind_the_command(ctx, args))

    def _behind_the_command(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move the options that most commands have from before the command to behind it."""
        start = 0
        while start < len(args) and args[start].partition("=")[0] in _SHARED:
            start += 2 if _SHARED.get(args[start]) else 1
        if start and start >= len(args) and not ctx.resilient_parsing:
            name = args[0].partition("=")[0]
            raise click.UsageError(f"{name} goes with a command, as in beat list {name}{_SHARED[name]}", ctx)
        return [*args[start : start + 1], *args[:start], *args[start + 1 :]] if start else args

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
        if args[0] not in self.list_commands(ctx) and not ctx.resilient_parsing:
            hint = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(f"there is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names of commands from the table, without importing their modules."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 (for shells alone)

        told = ((name, text) for group in COMMANDS.values() for name, text in group.items())
        named = [CompletionItem(name, help=text) for name, text in told if name.startswith(incomplete)]
        return named or click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (click's signature)
        for group, commands in COMMANDS.items():
            with formatter.section(group):
                formatter.write_dl([*commands.items()])  # not list(): `beat.cli.list` hides the built-in here


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="beat")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Periodic tasks for RQ: any number of schedulers, every tick exactly one job.

    \b
    Write a schedule:         @periodic("0 9 * * mon-fri", tz="Europe/Paris")
    See when it will tick:    beat next "0 9 * * mon-fri" --tz Europe/Paris
    Check all of them:        beat check app.tasks
    Try it, Redis included:   beat dev app.tasks
    Run it, beside others:    beat run app.tasks
    Ask what happened:        beat history --failed --since 24h
    Run it now, or not:       beat trigger report, beat pause report --until monday

    \b
    Exit codes: 0 fine, 1 the thing asked about is bad, 2 usage or bad input,
    3 not found, 4 refused, 69 no Redis, 70 a bug in beat, 78 bad configuration,
    124 trigger --wait gave up after --timeout, 130 interrupted.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    if ctx.invoked_subcommand is None:
        _without_a_command(ctx)


def _without_a_command(ctx: click.Context) -> None:
    """Run the scheduler if a setting names modules; otherwise print the help and exit with a usage error."""
    modules = sources.find().values.get("modules")
    if modules is None or not modules.value:
        output.echo(ctx.get_help())
        output.echo()
        words = "there is no command. To start a scheduler, name its modules, as in 'beat run app.tasks'; bare 'beat' "
        output.complaint("error", words + "starts one only if BEAT_MODULES or [tool.beat] names them", err=True)
        raise click.exceptions.Exit(_USAGE)
    run = cli.get_command(ctx, "run")
    assert run is not None  # noqa: S101 (it is in the table above)
    ctx.invoke(run)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit the process with its exit code."""
    if asked := os.environ.get(_COMPLETE):  # set by a shell that completes a line
        sys.exit(_complete(asked))
    sys.exit(_run(sys.argv[1:] if arguments is None else [*arguments]))


def _complete(instruction: str) -> int:
    from click.shell_completion import shell_complete  # noqa: PLC0415 (for shells alone)

    return shell_complete(cli, {}, "beat", _COMPLETE, instruction)


def _run(arguments: list[str]) -> int:
    try:
        # cli.main() would exit with 1 when a pipe is closed.
        with cli.make_context("beat", arguments) as ctx:
            return cli.invoke(ctx) or 0
    except click.exceptions.Exit as e:
        return e.exit_code
    except BeatError as e:
        return _failed(str(e), e.exit_code)
    except click.UsageError as e:
        return _failed(f"{e.format_message()}\nTry '{e.ctx.command_path if e.ctx else 'beat'} --help'.", e.exit_code)
    except click.ClickException as e:
        return _failed(e.format_message(), e.exit_code)
    except (click.Abort, KeyboardInterrupt):
        output.echo(err=True)  # ends the line on which the terminal wrote ^C
        return _INTERRUPTED
    except BrokenPipeError:  # click's own help, piped into a program that does not read it
        output.hang_up(sys.stdout)
        return 0
    except Exception:  # noqa: BLE001 (any other error is a bug in beat, and is reported as one)
        import traceback  # noqa: PLC0415 (for a bug alone)

        output.echo(output.printable(redis_url.hidden(traceback.format_exc())), err=True, ended=False)
        return _failed("this is a bug in beat, not in what you did; please report it with the lines above", _BUG)


def _failed(message: str, code: int) -> int:
    output.complaint("error", message, err=True)
    return code
