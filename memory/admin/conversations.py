"""Conversations: what waits to be read, what came of each turn, and what a curator may have read again."""

from typing import Any

from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memory.admin.by_membership import AuditAdmin, AuditInline, OfMyWorkspaces
from memory.admin.paginator import PagesWithoutCount
from memory.admin.presentation import badge, passage
from memory.admin.roles import rows_of_member
from memory.ingest.scheduling import retry_dead_turns
from memory.models import Conversation, Role, Turn


class TurnsOfConversation(AuditInline[Turn, Conversation]):
    model = Turn
    fields = ("number", "role", "speaker", "said", "signal_badge", "state_badge", "state_reason", "occurred_at")
    ordering = ("-number",)

    @admin.display(description="content")
    def said(self, turn: Turn) -> SafeString:
        return passage(turn.content[:2_000])

    @admin.display(description="signal")
    def signal_badge(self, turn: Turn) -> SafeString:
        return badge(turn.signal)

    @admin.display(description="state")
    def state_badge(self, turn: Turn) -> SafeString:
        return badge(turn.state)


class WithDeadTurns(admin.SimpleListFilter):
    """Conversations with turns that wait for a person."""

    title = "turns given up"
    parameter_name = "given_up"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "some could not be read")]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> models.QuerySet[Any]:
        return queryset.filter(pk__in=Turn.objects.dead().values("conversation")) if self.value() else queryset


@admin.register(Conversation)
class ConversationAdmin(AuditAdmin[Conversation]):
    """A session, with its turns; the newest first."""

    actions = ("retry",)
    paginator = PagesWithoutCount
    list_display = (
        "session",
        "project",
        "user",
        "turn_count",
        "buffered",
        "leased",
        "due_reason",
        "state_reason",
        "last_turn_at",
    )
    list_filter = (
        ("workspace", OfMyWorkspaces),
        ("project", OfMyWorkspaces),
        WithDeadTurns,
        "due_reason",
        "last_turn_at",
    )
    search_fields = ("session__istartswith",)
    search_help_text = "How a session's name begins"
    ordering = ("-last_turn_at", "-id")
    inlines = (TurnsOfConversation,)
    fieldsets = (
        (None, {"fields": (("session", "user"), ("project", "workspace"), ("turn_count", "buffered", "leased"))}),
        (
            "Reading",
            {
                "fields": (
                    ("due_since", "due_reason"), ("extracted_at", "extraction_count", "extraction_seconds"),
                    ("state_reason", "not_before", "claims"), ("leased_until", "sent_at"),
                    ("created_at", "last_turn_at"),
                )
            },
        ),
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Conversation]:
        return super().get_queryset(request).select_related("workspace", "project")

    @admin.action(description="Read the turns again that could not be read")
    def retry(self, request: HttpRequest, conversations: models.QuerySet[Conversation]) -> None:
        """Have dead letters of workspaces that the person curates read again, and say how many there were."""
        turns: Any = Turn.objects.filter(conversation__in=conversations)
        mine = rows_of_member(turns, request=request, at_least=Role.CURATOR)
        self.message_user(request, f"{retry_dead_turns(turns=mine)} to be read again.", messages.SUCCESS)
