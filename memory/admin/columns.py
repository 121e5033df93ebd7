"""How a row's values are shown: columns that a page declares, and the badges, links and texts that they are made of.

`column` shows a value of the row, `link_column` links to another row; `SharedColumns` holds those that many pages show.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db import models
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memory.domain.evidence import Beta, Verdict
from memory.domain.lifecycle import BeliefStatus, CycleState, EpisodeStatus, JobState
from memory.models import Belief, BeliefAccess, CallOutcome, ContradictionState, EpisodeAccess

Column = Callable[[Any, Any], Any]

NOTHING = "–"


def column(
    path: str, show: Callable[[Any], Any] = str, *, title: str = "", ordering: str = "", empty: str = NOTHING
) -> Column:
    """Make a column of the value at a dotted path of the row."""

    @admin.display(description=title or path.replace("_", " "), ordering=ordering or None)
    def shown(page: Any, row: Any) -> Any:
        value = row
        for name in path.split("."):
            value = None if value is None else getattr(value, name)
        return empty if value is None else show(value) or empty

    return shown


def link_column(name: str, *, text: str = "", title: str = "") -> Column:
    """Make a column that links to the row of a foreign key, by its key or by one of its texts.

    The key alone costs no query; a page that shows a text names the relation in `related`.
    """

    @admin.display(description=title or name.replace("_", " "))
    def shown(page: Any, row: Any) -> SafeString | str:
        linked = getattr(row, name) if text else None
        words = getattr(linked, text)[: page.text_length] if linked else None
        return link_to(row._meta.get_field(name).related_model, getattr(row, f"{name}_id"), text=words)

    return shown


def folded(title: str, *fields: Any) -> tuple[str, Any]:
    """Make a group of fields that a page shows folded up."""
    return title, {"fields": fields, "classes": ("collapse",)}


def badge(value: str, *, text: str | None = None) -> SafeString:
    """Show one value of a closed set as a coloured label."""
    shown = text or value.lower().replace("_", " ")
    return SafeString(render_to_string("unfold/helpers/label.html", {"text": shown, "type": _SHADES.get(value, "")}))


_SHADES: Mapping[str, str] = {
    Verdict.SUPPORTS: "success",
    Verdict.CONTRADICTS: "danger",
    Verdict.PARTIAL: "warning",
    BeliefStatus.ACTIVE: "success",
    BeliefStatus.CHALLENGED: "warning",
    BeliefStatus.INVALIDATED: "danger",
    EpisodeStatus.FORGOTTEN: "danger",
    CycleState.FINISHED: "success",
    CycleState.RUNNING: "info",
    CycleState.OVER_BUDGET: "warning",
    CycleState.FAILED: "danger",
    JobState.APPLIED: "success",
    ContradictionState.CONTRADICTS: "danger",
    ContradictionState.COMPATIBLE: "success",
    ContradictionState.NEEDS_A_PERSON: "warning",
    CallOutcome.OK: "success",
    CallOutcome.OPEN: "info",
    CallOutcome.MALFORMED: "danger",
    CallOutcome.TIMEOUT: "warning",
    CallOutcome.RATE_LIMITED: "warning",
}


def confidence_of(belief: Belief) -> SafeString:
    """Show a confidence as a number with its credible interval, and both on a scale from 0 to 1."""
    mass = settings.POLICY.confidence.interval_mass
    low, high = Beta(alpha=belief.alpha, beta=belief.beta).interval(mass=mass)
    numbers = {"confidence": belief.confidence, "low": low, "high": high, "mass": f"{mass:.0%}"}
    scale = {"left": low, "width": high - low, "mark": belief.confidence}
    percentages = {name: f"{100 * share:.1f}" for name, share in scale.items()}
    return SafeString(render_to_string("engram/confidence.html", numbers | percentages))


def facts_of(facts: Mapping[str, Any]) -> SafeString:
    """List named numbers, one a line."""
    lines = ((name.replace("_", " "), _short_number(value)) for name, value in facts.items())
    return format_html_join("", '<div class="whitespace-nowrap">{}: <strong>{}</strong></div>', lines)


def _short_number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    return f"{value:.3f}".rstrip("0").rstrip(".")


def link_to(model: type[models.Model], key: Any, *, text: str | None = None) -> SafeString | str:
    """Link to a row's page by its key, quoted as the admin reads it (`_23` is a `#`), without reading the row."""
    if key is None:
        return NOTHING
    address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[quote(key)])
    return format_html('<a href="{}" class="text-link">{}</a>', address, text or key)


def words_of_reason(reason: str) -> str:
    """Show a gate's reason as words; ids keep their underscore, so that they can be searched for."""
    return re.sub(r"(?<!\bcy)(?<!\bbl)(?<!\bep)_", " ", reason)


def text_block(text: str) -> SafeString:
    """Show a text of some length as it was written, line breaks kept, never wider than it reads well."""
    return format_html('<div class="max-w-xl min-w-64 whitespace-pre-line break-words">{}</div>', text)


def last_use(access: BeliefAccess | EpisodeAccess | None) -> str:
    """Say how often and when something was recalled last."""
    if access is None or access.accessed_at is None:
        return "never"
    return f"{access.access_count} times, last on {access.accessed_at:%Y-%m-%d %H:%M} UTC"


class SharedColumns:
    """Columns that several pages show; a page names those that its model has fields for."""

    text_length: ClassVar[int | None] = None  # characters shown of a linked row's text; all of it in an inline

    state_badge = column("state", badge, ordering="state")
    status_badge = column("status", badge, ordering="status")
    verdict_badge = column("verdict", badge, ordering="verdict")
    reason_words = column("reason", words_of_reason, title="reason")
    facts_seen = column("facts", facts_of, title="facts it saw", empty="")
    counts_list = column("counts", facts_of, empty="")

    belief_statement = link_column("belief", text="statement")
    twin_statement = link_column("twin", text="statement")
    parent_statement = link_column("parent", text="statement", title="earlier belief")
    child_statement = link_column("child", text="statement", title="later belief")
    episode_text = link_column("episode", text="text")
    claim_sentence = link_column("claim", text="sentence")
    belief_link = link_column("belief")
    belief_made = link_column("belief", title="belief made")
    cycle_link = link_column("cycle")
