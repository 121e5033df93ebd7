"""How values read on a page: badges, confidences with their interval, facts, links and long texts."""

import re
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.admin.utils import quote
from django.db import models
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memory.domain.beta import Beta
from memory.domain.lifecycle import BeliefStatus, CycleState, EpisodeStatus, JobState
from memory.domain.verdicts import Verdict
from memory.models import Belief, BeliefAccess, CallOutcome, EpisodeAccess, RivalState

OFFLINE_NOTICE = "Offline models: rules and a small static embedding model"
BELIEFS_NOTICE = "Beliefs off, in the whole installation (ENGRAM_BELIEFS): no cycle runs, recall has episodes alone"
OFFLINE_EMBEDDINGS_NOTICE = "Offline embeddings: a small static embedding model"

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
    RivalState.CONTRADICTS: "danger",
    RivalState.COMPATIBLE: "success",
    RivalState.NEEDS_A_PERSON: "warning",
    CallOutcome.OK: "success",
    CallOutcome.OPEN: "info",
    CallOutcome.MALFORMED: "danger",
    CallOutcome.TIMEOUT: "warning",
    CallOutcome.RATE_LIMITED: "warning",
}


def badge(value: str, *, text: str | None = None) -> SafeString:
    """Show one value of a closed set as a coloured label."""
    shown = text or value.lower().replace("_", " ")
    return SafeString(render_to_string("unfold/helpers/label.html", {"text": shown, "type": _SHADES.get(value, "")}))


def confidence_of(belief: Belief) -> SafeString:
    """Show a confidence as a number with its credible interval, and both on a scale from 0 to 1."""
    mass = settings.POLICY.confidence.interval_mass
    low, high = Beta(alpha=belief.alpha, beta=belief.beta).interval(mass=mass)
    context = {"confidence": belief.confidence, "low": low, "high": high, "mass": f"{mass:.0%}"}
    return SafeString(render_to_string("engram/confidence.html", context | _percentages(belief.confidence, low, high)))


def _percentages(confidence: float, low: float, high: float) -> dict[str, str]:
    return {"left": f"{100 * low:.1f}", "width": f"{100 * (high - low):.1f}", "mark": f"{100 * confidence:.1f}"}


def facts_of(facts: Mapping[str, Any]) -> SafeString:
    """List named numbers, one a line."""
    lines = ((name.replace("_", " "), _short(value)) for name, value in facts.items())
    return format_html_join("", '<div class="whitespace-nowrap">{}: <strong>{}</strong></div>', lines)


def _short(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, float):
        return str(value)
    return f"{value:.3f}".rstrip("0").rstrip(".")


def link_to(model: type[models.Model], key: Any, *, text: str | None = None) -> SafeString | str:
    """Link to a row's page by its key, quoted as the admin reads it (`_23` is a `#`), without reading the row."""
    if key is None:
        return "–"
    address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[quote(key)])
    return format_html('<a href="{}" class="text-link">{}</a>', address, text or key)


def in_words(reason: str) -> str:
    """Show a gate's reason as words; ids keep their underscore, so that they can be searched for."""
    return re.sub(r"(?<!\bcy)(?<!\bbl)(?<!\bep)_", " ", reason)


def passage(text: str) -> SafeString:
    """Show a text of some length as it was written, line breaks kept, never wider than it reads well."""
    return format_html('<div class="max-w-xl min-w-64 whitespace-pre-line break-words">{}</div>', text)


def last_use(access: BeliefAccess | EpisodeAccess | None) -> str:
    """Say how often and when something was recalled last."""
    if access is None or access.accessed_at is None:
        return "never"
    return f"{access.access_count} times, last on {access.accessed_at:%Y-%m-%d %H:%M} UTC"


def beliefs_notice() -> str:
    """Say so where the installation keeps no beliefs (B22); else return nothing."""
    return "" if settings.ENGRAM_BELIEFS else BELIEFS_NOTICE


def offline_notice() -> str:
    """Say so where language is done by rules or vectors by a static model; else return nothing."""
    if settings.ENGRAM_LLM == "offline":
        return OFFLINE_NOTICE
    return OFFLINE_EMBEDDINGS_NOTICE if settings.ENGRAM_EMBEDDINGS == "offline" else ""
