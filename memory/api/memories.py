"""GET /memories/{id} and /episodes, POST /memories/{id}/feedback and /resolve: memories read and rated."""

from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, PolymorphicProxySerializer, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memory.access import Viewer, find_project, resolve_id, visible_beliefs, visible_episodes
from memory.answers import changes as answers
from memory.api.beliefs import BeliefCardSerializer, BeliefSerializer, CardPartsSerializer
from memory.api.forgetting import ForgetView
from memory.api.requests import (
    EmptyRequest,
    PageQuery,
    StrictSerializer,
    as_of_field,
    holder_of,
    name_field,
    page_of,
    query_field,
    read_body,
    read_query,
    viewer_from,
)
from memory.api.responses import (
    CATEGORIES,
    EDGE_KINDS,
    EPISODE_STATES,
    EPISODE_STATUSES,
    KINDS,
    KNOWLEDGE,
    MEMORY_NAME,
    ROLES,
    RoundedField,
    documented,
    page_schema,
)
from memory.domain.identity import is_episode_id, is_turn_id
from memory.domain.lifecycle import EpisodeStatus
from memory.history import episodes_as_of
from memory.models import Belief, Episode, Permission, Project, Transition
from memory.models.episodes import EpisodeQuerySet
from memory.models.fields import choices_of
from memory.recall.cards import find_turn, read_card, read_episode_card, read_turn_card
from memory.recall.usage import Feedback, give_feedback, read_usage, resolve_commitment


def feedback_field() -> RoundedField:
    """Declare how a memory's feedback stands."""
    return RoundedField(help_text="From -1, wrong, to 1, useful.")


class TransitionSerializer(serializers.ModelSerializer[Transition]):
    """A change of a status."""

    class Meta:
        model = Transition
        fields = ("old", "new", "reason", "actor", "at")


class WordSerializer(serializers.Serializer[Any]):
    """What an episode says of a belief."""

    belief = serializers.CharField()
    statement = serializers.CharField()
    status = serializers.CharField()
    confidence = serializers.FloatField()
    verdict = serializers.CharField(help_text="SUPPORTS, CONTRADICTS or PARTIAL.")
    kind = serializers.CharField()
    basis = serializers.CharField(help_text="How the verdict was reached.")
    weight = serializers.FloatField(help_text="What it adds, after the other rows of its origin.")
    reason = serializers.CharField(allow_blank=True)
    cycle = serializers.CharField(allow_null=True)


class LinkSerializer(serializers.Serializer[Any]):
    """A link to another episode."""

    episode = serializers.CharField()
    text = serializers.CharField()
    kind = serializers.ChoiceField(EDGE_KINDS)
    is_cause = serializers.BooleanField(help_text="Of a causal link: the other one is this one's cause.")
    weight = RoundedField()
    confidence = RoundedField()
    last_seen_at = serializers.DateTimeField()


class SaidTurnSerializer(serializers.Serializer[Any]):
    """A turn of a conversation, as it was said."""

    session = serializers.CharField(source="conversation.session")
    number = serializers.IntegerField(help_text="Its place in the conversation.")
    turn_id = serializers.CharField(allow_null=True)
    role = serializers.ChoiceField(ROLES)
    speaker = serializers.CharField(allow_blank=True)
    content = serializers.CharField()
    occurred_at = serializers.DateTimeField()


class EpisodePartsSerializer(serializers.Serializer[Any]):
    """What an episode's card holds beside the episode."""

    type = serializers.ChoiceField(["episode"])
    knowledge = serializers.ChoiceField(KNOWLEDGE)
    access_count = serializers.IntegerField(help_text="How often it was recalled.")
    accessed_at = serializers.DateTimeField(allow_null=True)
    beliefs = WordSerializer(many=True, help_text="What it is evidence for or against.")
    hidden_beliefs = serializers.IntegerField(help_text="Such beliefs that this key may not see.")
    transitions = TransitionSerializer(many=True, help_text="Changes of its status, latest first.")
    names = serializers.ListField(child=serializers.CharField(), help_text="Whom and what it names, small.")
    links = LinkSerializer(many=True, help_text="To episodes that this key may see, the strongest first, at most 20.")
    turns = SaidTurnSerializer(
        many=True, help_text="The latest that it was read from, at most 20; none where it was stored as it is."
    )
    other_turns = serializers.IntegerField(help_text="Turns that it was read from, too, and that are not shown.")


class EpisodeSerializer(serializers.ModelSerializer[Episode]):
    """An episode."""

    project: serializers.SlugRelatedField[Project] = serializers.SlugRelatedField(
        "slug", read_only=True, allow_null=True
    )
    kind = serializers.ChoiceField(KINDS, read_only=True, help_text="What happened, or a note of what holds.")
    tier = serializers.CharField(read_only=True, help_text="Of the extraction's confidence; empty: none made it.")

    class Meta:
        model = Episode
        fields = (
            "id", "text", "summary", "project", "user", "agent", "session", "document", "speaker", "source", "language",
            "entities", "tags", "category", "kind", "confidence", "tier", "importance", "is_derived", "status", "state",
            "state_reason", "created_at", "occurred_at", "valid_until",
        )  # fmt: skip


class ExpandedEpisodeSerializer(EpisodeSerializer):
    """An episode, whole."""

    feedback = feedback_field()

    class Meta:
        model = Episode
        fields = (
            *EpisodeSerializer.Meta.fields, "causes", "verbatim", "confirmations", "confirmed_at", "distance",
            "surprise", "is_near_duplicate", "origin", "valence", "lifecycle_state", "verification", "feedback",
            "resolved_at",
        )  # fmt: skip


class EpisodeCardSerializer(EpisodePartsSerializer, ExpandedEpisodeSerializer):
    """An episode with what became of it, for the schema."""

    class Meta(ExpandedEpisodeSerializer.Meta):
        fields = (  # type: ignore[assignment]  # longer than its parent's
            *EpisodePartsSerializer._declared_fields,
            *ExpandedEpisodeSerializer.Meta.fields,
        )


class BeliefUseSerializer(serializers.Serializer[Any]):
    """How a belief was used."""

    type = serializers.ChoiceField(["belief"])
    knowledge = serializers.ChoiceField(KNOWLEDGE)
    access_count = serializers.IntegerField(help_text="How often it was recalled.")
    accessed_at = serializers.DateTimeField(allow_null=True)
    stability = serializers.FloatField(help_text="How slowly it fades; grows with every recall.")
    retrieval_strength = serializers.FloatField(help_text="How easily it comes to mind now, 0 to 1.")
    feedback = feedback_field()


class ExpandedBeliefSerializer(BeliefUseSerializer, BeliefCardSerializer):
    """A belief with its evidence and its use, for the schema."""

    class Meta(BeliefCardSerializer.Meta):
        fields = (  # type: ignore[assignment]  # longer than its parent's
            *BeliefUseSerializer._declared_fields,
            *BeliefCardSerializer.Meta.fields,
        )


class TurnCardSerializer(serializers.Serializer[Any]):
    """A turn of a conversation, which waits to be read, or was read since it was recalled."""

    type = serializers.ChoiceField(["turn"])
    id = serializers.CharField()
    text = serializers.CharField(source="turn.content")
    project = serializers.CharField(source="turn.conversation.project.slug", default=None, allow_null=True)
    user = serializers.CharField(source="turn.conversation.user", allow_blank=True)
    session = serializers.CharField(source="turn.conversation.session")
    number = serializers.IntegerField(source="turn.number", help_text="Its place in the conversation.")
    turn_id = serializers.CharField(source="turn.turn_id", allow_null=True)
    role = serializers.ChoiceField(ROLES, source="turn.role")
    speaker = serializers.CharField(source="turn.speaker", allow_blank=True)
    state = serializers.CharField(help_text="waiting, extracted, echo or failed.")
    episodes = serializers.ListField(child=serializers.CharField(), help_text="What it became: their ids.")
    created_at = serializers.DateTimeField(source="turn.created_at")
    occurred_at = serializers.DateTimeField(source="turn.occurred_at")


_CARD_SCHEMA = PolymorphicProxySerializer(
    component_name="MemoryCard",
    serializers={"episode": EpisodeCardSerializer, "belief": ExpandedBeliefSerializer, "turn": TurnCardSerializer},
    resource_type_field_name="type",
)

_CARD_EXAMPLE = OpenApiExample(
    "An episode",
    response_only=True,
    status_codes=["200"],
    value={
        "type": "episode", "knowledge": "fact", "access_count": 3, "accessed_at": "2026-03-02T08:00:00Z",
        "beliefs": [
            {
                "belief": "bl_0c4e1f6a92d3", "statement": "Mara prefers tabs over spaces.", "status": "active",
                "confidence": 0.86, "verdict": "SUPPORTS", "kind": "ordinary", "basis": "model", "weight": 1.0,
                "reason": "It states the same preference.", "cycle": "cy_5b1d0c2e9f47",
            }
        ],
        "hidden_beliefs": 0, "transitions": [], "names": ["mara"],
        "links": [
            {
                "episode": "ep_7c20d1e8b5f4", "text": "Mara: the editor was reset.", "kind": "causal", "is_cause": True,
                "weight": 0.8, "confidence": 0.8, "last_seen_at": "2026-03-01T12:00:00Z",
            }
        ],
        "turns": [
            {
                "session": "s-31", "number": 4, "turn_id": "m-4", "role": "user", "speaker": "Mara",
                "content": "I set the editor to tabs again.", "occurred_at": "2026-03-01T12:00:00Z",
            }
        ],
        "other_turns": 0,
        "id": "ep_3f9a1c0b77de",
        "text": "Mara: I set the editor to tabs again.", "summary": "", "project": "compiler", "user": "mara",
        "agent": "", "session": "s-31", "document": "", "speaker": "Mara", "source": "human", "language": "en",
        "entities": ["mara"], "tags": [], "category": "preference", "kind": "note", "confidence": 0.95,
        "tier": "explicit", "importance": 0.57, "is_derived": False, "causes": [], "verbatim": "", "confirmations": 1,
        "confirmed_at": "2026-03-02T08:00:00Z", "distance": 0.37, "surprise": 0.55, "is_near_duplicate": False,
        "status": "active", "state": "settled", "state_reason": "", "created_at": "2026-03-01T12:00:00Z",
        "occurred_at": "2026-03-01T12:00:00Z", "valid_until": None, "origin": "session:s-31", "valence": 0.0,
        "lifecycle_state": "", "verification": "", "feedback": 0.3, "resolved_at": None,
    },
)  # fmt: skip


class MemoryView(ForgetView):
    """One memory."""

    permission_for = {"GET": Permission.READ, **ForgetView.permission_for}

    @extend_schema(
        operation_id="read_memory",
        summary="Read an episode or a belief with all that is known of it",
        parameters=[MEMORY_NAME],
        **documented({200: _CARD_SCHEMA}, 404, 409, 422, examples=[_CARD_EXAMPLE]),
    )
    def get(self, request: Request, memory_id: str) -> Response:
        read_query(EmptyRequest, request)
        whole = resolve_id(name=memory_id, key=holder_of(request).key)
        show = _turn_card if is_turn_id(whole) else _episode_card if is_episode_id(whole) else _belief_card
        return Response(show(whole, viewer_from(request)))


def _turn_card(memory_id: str, viewer: Viewer) -> dict[str, Any]:
    turn = find_turn(memory_id=memory_id, viewer=viewer)
    if turn is None:
        raise Http404
    return dict(TurnCardSerializer(read_turn_card(turn=turn, viewer=viewer)).data)


def _episode_card(memory_id: str, viewer: Viewer) -> dict[str, Any]:
    episodes = visible_episodes(viewer=viewer)
    episode = get_object_or_404(episodes.select_related("project").defer("search"), pk=memory_id)
    card = read_episode_card(episode=episode, viewer=viewer)
    return {**EpisodePartsSerializer(card).data, **ExpandedEpisodeSerializer(episode).data}


def _belief_card(memory_id: str, viewer: Viewer) -> dict[str, Any]:
    beliefs = visible_beliefs(viewer=viewer)
    belief = get_object_or_404(beliefs.select_related("project", "workspace").defer("search"), pk=memory_id)
    parts = CardPartsSerializer(read_card(belief=belief, viewer=viewer)).data
    use = read_usage(belief=belief, now=timezone.now())
    return {**BeliefUseSerializer(use).data, **BeliefSerializer(belief).data, **parts}


class EpisodeQuery(PageQuery):
    """Which episodes a list shows."""

    status = serializers.ChoiceField(EPISODE_STATUSES, default=EpisodeStatus.ACTIVE.value)
    state = serializers.ChoiceField(EPISODE_STATES, required=False)
    project = name_field(help_text="Slug: that project's episodes.")
    user = name_field()
    agent = name_field()
    session = name_field()
    category = serializers.ChoiceField(CATEGORIES, required=False)
    q = query_field(required=False, help_text="Words that the text contains.")
    as_of = as_of_field()


class EpisodeAsOfSerializer(EpisodeSerializer):
    """An episode with the status that it had; nothing else of it has a history."""

    status = serializers.CharField(source="status_then")


class EpisodeListView(APIView):
    """The episodes of a workspace."""

    permission_for = {"GET": Permission.READ}

    @extend_schema(
        operation_id="list_episodes",
        summary="List episodes, newest first",
        parameters=[EpisodeQuery],
        **documented({200: page_schema("EpisodePage", EpisodeSerializer)}, 404, 422),
    )
    def get(self, request: Request) -> Response:
        asked = read_query(EpisodeQuery, request)
        rows = _filtered_episodes(viewer_from(request), asked).select_related("project").defer("search")
        shown_as = EpisodeAsOfSerializer if "as_of" in asked else EpisodeSerializer
        return page_of(request=request, rows=rows, asked=asked, shown_as=shown_as)


def _filtered_episodes(viewer: Viewer, asked: dict[str, Any]) -> EpisodeQuerySet:
    project = find_project(viewer=viewer, slug=asked.get("project"))
    episodes = visible_episodes(viewer=viewer)
    if project:
        episodes = episodes.filter(project=project)
    wanted = {name: name for name in ("status", "state", "user", "agent", "session", "category")}
    wanted["q"] = "text__icontains"
    if "as_of" in asked:
        episodes, wanted["status"] = episodes_as_of(episodes=episodes, at=asked["as_of"]), "status_then"
    return episodes.filter(**{column: asked[name] for name, column in wanted.items() if name in asked})


class FeedbackRequest(StrictSerializer):
    """A word on the use of a memory."""

    value = serializers.ChoiceField(choices_of(Feedback))


class FeedbackView(APIView):
    """A word on the use of a memory."""

    permission_for = {"POST": Permission.WRITE}

    @extend_schema(
        operation_id="give_feedback",
        summary="Say that a memory was useful, or wrong",
        description="It moves 0.3 of the way to 1 or to -1. No confidence moves by it: evidence alone does that.",
        request=FeedbackRequest,
        **documented(
            {200: answers.Feedback}, 400, 404, 413, 415, 422,
            examples=[
                OpenApiExample("a useful memory", value={"value": "useful"}, request_only=True),
                OpenApiExample(
                    "how it stands", value={"id": "bl_0c4e1f6a92d3", "feedback": 0.51}, response_only=True,
                    status_codes=["200"],
                ),
            ],
        ),
    )  # fmt: skip
    def post(self, request: Request, memory_id: str) -> Response:
        asked = read_body(FeedbackRequest, request)
        memory = _visible_memory(request, memory_id)
        feedback = give_feedback(memory=memory, value=Feedback(asked["value"]))
        return Response(answers.Feedback(id=memory.pk, feedback=feedback))


class ResolveView(APIView):
    """The end of a commitment."""

    permission_for = {"POST": Permission.WRITE}

    @extend_schema(
        operation_id="resolve_commitment",
        summary="Say that a commitment was done with",
        request=EmptyRequest,
        **documented(
            {200: answers.Resolved}, 400, 404, 409, 413, 415, 422,
            examples=[
                OpenApiExample(
                    "a kept promise",
                    value={"id": "ep_3f9a1c0b77de", "resolved_at": "2026-03-01T12:00:00Z"},
                    response_only=True,
                    status_codes=["200"],
                ),
            ],
        ),
    )  # fmt: skip
    def post(self, request: Request, memory_id: str) -> Response:
        read_body(EmptyRequest, request)
        memory = _visible_memory(request, memory_id)
        resolved_at = resolve_commitment(memory=memory, now=timezone.now())
        return Response(answers.Resolved(id=memory.pk, resolved_at=resolved_at))


def _visible_memory(request: Request, memory_id: str) -> Episode | Belief:
    viewer = viewer_from(request)
    is_episode = is_episode_id(memory_id)
    visible = visible_episodes(viewer=viewer) if is_episode else visible_beliefs(viewer=viewer)
    memory: Episode | Belief = get_object_or_404(visible.defer("search"), pk=memory_id)
    return memory
