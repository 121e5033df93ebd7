"""Find the beliefs near single episodes that no reading hears: documents, logs, an agent's own work (B8.3, F4).

`gather_unclustered` packs them into as few calls as can be.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from memory.consolidation.model_calls import read_evidenced_pairs, read_judged_pairs
from memory.consolidation.sources import EpisodeSource, canonical_order, nearest_above
from memory.domain.clustering import PackedText, pack_texts
from memory.domain.evidence import Verdict
from memory.ledger.beliefs import (
    BeliefSource,
    cosine_matrix,
    may_be_related,
    read_beliefs_with_vectors,
    supports_without_call,
)
from memory.llm.registry import language_model
from memory.llm.types import Embedder
from memory.models import Belief
from memory.search.vectors import Vectors

_BLOCK_EPISODES = 2048


def gather_unclustered(
    *, workspace_id: int, episodes: Sequence[EpisodeSource], vectors: Vectors, model: Embedder
) -> tuple[list[UnclusteredBatch], list[UnclusteredBatch]]:
    """Choose the batches of this cycle; return them and those for which it has no call."""
    if not episodes:
        return [], []
    mine = Belief.objects.for_workspace(workspace_id).judgeable()
    statements = _read_statements(beliefs=mine, model=model)
    near = _near_pairs(episodes, vectors, statements, model)
    batches = _make_batches(_unjudged_pairs(workspace_id, near), is_packed=not language_model().is_offline)
    chosen = _within_budget(batches)
    return chosen, [batch for batch in batches if batch not in chosen]


def find_unjudged_pairs(
    *,
    workspace_id: int,
    episodes: Sequence[EpisodeSource],
    vectors: Vectors,
    beliefs: QuerySet[Belief],
    model: Embedder,
) -> list[UnjudgedPair]:
    """Find what episodes may have to say about beliefs near them and has not been heard."""
    statements = _read_statements(beliefs=beliefs, model=model)
    near = _near_pairs(episodes, vectors, statements, model)
    return _unjudged_pairs(workspace_id, near)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnclusteredBatch:
    """Episodes near beliefs, as many as one call takes, the most similar first, and which is near which."""

    members: Sequence[EpisodeSource]
    pairs: Mapping[str, Sequence[str]]  # by belief, the episodes to be held against it
    similarity: float
    needs_call: bool
    has_failed: bool

    @property
    def belief_id(self) -> str | None:
        """Return the one belief that it is about, None if it is about several."""
        return next(iter(self.pairs)) if len(self.pairs) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NearStatement:
    """An episode and a belief that it may be about, with their similarity on the reference scale."""

    episode: EpisodeSource
    belief: BeliefSource
    similarity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UnjudgedPair:
    """An episode near a belief, and whether a model must be asked."""

    episode: EpisodeSource
    belief: BeliefSource
    similarity: float
    needs_call: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statements:
    """What episodes are held against."""

    sources: list[BeliefSource]
    vectors: Vectors


def _read_statements(*, beliefs: QuerySet[Belief], model: Embedder) -> _Statements:
    found, vectors = read_beliefs_with_vectors(beliefs=beliefs, model=model.name)
    return _Statements(sources=found, vectors=vectors)


def _near_pairs(
    episodes: Sequence[EpisodeSource], vectors: Vectors, statements: _Statements, model: Embedder
) -> Iterator[NearStatement]:
    """Yield the beliefs nearest to each episode above the threshold, at most five."""
    threshold = model.profile.raw(settings.POLICY.consolidation.match_similarity)
    sources = statements.sources
    for start in range(0, len(episodes), _BLOCK_EPISODES):
        block = cosine_matrix(vectors[start : start + _BLOCK_EPISODES], statements.vectors)
        for row, cosines in enumerate(block):
            episode = episodes[start + row]
            visible = [
                place
                for place in nearest_above(cosines=cosines, threshold=threshold)
                if _may_speak_about(episode=episode, belief=sources[place], model=model)
            ]
            for place in visible[: settings.POLICY.consolidation.match_beliefs]:
                similarity = model.profile.reference(float(cosines[place]))
                yield NearStatement(episode=episode, belief=sources[place], similarity=similarity)


def _may_speak_about(*, episode: EpisodeSource, belief: BeliefSource, model: Embedder) -> bool:
    """Tell whether an episode may speak about a belief: its own project's or a global one (B8.4)."""
    return belief.project_id in (None, episode.project_id) and is_comparable(
        episode=episode, belief=belief, model=model
    )


def is_comparable(*, episode: EpisodeSource, belief: BeliefSource, model: Embedder) -> bool:
    """Tell whether both are one user's, or the belief nobody's, of languages that can be compared, and of one time."""
    same_language = model.is_multilingual or belief.language == episode.language
    same_time = not belief.was_over(at=episode.occurred_at)
    return belief.user in ("", episode.user) and same_language and same_time


def _unjudged_pairs(workspace_id: int, found: Iterator[NearStatement]) -> list[UnjudgedPair]:
    """Keep the pairs that have no verdict though they may, and those whose verdict came but was never applied."""
    near = list(found)
    episodes = {one.episode.id for one in near}
    given = read_judged_pairs(
        workspace_id=workspace_id, hashes={one.belief.statement_hash for one in near}, episodes=episodes
    )
    counted = read_evidenced_pairs(
        workspace_id=workspace_id, beliefs={one.belief.id for one in near}, episodes=episodes
    )
    pairs = []
    for one in near:
        said: dict[str, Any] = {
            "episode": one.episode.claim,
            "statement": one.belief.claim,
            "similarity": one.similarity,
        }
        known = given.get((one.belief.statement_hash, one.episode.id))
        if (one.belief.id, one.episode.id) in counted or known is Verdict.IRRELEVANT:
            continue
        needs_call = known is None and not supports_without_call(**said)
        if needs_call and not may_be_related(**said):
            continue
        pairs.append(
            UnjudgedPair(episode=one.episode, belief=one.belief, similarity=one.similarity, needs_call=needs_call)
        )
    return pairs


def _make_batches(pairs: Sequence[UnjudgedPair], *, is_packed: bool) -> list[UnclusteredBatch]:
    """Gather pairs into batches of the size of a call, and order those by their best pair.

    Batches that failed before come last, or ten that always fail would let no other be asked.
    """
    seen: dict[tuple[str, str], UnjudgedPair] = {}
    for pair in sorted(pairs, key=lambda pair: (-pair.similarity, canonical_order(pair.episode))):
        seen.setdefault((pair.belief.id, pair.episode.id), pair)
    nearest_first = list(seen.values())
    if is_packed:
        asked = [pair for pair in nearest_first if pair.needs_call]
        batches = [*_batch_by_belief([pair for pair in nearest_first if not pair.needs_call]), *_pack_pairs(asked)]
    else:
        batches = _batch_by_belief(nearest_first)
    return sorted(batches, key=lambda batch: (batch.has_failed, -batch.similarity, min(batch.pairs)))


def _batch_by_belief(pairs: Sequence[UnjudgedPair]) -> list[UnclusteredBatch]:
    by_belief: dict[str, list[UnjudgedPair]] = defaultdict(list)
    for pair in pairs:
        by_belief[pair.belief.id].append(pair)
    size = settings.POLICY.consolidation.classify_episodes
    return [
        _make_batch(near[start : start + size]) for near in by_belief.values() for start in range(0, len(near), size)
    ]


def _pack_pairs(pairs: Sequence[UnjudgedPair]) -> list[UnclusteredBatch]:
    """Pack pairs into few calls; what failed before is asked about alone, so that it spoils nothing beside it."""
    by_source: dict[str, list[UnjudgedPair]] = defaultdict(list)
    for pair in pairs:
        by_source[pair.episode.id].append(pair)
    sound = [near for near in by_source.values() if not near[0].episode.failures]
    failed = [near for near in by_source.values() if near[0].episode.failures]
    packs = [
        *_fill_packs(sound, most_texts=settings.POLICY.consolidation.classify_episodes),
        *_fill_packs(failed, most_texts=1),
    ]
    return [_make_batch(pack) for pack in packs]


def _fill_packs(sources: Sequence[Sequence[UnjudgedPair]], *, most_texts: int) -> list[list[UnjudgedPair]]:
    pair_of = {(pair.episode.id, pair.belief.id): pair for near in sources for pair in near}
    texts = [
        PackedText(key=near[0].episode.id, voice=near[0].episode.id, statements=tuple(pair.belief.id for pair in near))
        for near in sources
    ]
    packs = pack_texts(
        texts=texts, most_statements=settings.POLICY.consolidation.gathered_beliefs, most_texts=most_texts
    )
    return [[pair_of[text.key, key] for text in pack.texts for key in text.statements] for pack in packs]


def _make_batch(pairs: Sequence[UnjudgedPair]) -> UnclusteredBatch:
    by_belief: dict[str, list[str]] = defaultdict(list)
    for pair in pairs:
        by_belief[pair.belief.id].append(pair.episode.id)
    return UnclusteredBatch(
        members=list({pair.episode.id: pair.episode for pair in pairs}.values()),
        pairs=by_belief,
        similarity=max(pair.similarity for pair in pairs),
        needs_call=any(pair.needs_call for pair in pairs),
        has_failed=any(pair.episode.failures for pair in pairs),
    )


def _within_budget(batches: Sequence[UnclusteredBatch]) -> list[UnclusteredBatch]:
    """Keep every batch that needs no call, and the first ten that do."""
    calls = [batch for batch in batches if batch.needs_call][: settings.POLICY.consolidation.gathered_calls]
    return [batch for batch in batches if not batch.needs_call or batch in calls]
