"""Single episodes near a belief: gathered by belief, since only creating a belief needs three of them (B8.3)."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db.models import QuerySet

from memory.consolidation.guarding import may_concern, supports_by_guard
from memory.consolidation.known import evidenced_pairs, judged_pairs
from memory.consolidation.sources import (
    BeliefSource,
    EpisodeSource,
    canonical_key,
    nearest_above,
    read_beliefs,
    similarities,
)
from memory.domain.lifecycle import ConsolidationState
from memory.domain.verdicts import Verdict
from memory.llm.embeddings import Embedder
from memory.models import Belief
from memory.models.vectors import Vectors

_BLOCK = 2048

Near = tuple[EpisodeSource, BeliefSource, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An episode near a belief, with their similarity on the reference scale, and whether a model must be asked."""

    episode: EpisodeSource
    belief: BeliefSource
    similarity: float
    needs_call: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SinglesBatch:
    """Episodes near one belief, as many as one call takes, the most similar first."""

    belief_id: str
    members: Sequence[EpisodeSource]
    similarity: float
    needs_call: bool
    has_failed: bool


def gather_singles(
    *, workspace_id: int, episodes: Sequence[EpisodeSource], vectors: Vectors, model: Embedder
) -> tuple[list[SinglesBatch], set[str]]:
    """Choose the batches of this cycle; return them and the new episodes that also wait for a batch left out."""
    if not episodes:
        return [], set()
    mine = Belief.objects.for_workspace(workspace_id).judgeable()
    batches = _batches(
        find_unheard(workspace_id=workspace_id, episodes=episodes, vectors=vectors, beliefs=mine, model=model)
    )
    chosen = _within_budget(batches)
    left_out = [batch for batch in batches if batch not in chosen]
    return chosen, {m.id for b in left_out for m in b.members if m.state == ConsolidationState.LEASED}


def find_unheard(
    *,
    workspace_id: int,
    episodes: Sequence[EpisodeSource],
    vectors: Vectors,
    beliefs: QuerySet[Belief],
    model: Embedder,
) -> list[Pair]:
    """Find what episodes may have to say about beliefs near them and has not been heard."""
    sources, belief_vectors = read_beliefs(beliefs=beliefs, model=model.name)
    return _unheard(workspace_id, list(_near_pairs(episodes, vectors, sources, belief_vectors, model)))


def _near_pairs(
    episodes: Sequence[EpisodeSource],
    vectors: Vectors,
    beliefs: Sequence[BeliefSource],
    belief_vectors: Vectors,
    model: Embedder,
) -> Iterator[Near]:
    """Yield each episode's nearest beliefs above the threshold, at most five."""
    threshold = model.profile.raw(settings.POLICY.consolidation.match_similarity)
    for start in range(0, len(episodes), _BLOCK):
        block = similarities(vectors[start : start + _BLOCK], belief_vectors)
        for row, cosines in enumerate(block):
            nearest = nearest_above(cosines=cosines, threshold=threshold)
            episode = episodes[start + row]
            visible = [p for p in nearest if _is_in_sight(episode=episode, belief=beliefs[p], model=model)]
            for place in visible[: settings.POLICY.consolidation.match_beliefs]:
                yield episode, beliefs[place], model.profile.reference(float(cosines[place]))


def _is_in_sight(*, episode: EpisodeSource, belief: BeliefSource, model: Embedder) -> bool:
    """Tell whether an episode may speak about a belief: its own project's or a global one (B8.4)."""
    return belief.project_id in (None, episode.project_id) and comparable(episode=episode, belief=belief, model=model)


def comparable(*, episode: EpisodeSource, belief: BeliefSource, model: Embedder) -> bool:
    """Tell whether both are one user's, or the belief nobody's, and in languages whose vectors can be compared."""
    same_language = model.is_multilingual or belief.language == episode.language
    return belief.user in ("", episode.user) and same_language


def _unheard(workspace_id: int, near: Sequence[Near]) -> list[Pair]:
    """Keep the pairs that have no verdict though they may, and those whose verdict came but was never applied."""
    episodes = {episode.id for episode, _, _ in near}
    given = judged_pairs(
        workspace_id=workspace_id, hashes={belief.statement_hash for _, belief, _ in near}, episodes=episodes
    )
    counted = evidenced_pairs(
        workspace_id=workspace_id, beliefs={belief.id for _, belief, _ in near}, episodes=episodes
    )
    pairs = []
    for episode, belief, similarity in near:
        known = given.get((belief.statement_hash, episode.id))
        if (belief.id, episode.id) in counted or known is Verdict.IRRELEVANT:
            continue
        by_guard = supports_by_guard(episode=episode.claim, statement=belief.claim, similarity=similarity)
        needs_call = known is None and not by_guard
        if needs_call and not may_concern(episode=episode.claim, statement=belief.claim, similarity=similarity):
            continue
        pairs.append(Pair(episode=episode, belief=belief, similarity=similarity, needs_call=needs_call))
    return pairs


def _batches(pairs: Sequence[Pair]) -> list[SinglesBatch]:
    """Gather pairs by belief, cut them to the size of a call, and order the batches by their best pair.

    Batches that failed before come last, or ten that always fail would let no other be asked.
    """
    by_belief: dict[str, list[Pair]] = defaultdict(list)
    seen: set[tuple[str, str]] = set()
    for pair in sorted(pairs, key=lambda pair: (-pair.similarity, canonical_key(pair.episode))):
        if (pair.belief.id, pair.episode.id) not in seen:  # of one episode's claims the nearest is asked about
            seen.add((pair.belief.id, pair.episode.id))
            by_belief[pair.belief.id].append(pair)
    size = settings.POLICY.consolidation.classify_episodes
    batches = [_batch(near[start : start + size]) for near in by_belief.values() for start in range(0, len(near), size)]
    batches = [batch for batch in batches if any(member.is_saying for member in batch.members)]
    return sorted(batches, key=lambda batch: (batch.has_failed, -batch.similarity, batch.belief_id))


def _batch(pairs: Sequence[Pair]) -> SinglesBatch:
    return SinglesBatch(
        belief_id=pairs[0].belief.id,
        members=[pair.episode for pair in pairs],
        similarity=pairs[0].similarity,
        needs_call=any(pair.needs_call for pair in pairs),
        has_failed=any(pair.episode.failures for pair in pairs),
    )


def _within_budget(batches: Sequence[SinglesBatch]) -> list[SinglesBatch]:
    """Keep every batch that needs no call, and the first ten that do."""
    calls = [batch for batch in batches if batch.needs_call][: settings.POLICY.consolidation.gathered_calls]
    return [batch for batch in batches if not batch.needs_call or batch in calls]
