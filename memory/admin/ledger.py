"""The ledger: every call to a model, what it cost, and what it answered."""

from typing import Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memory.admin.by_membership import AuditAdmin, AuditInline, OfMyWorkspaces
from memory.admin.paginator import PagesWithoutCount
from memory.admin.presentation import badge, link_to, passage
from memory.admin.roles import workspaces_of
from memory.models import Cycle, Episode, ModelCall, ModelCallEpisode, Role

_CURATORS_ONLY = ("shown_reply", "shown_error")  # they may repeat what was forgotten since


class SeenEpisodesInline(AuditInline[ModelCallEpisode, ModelCall]):
    model = ModelCallEpisode
    verbose_name_plural = "episodes that the call saw"
    fields = ("said",)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[ModelCallEpisode]:
        return super().get_queryset(request).select_related("episode").defer("episode__search").order_by("id")

    @admin.display(description="episode")
    def said(self, row: ModelCallEpisode) -> SafeString | str:
        return link_to(Episode, row.episode_id, text=row.episode.text)


@admin.register(ModelCall)
class ModelCallAdmin(AuditAdmin[ModelCall]):
    """One call to a model."""

    paginator = PagesWithoutCount
    list_display = (
        "id", "purpose", "model", "outcome_badge", "input_tokens", "output_tokens", "cost_usd", "latency_ms",
        "cycle_link", "started_at",
    )  # fmt: skip
    list_filter = (("workspace", OfMyWorkspaces), "outcome", "started_at")
    ordering = ("-started_at", "-id")
    inlines = (SeenEpisodesInline,)
    fields = (
        ("purpose", "model", "outcome_badge"), ("input_tokens", "output_tokens", "is_estimated"),
        ("cost_usd", "latency_ms"), ("cycle_link", "job"), ("started_at", "finished_at"),
        "prompt_version", "input_hash", "parameters", "shown_reply", "shown_error", "workspace",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[ModelCall]:
        rows = super().get_queryset(request)
        return rows.defer("reply", "error") if _is_list(request) else rows

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
        return passage(call.reply)

    @admin.display(description="error")
    def shown_error(self, call: ModelCall) -> SafeString:
        return passage(call.error)


def _is_list(request: HttpRequest) -> bool:
    match = request.resolver_match
    return match is not None and str(match.url_name).endswith("_changelist")
