"""Structural jobs: what a gate decided to change in a belief, what a model proposed, and what came of it."""

from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memory.admin.by_membership import AuditAdmin, AuditInline, OfMyWorkspaces
from memory.admin.paginator import PagesWithoutCount
from memory.admin.presentation import badge, facts_of, link_to
from memory.models import Belief, ChildVerdict, Cycle, Episode, StructuralChild, StructuralJob


def _why_not(job: StructuralJob) -> str:
    """Say why nothing came of a job, or why what came of it is no more."""
    if job.cycle and job.cycle.undone_at:
        return f"its cycle was undone on {job.cycle.undone_at:%Y-%m-%d}"
    return job.refusal.replace("_", " ") or job.state_reason or "–"


class StructuralJobsInline(AuditInline[StructuralJob, Cycle]):
    model = StructuralJob
    fk_name = "cycle"
    verbose_name_plural = "structural jobs: beliefs to be revised, split or merged"
    fields = ("job", "state_badge", "why_not", "about", "other")
    ordering = ("id",)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[StructuralJob]:
        rows = super().get_queryset(request).select_related("belief", "twin", "cycle")
        return rows.defer("belief__search", "twin__search")

    @admin.display(description="job")
    def job(self, row: StructuralJob) -> SafeString | str:
        return link_to(StructuralJob, row.pk, text=row.get_kind_display())

    @admin.display(description="state")
    def state_badge(self, row: StructuralJob) -> SafeString:
        return badge(row.state)

    @admin.display(description="why not")
    def why_not(self, row: StructuralJob) -> str:
        return _why_not(row)

    @admin.display(description="belief")
    def about(self, row: StructuralJob) -> SafeString | str:
        return link_to(Belief, row.belief_id, text=row.belief.statement)

    @admin.display(description="twin")
    def other(self, row: StructuralJob) -> SafeString | str:
        return link_to(Belief, row.twin_id, text=row.twin.statement) if row.twin else "–"


class ChildrenInline(AuditInline[StructuralChild, StructuralJob]):
    model = StructuralChild
    verbose_name_plural = "what was proposed in its place"
    fields = ("proposed", "context", "why_not", "made")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[StructuralChild]:
        return super().get_queryset(request).defer("vector")

    @admin.display(description="statement")
    def proposed(self, row: StructuralChild) -> SafeString | str:
        return link_to(StructuralChild, row.pk, text=row.statement)

    @admin.display(description="refused because")
    def why_not(self, row: StructuralChild) -> str:
        return row.refusal.replace("_", " ") or "–"

    @admin.display(description="belief made")
    def made(self, row: StructuralChild) -> SafeString | str:
        return link_to(Belief, row.belief_id)


@admin.register(StructuralJob)
class StructuralJobAdmin(AuditAdmin[StructuralJob]):
    """A revision, split or merge that a gate decided."""

    paginator = PagesWithoutCount
    list_display = ("id", "kind", "state_badge", "why_not", "about", "other", "cycle_link")
    list_display_links = ("id", "kind")
    list_filter = (("workspace", OfMyWorkspaces), "kind", "state")
    ordering = ("-id",)
    inlines = (ChildrenInline,)
    fields = (
        ("kind", "state_badge", "why_not"), "about", "other", "facts_seen", "proposal", ("decided", "cycle_link"),
        ("claims", "lease_owner"), ("leased_until", "not_before"), "workspace",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[StructuralJob]:
        rows = super().get_queryset(request).select_related("belief", "twin", "cycle")
        return rows.defer("belief__search", "twin__search")

    @admin.display(description="state", ordering="state")
    def state_badge(self, job: StructuralJob) -> SafeString:
        return badge(job.state)

    @admin.display(description="why not")
    def why_not(self, job: StructuralJob) -> str:
        return _why_not(job)

    @admin.display(description="belief")
    def about(self, job: StructuralJob) -> SafeString | str:
        return link_to(Belief, job.belief_id, text=job.belief.statement[:160])

    @admin.display(description="twin")
    def other(self, job: StructuralJob) -> SafeString | str:
        return link_to(Belief, job.twin_id, text=job.twin.statement[:160]) if job.twin else "–"

    @admin.display(description="facts the gate saw")
    def facts_seen(self, job: StructuralJob) -> SafeString:
        return facts_of(job.facts)

    @admin.display(description="decided in")
    def decided(self, job: StructuralJob) -> SafeString | str:
        return link_to(Cycle, job.decided_in_id)

    @admin.display(description="cycle")
    def cycle_link(self, job: StructuralJob) -> SafeString | str:
        return link_to(Cycle, job.cycle_id)


class VerdictsInline(AuditInline[ChildVerdict, StructuralChild]):
    model = ChildVerdict
    verbose_name_plural = "the old evidence, judged anew"
    fields = ("verdict_badge", "said", "basis", "reason", "model")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[ChildVerdict]:
        return super().get_queryset(request).select_related("episode").defer("episode__search").order_by("id")

    @admin.display(description="verdict")
    def verdict_badge(self, row: ChildVerdict) -> SafeString:
        return badge(row.verdict)

    @admin.display(description="episode")
    def said(self, row: ChildVerdict) -> SafeString | str:
        return link_to(Episode, row.episode_id, text=row.episode.text)


@admin.register(StructuralChild)
class StructuralChildAdmin(AuditAdmin[StructuralChild]):
    """A belief that a structural job proposed."""

    paginator = PagesWithoutCount
    list_display = ("id", "statement", "context", "refusal", "made")
    list_display_links = ("id", "statement")
    list_filter = (("workspace", OfMyWorkspaces),)
    ordering = ("-id",)
    inlines = (VerdictsInline,)
    fields = (
        "statement", ("subject", "predicate"), ("context", "timeframe"), ("language", "refusal"), "job_link", "made",
        "workspace",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[StructuralChild]:
        return super().get_queryset(request).defer("vector")

    @admin.display(description="job")
    def job_link(self, child: StructuralChild) -> SafeString | str:
        return link_to(StructuralJob, child.job_id)

    @admin.display(description="belief made")
    def made(self, child: StructuralChild) -> SafeString | str:
        return link_to(Belief, child.belief_id)


@admin.register(ChildVerdict)
class ChildVerdictAdmin(AuditAdmin[ChildVerdict]):
    """What one episode of the old evidence says of a proposed belief."""

    paginator = PagesWithoutCount
    list_display = ("id", "verdict_badge", "said", "about", "basis", "model")
    list_display_links = ("id",)
    list_filter = (("workspace", OfMyWorkspaces), "verdict", "basis")
    ordering = ("-id",)
    fields = ("verdict_badge", "said", "about", "reason", "basis", "model", "prompt_version", "workspace")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[ChildVerdict]:
        rows = super().get_queryset(request).select_related("episode", "child")
        return rows.defer("episode__search", "child__vector")

    @admin.display(description="verdict", ordering="verdict")
    def verdict_badge(self, row: ChildVerdict) -> SafeString:
        return badge(row.verdict)

    @admin.display(description="episode")
    def said(self, row: ChildVerdict) -> SafeString | str:
        return link_to(Episode, row.episode_id, text=row.episode.text[:160])

    @admin.display(description="on")
    def about(self, row: ChildVerdict) -> SafeString | str:
        return link_to(StructuralChild, row.child_id, text=row.child.statement[:160])
