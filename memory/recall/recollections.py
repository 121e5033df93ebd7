"""What comes up by itself: a few bites for a prompt, which count as accessed (B16)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.conf import settings

from memory.domain.grounding import says_more
from memory.domain.policy import RecollectionPolicy
from memory.llm.prompts import estimate_tokens
from memory.recall.choosing import choose_lines, keep_best, without_orphans
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
    question = Question(query=query, limit=sum(quotas.values()), quotas=quotas, session=session)
    with find_answer(scope=scope, question=question, now=now) as answer:
        return tell_within(
            answer=answer,
            memories=choose_lines(
                memories=keep_best(memories=answer.recalled.results, policy=policy),
                query=query,
                timed=answer.timed,
                policy=settings.POLICY,
            ),
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
    take = partial(_take, episodes=episodes, characters=characters, tokens=tokens, now=now)
    bites = take(_told_once(memories, take))
    shown = without_orphans([memory for memory in memories if memory.id in bites])
    count_shown(results=shown, answer=answer, now=now)
    if session:
        note_surfaced(workspace=scope.viewer.workspace, session=session, memories=shown, now=now)
    ordered = sorted(shown, key=lambda memory: (memory.type == MemoryType.BELIEF) is not is_belief_first)
    return Recollection(
        text="\n".join(bites[memory.id] for memory in ordered), ids=tuple(memory.id for memory in ordered)
    )


def _take(
    memories: Sequence[RecalledMemory], *, episodes: int, characters: int, tokens: int, now: datetime
) -> dict[str, str]:
    """Return the bites of what is told of some memories, by their ids."""
    return dict(_within(_first(memories, episodes), tokens, characters, now))


def _told_once(
    memories: Sequence[RecalledMemory], take: Callable[[Sequence[RecalledMemory]], Mapping[str, str]]
) -> list[RecalledMemory]:
    """Leave out summaries that say nothing beside what is told without them, the worst before better ones (R8).

    That is the beliefs and the other episodes of their own session; what was only found, and has no room, does not
    count.
    """
    share = settings.POLICY.recollection.repeated
    kept = list(memories)
    for summary in reversed([memory for memory in memories if memory.is_derived]):
        others = [memory for memory in kept if memory.id != summary.id]
        bites = take(others)
        told = [one.text for one in others if one.id in bites and one.session in ("", summary.session)]
        if told and not says_more(summary=summary.text, told=told, share=share):
            kept = others
    return kept


def _first(memories: Sequence[RecalledMemory], episodes: int) -> list[RecalledMemory]:
    """Keep the beliefs, and the best episodes, that many."""
    told = [memory.id for memory in memories if memory.type == MemoryType.EPISODE][:episodes]
    return [memory for memory in memories if memory.type == MemoryType.BELIEF or memory.id in told]


def _within(
    memories: Sequence[RecalledMemory], tokens: int, characters: int, now: datetime
) -> Iterator[tuple[str, str]]:
    """Yield the ids and bites that fit into so many tokens, the best first; one that is too long leaves room."""
    left = tokens
    for memory in memories:
        bite = format_bite(memory=memory, characters=characters, now=now)
        needed = estimate_tokens(bite + "\n")
        if needed <= left:
            left -= needed
            yield memory.id, bite
