"""The form that runs a schedule now, with its own or other arguments. Pressing twice triggers one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from beat.client.describe import values
from beat.config.masking import MASK, looks_secret, masked
from beat.errors import BadArguments, BadOption
from beat.web import flash
from beat.web.actions import forms
from beat.web.pages import header

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

    from beat.client.job_arguments import Arguments
    from beat.web.request import Asked
    from beat.web.site import Site

_NAMED = "arg:"
_FIELDS = {BadArguments: "more"}


class Field(NamedTuple):
    """A named argument of the schedule, which the user can change."""

    name: str
    value: str
    """The value as a user would type it. It is empty for a secret, which stays unchanged if left empty."""
    is_secret: bool


def form(_site: Site, asked: Asked) -> Response:
    """Show the form with the arguments of the schedule."""
    return _shown(asked, {})


def run(_site: Site, asked: Asked) -> Response:
    """Trigger the run and redirect to its page, or show the form with its problem."""
    schedule_id, typed = header.schedule_id(asked), asked.form
    try:
        args, kwargs = _given(asked.client.arguments(schedule_id), typed)
        made = asked.client.trigger(
            schedule_id,
            args=args,
            kwargs=kwargs,
            force="force" in typed,
            skip_next="skip_next" in typed,
            request=typed.get("request") or None,
            expected_version=forms.version(asked),
        )
    except forms.WRONG as e:
        return _shown(asked, typed, forms.problem(e, _FIELDS))
    done = "asked_instead" if "skip_next" in typed else "asked"
    return flash.back(asked, f"/schedules/{schedule_id}/runs/{made.job_id}", done)


def _shown(asked: Asked, typed: Mapping[str, str], wrong: forms.Problem = forms.NONE) -> Response:
    found = forms.schedule(asked)
    known = asked.client.arguments(found.standing.schedule_id)
    names = known.kwargs if known else {}
    return forms.shown(
        asked,
        "run_with.html",
        found,
        wrong,
        fields=[_field(name, value, typed) for name, value in names.items()],
        args=typed.get("args", values.written(list(known.args)) if known and _is_open(known) else ""),
        hidden_args=bool(known and known.args and not _is_open(known)),
        unreadable=known.problem if known else "",
        typed=typed,
        mask=MASK,
    )


def _field(name: str, value: Any, typed: Mapping[str, str]) -> Field:
    secret = looks_secret(name) or masked(value) != _plain(value)
    return Field(name, typed.get(f"{_NAMED}{name}", "" if secret else values.written(value)), secret)


def _is_open(known: Arguments) -> bool:
    """Return whether there are positional arguments and none of them looks secret."""
    return bool(known.args) and masked(known.args) == _plain(known.args)


def _plain(value: Any) -> Any:
    """Return the value with lists instead of tuples, so that it can be compared with `masked`."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return {key: _plain(each) for key, each in value.items()} if isinstance(value, dict) else value


def _given(known: Arguments | None, typed: Mapping[str, str]) -> tuple[list[Any] | None, dict[str, Any] | None]:
    """Return the positional and the named arguments that the user changed; None for each without changes."""
    own = dict(known.kwargs) if known else {}
    kwargs: dict[str, Any] = {}
    for field, text in typed.items():
        name = field.removeprefix(_NAMED)
        if name == field or (name in own and text == _field(name, own[name], {}).value):
            continue
        kwargs[name] = values.value(text)
    kwargs |= values.pairs((line.strip() for line in typed.get("more", "").splitlines() if line.strip()), "argument")
    return _positional(known, typed.get("args", "").strip()), kwargs or None


def _positional(known: Arguments | None, written: str) -> list[Any] | None:
    before = values.written(list(known.args)) if known and known.args else ""
    if not written or written == before:
        return None
    found = values.value(written)
    if not isinstance(found, list):
        raise BadOption(f"the arguments without a name, {written!r:.60}, are no list of JSON: write [1, 2]")
    return found
