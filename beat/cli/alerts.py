"""`beat alerts`: show the alert rules, the open incidents and the undelivered messages, and test the channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from beat.cli import common_options, output
from beat.config import settings
from beat.errors import BadOption, ConfigError, did_you_mean
from beat.notify.alerts import config, status
from beat.notify.alerts.status import Standing
from beat.notify.delivery import NotTaken

if TYPE_CHECKING:
    from beat.notify.alerts.status import Open

_BAD = 1
_NONE = """\
there is no alert: write into pyproject.toml

    [tool.beat.alerts.channels.ops]
    kind = "slack"
    url_env = "SLACK_URL"

    [[tool.beat.alerts.rules]]
    on = ["failed", "recovered"]
    times = 3
    channel = "ops"

and try it with `beat alerts test`."""


@click.group("alerts", invoke_without_command=True)
@common_options.the_url
@common_options.as_json
@click.pass_context
def command(ctx: click.Context, *, url: str | None, as_json: bool) -> None:
    """Show the rules, the incidents that are open, and what channels have yet to take.

    \b
    beat alerts                         rules, incidents, channels
    beat alerts --json | jq '.incidents[].incident'
    beat alerts test                    a message through each channel
    beat alerts test ops                through one

    \b
    [tool.beat.alerts.channels.ops]     in pyproject.toml
    kind = "slack"                      or webhook, or command = ["…"]
    url_env = "SLACK_URL"
    [[tool.beat.alerts.rules]]
    on = ["failed", "recovered"]        lost late_fire late_start late_end no_worker broken no_beat
    schedules = "report-*"
    times = 3
    channel = "ops"

    Of the functions of @beat.on_event, only the incidents are shown here: schedulers know the functions that they have
    imported.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    if ctx.invoked_subcommand is not None:
        return
    found = Standing(common_options.where(url))
    if as_json:
        output.document(**status.plain(found))
    else:
        _show(found)


@command.command("test")
@click.argument("channel", required=False)
@common_options.as_json
def test(*, channel: str | None, as_json: bool) -> int:
    """Send a test message through each channel, or through one, and say what came back.

    \b
    beat alerts test
    beat alerts test ops

    It needs no Redis and no scheduler. Ends with 1 if a channel has not taken it.
    """  # noqa: D301 (click's mark for lines that are not to be wrapped)
    known = config.read(settings.load().settings).channels
    if channel is not None and channel not in known:
        raise BadOption(f"no channel is called {channel!r:.60}.{did_you_mean(channel, known)}")
    if not known:
        raise ConfigError(_NONE)
    results = []
    for each in [known[channel]] if channel is not None else known.values():
        try:
            results.append((each.name, True, status.trial(each)))
        except NotTaken as e:
            results.append((each.name, False, str(e)))
        if not as_json:
            _, taken, said = results[-1]
            output.entry(f"{each.name}: {said}", mark="✓" if taken else "✗", colour="green" if taken else "red")
    if as_json:
        output.document(channels=[{"channel": name, "taken": taken, "said": said} for name, taken, said in results])
    return 0 if all(taken for _, taken, _ in results) else _BAD


def _show(found: Standing) -> None:
    opened, kinds = found.incidents(), found.wanted.channels
    if not found.wanted.rules and not opened:
        output.echo(_NONE, err=True)
        return
    rules = [[rule.name, str(rule)] for rule in found.wanted.rules]
    channels = [[name, str(number), str(kinds[name])] for name, number in found.waiting().items()]
    for head, rows in ((["rule", "says"], rules), (["channel", "waiting", "what"], channels)):
        if rows:
            output.table(head, rows)
            output.echo()
    if opened:
        output.table(["incident", "of", "event", "count", "since", "told"], [_row(each) for each in opened])
    else:
        output.say("no incident is open")


def _row(each: Open) -> list[str]:
    state = each.state
    told = ", ".join(state.told) or "-"
    return [state.incident, each.subject, state.event, str(state.count), state.since, told]
