"""Tools that read: recall, context, expand, status and the history of a status."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, TypeVar

from django.conf import settings
from django.db.models import Q
from pydantic import Field

from memory.access import CallKind
from memory.answers.recall import MemoryAnswer
from memory.answers.status import MemoryCounts, Spending
from memory.domain.identity import is_turn_id
from memory.domain.taxonomy import RecallMode
from memory.history import changes_of
from memory.ingest.schemas import STORABLE, Time
from memory.mcp.answers import (
    BeliefChangeTold,
    ChangeTold,
    ContextTold,
    EvidenceTold,
    Expanded,
    Recalled,
    RelativeTold,
    StatusHistory,
    StatusTold,
    TurnTold,
    WordTold,
)
from memory.mcp.interface import Caller, Effect, InvalidRequest, MemoryName, ProjectName, UserName, tool
from memory.models import Belief, Episode, Permission, Transition, Turn
from memory.recall.cards import interval_of, read_card, read_episode_card, read_turn_card
from memory.recall.prompt_lines import format_line, gather_context
from memory.recall.query import (
    LINKS_ARE_OF_NOW,
    WRONG_ORDER,
    MemoryType,
    RecallProfile,
    RecallQuery,
    RecallScope,
)
from memory.recall.recall import recall as find_memories
from memory.recall.relevance import choose_lines, keep_best
from memory.recall.usage import count_expansion
from memory.search.prepared import TimedSearch
from memory.status import read_status

POLICY = settings.POLICY.recall
_Row = TypeVar("_Row")
_CHARACTERS = 400  # of a turn's content, or of an episode's text where it is evidence
_PAGE = 20  # rows of evidence, the latest first

_Query = Annotated[
    str,
    Field(min_length=1, max_length=POLICY.query_characters, description="What you want to know, in plain words."),
    STORABLE,
]

_Mode = Annotated[
    RecallMode,
    Field(
        description="Only facts, facts and how things are done, or also what happened, which an episode without a "
        "category counts as."
    ),
]
_Session = Annotated[str, Field(max_length=200, description="The conversation that asks; narrows nothing."), STORABLE]


@tool("memory_recall", title="Recall memories", permission=Permission.READ, effect=Effect.READ, usage=CallKind.RECALL)
def recall(
    caller: Caller,
    *,
    query: _Query,
    project: ProjectName | None = None,
    user: UserName | None = None,
    agent: Annotated[str, Field(max_length=200, description="That agent's episodes, and those of none."), STORABLE]
    | None = None,
    session: _Session | None = None,
    limit: Annotated[int, Field(ge=1, le=POLICY.max_limit)] = POLICY.limit,
    types: Annotated[list[MemoryType], Field(min_length=1, description="Both if left out.")] | None = None,
    mode: _Mode = RecallMode.FULL_CONTEXT,
    occurred_after: Annotated[Time, Field(description="RFC 3339 with an offset.")] | None = None,
    occurred_before: Annotated[Time, Field(description="RFC 3339 with an offset.")] | None = None,
    as_of: Annotated[Time, Field(description="How things stood then, in the time of storing.")] | None = None,
    profile: Annotated[RecallProfile, Field(description="How memories are scored.")] = RecallProfile.DEFAULT,
    include_expired: Annotated[bool, Field(description="Also what held until a time that is past.")] = False,
    graph: Annotated[bool, Field(description="Follow links between episodes, too; not with as_of.")] = False,
) -> Recalled:
    """Find what is remembered about something. Use it at the start of a task, and whenever the answer may hang on what
    was said, decided or preferred before. Ask with the words of the matter itself, as a question or a phrase.
    Beliefs come as `[B] (day, confidence: 0.85) … — ID: bl_…`, episodes as `[E] (day) …`. A belief of low confidence
    is contested: say so, or look at its evidence with memory_expand. Name the project to get its memories beside
    general ones, and your session, so that repeating what you were told is not taken for news. Its lines are what
    has to do with your question, each fact once, and may be none; `results` are the nearest that there is,
    `relevant` or not. What is not found is not remembered; that does not make it untrue.
    """
    if occurred_after and occurred_before and not occurred_after < occurred_before:
        raise InvalidRequest(f"occurred_before: {WRONG_ORDER}")
    if graph and as_of:
        raise InvalidRequest(f"graph: {LINKS_ARE_OF_NOW}")
    question = RecallQuery(
        query=query, limit=limit, types=types or list(MemoryType), mode=mode, profile=profile,
        with_expired=include_expired, follows_links=graph, as_of=as_of, occurred_from=occurred_after,
        occurred_before=occurred_before, session=session or "",
    )  # fmt: skip
    named = caller.project(project)
    scope = RecallScope(
        viewer=caller.viewer, project_id=named.pk if named else None, user=user or "", agent=agent or ""
    )
    found = find_memories(scope=scope, question=question, now=caller.now)
    best = keep_best(memories=found.results, policy=settings.POLICY.recollection)
    with TimedSearch(effort=POLICY.search_effort) as timed:
        told = choose_lines(memories=best, query=query, timed=timed, policy=settings.POLICY)
    return Recalled(
        results=[MemoryAnswer.of(one) for one in found.results],
        degraded=list(found.degraded),
        lines=[format_line(memory=one, now=caller.now) for one in told],
    )


@tool(
    "memory_context",
    title="Gather what bears on a task",
    permission=Permission.READ,
    effect=Effect.READ,
    usage=CallKind.RECALL,
)
def context(
    caller: Caller,
    *,
    query: _Query,
    project: ProjectName | None = None,
    user: UserName | None = None,
    session: _Session | None = None,
    max_tokens: Annotated[
        int, Field(ge=1, le=settings.POLICY.context.max_tokens, description="Most tokens of the text.")
    ] = settings.POLICY.context.tokens,
) -> ContextTold:
    """Gather what is remembered that bears on a task, as one text within a budget of tokens: beliefs first, then
    episodes that are near enough. Use it once, when a larger task begins, where memory_recall answers single
    questions as they come up. Unlike that it leaves out episodes that are unlike the task in meaning.
    """
    named = caller.project(project)
    scope = RecallScope(viewer=caller.viewer, project_id=named.pk if named else None, user=user or "")
    given = gather_context(scope=scope, query=query, session=session or "", max_tokens=max_tokens, now=caller.now)
    return ContextTold.model_validate(given)


@tool("memory_expand", title="Show one memory in full", permission=Permission.READ, effect=Effect.READ)
def expand(
    caller: Caller,
    *,
    id: MemoryName,
    page: Annotated[
        int, Field(ge=1, le=100_000, description=f"Of evidence: 1 has the latest {_PAGE}, 2 those before them.")
    ] = 1,
) -> Expanded:
    """Show all that is known of one memory by its id: of a belief its evidence with each episode's verdict (the latest
    20; `page` shows those before), its interval, its latest changes, and what it came from; of an episode when and by
    whom it was said. Use it before you rely on a belief for something that matters, when two memories disagree, or
    when somebody asks why you think so.
    """
    key = caller.whole_id(id)
    if is_turn_id(key):
        return _expand_turn(caller.turn(key), caller)
    memory = caller.memory(key)
    count_expansion(memory=memory, now=caller.now)
    if isinstance(memory, Episode):
        return _expand_episode(memory, caller, page)
    return _expand_belief(memory, caller, page)


def _page_of(rows: Sequence[_Row], page: int) -> Sequence[_Row]:
    """Return a page of rows that are in order of time, the last page of which comes first."""
    end = max(0, len(rows) - (page - 1) * _PAGE)
    return rows[max(0, end - _PAGE) : end]


def _expand_episode(episode: Episode, caller: Caller, page: int) -> Expanded:
    card = read_episode_card(episode=episode, viewer=caller.viewer)
    words = _page_of(card.beliefs, page)
    return Expanded(
        type=MemoryType.EPISODE,
        id=episode.pk,
        text=episode.text,
        status=episode.status,
        project=episode.project.slug if episode.project else None,
        user=episode.user or None,
        created_at=episode.created_at,
        kind=episode.kind,
        tier=episode.tier or None,
        causes=episode.causes or None,
        verbatim=episode.verbatim or None,
        speaker=episode.speaker or None,
        session=episode.session or None,
        source=episode.source,
        occurred_at=episode.occurred_at,
        is_evidence_of=[WordTold.model_validate(word) for word in words],
        other_beliefs=len(card.beliefs) - len(words),
        hidden_beliefs=card.hidden_beliefs,
        said_in=[
            TurnTold(
                session=turn.conversation.session,
                number=turn.number,
                role=turn.role,
                speaker=turn.speaker or None,
                content=_shorten(turn.content),
                occurred_at=turn.occurred_at,
            )
            for turn in card.turns
        ],
        other_turns=card.other_turns,
    )


def _expand_turn(turn: Turn, caller: Caller) -> Expanded:
    card = read_turn_card(turn=turn, viewer=caller.viewer)
    return Expanded(
        type=card.type,
        id=card.id,
        text=turn.content,
        status=card.state,
        project=turn.conversation.project.slug if turn.conversation.project else None,
        user=turn.conversation.user or None,
        created_at=turn.created_at,
        speaker=turn.speaker or None,
        session=turn.conversation.session,
        source=turn.role,
        occurred_at=turn.occurred_at,
        became_episodes=list(card.episodes),
    )


def _shorten(content: str) -> str:
    """Cut what was said to what a model reads of it."""
    return content if len(content) <= _CHARACTERS else f"{content[: _CHARACTERS - 1].rstrip()}…"


def _expand_belief(belief: Belief, caller: Caller, page: int) -> Expanded:
    card = read_card(belief=belief, viewer=caller.viewer)
    evidence = _page_of(card.evidence, page)
    return Expanded(
        type=MemoryType.BELIEF,
        id=belief.pk,
        text=belief.statement,
        status=belief.status,
        project=belief.project.slug if belief.project else None,
        user=belief.user or None,
        created_at=belief.created_at,
        confidence=belief.confidence,
        interval=list(interval_of(belief)),
        alpha=belief.alpha,
        beta=belief.beta,
        evidence_count=belief.evidence_count,
        subject=belief.subject or None,
        predicate=belief.predicate or None,
        context=belief.context or None,
        timeframe=belief.timeframe,
        is_pinned=belief.is_pinned,
        evidence=[
            EvidenceTold(
                episode=row.episode,
                text=_shorten(row.text),
                claim=row.claim or None,
                verdict=row.verdict,
                weight=row.weight,
                reason=row.reason,
                occurred_at=row.occurred_at,
            )
            for row in evidence
        ],
        other_evidence=len(card.evidence) - len(evidence),
        hidden_evidence=card.hidden_evidence,
        came_from=[RelativeTold.model_validate(one) for one in card.parents],
        became=[RelativeTold.model_validate(one) for one in card.children],
        history=[
            BeliefChangeTold(
                at=event.updated_at,
                statement=event.statement,
                status=event.status,
                confidence=event.confidence,
                evidence_count=event.evidence_count,
                actor=event.actor,
                reason=event.reason,
            )
            for event in reversed(changes_of(belief=belief).order_by("-pgh_id")[:_PAGE])
        ],
    )


@tool("memory_status", title="Show how the memory stands", permission=Permission.READ, effect=Effect.READ)
def status(caller: Caller) -> StatusTold:
    """Count memories by status and say what waits to be consolidated, and when. Use it when somebody asks about the
    memory itself, or when recall finds less than it should.
    """
    stands = read_status(viewer=caller.viewer, now=caller.now)
    return StatusTold(
        **MemoryCounts.model_validate(stands).model_dump(),
        turns={"buffered": stands.turns.buffered, "leased": stands.turns.leased, "dead": stands.turns.dead},
        remembering=asdict(stands.remembering),
        graph=asdict(stands.graph) if stands.graph else None,
        last_cycle=f"{stands.last_cycle.pk} {stands.last_cycle.state}" if stands.last_cycle else None,
        paused_until=stands.pause.until if stands.pause else None,
        budget=Spending.model_validate(stands.budget) if stands.budget else None,
        models=asdict(stands.models),
    )


@tool(
    "memory_status_history",
    title="Show how a memory's status came about",
    permission=Permission.READ,
    effect=Effect.READ,
)
def status_history(caller: Caller, *, id: MemoryName) -> StatusHistory:
    """List when, by whom and why a memory's status changed, oldest first. Use it when somebody asks why something is no
    longer believed.
    """
    memory = caller.memory(caller.whole_id(id))
    own = Q(episode=memory.pk) | Q(belief=memory.pk)
    changes = Transition.objects.for_workspace(caller.workspace).filter(own).order_by("pk")
    return StatusHistory(
        id=memory.pk, status=memory.status, changes=[ChangeTold.model_validate(row) for row in changes]
    )
