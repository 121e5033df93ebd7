"""Single episodes near beliefs: held against those at once, since only creating a belief needs three of them (B8.3).

Rules on this machine are asked about one belief at a time. A model is asked in as few calls as can be, about several
episodes and beliefs each; and it judges a told claim besides against the beliefs that share a slot, a name or rare
words with it, be their vectors ever so far apart: else that would found the same belief in other words (E4).
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from django.conf import settings
from django.db.models import QuerySet

from memory.consolidation.known import evidenced_pairs, judged_pairs
from memory.consolidation.related import KnownBeliefs, find_alike_claims
from memory.consolidation.sources import EpisodeSource, as_candidate, canonical_key, nearest_above
from memory.domain.clustering import PackedText, pack_texts
from memory.domain.evidence import Verdict
from memory.domain.lifecycle import ConsolidationState
from memory.ledger.beliefs import (
    BeliefSource,
    claim_key,
    cosine_matrix,
    may_be_related,
    parse_claim_key,
    read_beliefs_with_vectors,
    supports_by_guard,
)
from memory.llm.registry import Embedder, language_model
from memory.models import Belief, Claim
from memory.search.vectors import Vectors

_BLOCK = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statements:
    """What episodes are held against: beliefs, and claims that may found some, by their order in time."""

    sources: list[BeliefSource]
    vectors: Vectors
    order: Mapping[int, int] = field(default_factory=dict)

    def precedes(self, statement: BeliefSource, episode: EpisodeSource) -> bool:
        """Tell whether a statement stood before an episode came: a belief, or what is told before it."""
        if statement.claim_id is None:
            return True
        return self.order[statement.claim_id] < self.order.get(episode.claim_id, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """An episode and a belief that it may be about, with their similarity on the reference scale."""

    episode: EpisodeSource
    belief: BeliefSource
    similarity: float
    is_alike: bool  # they share a slot, a name or rare words, be they ever so far apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An episode near a belief, and whether a model must be asked."""

    episode: EpisodeSource
    belief: BeliefSource
    similarity: float
    needs_call: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SinglesBatch:
    """Episodes near beliefs, as many as one call takes, the most similar first, and which is near which."""

    members: Sequence[EpisodeSource]
    pairs: Mapping[str, Sequence[str]]  # by belief, the episodes to be held against it
    similarity: float
    needs_call: bool
    has_failed: bool

    @property
    def belief_id(self) -> str | None:
        """Return the one belief that it is about, None if it is about several, or about a claim."""
        key = next(iter(self.pairs))
        return key if len(self.pairs) == 1 and parse_claim_key(key) is None else None


def gather_singles(
    *, workspace_id: int, episodes: Sequence[EpisodeSource], vectors: Vectors, model: Embedder
) -> tuple[list[SinglesBatch], list[SinglesBatch]]:
    """Choose the batches of this cycle; return them and those for which it has no call."""
    if not episodes:
        return [], []
    mine = Belief.objects.for_workspace(workspace_id).judgeable()
    statements = _read_statements(beliefs=mine, model=model)
    if not language_model().is_offline:
        statements = _with_claims(statements, episodes, vectors)
    near = _near_pairs(episodes, vectors, statements, model, _find_alike(workspace_id, episodes))
    batches = _batches(_unheard(workspace_id, near), is_packed=not language_model().is_offline)
    chosen = _within_budget(batches)
    return chosen, [batch for batch in batches if batch not in chosen]


def find_unheard(
    *,
    workspace_id: int,
    episodes: Sequence[EpisodeSource],
    vectors: Vectors,
    beliefs: QuerySet[Belief],
    model: Embedder,
) -> list[Pair]:
    """Find what episodes may have to say about beliefs near them and has not been heard."""
    statements = _read_statements(beliefs=beliefs, model=model)
    near = _near_pairs(episodes, vectors, statements, model, _find_alike(workspace_id, episodes))
    return _unheard(workspace_id, near)


def _read_statements(*, beliefs: QuerySet[Belief], model: Embedder) -> _Statements:
    found, vectors = read_beliefs_with_vectors(beliefs=beliefs, model=model.name)
    return _Statements(sources=found, vectors=vectors)


def _with_claims(statements: _Statements, episodes: Sequence[EpisodeSource], vectors: Vectors) -> _Statements:
    """Add what new told claims may found in this cycle: those told after them are held against that as well."""
    new = [place for place, source in enumerate(episodes) if source.state != ConsolidationState.POOLED]
    told = _read_told([episodes[place] for place in new])
    places = sorted(
        (place for place in new if episodes[place].claim_id in told), key=lambda p: canonical_key(episodes[p])
    )
    if not places:
        return statements
    claims = [as_candidate(claim=told[episodes[p].claim_id], source=episodes[p]) for p in places]
    return _Statements(
        sources=[*statements.sources, *claims],
        vectors=np.concatenate([statements.vectors, vectors[places]]),
        order={episodes[p].claim_id: number for number, p in enumerate(places)},
    )


def _read_told(episodes: Sequence[EpisodeSource]) -> dict[int, Claim]:
    ids = [source.claim_id for source in episodes if source.claim_id]
    return Claim.objects.filter(is_told=True, is_whole=False).in_bulk(ids)


def _find_alike(workspace_id: int, episodes: Sequence[EpisodeSource]) -> dict[int, set[str]]:
    """Return by told claim what shares a slot, a name or rare words with it: active beliefs, and claims told before."""
    told = {} if language_model().is_offline else _read_told(episodes)
    if not told:
        return {}
    oldest = min(source.occurred_at for source in episodes)
    known = KnownBeliefs(workspace_id=workspace_id, said_from=oldest)
    said = [(told[source.claim_id], source) for source in episodes if source.claim_id in told]
    among = find_alike_claims(said)
    return {
        claim.pk: known.alike(claim, source) | {claim_key(key) for key in among[claim.pk]} for claim, source in said
    }


def _near_pairs(
    episodes: Sequence[EpisodeSource],
    vectors: Vectors,
    statements: _Statements,
    model: Embedder,
    alike: Mapping[int, Collection[str]],
) -> Iterator[Near]:
    """Yield what is nearest to each episode above the threshold, and what is like it, at most five in all."""
    threshold = model.profile.raw(settings.POLICY.consolidation.match_similarity)
    sources = statements.sources
    place_of = {source.id: place for place, source in enumerate(sources)}
    for start in range(0, len(episodes), _BLOCK):
        block = cosine_matrix(vectors[start : start + _BLOCK], statements.vectors)
        for row, cosines in enumerate(block):
            episode = episodes[start + row]
            like = {place_of[key] for key in alike.get(episode.claim_id, ()) if key in place_of}
            nearest = nearest_above(cosines=cosines, threshold=threshold)
            ordered = [*nearest, *_nearest_first(like.difference(nearest), cosines)]
            visible = [
                p
                for p in ordered
                if statements.precedes(sources[p], episode)
                and _is_in_sight(episode=episode, belief=sources[p], model=model)
            ]
            for place in visible[: settings.POLICY.consolidation.match_beliefs]:
                similarity = model.profile.reference(float(cosines[place]))
                yield Near(episode=episode, belief=sources[place], similarity=similarity, is_alike=place in like)


def _nearest_first(places: Collection[int], cosines: Vectors) -> list[int]:
    return sorted(places, key=lambda place: (-float(cosines[place]), place))


def _is_in_sight(*, episode: EpisodeSource, belief: BeliefSource, model: Embedder) -> bool:
    """Tell whether an episode may speak about a belief: its own project's or a global one (B8.4)."""
    return belief.project_id in (None, episode.project_id) and comparable(episode=episode, belief=belief, model=model)


def comparable(*, episode: EpisodeSource, belief: BeliefSource, model: Embedder) -> bool:
    """Tell whether both are one user's, or the belief nobody's, of languages that can be compared, and of one time."""
    same_language = model.is_multilingual or belief.language == episode.language
    same_time = not belief.was_over(at=episode.occurred_at)
    return belief.user in ("", episode.user) and same_language and same_time


def _unheard(workspace_id: int, found: Iterator[Near]) -> list[Pair]:
    """Keep the pairs that have no verdict though they may, and those whose verdict came but was never applied."""
    near = list(found)
    episodes = {one.episode.id for one in near}
    given = judged_pairs(
        workspace_id=workspace_id, hashes={one.belief.statement_hash for one in near}, episodes=episodes
    )
    counted = evidenced_pairs(workspace_id=workspace_id, beliefs={one.belief.id for one in near}, episodes=episodes)
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
        by_guard = known is None and supports_by_guard(**said)
        if by_guard and one.belief.claim_id:
            continue  # twins meet at the gate
        needs_call = known is None and not by_guard
        if needs_call and not (one.is_alike or may_be_related(**said)):
            continue
        pairs.append(Pair(episode=one.episode, belief=one.belief, similarity=one.similarity, needs_call=needs_call))
    return pairs


def _batches(pairs: Sequence[Pair], *, is_packed: bool) -> list[SinglesBatch]:
    """Gather pairs into batches of the size of a call, and order those by their best pair.

    Batches that failed before come last, or ten that always fail would let no other be asked.
    """
    seen: dict[tuple[str, str], Pair] = {}
    for pair in sorted(pairs, key=lambda pair: (-pair.similarity, canonical_key(pair.episode))):
        seen.setdefault((pair.belief.id, pair.episode.id), pair)  # of one episode's claims the nearest is asked about
    nearest_first = list(seen.values())
    if is_packed:
        asked = [pair for pair in nearest_first if pair.needs_call]
        batches = [*_by_belief([pair for pair in nearest_first if not pair.needs_call]), *_packed(asked)]
    else:
        batches = _by_belief(nearest_first)
    batches = [batch for batch in batches if any(member.is_saying for member in batch.members)]
    return sorted(batches, key=lambda batch: (batch.has_failed, -batch.similarity, min(batch.pairs)))


def _by_belief(pairs: Sequence[Pair]) -> list[SinglesBatch]:
    by_belief: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_belief[pair.belief.id].append(pair)
    size = settings.POLICY.consolidation.classify_episodes
    return [_batch(near[start : start + size]) for near in by_belief.values() for start in range(0, len(near), size)]


def _packed(pairs: Sequence[Pair]) -> list[SinglesBatch]:
    """Pack pairs into few calls; what failed before is asked about alone, so that it spoils nothing beside it."""
    by_source: dict[tuple[str, int], list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_source[pair.episode.key].append(pair)
    sound = [near for near in by_source.values() if not near[0].episode.failures]
    failed = [near for near in by_source.values() if near[0].episode.failures]
    packs = [*_pack(sound, most_texts=settings.POLICY.consolidation.classify_episodes), *_pack(failed, most_texts=1)]
    return [_batch(pack) for pack in packs]


def _pack(sources: Sequence[Sequence[Pair]], *, most_texts: int) -> list[list[Pair]]:
    pair_of = {(pair.episode.key, pair.belief.id): pair for near in sources for pair in near}
    texts = [
        PackedText(key=near[0].episode.key, voice=near[0].episode.id, statements=tuple(pair.belief.id for pair in near))
        for near in sources
    ]
    packs = pack_texts(
        texts=texts, most_statements=settings.POLICY.consolidation.gathered_beliefs, most_texts=most_texts
    )
    return [[pair_of[text.key, key] for text in pack.texts for key in text.statements] for pack in packs]


def _batch(pairs: Sequence[Pair]) -> SinglesBatch:
    by_belief: dict[str, list[str]] = defaultdict(list)
    for pair in pairs:
        by_belief[pair.belief.id].append(pair.episode.id)
    return SinglesBatch(
        members=list({pair.episode.key: pair.episode for pair in pairs}.values()),
        pairs=by_belief,
        similarity=max(pair.similarity for pair in pairs),
        needs_call=any(pair.needs_call for pair in pairs),
        has_failed=any(pair.episode.failures for pair in pairs),
    )


def _within_budget(batches: Sequence[SinglesBatch]) -> list[SinglesBatch]:
    """Keep every batch that needs no call, and the first ten that do."""
    calls = [batch for batch in batches if batch.needs_call][: settings.POLICY.consolidation.gathered_calls]
    return [batch for batch in batches if not batch.needs_call or batch in calls]
