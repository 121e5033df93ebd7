"""Re-rank the best of what recall found by a model that reads the query and each text together (B17).

It changes their order alone: each gets the score of the place that it comes to, so that what scores are compared with
further on means what it meant. Off unless the settings name a model; then nothing is read for it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import structlog

from memory.domain.policy import RecallPolicy
from memory.llm.onnx_folder import ModelUnavailable
from memory.llm.pair_models import Reranker, TookTooLong, reranker
from memory.recall.channels import Channel
from memory.recall.ranking import Ranked
from memory.search.prepared import TimedSearch

log = structlog.get_logger(__name__)


def rerank(
    *,
    candidates: Sequence[Ranked],
    query: str,
    read: Callable[[Sequence[Ranked]], Mapping[str, str]],
    timed: TimedSearch,
    policy: RecallPolicy,
) -> tuple[Sequence[Ranked], tuple[str, ...]]:
    """Return candidates, best first, in the order that the model gives the first of them, and what could not be used.

    `read` gives texts by their ids. No transaction is open while the model reads them. Where it takes longer than it
    may, or cannot be loaded, the order stays, and what it would have looked at says so: its component is not a number.
    """
    try:
        model = reranker()
    except ModelUnavailable as error:
        log.warning("recall.reranker_failed", error=str(error))
        return _unread(candidates, policy.rerank_candidates), (Channel.RERANKER,)
    if model is None or len(candidates) < 2:
        return candidates, ()
    first, others = candidates[: policy.rerank_candidates], candidates[policy.rerank_candidates :]
    texts = read(first)
    try:
        scores = timed.step_out(partial(_score, model, query, first, texts, policy.rerank_seconds))
    except TookTooLong:
        log.warning("recall.reranker_failed", error=f"slower than {policy.rerank_seconds:g} s", texts=len(texts))
        return _unread(candidates, policy.rerank_candidates), (Channel.RERANKER,)
    return [*_in_order(first, scores), *others], ()


def _score(
    model: Reranker, query: str, first: Sequence[Ranked], texts: Mapping[str, str], seconds: float
) -> dict[str, float]:
    read = [item.id for item in first if item.id in texts]
    scores = model.score(query=query, texts=[texts[key] for key in read], seconds=seconds)
    return dict(zip(read, scores.tolist(), strict=True))


def _in_order(first: Sequence[Ranked], scores: Mapping[str, float]) -> list[Ranked]:
    """Put the best first, equal ones as they were; what has no text, and is not shown, comes last."""
    places = _distinct([item.score for item in first])
    ordered = sorted(first, key=lambda item: scores.get(item.id, -1.0), reverse=True)
    return [
        _with(item, score=place, reranker=scores.get(item.id, math.nan), before_reranking=item.score)
        for item, place in zip(ordered, places, strict=True)
    ]


def _distinct(scores: Sequence[float]) -> list[float]:
    """Raise equal scores of an order by as little as there is: what is equal is sorted by id further on."""
    raised: list[float] = []
    for score in reversed(scores):
        raised.append(max(score, np.nextafter(raised[-1], np.inf)) if raised else score)
    return [float(score) for score in reversed(raised)]


def _unread(candidates: Sequence[Ranked], count: int) -> list[Ranked]:
    return [
        _with(item, score=item.score, reranker=math.nan) if place < count else item
        for place, item in enumerate(candidates)
    ]


def _with(item: Ranked, *, score: float, **numbers: float) -> Ranked:
    """Return an item with another score, and numbers that say why."""
    columns = {name: [value] for name, value in (item.components | numbers).items()}
    return item._replace(score=score, columns=columns, place=0)
