"""Cycles of consolidation, step by step: jobs, verdicts, decisions of the gates, and every call to a model."""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.db import models
from django.db.models import Count, Sum
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString

from memory.admin.actions import ReasonForm, act_on_each, actor_of, reason_given
from memory.admin.belief_changes import StructuralJobsInline
from memory.admin.columns import badge, column, folded, link_column, link_to, text_block
from memory.admin.membership import MembersAdmin, ReadOnlyInline, member_rows, workspaces_of
from memory.consolidation.finish import CycleEnded, cancel_cycle
from memory.consolidation.undo import CannotBeUndone, undo_cycle
from memory.models import (
    Belief,
    Claim,
    ClusterJob,
    ClusterMember,
    Cycle,
    CycleStep,
    GateDecision,
    JobVerdict,
    ModelCall,
    ModelCallEpisode,
    Role,
)


class StepsInline(ReadOnlyInline[CycleStep, Cycle]):
    model = CycleStep
    verbose_name_plural = "steps"
    fields = ("name", "started_at", "finished_at", "counts_list")


class JobsInline(ReadOnlyInline[ClusterJob, Cycle]):
    model = ClusterJob
    verbose_name_plural = "jobs: claims, and clusters of episodes, on their way to a belief"
    fields = ("job", "kind", "claim_sentence", "state_badge", "state_reason", "outcome", "refusal", "created_link")
    related = ("claim",)
    text_length = 160
    created_link = link_column("created_belief", title="belief made")

    @admin.display(description="job")
    def job(self, row: ClusterJob) -> SafeString | str:
        return link_to(ClusterJob, row.pk, text=f"#{row.number}")


class CycleDecisionsInline(ReadOnlyInline[GateDecision, Cycle]):
    model = GateDecision
    verbose_name_plural = "decisions of the gates"
    fields = ("gate", "passed", "reason_words", "belief_link", "facts_seen")
    ordering = ("id",)


@admin.register(Cycle)
class CycleAdmin(MembersAdmin[Cycle]):
    """One run of consolidation for one workspace."""

    actions = ("cancel", "undo")
    action_form = ReasonForm
    paginator = Paginator
    list_display = (
        "id", "workspace", "state_badge", "trigger", "opened_at", "finished_at", "state_reason", "undone_at",
    )  # fmt: skip
    list_filter = ("state", "trigger", "opened_at")
    ordering = ("-opened_at", "-id")
    inlines = (StepsInline, JobsInline, CycleDecisionsInline, StructuralJobsInline)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("state_badge", "state_reason"), ("workspace", "trigger"), ("undone_at", "undone_by"),
                    "counts_list", "cost",
                )
            },
        ),
        folded(
            "Times", ("opened_at", "started_at", "finished_at"), ("now", "checkpoint_at"), ("seen_at", "leased_until"),
            ("attempt", "deadline_at"), ("budget_spent", "cancelled_by"),
        ),
    )  # fmt: skip

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Cycle | None:
        cycle = super().get_object(request, object_id, from_field)
        if cycle is not None:  # summed here, once: templates ask a field several times
            cycle.calls_summed = ModelCall.objects.filter(cycle=cycle).aggregate(  # type: ignore[attr-defined]
                number=Count("pk"), read=Sum("input_tokens"), written=Sum("output_tokens"), usd=Sum("cost_usd")
            )
        return cycle

    @admin.action(description="Cancel: apply what is complete, put the rest back", permissions=["curate"])
    def cancel(self, request: HttpRequest, cycles: models.QuerySet[Cycle]) -> None:
        """Cancel the open ones of the chosen cycles that are the person's to cancel."""
        mine = member_rows(cycles, request=request, at_least=Role.CURATOR)
        done, refused = act_on_each(
            mine.values_list("pk", flat=True),
            lambda key: cancel_cycle(cycle_id=key, actor=actor_of(request)),
            refusals=CycleEnded,
        )
        self._report(request, f"{done} of {cycles.count()} cancelled.", refused)

    @admin.action(description="Undo: take back all that it did, and hold its episodes", permissions=["curate"])
    def undo(self, request: HttpRequest, cycles: models.QuerySet[Cycle]) -> None:
        """Undo the chosen cycles that are the person's to undo, the newest first."""
        reason = reason_given(request)
        if not reason:
            self.message_user(request, "Say why beside the action: undoing cannot be undone.", messages.WARNING)
            return
        mine = member_rows(cycles, request=request, at_least=Role.CURATOR).order_by("-opened_at", "-pk")
        done, refused = act_on_each(
            mine.values_list("pk", flat=True),
            lambda key: undo_cycle(cycle_id=key, actor=actor_of(request), now=timezone.now(), reason=reason),
            refusals=CannotBeUndone,
        )
        self._report(request, f"{done} of {cycles.count()} undone.", refused)

    def _report(self, request: HttpRequest, done: str, refused: Mapping[str, Exception]) -> None:
        for error in refused.values():
            self.message_user(request, str(error), messages.WARNING)
        self.message_user(request, done, messages.SUCCESS)

    @admin.display(description="model calls")
    def cost(self, cycle: Cycle) -> str:
        """Say what the cycle's calls came to."""
        calls = cycle.calls_summed  # type: ignore[attr-defined]
        read, written = calls["read"] or 0, calls["written"] or 0
        return f"{calls['number']} calls · {read:,} tokens in, {written:,} out · ${calls['usd'] or 0:.4f}"


@admin.register(CycleStep)
class CycleStepAdmin(MembersAdmin[CycleStep]):
    """One step of a cycle."""

    paginator = Paginator
    list_display = ("name", "cycle_link", "started_at", "finished_at")
    list_filter = ("started_at",)
    fields = ("name", "cycle_link", "workspace", "started_at", "finished_at", "counts_list")


class JobMembersInline(ReadOnlyInline[ClusterMember, ClusterJob]):
    model = ClusterMember
    verbose_name_plural = "episodes of the cluster, most central first"
    fields = ("position", "episode_text", "claim_text", "speaker")
    related = ("episode", "claim")
    claim_text = column("claim.sentence", title="claim that takes part")
    speaker = column("episode.speaker", title="speaker")


class JobVerdictsInline(ReadOnlyInline[JobVerdict, ClusterJob]):
    model = JobVerdict
    verbose_name_plural = "verdicts"
    fields = (
        "verdict_badge", "about", "episode_text", "basis", "ends_belief", "valid_at", "reason", "similarity", "model"
    )  # fmt: skip
    ordering = ("id",)
    related = ("episode", "belief", "claim")

    @admin.display(description="on")
    def about(self, row: JobVerdict) -> SafeString | str:
        return _judged(row) or "the job's own candidate"


def _judged(row: JobVerdict, *, length: int | None = None) -> SafeString | str | None:
    """Link to the claim or the belief that a verdict is on; return None where it is the job's candidate."""
    if row.claim:
        return link_to(Claim, row.claim_id, text=row.claim.sentence[:length])
    return link_to(Belief, row.belief_id, text=row.belief.statement[:length]) if row.belief else None


@admin.register(ClusterJob)
class ClusterJobAdmin(MembersAdmin[ClusterJob]):
    """The passage of a reading, a statement of one, or a cluster through a cycle."""

    list_display = (
        "id", "cycle_link", "number", "kind", "claim_sentence", "state_badge", "outcome", "refusal", "claims"
    )  # fmt: skip
    list_filter = ("state", "kind")
    related = ("claim",)
    inlines = (JobMembersInline, JobVerdictsInline)
    fields = (
        ("state_badge", "state_reason"), ("cycle_link", "kind", "stream"), ("outcome", "refusal"),
        ("created_belief", "joined_belief", "suppressed_by"),
        "belief", "claim_sentence", "candidate", "candidate_language", ("claims", "lease_owner"),
        ("leased_until", "not_before"), "workspace",
    )  # fmt: skip


@admin.register(JobVerdict)
class JobVerdictAdmin(MembersAdmin[JobVerdict]):
    """One verdict within a job; the irrelevant ones stay here and are no evidence."""

    list_display = ("id", "verdict_badge", "episode_text", "about", "basis", "similarity", "model")
    list_filter = ("verdict", "basis")
    related = ("episode", "belief", "claim")
    fields = (
        "verdict_badge", "episode_text", "about", "reason", "basis", "similarity", "model", "prompt_version",
        "workspace",
    )  # fmt: skip

    @admin.display(description="on")
    def about(self, row: JobVerdict) -> SafeString | str:
        return _judged(row, length=self.text_length) or link_to(ClusterJob, row.job_id, text="its job's candidate")


@admin.register(GateDecision)
class GateDecisionAdmin(MembersAdmin[GateDecision]):
    """What a gate decided about a belief, passed or not, with the facts it saw."""

    list_display = ("id", "gate", "passed", "reason_words", "belief_statement", "cycle_link", "created_at")
    list_filter = ("passed", "created_at")
    related = ("belief",)
    fields = (
        "gate", "passed", "reason_words", "belief_statement", "facts_seen", "cycle_link", "workspace", "created_at"
    )  # fmt: skip


_CURATORS_ONLY = ("whole_reply", "whole_error")  # they may repeat what was forgotten since


class SeenEpisodesInline(ReadOnlyInline[ModelCallEpisode, ModelCall]):
    model = ModelCallEpisode
    verbose_name_plural = "episodes that the call saw"
    fields = ("episode_text",)
    ordering = ("id",)
    related = ("episode",)


@admin.register(ModelCall)
class ModelCallAdmin(MembersAdmin[ModelCall]):
    """One call to a model."""

    list_display = (
        "id", "purpose", "model", "outcome_badge", "input_tokens", "output_tokens", "cost_usd", "latency_ms",
        "cycle_link", "started_at",
    )  # fmt: skip
    list_filter = ("outcome", "started_at")
    ordering = ("-started_at", "-id")
    inlines = (SeenEpisodesInline,)
    fields = (
        ("purpose", "model", "outcome_badge"), ("input_tokens", "output_tokens", "is_estimated"),
        ("cost_usd", "latency_ms"), ("cycle_link", "job"), ("started_at", "finished_at"),
        "prompt_version", "input_hash", "parameters", "whole_reply", "whole_error", "workspace",
    )  # fmt: skip
    whole_reply = column("reply", text_block)
    whole_error = column("error", text_block)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[ModelCall]:
        rows = super().get_queryset(request)
        return rows.defer("reply", "error") if _is_changelist(request) else rows

    def get_fields(self, request: HttpRequest, obj: ModelCall | None = None) -> Any:
        if obj is not None and obj.workspace_id in workspaces_of(request, at_least=Role.CURATOR):
            return self.fields
        return tuple(field for field in self.fields if field not in _CURATORS_ONLY)

    @admin.display(description="outcome", ordering="outcome")
    def outcome_badge(self, call: ModelCall) -> SafeString:
        return badge(call.outcome, text=call.get_outcome_display())


def _is_changelist(request: HttpRequest) -> bool:
    match = request.resolver_match
    return match is not None and str(match.url_name).endswith("_changelist")
