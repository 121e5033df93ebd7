"""Texts that were to be remembered at once: what waits, what was given up, and what came of each (R1)."""

from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memory.admin.by_membership import AuditAdmin, AuditInline, OfMyWorkspaces
from memory.admin.paginator import PagesWithoutCount
from memory.admin.presentation import badge, link_to
from memory.admin.roles import rows_of_member, workspaces_of
from memory.facts.job import retry_failed
from memory.models import Belief, Episode, RememberedFact, Remembrance, Role


class FactsOfRemembrance(AuditInline[RememberedFact, Remembrance]):
    model = RememberedFact
    fields = ("number", "text", "outcome_badge", "of_belief", "rival_outcome")
    ordering = ("number",)

    @admin.display(description="outcome")
    def outcome_badge(self, fact: RememberedFact) -> SafeString:
        return badge(fact.outcome)

    @admin.display(description="belief")
    def of_belief(self, fact: RememberedFact) -> SafeString | str:
        return link_to(Belief, fact.belief_id)


@admin.register(Remembrance)
class RemembranceAdmin(AuditAdmin[Remembrance]):
    """A text, with how far it has come; the newest first."""

    actions = ("retry",)
    paginator = PagesWithoutCount
    list_display = ("told", "state_badge", "state_reason", "actor", "created_at", "done_at")
    list_filter = (("workspace", OfMyWorkspaces), "state", "created_at")
    search_fields = ("episode__id",)
    search_help_text = "The id of an episode (ep_…)"
    ordering = ("-created_at", "-id")
    inlines = (FactsOfRemembrance,)
    fieldsets = (
        (None, {"fields": ("of_episode", ("state_badge", "state_reason"), ("actor", "workspace"))}),
        ("Work", {"fields": (("claims", "failures"), ("due_at", "leased_until"), ("created_at", "done_at"))}),
    )

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Remembrance]:
        rows = super().get_queryset(request).select_related("episode", "workspace")
        return rows.defer("episode__search")

    @admin.display(description="text")
    def told(self, row: Remembrance) -> str:
        return row.episode.text[:120]

    @admin.display(description="episode")
    def of_episode(self, row: Remembrance) -> SafeString | str:
        return link_to(Episode, row.episode_id, text=row.episode.text)

    @admin.display(description="state", ordering="state")
    def state_badge(self, row: Remembrance) -> SafeString:
        return badge(row.state)

    def has_curate_permission(self, request: HttpRequest) -> bool:
        return bool(workspaces_of(request, at_least=Role.CURATOR))

    @admin.action(description="Try the chosen failed ones again", permissions=["curate"])
    def retry(self, request: HttpRequest, remembrances: models.QuerySet[Remembrance]) -> None:
        """Let failed texts of workspaces that the person curates be tried again, and say how many there were."""
        chosen = Remembrance.objects.filter(pk__in=remembrances)
        mine = rows_of_member(chosen, request=request, at_least=Role.CURATOR)
        self.message_user(request, f"{retry_failed(remembrances=mine)} to be tried again.", messages.SUCCESS)
