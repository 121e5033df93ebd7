"""How beliefs change: their history, changes of status, pairs that may contradict each other (R11), and structural jobs
with what a model proposed.
"""

from collections.abc import Callable

from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memory.admin.columns import NOTHING, badge, column, facts_of, link_column, link_to, text_block, words_of_reason
from memory.admin.membership import MembersAdmin, ReadOnlyInline, member_rows
from memory.facts.contradictions import dismiss_contradiction_candidates, reopen_contradiction_candidates
from memory.models import (
    Belief,
    BeliefEvent,
    ChildVerdict,
    ContradictionCandidate,
    Cycle,
    Episode,
    Role,
    StructuralChild,
    StructuralJob,
    Transition,
)


class HistoryInline(ReadOnlyInline[BeliefEvent, Belief]):
    """The belief as it stood after each change, the latest first."""

    model = BeliefEvent
    fk_name = "pgh_obj"
    verbose_name_plural = "history: what changed, who did it, and why"
    fields = (
        "at", "who", "why", "status_badge", "confidence_number", "alpha", "beta", "is_pinned", "whole_statement"
    )  # fmt: skip
    ordering = ("-pgh_id",)
    at = column("updated_at", "{:%Y-%m-%d %H:%M} UTC".format, title="when")
    confidence_number = column("confidence", "{:.2f}".format)
    whole_statement = column("statement", text_block)

    @admin.display(description="who")
    def who(self, event: BeliefEvent) -> str:
        return event.actor or NOTHING

    @admin.display(description="why")
    def why(self, event: BeliefEvent) -> str:
        return words_of_reason(event.reason or event.pgh_label)


@admin.register(Transition)
class TransitionAdmin(MembersAdmin[Transition]):
    """One change of the status of a belief or an episode."""

    list_display = ("id", "memory", "was", "became", "reason_words", "actor", "at")
    list_filter = ("new", "at")
    fields = ("memory", "was", "became", "reason_words", "actor", "at", "recorded_at", "workspace")
    was = column("old", badge, title="was")
    became = column("new", badge, title="became")

    @admin.display(description="memory")
    def memory(self, row: Transition) -> SafeString | str:
        return link_to(Belief, row.belief_id) if row.belief_id else link_to(Episode, row.episode_id)


@admin.register(ContradictionCandidate)
class ContradictionCandidateAdmin(MembersAdmin[ContradictionCandidate]):
    """Pairs of which both are believed, but for what is only alike; what is said of them here changes neither."""

    actions = ("dismiss", "reopen")
    list_display = (
        "id", "alike", "state_badge", "first_statement", "second_statement", "why", "checked_at"
    )  # fmt: skip
    list_display_links = ("id", "alike")
    list_filter = ("state", "checked_at")
    search_fields = ("first__id", "second__id")
    search_help_text = "The id of a belief (bl_…)"
    ordering = ("-similarity", "id")
    related = ("first", "second")
    fields = (
        ("alike", "state_badge"), "first_statement", "second_statement", "rule", "reason", ("checked_at", "call_link"),
        ("created_at", "workspace"),
    )  # fmt: skip
    alike = column("similarity", "{:.2f}".format, title="alike", ordering="similarity")
    first_statement = link_column("first", text="statement", title="belief")
    second_statement = link_column("second", text="statement", title="other belief")
    call_link = link_column("call")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[ContradictionCandidate]:
        standing = ContradictionCandidate.objects.standing().suspected().values("pk")
        return super().get_queryset(request).filter(pk__in=standing)

    @admin.action(description="Dismiss: take off the list for good", permissions=["curate"])
    def dismiss(self, request: HttpRequest, pairs: models.QuerySet[ContradictionCandidate]) -> None:
        """Take the chosen pairs off the list, as far as they are the person's to judge."""
        self._settle(request, pairs, dismiss_contradiction_candidates, "dismissed")

    @admin.action(description="Open again: the next check asks about them", permissions=["curate"])
    def reopen(self, request: HttpRequest, pairs: models.QuerySet[ContradictionCandidate]) -> None:
        """Let the next check ask about the chosen pairs, as far as they are the person's to judge."""
        self._settle(request, pairs, reopen_contradiction_candidates, "opened again")

    def _settle(
        self, request: HttpRequest, pairs: models.QuerySet[ContradictionCandidate], act: Callable[..., int], what: str
    ) -> None:
        mine = list(member_rows(pairs, request=request, at_least=Role.CURATOR))
        done = act(rivals=ContradictionCandidate.objects.filter(pk__in=[pair.pk for pair in mine]))
        for pair in mine:
            self.log_change(request, pair, [{"changed": {"name": what}}])
        self.message_user(request, f"{done} of {pairs.count()} {what}.", messages.SUCCESS)


@admin.display(description="why not")
def _why_not(page: object, job: StructuralJob) -> str:
    """Say why nothing came of a job, or why what came of it is no more."""
    if job.cycle and job.cycle.undone_at:
        return f"its cycle was undone on {job.cycle.undone_at:%Y-%m-%d}"
    return job.refusal.replace("_", " ") or job.state_reason or NOTHING


class StructuralJobsInline(ReadOnlyInline[StructuralJob, Cycle]):
    model = StructuralJob
    fk_name = "cycle"
    verbose_name_plural = "structural jobs: beliefs to be revised, split or merged"
    fields = ("job", "state_badge", "why_not", "belief_statement", "twin_statement")
    ordering = ("id",)
    related = ("belief", "twin", "cycle")
    why_not = _why_not

    @admin.display(description="job")
    def job(self, row: StructuralJob) -> SafeString | str:
        return link_to(StructuralJob, row.pk, text=row.get_kind_display())


class ProposalsInline(ReadOnlyInline[StructuralChild, StructuralJob]):
    model = StructuralChild
    verbose_name_plural = "what was proposed in its place"
    fields = ("proposed", "context", "refusal_words", "belief_made")
    refusal_words = column("refusal", words_of_reason, title="refused because")

    @admin.display(description="statement")
    def proposed(self, row: StructuralChild) -> SafeString | str:
        return link_to(StructuralChild, row.pk, text=row.statement)


@admin.register(StructuralJob)
class StructuralJobAdmin(MembersAdmin[StructuralJob]):
    """A revision, split or merge that a gate decided."""

    list_display = ("id", "kind", "state_badge", "why_not", "belief_statement", "twin_statement", "cycle_link")
    list_display_links = ("id", "kind")
    list_filter = ("kind", "state")
    related = ("belief", "twin", "cycle")
    inlines = (ProposalsInline,)
    fields = (
        ("kind", "state_badge", "why_not"), "belief_statement", "twin_statement", "gate_facts", "proposal",
        ("decided_in_link", "cycle_link"), ("claims", "lease_owner"), ("leased_until", "not_before"), "workspace",
    )  # fmt: skip
    why_not = _why_not
    gate_facts = column("facts", facts_of, title="facts the gate saw", empty="")
    decided_in_link = link_column("decided_in")


class ProposalVerdictsInline(ReadOnlyInline[ChildVerdict, StructuralChild]):
    model = ChildVerdict
    verbose_name_plural = "the old evidence, judged anew"
    fields = ("verdict_badge", "episode_text", "basis", "reason", "model")
    ordering = ("id",)
    related = ("episode",)


@admin.register(StructuralChild)
class ProposalAdmin(MembersAdmin[StructuralChild]):
    """A belief that a structural job proposed."""

    list_display = ("id", "statement", "context", "refusal", "belief_made")
    list_display_links = ("id", "statement")
    inlines = (ProposalVerdictsInline,)
    fields = (
        "statement", ("subject", "predicate"), ("context", "timeframe"), ("language", "refusal"), "job_link",
        "belief_made", "workspace",
    )  # fmt: skip
    job_link = link_column("job")


@admin.register(ChildVerdict)
class ProposalVerdictAdmin(MembersAdmin[ChildVerdict]):
    """What one episode of the old evidence says of a proposed belief."""

    list_display = ("id", "verdict_badge", "episode_text", "proposal", "basis", "model")
    list_filter = ("verdict", "basis")
    related = ("episode", "child")
    fields = (
        "verdict_badge", "episode_text", "proposal", "reason", "basis", "model", "prompt_version", "workspace"
    )  # fmt: skip
    proposal = link_column("child", text="statement", title="on")
