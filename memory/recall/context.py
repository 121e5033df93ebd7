"""What bears on a task, for its prompt: beliefs, and episodes that are near enough (R12)."""

from datetime import datetime

import numpy as np
from django.conf import settings

from memory.domain.policy_remembering import ContextPolicy
from memory.llm.workspace_model import embedder_of
from memory.recall.channels import Channel
from memory.recall.choosing import choose_lines
from memory.recall.question import Question, RecallProfile
from memory.recall.ranking import MemoryType
from memory.recall.recall import Answer, find_answer
from memory.recall.recollections import Recollection, tell_within
from memory.recall.search import RecallScope


def give_context(
    *, scope: RecallScope, query: str, session: str = "", max_tokens: int | None = None, now: datetime
) -> Recollection:
    """Return beliefs and the episodes near a query as a text, as far as the tokens reach; they count as accessed."""
    policy: ContextPolicy = settings.POLICY.context
    quotas = {MemoryType.EPISODE: policy.episodes, MemoryType.BELIEF: policy.beliefs}
    question = Question(
        query=query, limit=sum(quotas.values()), quotas=quotas, profile=RecallProfile.ASSOCIATIVE, is_for_task=True,
        session=session,
    )  # fmt: skip
    with find_answer(scope=scope, question=question, now=now) as answer:
        far = _far_episodes(answer, scope, policy)
        return tell_within(
            answer=answer,
            memories=choose_lines(
                memories=[memory for memory in answer.recalled.results if memory.id not in far],
                query=query,
                timed=answer.timed,
                policy=settings.POLICY,
            ),
            episodes=policy.episodes,
            characters=policy.characters,
            tokens=max_tokens or policy.tokens,
            is_belief_first=True,
            scope=scope,
            session=session,
            now=now,
        )


def _far_episodes(answer: Answer, scope: RecallScope, policy: ContextPolicy) -> set[str]:
    """Name the episodes found that are not near enough; where there are no vectors to tell by, words stand in."""
    if Channel.VECTORS in answer.found.degraded:
        return set()
    profile = embedder_of(scope.viewer.workspace).profile
    raw = [np.nan if one.similarity is None else one.similarity for one in answer.found.episodes]
    near = profile.reference(np.array(raw, dtype=np.float64)) > policy.min_similarity  # never true of NaN
    return {one.id for one, is_near in zip(answer.found.episodes, near, strict=True) if not is_near}
