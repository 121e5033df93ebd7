"""Turns that wait in a buffer are recalled, too, as the episodes that they may become (L2, B17)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import structlog

from memory.domain.conversation import Role
from memory.domain.ids import turn_id_of
from memory.domain.matching.analysis import guess_language
from memory.domain.matter import matter_of
from memory.domain.policy import RecallPolicy
from memory.llm.embeddings import Embedder
from memory.models import Source
from memory.models.fields import TEXT_CONFIGURATIONS
from memory.recall.search import Found
from memory.search.hybrid import BufferedTurn, EpisodeCandidate, search_buffered_turns
from memory.search.prepared import SearchFailed, TimedSearch
from memory.search.related import MemoryText
from memory.search.scope import SearchScope
from memory.search.statements import SearchQuery

log = structlog.get_logger(__name__)

_SOURCES: Mapping[str, Source] = {Role.USER: Source.HUMAN, Role.ASSISTANT: Source.AI, Role.TOOL: Source.INGEST}
_OPENING = 80  # characters that tell how a text begins


def add_waiting(
    *,
    timed: TimedSearch,
    reach: SearchScope,
    found: Found,
    query: str,
    session: str,
    embedder: Embedder,
    policy: RecallPolicy,
) -> Found:
    """Add to what was found the turns that nobody has read yet; the session that asks has heard its own.

    Where they cannot be read in time, the answer does without.
    """
    words = found.query.words
    if words is None or not words.has_waiting:
        return found
    search = partial(
        search_buffered_turns,
        reach=reach,
        query=found.query,
        configuration=TEXT_CONFIGURATIONS.get(guess_language(query), ""),
        except_session=session,
        most=policy.waiting_turns,
    )
    try:
        turns = timed.run(search, seconds=policy.channel_seconds)
    except SearchFailed as error:
        log.warning("recall.waiting_failed", error=str(error))
        return found
    said = [(turn, matter) for turn in turns if (matter := matter_of(turn.content, turn.speaker))]
    candidates = _candidates(said, found.query, embedder)
    return replace(
        found,
        episodes=[*found.episodes, *candidates],
        of_time=_weigh(found, [(one.id, turn) for one, (turn, _) in zip(candidates, said, strict=True)]),
        waiting={one.id: _text(one.id, turn, matter) for one, (turn, matter) in zip(candidates, said, strict=True)},
    )


def _candidates(
    said: Sequence[tuple[BufferedTurn, str]], query: SearchQuery, embedder: Embedder
) -> list[EpisodeCandidate]:
    """Put turns beside episodes; one has a vector here only where the model adds up those of words, in no time."""
    similar: Sequence[float | None] = [None] * len(said)
    weighted = similar
    if said and query.vector is not None and query.weighted is not None:
        vectors = embedder.embed([matter for _, matter in said])
        similar = [float(cosine) for cosine in vectors @ np.asarray(query.vector)]
        weighted = [float(cosine) for cosine in vectors @ np.asarray(query.weighted)]
    return [
        EpisodeCandidate(
            id=turn_id_of(turn.id),
            similarity=similarity,
            text_score=turn.text_score,
            coverage=turn.coverage,
            telling=turn.telling,
            context_score=0.0,
            session=turn.session,
            project_id=turn.project_id,
            source=_SOURCES[turn.role],
            speaker=turn.speaker,
            length=turn.length,
            opening=matter[:_OPENING],
            weighted_similarity=weighted_similarity,
        )
        for (turn, matter), similarity, weighted_similarity in zip(said, similar, weighted, strict=True)
    ]


def _weigh(found: Found, turns: Sequence[tuple[str, BufferedTurn]]) -> Mapping[str, float] | None:
    """Weigh turns by the time that is asked about, as episodes are: those of its span fit it wholly."""
    start, end = found.span
    if found.of_time is None or (start is None and end is None):
        return found.of_time
    inside = [
        key for key, turn in turns if not (start and turn.occurred_at < start) and not (end and turn.occurred_at >= end)
    ]
    return {**found.of_time, **dict.fromkeys(inside, 1.0)}


def _text(key: str, turn: BufferedTurn, matter: str) -> MemoryText:
    return MemoryText(
        id=key, text=matter, kind="", dated=turn.occurred_at, confidence=None, session=turn.session, is_derived=False,
        valid_from=None, valid_until=None,
    )  # fmt: skip
