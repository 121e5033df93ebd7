"""The graph arm of recall: from the best that the other channels found along edges to what is linked with it (L19)."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import structlog

from memory.domain.calibration import Profile
from memory.domain.policy import Policy
from memory.domain.policy_graph import GraphPolicy
from memory.domain.spreading import Spread, Walked, spread_from
from memory.recall.channels import Channel
from memory.recall.ranking import MemoryType, Ranked, best, rank_episodes
from memory.recall.search import Found
from memory.recall.xray import Step
from memory.search.hybrid import EpisodeCandidate
from memory.search.prepared import SearchFailed, TimedSearch
from memory.search.related import read_episode_candidates, walk_edges
from memory.search.scope import SearchScope

log = structlog.get_logger(__name__)


def follow_links(
    *, timed: TimedSearch, reach: SearchScope, query: str, found: Found, profile: Profile, policy: Policy
) -> Found:
    """Walk from the best episodes found, within a channel's time; if that fails, go on without and say so."""
    ranked = rank_episodes(
        candidates=found.episodes, query=query, asked=found.asked, of_time=found.of_time, profile=profile, policy=policy
    )
    seeds = {item.id: item.score for item in best(ranked=ranked, limit=policy.graph.seeds)}
    ends_at = time.monotonic() + policy.recall.channel_seconds
    try:
        walk = partial(walk_edges, reach=reach, seeds=list(seeds), policy=policy.graph)
        steps: list[Walked] = timed.run(walk, seconds=policy.recall.channel_seconds) if seeds else []
        spread = spread_from(seeds=seeds, steps=steps, policy=policy.graph)
        further = _further(spread, found.episodes, policy.graph)
        read = partial(read_episode_candidates, reach=reach, query=found.query, ids=further)
        linked: list[EpisodeCandidate] = timed.run(read, seconds=ends_at - time.monotonic()) if further else []
    except SearchFailed as error:
        log.warning("recall.channel_failed", error=str(error))
        return replace(found, degraded=(*found.degraded, Channel.GRAPH.value))
    episodes = sorted([*found.episodes, *linked], key=lambda candidate: candidate.id)
    return replace(found, episodes=episodes, spread=spread)


def raise_linked(*, ranked: Sequence[Ranked], spread: Spread, policy: GraphPolicy) -> list[Ranked]:
    """Give episodes that edges lead to a share of what their scores lack to 1, by what the graph says of them."""
    if not spread.scores:
        return list(ranked)
    return [
        _raised(item, spread.scores[item.id], policy)
        if item.type == MemoryType.EPISODE and item.id in spread.scores
        else item
        for item in ranked
    ]


def paths_of(*, spread: Spread) -> dict[str, tuple[Step, ...]]:
    """Return the way to each memory that the graph led to, from one that another channel found."""
    return {key: tuple(_step(walked) for walked in path) for key, path in spread.paths.items()}


def _step(walked: Walked) -> Step:
    return Step(id=walked.origin, confidence=walked.confidence, kind=walked.kind, weight=walked.weight)


def _raised(item: Ranked, score: float, policy: GraphPolicy) -> Ranked:
    gain = policy.share * score * (1.0 - item.score)
    return item.gain(gain, graph=score, graph_gain=gain)


def _further(spread: Spread, known: Sequence[EpisodeCandidate], policy: GraphPolicy) -> list[str]:
    """Choose the best of those that no other channel has found."""
    others = spread.scores.keys() - {candidate.id for candidate in known}
    return sorted(others, key=lambda key: (-spread.scores[key], key))[: policy.found]
