"""Find the beliefs that an episode or a claim may be about: by vector, slot, name, or rare words that they share.

`gather_unclustered` packs the single episodes near beliefs into as few calls as can be (B8.3); `BeliefIndex` finds
what a claim is related to, be their vectors ever so far apart (E4).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np
from django.conf import settings
from django.db.models import QuerySet

from memory.claims import RULES_READER
from memory.consolidation.model_calls import read_evidenced_pairs, read_judged_pairs
from memory.consolidation.sources import EpisodeSource, canonical_order, claim_as_belief, nearest_above
from memory.domain.clustering import PackedText, pack_texts
from memory.domain.evidence import Verdict, was_closed_at
from memory.domain.lifecycle import LIVE, ConsolidationState
from memory.language.clauses import Mode
from memory.language.readings import Reading, read_sentence
from memory.language.relations import ClaimRelation, relate_claim
from memory.language.slots import slots_by_name, without_ended
from memory.language.third_person import person_of
from memory.ledger.beliefs import (
    BeliefSource,
    claim_key,
    cosine_matrix,
    may_be_related,
    parse_claim_key,
    read_beliefs_with_vectors,
    supports_by_guard,
)
from memory.ledger.gates import is_closed
from memory.llm.registry import language_model
from memory.llm.types import Embedder
from memory.models import Belief, Claim
from memory.search.vectors import Vectors

_BLOCK_EPISODES = 2048
EXPLICIT = 0.6  # confidence of a claim from which it plainly states something lasting
_SHARED_RARE_WORDS = 2  # rare words by which two sentences may be about one thing
_RARE_SHARE = 0.2  # share of the beliefs in which a word stands at most to be rare, …
_RARE_COUNT = 3  # … or so many of them


def gather_unclustered(
    *, workspace_id: int, episodes: Sequence[EpisodeSource], vectors: Vectors, model: Embedder
) -> tuple[list[UnclusteredBatch], list[UnclusteredBatch]]:
    """Choose the batches of this cycle; return them and those for which it has no call."""
    if not episodes:
        return [], []
    mine = Belief.objects.for_workspace(workspace_id).judgeable()
    statements = _read_statements(beliefs=mine, model=model)
    if not language_model().is_offline:
        statements = _add_new_claims(statements, episodes, vectors)
    near = _near_pairs(episodes, vectors, statements, model, _find_similar_by_words(workspace_id, episodes))
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
    near = _near_pairs(episodes, vectors, statements, model, _find_similar_by_words(workspace_id, episodes))
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
        """Return the one belief that it is about, None if it is about several, or about a claim."""
        key = next(iter(self.pairs))
        return key if len(self.pairs) == 1 and parse_claim_key(key) is None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NearStatement:
    """An episode and a belief that it may be about, with their similarity on the reference scale."""

    episode: EpisodeSource
    belief: BeliefSource
    similarity: float
    is_alike: bool  # they share a slot, a name or rare words, be they ever so far apart


@dataclass(frozen=True, slots=True, kw_only=True)
class UnjudgedPair:
    """An episode near a belief, and whether a model must be asked."""

    episode: EpisodeSource
    belief: BeliefSource
    similarity: float
    needs_call: bool


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


def _read_statements(*, beliefs: QuerySet[Belief], model: Embedder) -> _Statements:
    found, vectors = read_beliefs_with_vectors(beliefs=beliefs, model=model.name)
    return _Statements(sources=found, vectors=vectors)


def _add_new_claims(statements: _Statements, episodes: Sequence[EpisodeSource], vectors: Vectors) -> _Statements:
    """Add what new told claims may found in this cycle: those told after them are held against that as well."""
    new = [place for place, source in enumerate(episodes) if source.state != ConsolidationState.POOLED]
    told = _read_told_claims([episodes[place] for place in new])
    places = sorted(
        (place for place in new if episodes[place].claim_id in told), key=lambda p: canonical_order(episodes[p])
    )
    if not places:
        return statements
    claims = [claim_as_belief(claim=told[episodes[p].claim_id], source=episodes[p]) for p in places]
    return _Statements(
        sources=[*statements.sources, *claims],
        vectors=np.concatenate([statements.vectors, vectors[places]]),
        order={episodes[p].claim_id: number for number, p in enumerate(places)},
    )


def _read_told_claims(episodes: Sequence[EpisodeSource]) -> dict[int, Claim]:
    ids = [source.claim_id for source in episodes if source.claim_id]
    return Claim.objects.filter(is_told=True, is_whole=False).in_bulk(ids)


def _find_similar_by_words(workspace_id: int, episodes: Sequence[EpisodeSource]) -> dict[int, set[str]]:
    """Return by told claim what shares a slot, a name or rare words with it: active beliefs, and claims told before."""
    told = {} if language_model().is_offline else _read_told_claims(episodes)
    if not told:
        return {}
    oldest = min(source.occurred_at for source in episodes)
    known = BeliefIndex(workspace_id=workspace_id, said_from=oldest)
    said = [(told[source.claim_id], source) for source in episodes if source.claim_id in told]
    among = find_similar_claims(said)
    return {
        claim.pk: known.alike(claim, source) | {claim_key(key) for key in among[claim.pk]} for claim, source in said
    }


def _near_pairs(
    episodes: Sequence[EpisodeSource],
    vectors: Vectors,
    statements: _Statements,
    model: Embedder,
    alike: Mapping[int, Collection[str]],
) -> Iterator[NearStatement]:
    """Yield what is nearest to each episode above the threshold, and what is like it, at most five in all."""
    threshold = model.profile.raw(settings.POLICY.consolidation.match_similarity)
    sources = statements.sources
    place_of = {source.id: place for place, source in enumerate(sources)}
    for start in range(0, len(episodes), _BLOCK_EPISODES):
        block = cosine_matrix(vectors[start : start + _BLOCK_EPISODES], statements.vectors)
        for row, cosines in enumerate(block):
            episode = episodes[start + row]
            like = {place_of[key] for key in alike.get(episode.claim_id, ()) if key in place_of}
            nearest = nearest_above(cosines=cosines, threshold=threshold)
            ordered = [*nearest, *sorted(like.difference(nearest), key=lambda place: (-float(cosines[place]), place))]
            visible = [
                p
                for p in ordered
                if statements.precedes(sources[p], episode)
                and _may_speak_about(episode=episode, belief=sources[p], model=model)
            ]
            for place in visible[: settings.POLICY.consolidation.match_beliefs]:
                similarity = model.profile.reference(float(cosines[place]))
                yield NearStatement(
                    episode=episode, belief=sources[place], similarity=similarity, is_alike=place in like
                )


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
        by_guard = known is None and supports_by_guard(**said)
        if by_guard and one.belief.claim_id:
            continue  # twins meet at the gate
        needs_call = known is None and not by_guard
        if needs_call and not (one.is_alike or may_be_related(**said)):
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
        seen.setdefault((pair.belief.id, pair.episode.id), pair)  # of one episode's claims the nearest is asked about
    nearest_first = list(seen.values())
    if is_packed:
        asked = [pair for pair in nearest_first if pair.needs_call]
        batches = [*_batch_by_belief([pair for pair in nearest_first if not pair.needs_call]), *_pack_pairs(asked)]
    else:
        batches = _batch_by_belief(nearest_first)
    batches = [batch for batch in batches if any(member.is_saying for member in batch.members)]
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
    by_source: dict[tuple[str, int], list[UnjudgedPair]] = defaultdict(list)
    for pair in pairs:
        by_source[pair.episode.key].append(pair)
    sound = [near for near in by_source.values() if not near[0].episode.failures]
    failed = [near for near in by_source.values() if near[0].episode.failures]
    packs = [
        *_fill_packs(sound, most_texts=settings.POLICY.consolidation.classify_episodes),
        *_fill_packs(failed, most_texts=1),
    ]
    return [_make_batch(pack) for pack in packs]


def _fill_packs(sources: Sequence[Sequence[UnjudgedPair]], *, most_texts: int) -> list[list[UnjudgedPair]]:
    pair_of = {(pair.episode.key, pair.belief.id): pair for near in sources for pair in near}
    texts = [
        PackedText(key=near[0].episode.key, voice=near[0].episode.id, statements=tuple(pair.belief.id for pair in near))
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
        members=list({pair.episode.key: pair.episode for pair in pairs}.values()),
        pairs=by_belief,
        similarity=max(pair.similarity for pair in pairs),
        needs_call=any(pair.needs_call for pair in pairs),
        has_failed=any(pair.episode.failures for pair in pairs),
    )


def _within_budget(batches: Sequence[UnclusteredBatch]) -> list[UnclusteredBatch]:
    """Keep every batch that needs no call, and the first ten that do."""
    calls = [batch for batch in batches if batch.needs_call][: settings.POLICY.consolidation.gathered_calls]
    return [batch for batch in batches if not batch.needs_call or batch in calls]


class BeliefIndex:
    """The beliefs of a workspace that live, or did when a claim was made, by the slots and words that they share."""

    def __init__(self, *, workspace_id: int, user: str | None = None, said_from: datetime) -> None:
        """Read the live beliefs, and those that were closed later than what is asked about was said from."""
        mine = Belief.objects.for_workspace(workspace_id).defer("search")
        beliefs = mine.filter(status__in=LIVE) | mine.closed().filter(valid_until__gt=said_from)
        self.beliefs = list(beliefs if user is None else beliefs.filter(user__in=("", user)))
        self.readings = [_read_belief(belief) for belief in self.beliefs]
        self._index = WordIndex(self.readings)

    def related(self, claim: Claim, source: EpisodeSource) -> Iterator[tuple[Belief, ClaimRelation]]:
        """Yield the beliefs that a claim says something about, and what."""
        reading = read_claim(claim=claim, source=source)
        asked = (
            *reading.stems,
            *_index_keys(reading),
            *(f"word:{word}" for thing in reading.ended for word in thing.lower().split()),
        )
        for place in sorted(self._index.having(asked)):
            belief = self.beliefs[place]
            if not _is_comparable_in_scope(belief, source):
                continue
            found = relate_claim(
                claim=reading,
                belief=self.readings[place],
                is_explicit=claim.confidence >= EXPLICIT,
                is_sure=claim.reader != RULES_READER,
            )
            if found.verdict is not Verdict.IRRELEVANT:
                yield belief, found

    def alike(self, claim: Claim, source: EpisodeSource) -> set[str]:
        """Return the beliefs that may be about what a claim is, whatever their vectors say."""
        places = self._index.alike(claim, read_claim(claim=claim, source=source))
        return {self.beliefs[place].pk for place in places if _is_comparable_in_scope(self.beliefs[place], source)}


class WordIndex:
    """Sentences by the words, slots and names that stand in them."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self._rare = max(_RARE_COUNT, _RARE_SHARE * len(readings))
        self._by_word: dict[str, set[int]] = defaultdict(set)
        for place, reading in enumerate(readings):
            for word in _index_words(reading):
                self._by_word[word].add(place)

    def having(self, words: Iterable[str]) -> set[int]:
        """Return the places of the sentences that have any of some words."""
        return set[int]().union(*(self._by_word.get(word, set()) for word in words))

    def alike(self, claim: Claim, reading: Reading) -> set[int]:
        """Return the sentences that may be about what a claim is: of a slot or name of its own, or of two rare words.

        That is no verdict, but a reason to ask for one before the claim founds a belief by itself.
        """
        slots = (reading.slots.keys() | set(claim.slots)) & slots_by_name().keys()
        keys = [*(f"slot:{name}" for name in slots), *(f"name:{name}" for name in reading.names)]
        where = (self._by_word.get(stem, set()) for stem in reading.stems)
        shared = Counter(place for places in where if len(places) <= self._rare for place in places)
        return self.having(keys) | {place for place, count in shared.items() if count >= _SHARED_RARE_WORDS}


def find_similar_claims(told: Sequence[tuple[Claim, EpisodeSource]]) -> dict[int, set[int]]:
    """Return by claim the others that may be about what it is."""
    readings = [read_claim(claim=claim, source=source) for claim, source in told]
    index = WordIndex(readings)
    return {
        claim.pk: {told[place][0].pk for place in index.alike(claim, reading)} - {claim.pk}
        for (claim, _), reading in zip(told, readings, strict=True)
    }


def concerns_closed_belief(found: Iterable[tuple[Belief, ClaimRelation]]) -> bool:
    """Tell whether what is said is about a belief that was closed since: then it founds nothing that holds now (C2)."""
    return any(is_closed(belief) for belief, _ in found)


def read_claim(*, claim: Claim, source: EpisodeSource) -> Reading:
    """Return a claim as rules compare it."""
    person = person_of(user=source.user, language=claim.language)
    reading = read_sentence(claim.sentence, person=person, subject=claim.subject, language=claim.language)
    return reading if claim.reader == RULES_READER else _as_model_read(reading, claim)


def _index_words(reading: Reading) -> Iterable[str]:
    yield from reading.stems
    yield from _index_keys(reading)
    yield from (f"name:{name}" for name in reading.names)
    yield from (
        f"word:{word}"
        for word in reading.sentence.lower().replace("'s", "").replace(".", " ").replace(",", " ").split()
    )


def _index_keys(reading: Reading) -> Iterable[str]:
    """Yield what a sentence says something of: its slots, and what is somebody's, be its words ever so common."""
    yield from (f"slot:{name}" for name in reading.slots)
    if reading.possession:
        yield f"thing:{reading.possession.thing}"


def _is_comparable_in_scope(belief: Belief, source: EpisodeSource) -> bool:
    if was_closed_at(status=belief.status, valid_until=belief.valid_until, at=source.occurred_at):
        return False
    same_project = belief.project_id in (None, source.project_id)
    return same_project and belief.user in ("", source.user) and belief.language in ("", source.language)


def _as_model_read(reading: Reading, claim: Claim) -> Reading:
    """Take a model's word for what changes and what has ended, and for a slot that rules do not see."""
    slots = {claim.slot: found} if (found := _named_value(claim)) else {}
    return replace(
        reading,
        slots=without_ended(slots | reading.slots, claim.ended),
        is_change=claim.mode == Mode.CHANGE,
        ended=tuple(claim.ended),
    )


def _named_value(claim: Claim) -> frozenset[str]:
    """Return the value that a model names for a slot; of a slot that lists its values only such a one is sure."""
    slot = slots_by_name().get(claim.slot)
    if slot is None or not claim.value:
        return frozenset()
    listed = slot.members.get(claim.value.lower())
    return frozenset({listed or claim.value.lower()}) if listed or not slot.members else frozenset()


def _read_belief(belief: Belief) -> Reading:
    person = person_of(user=belief.user, language=belief.language)
    return read_sentence(belief.statement, person=person, subject=belief.subject, language=belief.language)
