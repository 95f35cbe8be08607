"""The forms that override a rule field by field with a preview, move the next tick, or reset to the code's rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from beat.client.describe import instants
from beat.errors import BadOption
from beat.timing.zones import names, zone
from beat.web import flash, rendering
from beat.web.actions import forms
from beat.web.actions.rule_form import FIELDS, PRESETS, Rule, as_declared
from beat.web.actions.rule_form import preview as seen

if TYPE_CHECKING:
    from starlette.responses import Response

    from beat.client.queries import Overview
    from beat.web.request import Asked
    from beat.web.site import Site

_DONE = {"rule": "rescheduled", "at": "moved", "reset": "reset"}
_LONGEST = 200
HELP = {
    "second": ("Second", "or empty", ""),
    "minute": ("Minute", "0-59", "0 15 30 */5 */15 *"),
    "hour": ("Hour", "0-23", "0 6 9 12 18 */2 9-17 *"),
    "day": ("Day", "1-31", "* 1 15 1,15"),
    "month": ("Month", "1-12, jan", "* jan jan,apr,jul,oct */3"),
    "weekday": ("Weekday", "0-7, mon", "* mon mon-fri sat,sun"),
}


def form(_site: Site, asked: Asked) -> Response:
    """Show the forms, filled with the current rule and the values in the address."""
    found = forms.schedule(asked)
    return _shown(asked, found, _rule(found, asked.query), version=asked.query.get("version", "")[:20])


def preview(_site: Site, asked: Asked) -> Response:
    """Return the part of the page that shows what the rule in the fields would do."""
    forms.refuse_to_show(asked)
    found = forms.schedule(asked)
    rule = _rule(found, asked.query)
    given = asked.query.get("version", "")[:20] or str(found.standing.version)
    return rendering.page(
        asked,
        "preview.html",
        **_preview(asked, found, rule),
        expected=given,
        known=found.standing,
        now=found.now,
        is_live=True,
    )


def reschedule(_site: Site, asked: Asked) -> Response:
    """Override the rule, move the next tick, or reset to the code's rule; show the form if there is a problem."""
    found, typed = forms.schedule(asked), asked.form
    what = typed.get("what", "")
    try:
        wish = _wish(found, what, typed)
        asked.client.reschedule(found.standing.schedule_id, **wish, expected_version=forms.version(asked))
    except forms.WRONG as e:
        wrong = forms.problem(e)._replace(field=what)
        return _shown(asked, found, _rule(found, typed), wrong, at=typed.get("at", "")[:_LONGEST])
    return flash.back(asked, forms.path(found), _DONE[what])


def _wish(found: Overview, what: str, typed: dict[str, str]) -> dict[str, Any]:
    match what:
        case "rule":
            return _rule(found, typed).wish
        case "at":
            written = typed.get("at", "").strip()[:_LONGEST]
            return {"at": instants.coming(written, zone(found.standing.tz), found.now, "at").instant}
        case "reset":
            return {"reset": True}
    raise BadOption("that is no form of the web UI")


def _rule(found: Overview, typed: Any) -> Rule:
    return Rule.of(found.standing).written(typed)


def _shown(
    asked: Asked, found: Overview, rule: Rule, wrong: forms.Problem = forms.NONE, *, at: str = "", version: str = ""
) -> Response:
    return forms.shown(
        asked,
        "reschedule.html",
        found,
        wrong,
        **_preview(asked, found, rule),
        expected=version or str(found.standing.version),
        at=at,
        presets=[(words, Rule(tz=rule.tz).written(given).plain) for words, given in PRESETS],
        labels=HELP,
        zones=sorted(names()),
        declared=as_declared(asked.client, found),
        is_live=False,
    )


def _preview(asked: Asked, found: Overview, rule: Rule) -> dict[str, Any]:
    return {
        "built": rule,
        "fields": (*FIELDS[1:], FIELDS[0]),
        "preview": seen(asked.client, found, rule),
    }
