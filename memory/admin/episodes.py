"""What comes in, and what links it: episodes with their claims, conversations with their turns, texts to be remembered
at once (R1); entities, edges between episodes, and boxes.
"""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.postgres.search import SearchQuery
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Count, Exists, OuterRef, Q
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.safestring import SafeString

from memory.admin.actions import curator_action
from memory.admin.columns import NOTHING, badge, column, folded, last_use, link_column, link_to, text_block
from memory.admin.membership import MembersAdmin, OwnWorkspaces, ReadOnlyInline, Row, workspaces_of
from memory.admin.theme import TextInput
from memory.consolidation.episode_states import retry_dead_letters
from memory.consolidation.undone import release_quarantined
from memory.domain.lifecycle import EpisodeStatus
from memory.facts.job import retry_failed
from memory.ingest.scheduling import retry_dead_turns
from memory.models import (
    Belief,
    Box,
    BoxMember,
    Claim,
    Conversation,
    Edge,
    Entity,
    Episode,
    Evidence,
    Mention,
    RememberedFact,
    RememberJob,
    Role,
    Turn,
)
from memory.models.fields import DEFAULT_TEXT_CONFIGURATION, TEXT_CONFIGURATIONS


class MemoriesAdmin(MembersAdmin[Row]):
    """Pages of beliefs and episodes, which curators change in part, and which are searched for by their words."""

    changes = Role.CURATOR
    ordering = ("-created_at", "-id")
    related = ("workspace", "project", "access")

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Row], search_term: str
    ) -> tuple[models.QuerySet[Row], bool]:
        return (_rows_with_words(queryset, search_term) if search_term else queryset), False

    @admin.display(description="recalled")
    def recalled(self, row: Row) -> str:
        return last_use(getattr(row, "access", None))


def _rows_with_words(rows: models.QuerySet[Any], words: str) -> models.QuerySet[Any]:
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
    fields = ("number", "sentence", "mode_badge", "about", "read_as", "words")
    mode_badge = column("mode", badge, title="meant as")

    @admin.display(description="about")
    def about(self, row: Claim) -> str:
        return " · ".join(filter(None, [row.subject, row.category, *row.entities])) or NOTHING

    @admin.display(description="read as")
    def read_as(self, row: Claim) -> str:
        told = "told: founds by itself" if row.is_told else ""
        return " · ".join(filter(None, [row.kind, row.tier, told, row.reader]))


class EvidenceOfEpisode(ReadOnlyInline[Evidence, Episode]):
    model = Evidence
    verbose_name_plural = "evidence it gives"
    fields = ("verdict_badge", "belief_statement", "base_weight", "reason", "created_at")
    ordering = ("-id",)
    related = ("belief",)


@admin.register(Episode)
class EpisodeAdmin(MemoriesAdmin[Episode]):
    """One remembered thing; what consolidation made of it stands below."""

    editable = ("importance", "category", "tags", "valid_until")
    actions = ("retry", "release")
    form = EpisodeForm
    list_display = ("opening", "speaker", "project", "session", "status_badge", "state", "importance", "occurred_at")
    list_filter = (
        ("project", OwnWorkspaces), "status", "state", ("dead_at", admin.EmptyFieldListFilter), "source", "occurred_at",
    )  # fmt: skip
    search_fields = ("text",)
    search_help_text = "Words of the text, as a search engine reads them, or an id (ep_…)"
    inlines = (ClaimsOfEpisode, EvidenceOfEpisode)
    fieldsets = (
        (
            None,
            {"fields": ("whole_text", ("id", "workspace"), ("project", "status_badge"), ("state", "state_reason"))},
        ),
        ("What curators may change", {"fields": editable}),
        folded(
            "Where it came from", ("speaker", "user", "agent"), ("session", "document", "source"),
            ("occurred_at", "created_at"), "origin", "entities", ("is_derived", "language", "valence"),
        ),
        folded(
            "What an extraction made of it", ("kind_name", "tier_name", "confidence"), "causes", "verbatim",
            ("confirmations", "confirmed_at"), ("distance", "surprise", "is_near_duplicate"),
        ),
        folded("Use", ("recalled", "embedded", "read_at"), ("failures", "dead_at"), ("pooled_at", "leased_by")),
    )  # fmt: skip
    opening = column("text", "{:.120}".format)
    whole_text = column("text", text_block)
    kind_name = column("kind")
    tier_name = column("tier", empty="not extracted")
    retry = curator_action(
        "Try the chosen dead letters again", lambda chosen: retry_dead_letters(letters=chosen), done="to be tried again"
    )
    release = curator_action(
        "Release the chosen held ones: they take part again",
        lambda chosen: release_quarantined(episodes=chosen),
        done="released",
    )

    @admin.display(description="embedded by")
    def embedded(self, episode: Episode) -> str:
        kept = episode.embeddings.values_list("model", "is_chunked")
        return ", ".join(f"{model} (in chunks)" if is_chunked else model for model, is_chunked in kept) or "not yet"


@admin.register(Claim)
class ClaimAdmin(MembersAdmin[Claim]):
    """One thing that an episode asserts; reading the episode again replaces it."""

    list_display = ("id", "opening", "mode_badge", "subject", "category", "kind", "importance", "tier_name", "is_told")
    list_display_links = ("id", "opening")
    list_filter = ("mode", "kind", "category", "is_told", "created_at")
    related = ("episode", "because")
    fields = (
        "sentence", ("mode_badge", "is_told"), ("subject", "category", "importance"), "entities", "reason",
        ("kind", "tier_name", "confidence"), ("holds_from", "holds_until"), "words", "episode_text", "drew_on",
        ("number", "language", "reader"), ("workspace", "created_at"),
    )  # fmt: skip
    opening = column("sentence", "{:.160}".format)
    mode_badge = column("mode", badge, title="meant as", ordering="mode")
    tier_name = column("tier", ordering="confidence")

    @admin.display(description="because")
    def reason(self, row: Claim) -> SafeString | str:
        return link_to(Belief, row.because_id, text=row.because.statement) if row.because else NOTHING


class TurnsOfConversation(ReadOnlyInline[Turn, Conversation]):
    model = Turn
    fields = ("number", "role", "speaker", "opening", "signal_badge", "state_badge", "state_reason", "occurred_at")
    ordering = ("-number",)
    opening = column("content", lambda content: text_block(content[:2_000]))
    signal_badge = column("signal", badge)


class WithDeadTurns(admin.SimpleListFilter):
    """Conversations with turns that wait for a person."""

    title = "turns given up"
    parameter_name = "given_up"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "some could not be read")]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> models.QuerySet[Any]:
        return queryset.filter(pk__in=Turn.objects.dead().values("conversation")) if self.value() else queryset


@admin.register(Conversation)
class ConversationAdmin(MembersAdmin[Conversation]):
    """A session, with its turns; the newest first."""

    actions = ("retry",)
    list_display = (
        "session", "project", "user", "turn_count", "buffered", "leased", "due_reason", "state_reason", "last_turn_at",
    )  # fmt: skip
    list_filter = (("project", OwnWorkspaces), WithDeadTurns, "due_reason", "last_turn_at")
    search_fields = ("session__istartswith",)
    search_help_text = "How a session's name begins"
    ordering = ("-last_turn_at", "-id")
    related = ("project",)
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
    retry = curator_action(
        "Read the turns again that could not be read",
        lambda chosen: retry_dead_turns(turns=Turn.objects.filter(conversation__in=chosen)),
        done="to be read again",
    )


class FactsOfText(ReadOnlyInline[RememberedFact, RememberJob]):
    model = RememberedFact
    fields = ("number", "text", "outcome_badge", "belief_link", "rival_outcome")
    ordering = ("number",)
    outcome_badge = column("outcome", badge)


@admin.register(RememberJob)
class RememberJobAdmin(MembersAdmin[RememberJob]):
    """A text, with how far it has come; the newest first."""

    actions = ("retry",)
    list_display = ("opening", "state_badge", "state_reason", "actor", "created_at", "done_at")
    list_filter = ("state", "created_at")
    search_fields = ("episode__id",)
    search_help_text = "The id of an episode (ep_…)"
    ordering = ("-created_at", "-id")
    related = ("episode",)
    inlines = (FactsOfText,)
    fieldsets = (
        (None, {"fields": ("episode_text", ("state_badge", "state_reason"), ("actor", "workspace"))}),
        ("Work", {"fields": (("claims", "failures"), ("due_at", "leased_until"), ("created_at", "done_at"))}),
    )
    text_length = None
    opening = column("episode.text", "{:.120}".format, title="text")
    retry = curator_action(
        "Try the chosen failed ones again", lambda chosen: retry_failed(remembrances=chosen), done="to be tried again"
    )


class MentionsOfEntity(ReadOnlyInline[Mention, Entity]):
    model = Mention
    fields = ("name", "episode_text")
    ordering = ("-id",)
    related = ("episode",)
    text_length = 120


@admin.register(Entity)
class EntityAdmin(MembersAdmin[Entity]):
    """Someone or something that memories name."""

    list_display = ("name", "mention_count", "workspace", "created_at")
    search_fields = ("name__istartswith",)
    search_help_text = "How a name begins"
    ordering = ("name", "id")
    inlines = (MentionsOfEntity,)
    fields = (("name", "workspace"), "created_at")
    mention_count = column("said", title="mentions")

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Entity]:
        rows = _without_forgotten(super().get_queryset(request), Mention.objects.filter(entity=OuterRef("pk")), request)
        entities: models.QuerySet[Entity] = rows.annotate(said=Count("mentions"))
        return entities


@admin.register(Edge)
class EdgeAdmin(MembersAdmin[Edge]):
    """A link between two episodes."""

    list_display = ("source_text", "kind_badge", "target_text", "weight", "confidence", "last_seen_at")
    list_filter = ("kind", "last_seen_at")
    search_fields = ("source__id", "target__id")
    search_help_text = "The id of an episode (ep_…)"
    related = ("source", "target")
    fieldsets = (
        (None, {"fields": (("source_text", "kind_badge", "target_text"), ("weight", "confidence"), "workspace")}),
        ("Times", {"fields": (("created_at", "last_seen_at", "decays_at"),)}),
    )
    text_length = 120
    source_text = link_column("source", text="text", title="from")
    target_text = link_column("target", text="text", title="to")
    kind_badge = column("kind", badge, ordering="kind")


class MembersOfBox(ReadOnlyInline[BoxMember, Box]):
    model = BoxMember
    fields = ("episode_text",)
    ordering = ("episode__occurred_at", "episode__number")
    related = ("episode",)
    text_length = 120


@admin.register(Box)
class BoxAdmin(MembersAdmin[Box]):
    """Memories of one topic, near in time."""

    list_display = ("about", "project", "user", "session", "seal", "opened_at", "last_at")
    list_filter = (("project", OwnWorkspaces), "seal", "last_at")
    search_fields = ("session__istartswith",)
    search_help_text = "How a session's name begins"
    ordering = ("-last_at", "-id")
    inlines = (MembersOfBox,)
    fieldsets = (
        (None, {"fields": ("about", ("project", "workspace"), ("user", "session"))}),
        ("Times", {"fields": (("opened_at", "last_at"), ("sealed_at", "seal"))}),
    )

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Box]:
        return _without_forgotten(super().get_queryset(request), BoxMember.objects.filter(box=OuterRef("pk")), request)

    @admin.display(description="topics")
    def about(self, box: Box) -> str:
        return ", ".join(box.topics[:8]) or "nothing in particular"


def _without_forgotten(
    rows: models.QuerySet[Any], members: models.QuerySet[Any], request: HttpRequest
) -> models.QuerySet[Any]:
    """Leave out what only forgotten episodes name or hold, but for curators."""
    told = Exists(members.exclude(episode__status=EpisodeStatus.FORGOTTEN))
    return rows.filter(Q(workspace__in=workspaces_of(request, at_least=Role.CURATOR)) | told)
