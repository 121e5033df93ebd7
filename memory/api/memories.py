"""GET /memories/{id}: an episode or a belief with all that is known of it (B18); DELETE forgets it."""

from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, PolymorphicProxySerializer, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.access import Viewer, resolve_id, visible_beliefs, visible_episodes
from memory.api.authentication import holder_of
from memory.api.beliefs import BeliefCardSerializer, BeliefSerializer, CardPartsSerializer
from memory.api.episodes_read import EpisodeSerializer
from memory.api.forgetting import ForgetView
from memory.api.requests import Nothing, read_query, viewer_from
from memory.api.rounding import RoundedField
from memory.api.schema import EDGE_KINDS, KNOWLEDGE, MEMORY_NAME, ROLES, documented
from memory.domain.ids import is_episode_id, is_turn_id
from memory.models import Episode, Permission, Transition
from memory.recall.cards import find_turn, read_card, read_episode_card, read_turn_card
from memory.recall.usage import read_usage


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


_CARD = PolymorphicProxySerializer(
    component_name="MemoryCard",
    serializers={"episode": EpisodeCardSerializer, "belief": ExpandedBeliefSerializer, "turn": TurnCardSerializer},
    resource_type_field_name="type",
)


_EXAMPLE = OpenApiExample(
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
        **documented({200: _CARD}, 404, 409, 422, examples=[_EXAMPLE]),
    )
    def get(self, request: Request, memory_id: str) -> Response:
        read_query(Nothing, request)
        whole = resolve_id(name=memory_id, key=holder_of(request).key)
        show = _turn if is_turn_id(whole) else _episode if is_episode_id(whole) else _belief
        return Response(show(whole, viewer_from(request)))


def _turn(memory_id: str, viewer: Viewer) -> dict[str, Any]:
    turn = find_turn(memory_id=memory_id, viewer=viewer)
    if turn is None:
        raise Http404
    return dict(TurnCardSerializer(read_turn_card(turn=turn, viewer=viewer)).data)


def _episode(memory_id: str, viewer: Viewer) -> dict[str, Any]:
    episodes = visible_episodes(viewer=viewer)
    episode = get_object_or_404(episodes.select_related("project").defer("search"), pk=memory_id)
    card = read_episode_card(episode=episode, viewer=viewer)
    return {**EpisodePartsSerializer(card).data, **ExpandedEpisodeSerializer(episode).data}


def _belief(memory_id: str, viewer: Viewer) -> dict[str, Any]:
    beliefs = visible_beliefs(viewer=viewer)
    belief = get_object_or_404(beliefs.select_related("project", "workspace").defer("search"), pk=memory_id)
    parts = CardPartsSerializer(read_card(belief=belief, viewer=viewer)).data
    use = read_usage(belief=belief, now=timezone.now())
    return {**BeliefUseSerializer(use).data, **BeliefSerializer(belief).data, **parts}
