"""What is believed near a fact: which beliefs its episode may bear on, and how like it they are (R2, B21)."""

from collections.abc import Collection, Sequence

import numpy as np
from django.conf import settings

from memory.domain.gates.decisions import LIVE
from memory.domain.lifecycle import BeliefStatus
from memory.domain.remembering import Match, Near, choose_course
from memory.ledger.beliefs import BeliefDraft, BeliefSource, passes_guard, source_of_belief
from memory.llm.workspace_model import embedder_of
from memory.models import Belief, Episode
from memory.search.vectors import ComparisonScope, NearBelief, Vectors, nearest_beliefs

Likeness = Sequence[tuple[NearBelief, float]]  # with the similarity on the reference scale, the nearest first

# What is archived can be borne out, and comes back (B14), as can what was closed since (C2); what is challenged is
# still judged.
_JUDGED = (BeliefStatus.ACTIVE, BeliefStatus.CHALLENGED, BeliefStatus.ARCHIVED, BeliefStatus.INVALIDATED)
_MOST = 50


def surroundings_of(*, belief: BeliefDraft | Belief, episode: Episode, is_limited: bool) -> ComparisonScope:
    """Say where a belief's like is looked for: in its project and among global ones, its user's and nobody's.

    Who is limited to projects changes nothing that belongs to none (B21).
    """
    is_multilingual = embedder_of(belief.workspace_id).is_multilingual
    return ComparisonScope(
        workspace_id=belief.workspace_id,
        project_id=belief.project_id,
        with_global=not is_limited,
        users=tuple({"", belief.user}),
        language=None if is_multilingual else belief.language,
        said_at=episode.occurred_at,
    )


def find_near(*, within: ComparisonScope, vector: Vectors, besides: str = "") -> Likeness:
    """Return the beliefs from the similarity on at which two are linked, another one left out."""
    model = embedder_of(within.workspace_id)
    least = float(model.profile.raw(settings.POLICY.remember.link_from))
    found = [
        one
        for one in nearest_beliefs(
            within=within, model=model.name, vector=vector, statuses=_JUDGED, least=least, most=_MOST
        )
        if one.id != besides
    ]
    likeness = model.profile.reference(np.array([one.cosine for one in found], dtype=np.float64))
    return list(zip(found, [float(value) for value in likeness], strict=True))


def choose_match(*, candidate: BeliefSource, near: Likeness, settled: Collection[str] = ()) -> Match:
    """Decide what a statement does to those near it; what is `settled` is contradicted no more (R2)."""
    policy = settings.POLICY.remember
    close = [(one, likeness) for one, likeness in near if likeness >= policy.contradiction_similarity]
    named = Belief.objects.filter(pk__in=[one.id for one, _ in close])
    beliefs = {known.pk: source_of_belief(belief=known) for known in named}
    held = [
        Near(
            id=one.id,
            similarity=likeness,
            passes_guard=passes_guard(left=candidate.claim, right=beliefs[one.id].claim),
            is_live=one.status in LIVE and one.id not in settled,
        )
        for one, likeness in close
    ]
    return choose_course(near=held, policy=policy)
