"""Episodes: their text as it was, and the little about them that a curator may change."""

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.postgres.search import SearchQuery
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memory.admin.by_membership import AuditInline, MembersAdmin, OfMyWorkspaces
from memory.admin.paginator import PagesWithoutCount
from memory.admin.presentation import badge, last_use, link_to, passage
from memory.admin.roles import rows_of_member
from memory.consolidation.dead_letters import retry_dead_letters
from memory.consolidation.held import release_held
from memory.models import Belief, Claim, Episode, Evidence, Role
from memory.models.fields import DEFAULT_TEXT_CONFIGURATION, TEXT_CONFIGURATIONS

if TYPE_CHECKING:
    from django.forms import TextInput
else:
    from unfold.widgets import UnfoldAdminTextInputWidget as TextInput


def rows_with_words(rows: models.QuerySet[Any], words: str) -> models.QuerySet[Any]:
    """Keep the rows whose text has the words in any language that texts are indexed in, or whose id it is."""
    configurations = {*TEXT_CONFIGURATIONS.values(), DEFAULT_TEXT_CONFIGURATION}
    found = Q(pk=words.strip())
    for configuration in sorted(configurations):
        found |= Q(search=SearchQuery(words, config=configuration, search_type="websearch"))
    return rows.filter(found)


class EpisodeForm(ModelForm[Episode]):
    """Tags are checked as at the door of the API."""

    class Meta:
        widgets = {"tags": TextInput()}
        help_texts = {"tags": "Separated by commas."}

    def clean_tags(self) -> list[str]:
        tags: list[str] = self.cleaned_data["tags"]
        if len(tags) > settings.POLICY.ingest.tags:
            raise ValidationError(f"At most {settings.POLICY.ingest.tags} tags.")
        return tags


class ClaimsOfEpisode(AuditInline[Claim, Episode]):
    model = Claim
    verbose_name_plural = "claims: what it asserts, and how that is meant"
    fields = ("number", "sentence", "meant", "about", "read_as", "words")

    @admin.display(description="meant as")
    def meant(self, row: Claim) -> SafeString:
        return badge(row.mode)

    @admin.display(description="about")
    def about(self, row: Claim) -> str:
        said = [row.subject, row.slot, row.value, "" if row.context == "general" else row.context]
        return " · ".join(filter(None, said)) or "–"

    @admin.display(description="read as")
    def read_as(self, row: Claim) -> str:
        denial = "denial" if row.is_denial else ""
        told = "told: founds by itself" if row.is_told else ""
        return " · ".join(filter(None, [row.kind, row.tier, denial, told, row.reader]))


class BeliefsOfEpisode(AuditInline[Evidence, Episode]):
    model = Evidence
    verbose_name_plural = "evidence it gives"
    fields = ("verdict_badge", "statement", "base_weight", "reason", "created_at")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Evidence]:
        return super().get_queryset(request).select_related("belief").defer("belief__search").order_by("-id")

    @admin.display(description="verdict")
    def verdict_badge(self, row: Evidence) -> SafeString:
        return badge(row.verdict)

    @admin.display(description="belief")
    def statement(self, row: Evidence) -> SafeString | str:
        return link_to(Belief, row.belief_id, text=row.belief.statement)


@admin.register(Episode)
class EpisodeAdmin(MembersAdmin[Episode]):
    """One remembered thing; what consolidation made of it stands below."""

    changes = Role.CURATOR
    actions = ("retry", "release")
    form = EpisodeForm
    paginator = PagesWithoutCount
    list_display = ("opening", "speaker", "project", "session", "status_badge", "state", "importance", "occurred_at")
    list_filter = (
        ("workspace", OfMyWorkspaces), ("project", OfMyWorkspaces), "status", "state",
        ("dead_at", admin.EmptyFieldListFilter), "source", "occurred_at",
    )  # fmt: skip
    search_fields = ("text",)
    search_help_text = "Words of the text, as a search engine reads them, or an id (ep_…)"
    ordering = ("-created_at", "-id")
    inlines = (ClaimsOfEpisode, BeliefsOfEpisode)
    fieldsets = (
        (
            None,
            {"fields": ("shown_text", ("id", "workspace"), ("project", "status_badge"), ("state", "state_reason"))},
        ),
        ("What curators may change", {"fields": ("importance", "category", "tags", "valid_until")}),
        (
            "Where it came from",
            {
                "fields": (
                    ("speaker", "user", "agent"), ("session", "document", "source"), ("occurred_at", "created_at"),
                    "origin", "entities", ("is_derived", "language", "valence"),
                ),
                "classes": ("collapse",),
            },
        ),
        (
            "What an extraction made of it",
            {
                "fields": (
                    ("shown_kind", "shown_tier", "confidence"), "causes", "verbatim", ("confirmations", "confirmed_at"),
                    ("distance", "surprise", "is_near_duplicate"),
                ),
                "classes": ("collapse",),
            },
        ),
        (
            "Use",
            {
                "fields": (("recalled", "embedded", "read_at"), ("failures", "dead_at"), ("pooled_at", "leased_by")),
                "classes": ("collapse",),
            },
        ),
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Episode]:
        return super().get_queryset(request).select_related("workspace", "project", "access")

    def get_readonly_fields(self, request: HttpRequest, obj: Episode | None = None) -> Any:
        editable = {"importance", "category", "tags", "valid_until"}
        return tuple(name for name in flatten_fieldsets(self.fieldsets) if name not in editable)

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Episode], search_term: str
    ) -> tuple[models.QuerySet[Episode], bool]:
        return (rows_with_words(queryset, search_term) if search_term else queryset), False

    @admin.action(description="Try the chosen dead letters again", permissions=["change"])
    def retry(self, request: HttpRequest, episodes: models.QuerySet[Episode]) -> None:
        """Let dead letters of workspaces that the person curates take part again, and say how many there were."""
        mine = rows_of_member(Episode.objects.filter(pk__in=episodes), request=request, at_least=Role.CURATOR)
        self.message_user(request, f"{retry_dead_letters(letters=mine)} to be tried again.", messages.SUCCESS)

    @admin.action(description="Release the chosen held ones: they take part again", permissions=["change"])
    def release(self, request: HttpRequest, episodes: models.QuerySet[Episode]) -> None:
        """Let episodes that are held since their cycle was undone be taken up again, and say how many there were."""
        mine = rows_of_member(Episode.objects.filter(pk__in=episodes), request=request, at_least=Role.CURATOR)
        self.message_user(request, f"{release_held(episodes=mine)} released.", messages.SUCCESS)

    @admin.display(description="text")
    def opening(self, episode: Episode) -> str:
        return episode.text[:120]

    @admin.display(description="text")
    def shown_text(self, episode: Episode) -> SafeString:
        return passage(episode.text)

    @admin.display(description="kind")
    def shown_kind(self, episode: Episode) -> str:
        return episode.kind

    @admin.display(description="tier")
    def shown_tier(self, episode: Episode) -> str:
        return episode.tier or "not extracted"

    @admin.display(description="status", ordering="status")
    def status_badge(self, episode: Episode) -> SafeString:
        return badge(episode.status)

    @admin.display(description="recalled")
    def recalled(self, episode: Episode) -> str:
        return last_use(getattr(episode, "access", None))

    @admin.display(description="embedded by")
    def embedded(self, episode: Episode) -> str:
        kept = episode.embeddings.values_list("model", "is_chunked")
        return ", ".join(f"{model} (in chunks)" if is_chunked else model for model, is_chunked in kept) or "not yet"
