"""Turns that are far from all that is remembered have their buffer read early (L2).

Somebody looks now and then, so that nobody who speaks waits for a vector. Only a model on this machine is asked: a
server's costs more than reading a few minutes earlier is worth.
"""

import time
from collections.abc import Sequence
from itertools import groupby

import numpy as np
import structlog
from django.conf import settings

from memory.domain.breaking import OWN_ERRORS
from memory.domain.buffering import DueReason, TurnState, is_surprising
from memory.domain.conversation import Role
from memory.domain.matter import matter_of
from memory.domain.policy import TurnsPolicy
from memory.ingest.turns.waking import make_due
from memory.llm.embeddings import Embedder
from memory.llm.workspace_model import embedder_of
from memory.models import Conversation, Turn, Workspace
from memory.search.vectors import nearest_episode_cosines

log = structlog.get_logger(__name__)

_TOO_SHORT = 0.0  # what so few words say surprises nobody


def flush_surprising() -> int:
    """Compare what users said and nobody has read yet with what is remembered; return how many turns surprise."""
    policy = _policy()
    models = _local_models()
    waiting = Turn.objects.filter(
        workspace__in=models, state=TurnState.BUFFERED, surprise=None, role=Role.USER, conversation__due_since=None
    ).select_related("conversation")
    turns = list(waiting.order_by("workspace", "pk")[: policy.surprise_turns])
    ends_at = time.monotonic() + policy.surprise_seconds
    surprising: list[Turn] = []
    for workspace_id, theirs in groupby(turns, key=lambda turn: turn.workspace_id):
        surprising += _weigh(list(theirs), models[workspace_id], ends_at=ends_at)
    make_due(
        conversations=Conversation.objects.filter(pk__in={turn.conversation_id for turn in surprising}),
        reason=DueReason.SURPRISE,
    )
    return len(surprising)


def _local_models() -> dict[int, Embedder]:
    """Return the models of this machine by the workspaces in which turns wait.

    Turns that a server would have to be asked about are never marked: looked at with the others, they would take the
    places of those for good.
    """
    waiting = Conversation.objects.filter(buffered__gt=0, due_since=None).values("workspace")
    models = {workspace.pk: embedder_of(workspace) for workspace in Workspace.objects.filter(pk__in=waiting)}
    return {workspace_id: model for workspace_id, model in models.items() if model.is_local}


def _weigh(turns: Sequence[Turn], model: Embedder, *, ends_at: float) -> list[Turn]:
    """Note how surprising turns are, for as long as there is time; return those that are."""
    policy, found = _policy(), []
    for turn in turns:
        if time.monotonic() > ends_at:
            break
        surprise = _try_to_weigh(turn, model, policy)
        Turn.objects.filter(pk=turn.pk).update(surprise=surprise)
        if is_surprising(surprise=surprise, policy=policy):
            found.append(turn)
    return found


def _try_to_weigh(turn: Turn, model: Embedder, policy: TurnsPolicy) -> float:
    """Weigh a turn; one that breaks our own code surprises nobody, and holds nobody up (E6)."""
    try:
        return _surprise_of(turn, model, policy)
    except OWN_ERRORS:
        log.exception("surprise_not_weighed", turn=turn.pk, workspace=turn.workspace_id)
        return _TOO_SHORT


def _surprise_of(turn: Turn, model: Embedder, policy: TurnsPolicy) -> float:
    """Return 1 − the mean similarity of what is nearest; where nothing is remembered, nothing surprises."""
    matter = matter_of(turn.content, turn.speaker)
    if len(matter.split()) < policy.surprise_words:
        return _TOO_SHORT
    cosines = nearest_episode_cosines(
        workspace_id=turn.workspace_id,
        model=model.name,
        user=turn.conversation.user,
        project_id=turn.conversation.project_id,
        vector=model.embed([matter])[0],
        count=policy.surprise_neighbours,
    )
    return 1.0 - float(np.mean(model.profile.reference(np.array(cosines)))) if cosines else _TOO_SHORT


def _policy() -> TurnsPolicy:
    policy: TurnsPolicy = settings.POLICY.turns
    return policy
