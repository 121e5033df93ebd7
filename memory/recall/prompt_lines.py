"""Write recalled memories as text for a prompt.

`recollect` gives a few short lines for a conversation, `gather_context` the text for a task; both keep to a budget of
tokens and count as accesses only the memories shown. `format_line` and `format_short_line` write one memory.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import numpy as np
from django.conf import settings

from memory.domain.policy_recall import ContextPolicy, RecollectionPolicy
from memory.language.sentences import says_more
from memory.llm.embeddings import embedder_of
from memory.llm.prompts import estimate_tokens
from memory.recall.query import MemoryType, RecalledMemory, RecallProfile, RecallQuery, RecallScope
from memory.recall.recall import FoundAnswer, count_shown, find_answer
from memory.recall.relevance import choose_lines, drop_without_successor, keep_best
from memory.recall.retrievers import RecallPart
from memory.recall.usage import note_shown


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
    question = RecallQuery(query=query, limit=sum(quotas.values()), quotas=quotas, session=session)
    with find_answer(scope=scope, question=question, now=now) as answer:
        return write_within_budget(
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


def gather_context(
    *, scope: RecallScope, query: str, session: str = "", max_tokens: int | None = None, now: datetime
) -> Recollection:
    """Return beliefs and the episodes near a query as a text, as far as the tokens reach; they count as accessed."""
    policy: ContextPolicy = settings.POLICY.context
    quotas = {MemoryType.EPISODE: policy.episodes, MemoryType.BELIEF: policy.beliefs}
    question = RecallQuery(
        query=query, limit=sum(quotas.values()), quotas=quotas, profile=RecallProfile.ASSOCIATIVE, is_for_task=True,
        session=session,
    )  # fmt: skip
    with find_answer(scope=scope, question=question, now=now) as answer:
        far = _far_episodes(answer, scope, policy)
        return write_within_budget(
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


def _far_episodes(answer: FoundAnswer, scope: RecallScope, policy: ContextPolicy) -> set[str]:
    """Name the episodes found that are not near enough; where there are no vectors to tell by, words stand in."""
    if RecallPart.VECTORS in answer.found.degraded:
        return set()
    profile = embedder_of(scope.viewer.workspace).profile
    raw = [np.nan if one.similarity is None else one.similarity for one in answer.found.episodes]
    near = profile.reference(np.array(raw, dtype=np.float64)) > policy.min_similarity  # never true of NaN
    return {one.id for one, is_near in zip(answer.found.episodes, near, strict=True) if not is_near}


def write_within_budget(
    *,
    answer: FoundAnswer,
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
    take = partial(_lines_within_budget, episodes=episodes, characters=characters, tokens=tokens, now=now)
    bites = take(_drop_redundant_summaries(memories, take))
    shown = drop_without_successor([memory for memory in memories if memory.id in bites])
    count_shown(results=shown, answer=answer, now=now)
    if session:
        note_shown(workspace=scope.viewer.workspace, session=session, memories=shown, now=now)
    ordered = sorted(shown, key=lambda memory: (memory.type == MemoryType.BELIEF) is not is_belief_first)
    return Recollection(
        text="\n".join(bites[memory.id] for memory in ordered), ids=tuple(memory.id for memory in ordered)
    )


def _lines_within_budget(
    memories: Sequence[RecalledMemory], *, episodes: int, characters: int, tokens: int, now: datetime
) -> dict[str, str]:
    """Return the bites of what is told of some memories, by their ids."""
    return dict(_fill_budget(_limit_episodes(memories, episodes), tokens, characters, now))


def _drop_redundant_summaries(
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


def _limit_episodes(memories: Sequence[RecalledMemory], episodes: int) -> list[RecalledMemory]:
    """Keep the beliefs, and the best episodes, that many."""
    told = [memory.id for memory in memories if memory.type == MemoryType.EPISODE][:episodes]
    return [memory for memory in memories if memory.type == MemoryType.BELIEF or memory.id in told]


def _fill_budget(
    memories: Sequence[RecalledMemory], tokens: int, characters: int, now: datetime
) -> Iterator[tuple[str, str]]:
    """Yield the ids and bites that fit into so many tokens, the best first; one that is too long leaves room."""
    left = tokens
    for memory in memories:
        bite = format_short_line(memory=memory, characters=characters, now=now)
        needed = estimate_tokens(bite + "\n")
        if needed <= left:
            left -= needed
            yield memory.id, bite


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ROUND_BRACKETS = str.maketrans("[]", "()")  # a bracket inside a mark could end it early
_CUT = "…"
_FORMERLY = "formerly: "


def format_line(*, memory: RecalledMemory, now: datetime) -> str:
    """Write a memory as `[B] (Feb 24, confidence: 0.85) … — ID: bl_…`, an episode as `[E] (Feb 24) … — ID: ep_…`.

    One that does not hold any more reads `[E] (Feb 24, superseded by bl_…) …`; a belief may say since and until when it
    holds: `[B] (Feb 24, since Feb 1, until Apr 1, confidence: 0.85) …`.
    """
    day, text = _format_day(memory.dated, now), _one_line(memory.text)
    if memory.superseded_by:
        day += f", superseded by {memory.superseded_by}"
    if memory.confidence is None:
        return f"[E] ({day}) {text} — ID: {memory.id}"
    holds = ", ".join([day, *_validity(memory, now)])
    return f"[B] ({holds}, confidence: {memory.confidence:.2f}) {text} — ID: {memory.id}"


def _validity(memory: RecalledMemory, now: datetime) -> list[str]:
    """Word since and until when a memory holds, as far as that is known."""
    named = (("since", memory.valid_from), ("until", memory.valid_until))
    return [f"{word} {_format_day(moment, now)}" for word, moment in named if moment]


def format_short_line(*, memory: RecalledMemory, characters: int, now: datetime) -> str:
    """Write a memory as `[Memory flash: …]`, a belief as `[Belief (0.85): …]`, at most so long between the marks.

    One that does not hold any more reads `[Memory flash: formerly: …]`, and a belief may say since and until when it
    holds, `[Belief (0.85): … (until Dec 1)]`: neither is counted.
    """
    text = _cut_around(_one_line(memory.text), _one_line(memory.passage), characters).translate(_ROUND_BRACKETS)
    if memory.type == MemoryType.EPISODE:
        return f"[Memory flash: {_FORMERLY if memory.superseded_by else ''}{text}]"
    holds = f" ({', '.join(validity)})" if (validity := _validity(memory, now)) else ""
    return f"[Belief ({memory.confidence:.2f}): {text}{holds}]"


def _cut_around(text: str, passage: str, characters: int) -> str:
    """Cut a text to what stands around a passage, which is in sight from its beginning."""
    place = text.find(passage)
    if place < 0 or len(text) <= characters or place + len(passage) <= characters:
        return shorten(text=text, characters=characters)
    room = max(characters - len(passage) - 2, 0)
    start = max(min(place - room // 2, len(text) - characters), 0)
    head = text[start:place]
    head = head.partition(" ")[2] if start else head
    return shorten(text=_CUT + head + text[place:], characters=characters)


def shorten(*, text: str, characters: int) -> str:
    """Cut a text between two words so that it is at most so long, its ellipsis included."""
    if len(text) <= characters:
        return text
    head, space, _ = text[:characters].rpartition(" ")
    return (head if space else text[: characters - 1]).rstrip() + _CUT


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _format_day(moment: datetime, now: datetime) -> str:
    """Name a day, with its year where that is another one."""
    day = moment.astimezone(UTC)
    name = f"{_MONTHS[day.month - 1]} {day.day}"
    return name if day.year == now.astimezone(UTC).year else f"{name}, {day.year}"
