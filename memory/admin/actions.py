"""What a person does to the rows they chose in a list, and what a curator does to beliefs, with the reason given."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db import models
from django.forms import CharField, ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone

from memory.admin.membership import member_rows
from memory.admin.theme import ActionForm, TextInput
from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.domain.identity import Actor, ActorKind
from memory.domain.lifecycle import IllegalTransitionError
from memory.ledger.transactions import NotFound
from memory.models import Belief, Role

DEFAULT_REASON = "by hand, in the admin"
_REASON_LENGTH = 200
CONFIRMED = "is_confirmed"

# As the theme's own boxes, but as low as the list of acts that it stands beside.
_ACTION_BAR_STYLE = (
    "bg-white border border-base-200 font-medium px-3 py-1 rounded-default text-font-default-light text-sm "
    "dark:bg-base-900 dark:border-base-700 dark:text-font-default-dark"
)
_MAX_NAMED = 20  # rows that are named before an act that nothing takes back


def curator_action(description: str, act: Callable[[Any], int], *, done: str) -> Callable[..., None]:
    """Make an action on those chosen rows that the person curates; it reports the number that the service returns."""

    @admin.action(description=description, permissions=["curate"])
    def run(page: Any, request: HttpRequest, chosen: models.QuerySet[Any]) -> None:
        mine = member_rows(page.model.objects.filter(pk__in=chosen), request=request, at_least=Role.CURATOR)
        page.message_user(request, f"{act(mine)} {done}.", messages.SUCCESS)

    return run


def act_on_each(
    keys: Iterable[str], act: Callable[[str], object], *, refusals: type[Exception] | tuple[type[Exception], ...]
) -> tuple[int, Mapping[str, Exception]]:
    """Act on each row by itself; return how many succeeded, and the error of each that was refused."""
    done, refused = 0, {}
    for key in keys:
        try:
            act(key)
            done += 1
        except refusals as error:
            refused[key] = error
    return done, refused


def actor_of(request: HttpRequest) -> Actor:
    """Name the person who is signed in, as the history does."""
    return Actor(kind=ActorKind.PERSON, name=request.user.get_username())


def reason_given(request: HttpRequest) -> str:
    """Return why the person does it, as far as they said."""
    return request.POST.get("reason", "").strip()[:_REASON_LENGTH]


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


def set_pin(*, request: HttpRequest, belief: Belief) -> None:
    """Pin or unpin a belief as its form says."""
    _curate(request, belief_id=belief.pk, act=CuratorAction.PIN if belief.is_pinned else CuratorAction.UNPIN)


def _curate(request: HttpRequest, *, belief_id: str, act: CuratorAction) -> None:
    reason = reason_given(request) or DEFAULT_REASON
    curate_belief(belief_id=belief_id, act=act, reason=reason, actor=actor_of(request), now=timezone.now())


def _belief_action(act: CuratorAction, description: str) -> Callable[..., HttpResponse | None]:
    """Make the action that does something to the chosen beliefs."""

    @admin.action(description=description, permissions=["curate"])
    def run(page: Any, request: HttpRequest, chosen: models.QuerySet[Belief]) -> HttpResponse | None:
        mine = member_rows(chosen, request=request, at_least=Role.CURATOR)
        is_confirmed = CONFIRMED in request.POST and reason_given(request)
        if act is CuratorAction.FORGET and mine.exists() and not is_confirmed:
            return _confirm_forgetting(page, request, mine)
        foreign = chosen.count() - mine.count()
        done, refused = act_on_each(
            mine.order_by("pk").values_list("pk", flat=True),
            lambda key: _curate(request, belief_id=key, act=act),
            refusals=(IllegalTransitionError, NotFound),
        )
        page.message_user(request, f"{done} done.", messages.SUCCESS)
        if foreign:
            page.message_user(request, f"{foreign} left alone: only a curator may do this.", messages.WARNING)
        for key, error in refused.items():
            page.message_user(request, f"{key}: {error}", messages.WARNING)
        return None

    run.__name__ = str(act)
    return run


def _confirm_forgetting(page: Any, request: HttpRequest, beliefs: models.QuerySet[Belief]) -> HttpResponse:
    """Name what would be forgotten, and ask why: nothing brings it back."""
    context = {
        **confirmation_context(page, request, beliefs.order_by("pk"), title="Forget for good?"),
        "reason": reason_given(request),
        "reason_length": _REASON_LENGTH,
        "lacks_reason": CONFIRMED in request.POST,
    }
    return TemplateResponse(request, "engram/forget_beliefs.html", context)


def confirmation_context(page: Any, request: HttpRequest, rows: models.QuerySet[Any], *, title: str) -> dict[str, Any]:
    """Give a page that asks first what it says of the rows, and what it posts again with CONFIRMED."""
    count = rows.count()
    return {
        **page.admin_site.each_context(request),
        "title": title,
        "opts": page.opts,
        "count": count,
        "named": rows[:_MAX_NAMED],
        "more": max(0, count - _MAX_NAMED),
        "posted": [(name, value) for name in _POSTED_NAMES for value in request.POST.getlist(name)],
        "confirmed": CONFIRMED,
        "back": request.get_full_path(),
    }


_POSTED_NAMES = ("action", "select_across", "index", ACTION_CHECKBOX_NAME)

BELIEF_ACTIONS = (
    _belief_action(CuratorAction.ARCHIVE, "Archive: it does not come back by itself"),
    _belief_action(CuratorAction.RESTORE, "Restore"),
    _belief_action(CuratorAction.CHALLENGE, "Challenge: not recalled, still judged"),
    _belief_action(CuratorAction.FORGET, "Forget, for good: what says the same is suppressed"),
)
