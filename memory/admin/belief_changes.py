"""How beliefs change: a curator's acts with their reasons, the history, pairs that may contradict each other (R11), and
structural jobs with what a model proposed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db import models
from django.forms import CharField, ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.safestring import SafeString

from memory.admin.membership import (
    OwnWorkspaces,
    PagesWithoutCount,
    ReadOnlyAdmin,
    ReadOnlyInline,
    member_rows,
    workspaces_of,
)
from memory.admin.presentation import badge, facts_of, link_to, text_block, words_of_reason
from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.domain.identity import Actor, ActorKind
from memory.domain.lifecycle import IllegalTransitionError
from memory.facts.contradictions import dismiss_contradiction_candidates, reopen_contradiction_candidates
from memory.ledger.transactions import NotFound
from memory.models import (
    Belief,
    BeliefEvent,
    ChildVerdict,
    ContradictionCandidate,
    Cycle,
    Episode,
    ModelCall,
    Role,
    StructuralChild,
    StructuralJob,
    Transition,
)

if TYPE_CHECKING:
    from django.contrib.admin.helpers import ActionForm
    from django.forms import TextInput
else:
    from unfold.forms import ActionForm
    from unfold.widgets import UnfoldAdminTextInputWidget as TextInput
DEFAULT_REASON = "by hand, in the admin"
_REASON_LENGTH = 200
_CONFIRMED = "is_confirmed"

# As the theme's own boxes, but as low as the list of acts that it stands beside.
_ACTION_BAR_STYLE = (
    "bg-white border border-base-200 font-medium px-3 py-1 rounded-default text-font-default-light text-sm "
    "dark:bg-base-900 dark:border-base-700 dark:text-font-default-dark"
)
_MAX_NAMED = 20  # beliefs that are named before they are forgotten


def actor_of(request: HttpRequest) -> Actor:
    """Name the person who is signed in, as the history does."""
    return Actor(kind=ActorKind.PERSON, name=request.user.get_username())


class HistoryInline(ReadOnlyInline[BeliefEvent, Belief]):
    """The belief as it stood after each change, the latest first."""

    model = BeliefEvent
    fk_name = "pgh_obj"
    verbose_name_plural = "history: what changed, who did it, and why"
    fields = ("at", "who", "why", "status_badge", "sureness", "alpha", "beta", "is_pinned", "said")
    ordering = ("-pgh_id",)

    @admin.display(description="when")
    def at(self, event: BeliefEvent) -> str:
        return f"{event.updated_at:%Y-%m-%d %H:%M} UTC"

    @admin.display(description="who")
    def who(self, event: BeliefEvent) -> str:
        return str((event.pgh_context or {}).get("actor", "–"))

    @admin.display(description="why")
    def why(self, event: BeliefEvent) -> str:
        return words_of_reason(str((event.pgh_context or {}).get("reason", event.pgh_label)))

    @admin.display(description="status")
    def status_badge(self, event: BeliefEvent) -> SafeString:
        return badge(event.status)

    @admin.display(description="confidence")
    def sureness(self, event: BeliefEvent) -> str:
        return f"{event.confidence:.2f}"

    @admin.display(description="statement")
    def said(self, event: BeliefEvent) -> SafeString:
        return text_block(event.statement)


class PinForm(ModelForm[Belief]):
    """A pin, and why it is set or taken out."""

    reason = CharField(
        required=False,
        max_length=_REASON_LENGTH,
        widget=TextInput(),
        help_text="Why it is pinned, or no longer is. Kept in the belief's history.",
    )

    class Meta:
        model = Belief
        fields = ("is_pinned",)


class ReasonForm(ActionForm):
    """Which act, and why."""

    reason = CharField(
        required=False,
        max_length=_REASON_LENGTH,
        label="",
        widget=forms.TextInput(
            attrs={
                "placeholder": "Why? It stays in the history.",
                "aria-label": "Why",
                "size": 40,
                "class": _ACTION_BAR_STYLE,
            }
        ),
    )


def _curation_action(act: CuratorAction, description: str) -> Callable[..., HttpResponse | None]:
    """Make the admin action that does something to the chosen beliefs."""

    @admin.action(description=description, permissions=["change"])
    def run(model_admin: Any, request: HttpRequest, chosen: models.QuerySet[Belief]) -> HttpResponse | None:
        mine = member_rows(chosen, request=request, at_least=Role.CURATOR)
        if act is CuratorAction.FORGET and mine.exists() and not _is_confirmed(request):
            return _confirm_forgetting(model_admin, request, mine)
        foreign = chosen.count() - mine.count()
        done, refused = 0, [f"{foreign} left alone: only a curator may do this."] if foreign else []
        for key in mine.order_by("pk").values_list("pk", flat=True):
            try:
                _curate(request, belief_id=key, act=act)
                done += 1
            except (IllegalTransitionError, NotFound) as error:
                refused.append(f"{key}: {error}")
        model_admin.message_user(request, f"{done} done.", messages.SUCCESS)
        for reason in refused:
            model_admin.message_user(request, reason, messages.WARNING)
        return None

    run.__name__ = str(act)
    return run


def _is_confirmed(request: HttpRequest) -> bool:
    return _CONFIRMED in request.POST and is_reason_given(request)


def _confirm_forgetting(model_admin: Any, request: HttpRequest, beliefs: models.QuerySet[Belief]) -> HttpResponse:
    """Name what would be forgotten, and ask why: nothing brings it back."""
    count = beliefs.count()
    context = {
        **model_admin.admin_site.each_context(request),
        "title": "Forget for good?",
        "opts": model_admin.opts,
        "count": count,
        "named": beliefs.order_by("pk")[:_MAX_NAMED],
        "more": max(0, count - _MAX_NAMED),
        "posted": [(name, value) for name in _POSTED_NAMES for value in request.POST.getlist(name)],
        "confirmed": _CONFIRMED,
        "reason": reason_given(request),
        "reason_length": _REASON_LENGTH,
        "lacks_reason": _CONFIRMED in request.POST,
        "back": request.get_full_path(),
    }
    return TemplateResponse(request, "engram/forget_beliefs.html", context)


_POSTED_NAMES = ("action", "select_across", "index", ACTION_CHECKBOX_NAME)


def reason_given(request: HttpRequest) -> str:
    """Return why the person does it, as far as they said."""
    return request.POST.get("reason", "").strip()[:_REASON_LENGTH]


def is_reason_given(request: HttpRequest) -> bool:
    """Tell whether the person said why."""
    return bool(reason_given(request))


def _curate(request: HttpRequest, *, belief_id: str, act: CuratorAction) -> None:
    reason = reason_given(request) or DEFAULT_REASON
    curate_belief(belief_id=belief_id, act=act, reason=reason, actor=actor_of(request), now=timezone.now())


def set_pin(*, request: HttpRequest, belief: Belief) -> None:
    """Pin or unpin a belief as its form says."""
    _curate(request, belief_id=belief.pk, act=CuratorAction.PIN if belief.is_pinned else CuratorAction.UNPIN)


ACTIONS = tuple(
    _curation_action(act, description)
    for act, description in (
        (CuratorAction.ARCHIVE, "Archive: it does not come back by itself"),
        (CuratorAction.RESTORE, "Restore"),
        (CuratorAction.CHALLENGE, "Challenge: not recalled, still judged"),
        (CuratorAction.FORGET, "Forget, for good: what says the same is suppressed"),
    )
)


@admin.register(Transition)
class TransitionAdmin(ReadOnlyAdmin[Transition]):
    """One change of the status of a belief or an episode."""

    paginator = PagesWithoutCount
    list_display = ("id", "memory", "was", "became", "why", "actor", "at")
    list_filter = (("workspace", OwnWorkspaces), "new", "at")
    ordering = ("-id",)
    fields = ("memory", "was", "became", "why", "actor", "at", "recorded_at", "workspace")

    @admin.display(description="memory")
    def memory(self, row: Transition) -> SafeString | str:
        return link_to(Belief, row.belief_id) if row.belief_id else link_to(Episode, row.episode_id)

    @admin.display(description="was")
    def was(self, row: Transition) -> SafeString:
        return badge(row.old)

    @admin.display(description="became")
    def became(self, row: Transition) -> SafeString:
        return badge(row.new)

    @admin.display(description="reason")
    def why(self, row: Transition) -> str:
        return words_of_reason(row.reason)


@admin.register(ContradictionCandidate)
class RivalAdmin(ReadOnlyAdmin[ContradictionCandidate]):
    """Pairs of which both are believed, but for what is only alike; what is said of them here changes neither."""

    actions = ("dismiss", "reopen")
    paginator = PagesWithoutCount
    list_display = ("id", "alike", "state_badge", "one", "other", "why", "checked_at")
    list_display_links = ("id", "alike")
    list_filter = (("workspace", OwnWorkspaces), "state", "checked_at")
    search_fields = ("first__id", "second__id")
    search_help_text = "The id of a belief (bl_…)"
    ordering = ("-similarity", "id")
    fields = (
        ("alike", "state_badge"), "one", "other", "rule", "reason", ("checked_at", "call_link"),
        ("created_at", "workspace"),
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[ContradictionCandidate]:
        standing = ContradictionCandidate.objects.standing().suspected().values("pk")
        pairs = super().get_queryset(request).filter(pk__in=standing).select_related("first", "second", "workspace")
        return pairs.defer("first__search", "second__search")

    @admin.display(description="alike", ordering="similarity")
    def alike(self, pair: ContradictionCandidate) -> str:
        return f"{pair.similarity:.2f}"

    @admin.display(description="state", ordering="state")
    def state_badge(self, pair: ContradictionCandidate) -> SafeString:
        return badge(pair.state)

    @admin.display(description="belief")
    def one(self, pair: ContradictionCandidate) -> SafeString | str:
        return link_to(Belief, pair.first_id, text=pair.first.statement[:160])

    @admin.display(description="other belief")
    def other(self, pair: ContradictionCandidate) -> SafeString | str:
        return link_to(Belief, pair.second_id, text=pair.second.statement[:160])

    @admin.display(description="call")
    def call_link(self, pair: ContradictionCandidate) -> SafeString | str:
        return link_to(ModelCall, pair.call_id)

    def has_curate_permission(self, request: HttpRequest) -> bool:
        return bool(workspaces_of(request, at_least=Role.CURATOR))

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


def _why_not(job: StructuralJob) -> str:
    """Say why nothing came of a job, or why what came of it is no more."""
    if job.cycle and job.cycle.undone_at:
        return f"its cycle was undone on {job.cycle.undone_at:%Y-%m-%d}"
    return job.refusal.replace("_", " ") or job.state_reason or "–"


class StructuralJobsInline(ReadOnlyInline[StructuralJob, Cycle]):
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


class ChildrenInline(ReadOnlyInline[StructuralChild, StructuralJob]):
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
class StructuralJobAdmin(ReadOnlyAdmin[StructuralJob]):
    """A revision, split or merge that a gate decided."""

    paginator = PagesWithoutCount
    list_display = ("id", "kind", "state_badge", "why_not", "about", "other", "cycle_link")
    list_display_links = ("id", "kind")
    list_filter = (("workspace", OwnWorkspaces), "kind", "state")
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


class ChildVerdictsInline(ReadOnlyInline[ChildVerdict, StructuralChild]):
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
class StructuralChildAdmin(ReadOnlyAdmin[StructuralChild]):
    """A belief that a structural job proposed."""

    paginator = PagesWithoutCount
    list_display = ("id", "statement", "context", "refusal", "made")
    list_display_links = ("id", "statement")
    list_filter = (("workspace", OwnWorkspaces),)
    ordering = ("-id",)
    inlines = (ChildVerdictsInline,)
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
class ChildVerdictAdmin(ReadOnlyAdmin[ChildVerdict]):
    """What one episode of the old evidence says of a proposed belief."""

    paginator = PagesWithoutCount
    list_display = ("id", "verdict_badge", "said", "about", "basis", "model")
    list_display_links = ("id",)
    list_filter = (("workspace", OwnWorkspaces), "verdict", "basis")
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
