"""Beliefs as a curator reads them: the statement, how sure we are, and why."""

from collections import Counter
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.db import models
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memory.admin.belief_changes import ACTIONS, HistoryInline, PinForm, ReasonForm, set_pin
from memory.admin.episodes import rows_with_words
from memory.admin.membership import MembersAdmin, OwnWorkspaces, PagesWithoutCount, ReadOnlyAdmin, ReadOnlyInline
from memory.admin.presentation import badge, confidence_of, facts_of, last_use, link_to, text_block
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
    Role,
)


def weigh_belief(belief: Belief) -> WeighedEvidence:
    """Weigh all evidence of a belief as consolidation does, by the rule of its workspace."""
    policy = replace(settings.POLICY.confidence, independence=belief.workspace.counts_origins)
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

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Evidence]:
        rows = super().get_queryset(request).select_related("episode", "claim").defer("episode__search")
        return rows.order_by("-episode__occurred_at", "-id")

    @admin.display(description="verdict")
    def verdict_badge(self, row: Evidence) -> SafeString:
        return badge(row.verdict)

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
            return "–"
        return format_html('{}<div class="mt-1">{}</div>', text_block(row.claim.sentence), badge(row.claim.mode))

    @admin.display(description="session")
    def session(self, row: Evidence) -> str:
        return row.episode.session or row.episode.document or "–"

    @admin.display(description="occurred on")
    def occurred(self, row: Evidence) -> str:
        return f"{row.episode.occurred_at:%Y-%m-%d}"


class CameFromInline(ReadOnlyInline[Lineage, Belief]):
    model = Lineage
    fk_name = "child"
    verbose_name_plural = "came from"
    fields = ("kind", "earlier", "reason", "created_at")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Lineage]:
        return super().get_queryset(request).select_related("parent").defer("parent__search").order_by("-id")

    @admin.display(description="earlier belief")
    def earlier(self, row: Lineage) -> SafeString | str:
        return link_to(Belief, row.parent_id, text=row.parent.statement)


class BecameInline(ReadOnlyInline[Lineage, Belief]):
    model = Lineage
    fk_name = "parent"
    verbose_name_plural = "became"
    fields = ("kind", "later", "reason", "created_at")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Lineage]:
        return super().get_queryset(request).select_related("child").defer("child__search").order_by("-id")

    @admin.display(description="later belief")
    def later(self, row: Lineage) -> SafeString | str:
        return link_to(Belief, row.child_id, text=row.child.statement)


class DecisionsInline(ReadOnlyInline[GateDecision, Belief]):
    model = GateDecision
    fk_name = "belief"
    verbose_name_plural = "decisions of the gates"
    fields = ("gate", "passed", "why", "facts_seen", "twin_link", "cycle_link", "created_at")
    ordering = ("-created_at", "-id")

    @admin.display(description="reason")
    def why(self, row: GateDecision) -> str:
        return row.reason.replace("_", " ")

    @admin.display(description="facts it saw")
    def facts_seen(self, row: GateDecision) -> SafeString:
        return facts_of(row.facts)

    @admin.display(description="twin")
    def twin_link(self, row: GateDecision) -> SafeString | str:
        return link_to(Belief, row.twin_id)

    @admin.display(description="cycle")
    def cycle_link(self, row: GateDecision) -> SafeString | str:
        return link_to(Cycle, row.cycle_id)


@admin.register(Belief)
class BeliefAdmin(MembersAdmin[Belief]):
    """A curator pins, archives, restores, challenges and forgets; everything else follows from evidence."""

    changes = Role.CURATOR
    form = PinForm
    actions = ACTIONS
    action_form = ReasonForm
    list_before_template = change_form_before_template = "engram/notices.html"
    paginator = PagesWithoutCount
    list_display = (
        "statement_line", "sureness", "evidence_count", "status_badge", "held", "pin", "project", "created_at",
    )  # fmt: skip
    list_filter = (
        ("workspace", OwnWorkspaces), ("project", OwnWorkspaces), "status", "is_pinned", "fact_type", "created_at",
    )  # fmt: skip
    search_fields = ("statement",)
    search_help_text = "Words of the statement, its subject or context, or an id (bl_…)"
    ordering = ("-created_at", "-id")
    inlines = (EvidenceInline, CameFromInline, BecameInline, DecisionsInline, HistoryInline)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "shown_statement", "sureness", "counted", "founded", ("status_badge", "status_reason"),
                    ("is_pinned", "reason"),
                )
            },
        ),
        (
            "What it is about",
            {
                "fields": (
                    ("id", "workspace"), ("scope", "project"), ("subject", "predicate"), ("context", "timeframe"),
                    ("fact_type", "importance"), ("language", "user"),
                ),
                "classes": ("collapse",),
            },
        ),
        (
            "How it came to its confidence",
            {
                "fields": (
                    ("alpha", "beta"), "additive_confidence", ("peak_confidence", "prediction_error"),
                    ("storage_strength", "lineage_depth"), "born_in",
                ),
                "classes": ("collapse",),
            },
        ),
        (
            "Times and use",
            {
                "fields": (
                    ("created_at", "updated_at", "statement_changed_at"), ("last_reinforced_at", "last_verified_at"),
                    ("archived_by_person_at", "restored_by_person_at", "archive_due_at"), ("valid_from", "valid_until"),
                    ("promoted_at", "demoted_at", "published_confidence"), ("recalled", "embedded"),
                ),
                "classes": ("collapse",),
            },
        ),
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Belief]:
        return super().get_queryset(request).select_related("workspace", "project", "access")

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Belief | None:
        belief = super().get_object(request, object_id, from_field)
        if belief is not None:
            vectors = BeliefEmbedding.objects.defer("vector")
            models.prefetch_related_objects([belief], models.Prefetch("embeddings", queryset=vectors))
            belief.weighed = weigh_belief(belief)  # type: ignore[attr-defined]  # templates ask a field several times
        return belief

    def get_fieldsets(self, request: HttpRequest, obj: Belief | None = None) -> Any:
        """Leave out the additive confidence where no gate reads it (R10a)."""
        if obj is None or obj.workspace.is_additive:
            return self.fieldsets
        return [
            (title, {**parts, "fields": [name for name in parts["fields"] if name != "additive_confidence"]})
            for title, parts in self.fieldsets
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Belief | None = None) -> Any:
        return tuple(name for name in flatten_fieldsets(self.fieldsets) if name not in ("is_pinned", "reason"))

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Belief], search_term: str
    ) -> tuple[models.QuerySet[Belief], bool]:
        return (rows_with_words(queryset, search_term) if search_term else queryset), False

    def save_model(self, request: HttpRequest, obj: Belief, form: ModelForm[Belief], change: bool) -> None:
        if "is_pinned" in form.changed_data:
            set_pin(request=request, belief=obj)

    @admin.display(description="statement")
    def statement_line(self, belief: Belief) -> str:
        return belief.statement[:160]

    @admin.display(description="statement")
    def shown_statement(self, belief: Belief) -> SafeString:
        return format_html('<div class="text-base text-important">{}</div>', text_block(belief.statement))

    @admin.display(description="confidence", ordering="confidence")
    def sureness(self, belief: Belief) -> SafeString:
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
            return "–"
        verdicts = Counter(job.verdicts.filter(belief=None).values_list("verdict", flat=True))
        said = ", ".join(f"{verdicts[verdict]} {verdict.lower()}" for verdict in Verdict if verdicts[verdict])
        link = link_to(ClusterJob, job.pk, text=f"cluster #{job.number}")
        return format_html("{} of {}: {}", link, link_to(Cycle, job.cycle_id), said)

    @admin.display(description="pinned", ordering="is_pinned")
    def pin(self, belief: Belief) -> SafeString | str:
        return badge("pinned") if belief.is_pinned else "–"

    @admin.display(description="status", ordering="status")
    def status_badge(self, belief: Belief) -> SafeString:
        return badge(belief.status)

    @admin.display(description="recalled")
    def recalled(self, belief: Belief) -> str:
        return last_use(getattr(belief, "access", None))

    @admin.display(description="embedded by")
    def embedded(self, belief: Belief) -> str:
        return ", ".join(vector.model for vector in belief.embeddings.all()) or "not yet"


def _number(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


@admin.register(Evidence)
class EvidenceAdmin(ReadOnlyAdmin[Evidence]):
    """One verdict of one episode on one belief."""

    paginator = PagesWithoutCount
    list_display = ("id", "verdict_badge", "statement", "said", "base_weight", "kind", "basis", "created_at")
    list_display_links = ("id",)
    list_filter = (("workspace", OwnWorkspaces), "verdict", "kind", "basis")
    list_select_related = ("belief", "episode")
    ordering = ("-id",)
    fields = (
        "verdict_badge", "statement", "said", "reason", "base_weight", "kind", "basis", "cycle", "call",
        "workspace", "created_at",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Evidence]:
        rows = super().get_queryset(request).select_related("belief", "episode")
        return rows.defer("belief__search", "episode__search")

    @admin.display(description="verdict", ordering="verdict")
    def verdict_badge(self, row: Evidence) -> SafeString:
        return badge(row.verdict)

    @admin.display(description="belief")
    def statement(self, row: Evidence) -> SafeString | str:
        return link_to(Belief, row.belief_id, text=row.belief.statement[:160])

    @admin.display(description="episode")
    def said(self, row: Evidence) -> SafeString | str:
        return link_to(Episode, row.episode_id, text=row.episode.text[:160])


@admin.register(Lineage)
class LineageAdmin(ReadOnlyAdmin[Lineage]):
    """Which belief came from which."""

    list_display = ("id", "kind", "earlier", "later", "reason", "created_at")
    list_display_links = ("id",)
    list_filter = (("workspace", OwnWorkspaces), "kind")
    ordering = ("-id",)
    fields = ("kind", "earlier", "later", "reason", "cycle", "workspace", "created_at")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Lineage]:
        rows = super().get_queryset(request).select_related("parent", "child")
        return rows.defer("parent__search", "child__search")

    @admin.display(description="earlier belief")
    def earlier(self, row: Lineage) -> SafeString | str:
        return link_to(Belief, row.parent_id, text=row.parent.statement[:160])

    @admin.display(description="later belief")
    def later(self, row: Lineage) -> SafeString | str:
        return link_to(Belief, row.child_id, text=row.child.statement[:160])
