"""The channels of recall: the query's vector and its words, sent to each kind of memory."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import structlog

from memory.access.visibility import Viewer
from memory.domain.policy import RecallPolicy
from memory.llm.budget import DailyCapReached
from memory.llm.embedding_calls import embed_query
from memory.llm.embeddings import Embedder
from memory.llm.model import CallFailed
from memory.models.vector_search import (
    BeliefCandidate,
    EpisodeCandidate,
    Reach,
    SearchQuery,
    search_beliefs,
    search_episodes,
)
from memory.models.vectors import Vectors
from memory.recall.ranking import MemoryType
from memory.recall.terms import words_of

VECTORS = "vectors"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallScope:
    """Whose memories are searched: what the viewer may see, and of it a project's and a user's, if one is named."""

    viewer: Viewer
    project_id: int | None = None
    user: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Candidates of each kind, and the channels that could not be used."""

    episodes: list[EpisodeCandidate]
    beliefs: list[BeliefCandidate]
    degraded: tuple[str, ...]


def find_candidates(
    *,
    scope: RecallScope,
    query: str,
    types: Collection[MemoryType],
    count: int,
    embedder: Embedder,
    now: datetime,
    policy: RecallPolicy,
) -> Found:
    """Find what may answer the query, `count` memories of each kind by each channel."""
    vector = _embed(scope, query, embedder, policy)
    words = words_of(query=query, workspace_id=scope.viewer.workspace.pk, policy=policy)
    asked = SearchQuery(vector=vector, model=embedder.name, words=words)
    beside = (policy.next_share, policy.second_share)
    reach = reach_of(scope=scope, now=now)
    return Found(
        episodes=search_episodes(reach=reach, query=asked, candidates=count, context=beside)
        if MemoryType.EPISODE in types
        else [],
        beliefs=search_beliefs(reach=reach, query=asked, candidates=count, min_confidence=policy.min_confidence)
        if MemoryType.BELIEF in types
        else [],
        degraded=(VECTORS,) if vector is None else (),
    )


def reach_of(*, scope: RecallScope, now: datetime) -> Reach:
    """Turn a scope into what a statement filters by; a project outside the viewer's own reaches nothing (B21)."""
    allowed = scope.viewer.projects
    projects = allowed if scope.project_id is None else (scope.project_id,)
    if allowed is not None and scope.project_id is not None and scope.project_id not in allowed:
        projects = ()
    return Reach(workspace_id=scope.viewer.workspace.pk, projects=projects, allowed=allowed, user=scope.user, now=now)


def _embed(scope: RecallScope, query: str, embedder: Embedder, policy: RecallPolicy) -> Vectors | None:
    """Embed the query; None if the model fails or recall's cap is reached: recall then goes on by text alone."""
    workspace = scope.viewer.workspace
    try:
        vector: Vectors = embed_query(workspace=workspace, model=embedder, text=query, timeout=policy.embed_seconds)
    except (CallFailed, DailyCapReached) as error:
        log.warning("recall.vectors_failed", model=embedder.name, error=str(error))
        return None
    return vector
