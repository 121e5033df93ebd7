"""Beliefs that may contradict each other, for curators to look at (R11)."""

from collections.abc import Callable

from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memory.admin.by_membership import AuditAdmin, OfMyWorkspaces
from memory.admin.paginator import PagesWithoutCount
from memory.admin.presentation import badge, link_to
from memory.admin.roles import rows_of_member, workspaces_of
from memory.facts.contradictions import dismiss_contradiction_candidates, reopen_contradiction_candidates
from memory.models import Belief, ModelCall, Rival, Role


@admin.register(Rival)
class RivalAdmin(AuditAdmin[Rival]):
    """Pairs of which both are believed, but for what is only alike; what is said of them here changes neither."""

    actions = ("dismiss", "reopen")
    paginator = PagesWithoutCount
    list_display = ("id", "alike", "state_badge", "one", "other", "why", "checked_at")
    list_display_links = ("id", "alike")
    list_filter = (("workspace", OfMyWorkspaces), "state", "checked_at")
    search_fields = ("first__id", "second__id")
    search_help_text = "The id of a belief (bl_…)"
    ordering = ("-similarity", "id")
    fields = (
        ("alike", "state_badge"), "one", "other", "rule", "reason", ("checked_at", "call_link"),
        ("created_at", "workspace"),
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Rival]:
        standing = Rival.objects.standing().suspected().values("pk")
        pairs = super().get_queryset(request).filter(pk__in=standing).select_related("first", "second", "workspace")
        return pairs.defer("first__search", "second__search")

    @admin.display(description="alike", ordering="similarity")
    def alike(self, pair: Rival) -> str:
        return f"{pair.similarity:.2f}"

    @admin.display(description="state", ordering="state")
    def state_badge(self, pair: Rival) -> SafeString:
        return badge(pair.state)

    @admin.display(description="belief")
    def one(self, pair: Rival) -> SafeString | str:
        return link_to(Belief, pair.first_id, text=pair.first.statement[:160])

    @admin.display(description="other belief")
    def other(self, pair: Rival) -> SafeString | str:
        return link_to(Belief, pair.second_id, text=pair.second.statement[:160])

    @admin.display(description="call")
    def call_link(self, pair: Rival) -> SafeString | str:
        return link_to(ModelCall, pair.call_id)

    def has_curate_permission(self, request: HttpRequest) -> bool:
        return bool(workspaces_of(request, at_least=Role.CURATOR))

    @admin.action(description="Dismiss: take off the list for good", permissions=["curate"])
    def dismiss(self, request: HttpRequest, pairs: models.QuerySet[Rival]) -> None:
        """Take the chosen pairs off the list, as far as they are the person's to judge."""
        self._settle(request, pairs, dismiss_contradiction_candidates, "dismissed")

    @admin.action(description="Open again: the next check asks about them", permissions=["curate"])
    def reopen(self, request: HttpRequest, pairs: models.QuerySet[Rival]) -> None:
        """Let the next check ask about the chosen pairs, as far as they are the person's to judge."""
        self._settle(request, pairs, reopen_contradiction_candidates, "opened again")

    def _settle(self, request: HttpRequest, pairs: models.QuerySet[Rival], act: Callable[..., int], what: str) -> None:
        mine = list(rows_of_member(pairs, request=request, at_least=Role.CURATOR))
        done = act(rivals=Rival.objects.filter(pk__in=[pair.pk for pair in mine]))
        for pair in mine:
            self.log_change(request, pair, [{"changed": {"name": what}}])
        self.message_user(request, f"{done} of {pairs.count()} {what}.", messages.SUCCESS)
