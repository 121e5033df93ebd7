"""A belief's history on its page, and the hand that a curator has in it, each time with a reason."""

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

from memory.admin.by_membership import AuditAdmin, AuditInline, OfMyWorkspaces
from memory.admin.paginator import PagesWithoutCount
from memory.admin.presentation import badge, in_words, link_to, passage
from memory.admin.roles import rows_of_member
from memory.consolidation.curating import Act, curate_belief
from memory.domain.actor import Actor, ActorKind
from memory.domain.lifecycle import IllegalTransitionError
from memory.ledger.transactions import NotFound
from memory.models import Belief, BeliefEvent, Episode, Role, Transition

if TYPE_CHECKING:
    from django.contrib.admin.helpers import ActionForm
    from django.forms import TextInput
else:
    from unfold.forms import ActionForm
    from unfold.widgets import UnfoldAdminTextInputWidget as TextInput

NO_REASON = "by hand, in the admin"
_REASON_LENGTH = 200
_CONFIRMED = "is_confirmed"
# As the theme's own boxes, but as low as the list of acts that it stands beside.
_IN_THE_BAR = (
    "bg-white border border-base-200 font-medium px-3 py-1 rounded-default text-font-default-light text-sm "
    "dark:bg-base-900 dark:border-base-700 dark:text-font-default-dark"
)
_NAMED = 20  # beliefs that are named before they are forgotten


def actor_of(request: HttpRequest) -> Actor:
    """Name the person who is signed in, as the history does."""
    return Actor(kind=ActorKind.PERSON, name=request.user.get_username())


class HistoryInline(AuditInline[BeliefEvent, Belief]):
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
        return in_words(str((event.pgh_context or {}).get("reason", event.pgh_label)))

    @admin.display(description="status")
    def status_badge(self, event: BeliefEvent) -> SafeString:
        return badge(event.status)

    @admin.display(description="confidence")
    def sureness(self, event: BeliefEvent) -> str:
        return f"{event.confidence:.2f}"

    @admin.display(description="statement")
    def said(self, event: BeliefEvent) -> SafeString:
        return passage(event.statement)


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
                "class": _IN_THE_BAR,
            }
        ),
    )


def _curating(act: Act, description: str) -> Callable[..., HttpResponse | None]:
    """Make the admin action that does something to the chosen beliefs."""

    @admin.action(description=description, permissions=["change"])
    def run(model_admin: Any, request: HttpRequest, chosen: models.QuerySet[Belief]) -> HttpResponse | None:
        mine = rows_of_member(chosen, request=request, at_least=Role.CURATOR)
        if act is Act.FORGET and mine.exists() and not _is_confirmed(request):
            return _ask_first(model_admin, request, mine)
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


def _ask_first(model_admin: Any, request: HttpRequest, beliefs: models.QuerySet[Belief]) -> HttpResponse:
    """Name what would be forgotten, and ask why: nothing brings it back."""
    count = beliefs.count()
    context = {
        **model_admin.admin_site.each_context(request),
        "title": "Forget for good?",
        "opts": model_admin.opts,
        "count": count,
        "named": beliefs.order_by("pk")[:_NAMED],
        "more": max(0, count - _NAMED),
        "posted": [(name, value) for name in _CHOICE for value in request.POST.getlist(name)],
        "confirmed": _CONFIRMED,
        "reason": reason_given(request),
        "reason_length": _REASON_LENGTH,
        "lacks_reason": _CONFIRMED in request.POST,
        "back": request.get_full_path(),
    }
    return TemplateResponse(request, "engram/forget_beliefs.html", context)


_CHOICE = ("action", "select_across", "index", ACTION_CHECKBOX_NAME)


def reason_given(request: HttpRequest) -> str:
    """Return why the person does it, as far as they said."""
    return request.POST.get("reason", "").strip()[:_REASON_LENGTH]


def is_reason_given(request: HttpRequest) -> bool:
    """Tell whether the person said why."""
    return bool(reason_given(request))


def _curate(request: HttpRequest, *, belief_id: str, act: Act) -> None:
    reason = reason_given(request) or NO_REASON
    curate_belief(belief_id=belief_id, act=act, reason=reason, actor=actor_of(request), now=timezone.now())


def set_pin(*, request: HttpRequest, belief: Belief) -> None:
    """Pin or unpin a belief as its form says."""
    _curate(request, belief_id=belief.pk, act=Act.PIN if belief.is_pinned else Act.UNPIN)


ACTIONS = tuple(
    _curating(act, description)
    for act, description in (
        (Act.ARCHIVE, "Archive: it does not come back by itself"),
        (Act.RESTORE, "Restore"),
        (Act.CHALLENGE, "Challenge: not recalled, still judged"),
        (Act.FORGET, "Forget, for good: what says the same is suppressed"),
    )
)


@admin.register(Transition)
class TransitionAdmin(AuditAdmin[Transition]):
    """One change of the status of a belief or an episode."""

    paginator = PagesWithoutCount
    list_display = ("id", "memory", "was", "became", "why", "actor", "at")
    list_filter = (("workspace", OfMyWorkspaces), "new", "at")
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
        return in_words(row.reason)
