"""Claims: what episodes assert, to be looked through by how it is meant."""

from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memory.admin.by_membership import AuditAdmin, OfMyWorkspaces
from memory.admin.paginator import PagesWithoutCount
from memory.admin.presentation import badge, link_to
from memory.models import Claim, Episode


@admin.register(Claim)
class ClaimAdmin(AuditAdmin[Claim]):
    """One thing that an episode asserts; reading the episode again replaces it."""

    paginator = PagesWithoutCount
    list_display = ("id", "opening", "mode_badge", "subject", "slot", "value", "kind", "shown_tier", "is_told")
    list_display_links = ("id", "opening")
    list_filter = (("workspace", OfMyWorkspaces), "mode", "is_told", "is_denial", "created_at")
    ordering = ("-id",)
    fields = (
        "sentence", ("mode_badge", "is_told", "is_denial"), ("subject", "slot", "value", "context"),
        ("kind", "shown_tier", "confidence"), ("ended", "holds_from", "holds_until"), "words", "said", "drew_on",
        ("number", "is_whole", "language", "reader"), ("workspace", "created_at"),
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Claim]:
        return super().get_queryset(request).select_related("episode").defer("episode__search")

    @admin.display(description="sentence")
    def opening(self, claim: Claim) -> str:
        return claim.sentence[:160]

    @admin.display(description="meant as", ordering="mode")
    def mode_badge(self, claim: Claim) -> SafeString:
        return badge(claim.mode)

    @admin.display(description="tier", ordering="confidence")
    def shown_tier(self, claim: Claim) -> str:
        return claim.tier

    @admin.display(description="episode")
    def said(self, claim: Claim) -> SafeString | str:
        return link_to(Episode, claim.episode_id, text=claim.episode.text[:160])
