"""Cycles of consolidation, step by step: jobs, verdicts, decisions of the gates, and every call to a model."""

from typing import Any

from django.contrib import admin, messages
from django.db import models
from django.db.models import Count, Sum
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString

from memory.admin.belief_changes import ReasonForm, StructuralJobsInline, actor_of, is_reason_given, reason_given
from memory.admin.membership import (
    OwnWorkspaces,
    PagesWithoutCount,
    ReadOnlyAdmin,
    ReadOnlyInline,
    member_rows,
    workspaces_of,
)
from memory.admin.presentation import badge, facts_of, link_to, text_block
from memory.consolidation.finish import CycleEnded, cancel_cycle
from memory.consolidation.undo import CannotBeUndone, undo_cycle
from memory.models import (
    Belief,
    Claim,
    ClusterJob,
    ClusterMember,
    Cycle,
    CycleStep,
    Episode,
    GateDecision,
    JobVerdict,
    ModelCall,
    ModelCallEpisode,
    Role,
)


class StepsInline(ReadOnlyInline[CycleStep, Cycle]):
    model = CycleStep
    verbose_name_plural = "steps"
    fields = ("name", "started_at", "finished_at", "counted")

    @admin.display(description="counts")
    def counted(self, step: CycleStep) -> SafeString:
        return facts_of(step.counts)


class JobsInline(ReadOnlyInline[ClusterJob, Cycle]):
    model = ClusterJob
    verbose_name_plural = "jobs: claims, and clusters of episodes, on their way to a belief"
    fields = ("job", "kind", "claimed", "state_badge", "state_reason", "outcome", "refusal", "made")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[ClusterJob]:
        return super().get_queryset(request).select_related("claim")

    @admin.display(description="job")
    def job(self, row: ClusterJob) -> SafeString | str:
        return link_to(ClusterJob, row.pk, text=f"#{row.number}")

    @admin.display(description="claim")
    def claimed(self, row: ClusterJob) -> SafeString | str:
        return link_to(Claim, row.claim_id, text=row.claim.sentence[:160]) if row.claim else "–"

    @admin.display(description="state")
    def state_badge(self, row: ClusterJob) -> SafeString:
        return badge(row.state)

    @admin.display(description="belief made")
    def made(self, row: ClusterJob) -> SafeString | str:
        return link_to(Belief, row.created_belief_id)


class CycleDecisionsInline(ReadOnlyInline[GateDecision, Cycle]):
    model = GateDecision
    verbose_name_plural = "decisions of the gates"
    fields = ("gate", "passed", "why", "belief_link", "facts_seen")
    ordering = ("id",)

    @admin.display(description="belief")
    def belief_link(self, row: GateDecision) -> SafeString | str:
        return link_to(Belief, row.belief_id)

    @admin.display(description="reason")
    def why(self, row: GateDecision) -> str:
        return row.reason.replace("_", " ")

    @admin.display(description="facts it saw")
    def facts_seen(self, row: GateDecision) -> SafeString:
        return facts_of(row.facts)


@admin.register(Cycle)
class CycleAdmin(ReadOnlyAdmin[Cycle]):
    """One run of consolidation for one workspace."""

    actions = ("cancel", "undo")
    action_form = ReasonForm
    list_display = (
        "id", "workspace", "state_badge", "trigger", "opened_at", "finished_at", "state_reason", "undone_at",
    )  # fmt: skip
    list_filter = (("workspace", OwnWorkspaces), "state", "trigger", "opened_at")
    list_select_related = ("workspace",)
    ordering = ("-opened_at", "-id")
    inlines = (StepsInline, JobsInline, CycleDecisionsInline, StructuralJobsInline)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("state_badge", "state_reason"), ("workspace", "trigger"), ("undone_at", "undone_by"), "counted",
                    "cost",
                )
            },
        ),
        (
            "Times",
            {
                "fields": (
                    ("opened_at", "started_at", "finished_at"), ("now", "checkpoint_at"),
                    ("seen_at", "leased_until"), ("attempt", "deadline_at"), ("budget_spent", "cancelled_by"),
                ),
                "classes": ("collapse",),
            },
        ),
    )  # fmt: skip

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Cycle | None:
        cycle = super().get_object(request, object_id, from_field)
        if cycle is not None:  # summed here, once: templates ask a field several times
            cycle.calls_summed = ModelCall.objects.filter(cycle=cycle).aggregate(  # type: ignore[attr-defined]
                number=Count("pk"), read=Sum("input_tokens"), written=Sum("output_tokens"), usd=Sum("cost_usd")
            )
        return cycle

    @admin.display(description="state", ordering="state")
    def state_badge(self, cycle: Cycle) -> SafeString:
        return badge(cycle.state)

    @admin.display(description="counts")
    def counted(self, cycle: Cycle) -> SafeString:
        return facts_of(cycle.counts)

    def has_curate_permission(self, request: HttpRequest) -> bool:
        return bool(workspaces_of(request, at_least=Role.CURATOR))

    @admin.action(description="Cancel: apply what is complete, put the rest back", permissions=["curate"])
    def cancel(self, request: HttpRequest, cycles: models.QuerySet[Cycle]) -> None:
        """Cancel the open ones of the chosen cycles that are the person's to cancel."""
        mine = member_rows(cycles, request=request, at_least=Role.CURATOR)
        cancelled = 0
        for key in mine.values_list("pk", flat=True):
            try:
                cancel_cycle(cycle_id=key, actor=actor_of(request))
                cancelled += 1
            except CycleEnded as error:
                self.message_user(request, str(error), messages.WARNING)
        self.message_user(request, f"{cancelled} of {cycles.count()} cancelled.", messages.SUCCESS)

    @admin.action(description="Undo: take back all that it did, and hold its episodes", permissions=["curate"])
    def undo(self, request: HttpRequest, cycles: models.QuerySet[Cycle]) -> None:
        """Undo the chosen cycles that are the person's to undo, the newest first."""
        if not is_reason_given(request):
            self.message_user(request, "Say why beside the action: undoing cannot be undone.", messages.WARNING)
            return
        mine = member_rows(cycles, request=request, at_least=Role.CURATOR)
        undone = 0
        for key in mine.order_by("-opened_at", "-pk").values_list("pk", flat=True):
            try:
                undo_cycle(cycle_id=key, actor=actor_of(request), now=timezone.now(), reason=reason_given(request))
                undone += 1
            except CannotBeUndone as error:
                self.message_user(request, str(error), messages.WARNING)
        self.message_user(request, f"{undone} of {cycles.count()} undone.", messages.SUCCESS)

    @admin.display(description="model calls")
    def cost(self, cycle: Cycle) -> str:
        """Say what the cycle's calls came to."""
        calls = cycle.calls_summed  # type: ignore[attr-defined]
        read, written = calls["read"] or 0, calls["written"] or 0
        return f"{calls['number']} calls · {read:,} tokens in, {written:,} out · ${calls['usd'] or 0:.4f}"


@admin.register(CycleStep)
class CycleStepAdmin(ReadOnlyAdmin[CycleStep]):
    """One step of a cycle."""

    list_display = ("name", "cycle_link", "started_at", "finished_at")
    list_filter = (("workspace", OwnWorkspaces), "started_at")
    ordering = ("-id",)
    fields = ("name", "cycle_link", "workspace", "started_at", "finished_at", "counted")

    @admin.display(description="cycle")
    def cycle_link(self, step: CycleStep) -> SafeString | str:
        return link_to(Cycle, step.cycle_id)

    @admin.display(description="counts")
    def counted(self, step: CycleStep) -> SafeString:
        return facts_of(step.counts)


class JobMembersInline(ReadOnlyInline[ClusterMember, ClusterJob]):
    model = ClusterMember
    verbose_name_plural = "episodes of the cluster, most central first"
    fields = ("position", "said", "claimed", "speaker")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[ClusterMember]:
        return super().get_queryset(request).select_related("episode", "claim").defer("episode__search")

    @admin.display(description="claim that takes part")
    def claimed(self, row: ClusterMember) -> str:
        return row.claim.sentence if row.claim else "–"

    @admin.display(description="episode")
    def said(self, row: ClusterMember) -> SafeString | str:
        return link_to(Episode, row.episode_id, text=row.episode.text)

    @admin.display(description="speaker")
    def speaker(self, row: ClusterMember) -> str:
        return row.episode.speaker or "–"


class JobVerdictsInline(ReadOnlyInline[JobVerdict, ClusterJob]):
    model = JobVerdict
    verbose_name_plural = "verdicts"
    fields = ("verdict_badge", "about", "said", "basis", "ends_belief", "reason", "similarity", "model")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[JobVerdict]:
        rows = super().get_queryset(request).select_related("episode", "belief", "claim")
        return rows.defer("episode__search", "belief__search").order_by("id")

    @admin.display(description="verdict")
    def verdict_badge(self, row: JobVerdict) -> SafeString:
        return badge(row.verdict)

    @admin.display(description="on")
    def about(self, row: JobVerdict) -> SafeString | str:
        if row.claim:
            return link_to(Claim, row.claim_id, text=row.claim.sentence)
        return link_to(Belief, row.belief_id, text=row.belief.statement) if row.belief else "the job's own candidate"

    @admin.display(description="episode")
    def said(self, row: JobVerdict) -> SafeString | str:
        return link_to(Episode, row.episode_id, text=row.episode.text)


@admin.register(ClusterJob)
class ClusterJobAdmin(ReadOnlyAdmin[ClusterJob]):
    """One cluster's, or one claim's, passage through a cycle."""

    paginator = PagesWithoutCount
    list_display = ("id", "cycle_link", "number", "kind", "claimed", "state_badge", "outcome", "refusal", "claims")
    list_filter = (("workspace", OwnWorkspaces), "state", "kind")
    ordering = ("-id",)
    list_select_related = ("claim",)
    inlines = (JobMembersInline, JobVerdictsInline)
    fields = (
        ("state_badge", "state_reason"), ("cycle_link", "kind"), ("outcome", "refusal"),
        ("created_belief", "suppressed_by"),
        "belief", "claimed", "candidate", "candidate_language", ("claims", "lease_owner"),
        ("leased_until", "not_before"), "workspace",
    )  # fmt: skip

    @admin.display(description="cycle")
    def cycle_link(self, job: ClusterJob) -> SafeString | str:
        return link_to(Cycle, job.cycle_id)

    @admin.display(description="claim")
    def claimed(self, job: ClusterJob) -> SafeString | str:
        return link_to(Claim, job.claim_id, text=job.claim.sentence[:160]) if job.claim else "–"

    @admin.display(description="state", ordering="state")
    def state_badge(self, job: ClusterJob) -> SafeString:
        return badge(job.state)


@admin.register(JobVerdict)
class JobVerdictAdmin(ReadOnlyAdmin[JobVerdict]):
    """One verdict within a job; the irrelevant ones stay here and are no evidence."""

    paginator = PagesWithoutCount
    list_display = ("id", "verdict_badge", "said", "about", "basis", "similarity", "model")
    list_display_links = ("id",)
    list_filter = (("workspace", OwnWorkspaces), "verdict", "basis")
    ordering = ("-id",)
    fields = ("verdict_badge", "said", "about", "reason", "basis", "similarity", "model", "prompt_version", "workspace")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[JobVerdict]:
        rows = super().get_queryset(request).select_related("episode", "belief", "claim")
        return rows.defer("episode__search", "belief__search")

    @admin.display(description="verdict", ordering="verdict")
    def verdict_badge(self, row: JobVerdict) -> SafeString:
        return badge(row.verdict)

    @admin.display(description="episode")
    def said(self, row: JobVerdict) -> SafeString | str:
        return link_to(Episode, row.episode_id, text=row.episode.text[:160])

    @admin.display(description="on")
    def about(self, row: JobVerdict) -> SafeString | str:
        if row.claim:
            return link_to(Claim, row.claim_id, text=row.claim.sentence[:160])
        return (
            link_to(ClusterJob, row.job_id, text="its job's candidate")
            if not row.belief
            else link_to(Belief, row.belief_id, text=row.belief.statement[:160])
        )


@admin.register(GateDecision)
class GateDecisionAdmin(ReadOnlyAdmin[GateDecision]):
    """What a gate decided about a belief, passed or not, with the facts it saw."""

    paginator = PagesWithoutCount
    list_display = ("id", "gate", "passed", "why", "about", "cycle_link", "created_at")
    list_filter = (("workspace", OwnWorkspaces), "passed", "created_at")
    ordering = ("-id",)
    fields = ("gate", "passed", "why", "about", "facts_seen", "cycle_link", "workspace", "created_at")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[GateDecision]:
        return super().get_queryset(request).select_related("belief").defer("belief__search")

    @admin.display(description="belief")
    def about(self, row: GateDecision) -> SafeString | str:
        return link_to(Belief, row.belief_id, text=row.belief.statement[:160])

    @admin.display(description="reason")
    def why(self, row: GateDecision) -> str:
        return row.reason.replace("_", " ")

    @admin.display(description="facts it saw")
    def facts_seen(self, row: GateDecision) -> SafeString:
        return facts_of(row.facts)

    @admin.display(description="cycle")
    def cycle_link(self, row: GateDecision) -> SafeString | str:
        return link_to(Cycle, row.cycle_id)


_CURATORS_ONLY = ("shown_reply", "shown_error")  # they may repeat what was forgotten since


class SeenEpisodesInline(ReadOnlyInline[ModelCallEpisode, ModelCall]):
    model = ModelCallEpisode
    verbose_name_plural = "episodes that the call saw"
    fields = ("said",)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[ModelCallEpisode]:
        return super().get_queryset(request).select_related("episode").defer("episode__search").order_by("id")

    @admin.display(description="episode")
    def said(self, row: ModelCallEpisode) -> SafeString | str:
        return link_to(Episode, row.episode_id, text=row.episode.text)


@admin.register(ModelCall)
class ModelCallAdmin(ReadOnlyAdmin[ModelCall]):
    """One call to a model."""

    paginator = PagesWithoutCount
    list_display = (
        "id", "purpose", "model", "outcome_badge", "input_tokens", "output_tokens", "cost_usd", "latency_ms",
        "cycle_link", "started_at",
    )  # fmt: skip
    list_filter = (("workspace", OwnWorkspaces), "outcome", "started_at")
    ordering = ("-started_at", "-id")
    inlines = (SeenEpisodesInline,)
    fields = (
        ("purpose", "model", "outcome_badge"), ("input_tokens", "output_tokens", "is_estimated"),
        ("cost_usd", "latency_ms"), ("cycle_link", "job"), ("started_at", "finished_at"),
        "prompt_version", "input_hash", "parameters", "shown_reply", "shown_error", "workspace",
    )  # fmt: skip

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

    @admin.display(description="cycle")
    def cycle_link(self, call: ModelCall) -> SafeString | str:
        return link_to(Cycle, call.cycle_id)

    @admin.display(description="reply")
    def shown_reply(self, call: ModelCall) -> SafeString:
        return text_block(call.reply)

    @admin.display(description="error")
    def shown_error(self, call: ModelCall) -> SafeString:
        return text_block(call.error)


def _is_changelist(request: HttpRequest) -> bool:
    match = request.resolver_match
    return match is not None and str(match.url_name).endswith("_changelist")
