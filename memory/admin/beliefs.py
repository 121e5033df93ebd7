"""Beliefs as a curator reads them: the statement, how sure we are, and why."""

from collections import Counter
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.paginator import Paginator
from django.db import models
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memory.admin.actions import BELIEF_ACTIONS, PinForm, ReasonForm, set_pin
from memory.admin.belief_changes import HistoryInline
from memory.admin.columns import NOTHING, badge, column, confidence_of, folded, link_column, link_to, text_block
from memory.admin.episodes import MemoriesAdmin
from memory.admin.membership import MembersAdmin, OwnWorkspaces, ReadOnlyInline
from memory.domain.evidence import EvidenceRow, Verdict, WeighedEvidence, weigh_evidence
from memory.models import (
    Belief,
    BeliefEmbedding,
    ClusterJob,
    Cycle,
    Episode,
    Evidence,
    EvidenceKind,
    GateDecision,
    Lineage,
    MemoryFile,
    PublishedBelief,
)


def weigh_belief(belief: Belief) -> WeighedEvidence:
    """Weigh all evidence of a belief as consolidation does, by the rule of its workspace."""
    policy = replace(settings.POLICY.confidence, independence=belief.workspace.discount_repeats)
    columns = ("episode_id", "verdict", "base_weight", "episode__origin", "episode__occurred_at")
    rows = Evidence.objects.for_workspace(belief.workspace_id).filter(belief=belief).values_list(*columns)
    return weigh_evidence(
        rows=[
            EvidenceRow(episode_id=key, verdict=Verdict(verdict), base_weight=weight, origin=origin, occurred_at=at)
            for key, verdict, weight, origin, at in rows
        ],
        policy=policy,
    )


def shown_weights(belief: Belief) -> WeighedEvidence:
    """Return the weights that the belief's page has computed."""
    weighed: WeighedEvidence = belief.weighed  # type: ignore[attr-defined]
    return weighed


class EvidenceInline(ReadOnlyInline[Evidence, Belief]):
    """Every verdict on the belief, newest first."""

    model = Evidence
    verbose_name_plural = "evidence: what was said, and how it counts"
    fields = ("verdict_badge", "effective_weight", "said", "counts", "reason", "session", "occurred")
    ordering = ("-episode__occurred_at", "-id")
    related = ("episode", "claim")
    occurred = column("episode.occurred_at", "{:%Y-%m-%d}".format, title="occurred on")

    @admin.display(description="counts as")
    def effective_weight(self, row: Evidence) -> str:
        kind = "" if row.kind == EvidenceKind.ORDINARY else f" ({row.get_kind_display()})"
        return f"{shown_weights(row.belief).weights[row.episode_id]:.2f}{kind}"

    @admin.display(description="episode")
    def said(self, row: Evidence) -> SafeString:
        link = link_to(Episode, row.episode_id)
        return format_html('{}<div class="mt-1 text-xs">{}</div>', text_block(row.episode.text), link)

    @admin.display(description="claim that counts")
    def counts(self, row: Evidence) -> SafeString | str:
        if row.claim is None:
            return NOTHING
        return format_html('{}<div class="mt-1">{}</div>', text_block(row.claim.sentence), badge(row.claim.mode))

    @admin.display(description="session")
    def session(self, row: Evidence) -> str:
        return row.episode.session or row.episode.document or NOTHING


class CameFromInline(ReadOnlyInline[Lineage, Belief]):
    model = Lineage
    fk_name = "child"
    verbose_name_plural = "came from"
    fields = ("kind", "parent_statement", "reason", "created_at")
    ordering = ("-id",)
    related = ("parent",)


class BecameInline(ReadOnlyInline[Lineage, Belief]):
    model = Lineage
    fk_name = "parent"
    verbose_name_plural = "became"
    fields = ("kind", "child_statement", "reason", "created_at")
    ordering = ("-id",)
    related = ("child",)


class DecisionsInline(ReadOnlyInline[GateDecision, Belief]):
    model = GateDecision
    fk_name = "belief"
    verbose_name_plural = "decisions of the gates"
    fields = ("gate", "passed", "reason_words", "facts_seen", "twin_link", "cycle_link", "created_at")
    ordering = ("-created_at", "-id")
    twin_link = link_column("twin")


def _text_in_large(text: str) -> SafeString:
    return format_html('<div class="text-base text-important">{}</div>', text_block(text))


@admin.register(Belief)
class BeliefAdmin(MemoriesAdmin[Belief]):
    """A curator pins, archives, restores, challenges and forgets; everything else follows from evidence."""

    editable = ("is_pinned", "reason")
    form = PinForm
    actions = BELIEF_ACTIONS
    action_form = ReasonForm
    list_before_template = change_form_before_template = "engram/notices.html"
    list_display = (
        "opening", "confidence_scale", "evidence_count", "status_badge", "held", "pin", "project", "created_at",
    )  # fmt: skip
    list_filter = (("project", OwnWorkspaces), "status", "is_pinned", "fact_type", "created_at")
    search_fields = ("statement",)
    search_help_text = "Words of the statement, its subject or context, or an id (bl_…)"
    inlines = (EvidenceInline, CameFromInline, BecameInline, DecisionsInline, HistoryInline)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "whole_statement", "confidence_scale", "counted", "founded", ("status_badge", "status_reason"),
                    editable,
                )
            },
        ),
        folded(
            "What it is about", ("id", "workspace"), ("scope", "project"), ("subject", "predicate"),
            ("context", "timeframe"), ("fact_type", "importance"), ("language", "user"),
        ),
        folded(
            "How it came to its confidence", ("alpha", "beta"), "additive_confidence",
            ("peak_confidence", "prediction_error"), ("storage_strength", "lineage_depth"), "created_in",
        ),
        folded(
            "Times and use", ("created_at", "updated_at", "statement_changed_at"),
            ("last_reinforced_at", "last_verified_at"),
            ("archived_by_person_at", "restored_by_person_at", "archive_due_at"), ("valid_from", "valid_until"),
            ("promoted_at", "demoted_at", "published_confidence"), "stands_in",
            ("recalled", "embedded"),
        ),
    )  # fmt: skip
    opening = column("statement", "{:.160}".format)
    whole_statement = column("statement", _text_in_large)
    pin = column(
        "is_pinned", lambda is_pinned: badge("pinned") if is_pinned else "", title="pinned", ordering="is_pinned"
    )

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Belief | None:
        belief = super().get_object(request, object_id, from_field)
        if belief is not None:
            vectors = BeliefEmbedding.objects.defer("vector")
            models.prefetch_related_objects([belief], models.Prefetch("embeddings", queryset=vectors))
            belief.weighed = weigh_belief(belief)  # type: ignore[attr-defined]  # templates ask a field several times
            if belief.promoted_at is not None:
                files = PublishedBelief.objects.select_related("file").order_by("file__path")
                models.prefetch_related_objects([belief], models.Prefetch("publications", queryset=files))
        return belief

    def get_fieldsets(self, request: HttpRequest, obj: Belief | None = None) -> Any:
        """Leave out the additive confidence where no gate reads it (R10a)."""
        if obj is None or obj.workspace.is_additive:
            return self.fieldsets
        return [
            (title, {**parts, "fields": [name for name in parts["fields"] if name != "additive_confidence"]})
            for title, parts in self.fieldsets
        ]

    def save_model(self, request: HttpRequest, obj: Belief, form: ModelForm[Belief], change: bool) -> None:
        if "is_pinned" in form.changed_data:
            set_pin(request=request, belief=obj)

    @admin.display(description="confidence", ordering="confidence")
    def confidence_scale(self, belief: Belief) -> SafeString:
        return confidence_of(belief)

    @admin.display(description="holds", ordering="valid_from")
    def held(self, belief: Belief) -> str:
        """Say since and until when it holds, where that is known (C2)."""
        ends = (("since", belief.valid_from), ("until", belief.valid_until))
        return ", ".join(f"{word} {day:%Y-%m-%d}" for word, day in ends if day)

    @admin.display(description="evidence")
    def counted(self, belief: Belief) -> str:
        """Say how many episodes speak for and against, and from how many origins."""
        weighed = shown_weights(belief)
        sides = (("for it", Verdict.SUPPORTS), ("against it", Verdict.CONTRADICTS), ("for a part", Verdict.PARTIAL))
        return " · ".join(
            f"{_number(weighed.rows[verdict], 'episode')} {side}, from {_number(weighed.origins[verdict], 'origin')}"
            for side, verdict in sides
            if weighed.rows.get(verdict)
        )

    @admin.display(description="born of")
    def founded(self, belief: Belief) -> SafeString | str:
        """Name the job that founded the belief, with its cycle and what its episodes said of the sentence."""
        job = belief.created_by_job.select_related("cycle").order_by("pk").first()
        if job is None:
            return NOTHING
        verdicts = Counter(job.verdicts.filter(belief=None).values_list("verdict", flat=True))
        said = ", ".join(f"{verdicts[verdict]} {verdict.lower()}" for verdict in Verdict if verdicts[verdict])
        link = link_to(ClusterJob, job.pk, text=f"cluster #{job.number}")
        return format_html("{} of {}: {}", link, link_to(Cycle, job.cycle_id), said)

    @admin.display(description="stands in")
    def stands_in(self, belief: Belief) -> SafeString | str:
        """Name the MEMORY.md files that it stands in, and where it is a former belief (P4)."""
        if belief.promoted_at is None:
            return NOTHING
        lines = (
            (link_to(MemoryFile, row.file_id, text=row.file.path), " as a former belief" if row.demoted_at else "")
            for row in belief.publications.all()
        )
        return format_html_join("", "<div>{}{}</div>", lines)

    @admin.display(description="embedded by")
    def embedded(self, belief: Belief) -> str:
        return ", ".join(vector.model for vector in belief.embeddings.all()) or "not yet"


def _number(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


@admin.register(Evidence)
class EvidenceAdmin(MembersAdmin[Evidence]):
    """One verdict of one episode on one belief."""

    list_display = (
        "id", "verdict_badge", "belief_statement", "episode_text", "base_weight", "kind", "basis", "created_at"
    )  # fmt: skip
    list_filter = ("verdict", "kind", "basis")
    related = ("belief", "episode")
    fields = (
        "verdict_badge", "belief_statement", "episode_text", "reason", "base_weight", "kind", "basis", "cycle", "call",
        "workspace", "created_at",
    )  # fmt: skip


@admin.register(Lineage)
class LineageAdmin(MembersAdmin[Lineage]):
    """Which belief came from which."""

    paginator = Paginator
    list_display = ("id", "kind", "parent_statement", "child_statement", "reason", "created_at")
    list_filter = ("kind",)
    related = ("parent", "child")
    fields = ("kind", "parent_statement", "child_statement", "reason", "cycle", "workspace", "created_at")
