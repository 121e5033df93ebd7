"""What comes in: episodes with their claims, conversations with their turns, texts to be remembered at once (R1)."""

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

from memory.admin.membership import (
    MembersAdmin,
    OwnWorkspaces,
    PagesWithoutCount,
    ReadOnlyAdmin,
    ReadOnlyInline,
    member_rows,
    workspaces_of,
)
from memory.admin.presentation import badge, last_use, link_to, text_block
from memory.consolidation.episode_states import retry_dead_letters
from memory.consolidation.undo import release_quarantined
from memory.facts.job import retry_failed
from memory.ingest.scheduling import retry_dead_turns
from memory.models import Belief, Claim, Conversation, Episode, Evidence, RememberedFact, RememberJob, Role, Turn
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


class ClaimsOfEpisode(ReadOnlyInline[Claim, Episode]):
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


class BeliefsOfEpisode(ReadOnlyInline[Evidence, Episode]):
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
        ("workspace", OwnWorkspaces), ("project", OwnWorkspaces), "status", "state",
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
        mine = member_rows(Episode.objects.filter(pk__in=episodes), request=request, at_least=Role.CURATOR)
        self.message_user(request, f"{retry_dead_letters(letters=mine)} to be tried again.", messages.SUCCESS)

    @admin.action(description="Release the chosen held ones: they take part again", permissions=["change"])
    def release(self, request: HttpRequest, episodes: models.QuerySet[Episode]) -> None:
        """Let episodes that are held since their cycle was undone be taken up again, and say how many there were."""
        mine = member_rows(Episode.objects.filter(pk__in=episodes), request=request, at_least=Role.CURATOR)
        self.message_user(request, f"{release_quarantined(episodes=mine)} released.", messages.SUCCESS)

    @admin.display(description="text")
    def opening(self, episode: Episode) -> str:
        return episode.text[:120]

    @admin.display(description="text")
    def shown_text(self, episode: Episode) -> SafeString:
        return text_block(episode.text)

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


@admin.register(Claim)
class ClaimAdmin(ReadOnlyAdmin[Claim]):
    """One thing that an episode asserts; reading the episode again replaces it."""

    paginator = PagesWithoutCount
    list_display = ("id", "opening", "mode_badge", "subject", "slot", "value", "kind", "shown_tier", "is_told")
    list_display_links = ("id", "opening")
    list_filter = (("workspace", OwnWorkspaces), "mode", "is_told", "is_denial", "created_at")
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


class TurnsOfConversation(ReadOnlyInline[Turn, Conversation]):
    model = Turn
    fields = ("number", "role", "speaker", "said", "signal_badge", "state_badge", "state_reason", "occurred_at")
    ordering = ("-number",)

    @admin.display(description="content")
    def said(self, turn: Turn) -> SafeString:
        return text_block(turn.content[:2_000])

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
class ConversationAdmin(ReadOnlyAdmin[Conversation]):
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
        ("workspace", OwnWorkspaces),
        ("project", OwnWorkspaces),
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
        mine = member_rows(turns, request=request, at_least=Role.CURATOR)
        self.message_user(request, f"{retry_dead_turns(turns=mine)} to be read again.", messages.SUCCESS)


class FactsOfRemembrance(ReadOnlyInline[RememberedFact, RememberJob]):
    model = RememberedFact
    fields = ("number", "text", "outcome_badge", "of_belief", "rival_outcome")
    ordering = ("number",)

    @admin.display(description="outcome")
    def outcome_badge(self, fact: RememberedFact) -> SafeString:
        return badge(fact.outcome)

    @admin.display(description="belief")
    def of_belief(self, fact: RememberedFact) -> SafeString | str:
        return link_to(Belief, fact.belief_id)


@admin.register(RememberJob)
class RemembranceAdmin(ReadOnlyAdmin[RememberJob]):
    """A text, with how far it has come; the newest first."""

    actions = ("retry",)
    paginator = PagesWithoutCount
    list_display = ("told", "state_badge", "state_reason", "actor", "created_at", "done_at")
    list_filter = (("workspace", OwnWorkspaces), "state", "created_at")
    search_fields = ("episode__id",)
    search_help_text = "The id of an episode (ep_…)"
    ordering = ("-created_at", "-id")
    inlines = (FactsOfRemembrance,)
    fieldsets = (
        (None, {"fields": ("of_episode", ("state_badge", "state_reason"), ("actor", "workspace"))}),
        ("Work", {"fields": (("claims", "failures"), ("due_at", "leased_until"), ("created_at", "done_at"))}),
    )

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[RememberJob]:
        rows = super().get_queryset(request).select_related("episode", "workspace")
        return rows.defer("episode__search")

    @admin.display(description="text")
    def told(self, row: RememberJob) -> str:
        return row.episode.text[:120]

    @admin.display(description="episode")
    def of_episode(self, row: RememberJob) -> SafeString | str:
        return link_to(Episode, row.episode_id, text=row.episode.text)

    @admin.display(description="state", ordering="state")
    def state_badge(self, row: RememberJob) -> SafeString:
        return badge(row.state)

    def has_curate_permission(self, request: HttpRequest) -> bool:
        return bool(workspaces_of(request, at_least=Role.CURATOR))

    @admin.action(description="Try the chosen failed ones again", permissions=["curate"])
    def retry(self, request: HttpRequest, remembrances: models.QuerySet[RememberJob]) -> None:
        """Let failed texts of workspaces that the person curates be tried again, and say how many there were."""
        chosen = RememberJob.objects.filter(pk__in=remembrances)
        mine = member_rows(chosen, request=request, at_least=Role.CURATOR)
        self.message_user(request, f"{retry_failed(remembrances=mine)} to be tried again.", messages.SUCCESS)
