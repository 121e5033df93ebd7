"""What comes up by itself: a few bites for a prompt, which count as accessed (B16)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from memory.domain.grounding import says_more
from memory.domain.policy import RecollectionPolicy
from memory.llm.prompts import estimate_tokens
from memory.recall.lines import format_bite
from memory.recall.question import Question
from memory.recall.ranking import MemoryType
from memory.recall.reading import RecalledMemory
from memory.recall.recall import Answer, count_shown, find_answer
from memory.recall.search import RecallScope
from memory.recall.surfacing import note_surfaced


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """A text to put before a conversation, and the memories that it is made of."""

    text: str
    ids: tuple[str, ...]


def recollect(
    *, scope: RecallScope, query: str, session: str = "", max_tokens: int | None = None, now: datetime
) -> Recollection:
    """Return up to 3 episodes and 2 beliefs that a query brings up, as far as the tokens reach."""
    policy: RecollectionPolicy = settings.POLICY.recollection
    quotas = {MemoryType.EPISODE: policy.episodes + policy.spare, MemoryType.BELIEF: policy.beliefs}
    question = Question(query=query, limit=sum(quotas.values()), quotas=quotas)
    answer = find_answer(scope=scope, question=question, now=now)
    return tell_within(
        answer=answer,
        memories=answer.recalled.results,
        episodes=policy.episodes,
        characters=policy.characters,
        tokens=max_tokens or policy.tokens,
        is_belief_first=False,
        scope=scope,
        session=session,
        now=now,
    )


def tell_within(
    *,
    answer: Answer,
    memories: Sequence[RecalledMemory],
    episodes: int,
    characters: int,
    tokens: int,
    is_belief_first: bool,
    scope: RecallScope,
    session: str,
    now: datetime,
) -> Recollection:
    """Write those of an answer's memories that the tokens reach for, the best before others; these were shown.

    At most so many are episodes, and none is a summary of what is told anyway.
    """
    bites = dict(_within(_first(_told_once(memories), episodes), tokens, characters))
    shown = [memory for memory in memories if memory.id in bites]
    count_shown(results=shown, found=answer.found, now=now)
    if session:
        note_surfaced(workspace=scope.viewer.workspace, session=session, memories=shown, now=now)
    ordered = sorted(shown, key=lambda memory: (memory.type == MemoryType.BELIEF) is not is_belief_first)
    return Recollection(
        text="\n".join(bites[memory.id] for memory in ordered), ids=tuple(memory.id for memory in ordered)
    )


def _told_once(memories: Sequence[RecalledMemory]) -> list[RecalledMemory]:
    """Leave out summaries that say nothing beside the beliefs and their own session's other episodes (R8)."""
    policy: RecollectionPolicy = settings.POLICY.recollection

    def repeats(summary: RecalledMemory) -> bool:
        told = [one.text for one in memories if not one.is_derived and one.session in ("", summary.session)]
        return bool(told) and not says_more(summary=summary.text, told=told, share=policy.repeated)

    return [memory for memory in memories if not (memory.is_derived and repeats(memory))]


def _first(memories: Sequence[RecalledMemory], episodes: int) -> list[RecalledMemory]:
    """Keep the beliefs, and the best episodes, that many."""
    told = [memory.id for memory in memories if memory.type == MemoryType.EPISODE][:episodes]
    return [memory for memory in memories if memory.type == MemoryType.BELIEF or memory.id in told]


def _within(memories: Sequence[RecalledMemory], tokens: int, characters: int) -> Iterator[tuple[str, str]]:
    """Yield the ids and bites that fit into so many tokens, the best first; one that is too long leaves room."""
    left = tokens
    for memory in memories:
        bite = format_bite(memory=memory, characters=characters)
        needed = estimate_tokens(bite + "\n")
        if needed <= left:
            left -= needed
            yield memory.id, bite
