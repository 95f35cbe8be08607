"""What `--help` says of each option and command: one imperative line that fits the terminal."""

from __future__ import annotations

import click
import pytest

from beat.cli import COMMANDS, cli

LONGEST = 70
NAMES = [name for group in COMMANDS.values() for name in group]


def options(name: str) -> list[click.Option]:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return [each for each in found.params if isinstance(each, click.Option)]


def is_imperative(text: str) -> bool:
    """Begins with a verb: not with what a noun phrase, a condition or another option begins with."""
    first = text.partition(" ")[0]
    others = "A All An Any Another At By How Only That The Those When Where Who Why What With Also Many"
    return first.istitle() and first not in others.split() and first.rstrip(":,") == first


@pytest.mark.parametrize("name", NAMES)
def test_every_option_has_one_imperative_line(name: str) -> None:
    for option in options(name):
        text = option.help or ""
        assert 0 < len(text) <= LONGEST, (option.opts, text)
        assert is_imperative(text), (option.opts, text)


def test_every_command_has_one_imperative_line() -> None:
    for group in COMMANDS.values():
        for text in group.values():
            assert len(text) <= LONGEST, text
            assert is_imperative(text), text
