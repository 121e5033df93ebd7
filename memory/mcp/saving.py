"""Tools that write what happened, and what came of it: save, forget, feedback."""

from typing import Annotated, Any, Literal

from pydantic import Field

from memory.access import allowed_projects
from memory.domain.category import Category
from memory.domain.ids import IdKind, beginning_pattern, id_pattern, is_episode_id, is_turn_id
from memory.forgetting.conversations import forget_unread_turn
from memory.forgetting.forget import bereft_in_sight, forget_belief, forget_episode
from memory.ingest.arrival import Arrival, Rejected
from memory.ingest.episodes import take_episodes
from memory.ingest.lines import STORABLE
from memory.mcp.answers import FeedbackTold, Forgotten, Saved
from memory.mcp.callers import Caller, Refused
from memory.models import Permission
from memory.recall.feedback import Feedback, give_feedback
from memory.remembering.remember import remember

_MOST_IDS = 100
DIGITS = 4  # of numbers that a model reads: further ones say nothing

MemoryId = Annotated[
    str, Field(pattern=f"^{id_pattern(IdKind.EPISODE, IdKind.BELIEF)}$", description="An id: ep_… or bl_….")
]
MemoryName = Annotated[
    str,
    Field(
        pattern=f"^{beginning_pattern(IdKind.EPISODE, IdKind.BELIEF, IdKind.TURN)}$",
        description="An id: ep_…, bl_… or tn_…; or the beginning of one of the first two, of four digits at least, "
        "that no other memory has.",
    ),
]
ProjectName = Annotated[str, Field(max_length=200, description="A project's short name (slug).")]
UserName = Annotated[str, Field(max_length=200, description="Whose memory it is, where several people share one.")]


def save(
    caller: Caller,
    *,
    text: Annotated[
        str, Field(min_length=1, description="What happened or was said, in one or a few plain sentences.")
    ],
    project: ProjectName | None = None,
    user: UserName | None = None,
    agent: Annotated[str, Field(max_length=200, description="Which agent saves it.")] | None = None,
    session: Annotated[
        str, Field(max_length=200, description="The conversation it comes from: one independent source of evidence.")
    ]
    | None = None,
    speaker: Annotated[str, Field(max_length=200, description="Who said it.")] | None = None,
    source: Annotated[
        Literal["human", "ai", "interaction", "ingest"],
        Field(description="human: a person said it; ai: you concluded it; interaction: it came up between you."),
    ] = "interaction",
    occurred_at: Annotated[str, Field(description="RFC 3339 with an offset; now if left out.")] | None = None,
    category: Category | None = None,
    importance: Annotated[float, Field(ge=0, le=1)] | None = None,
    tags: list[str] | None = None,
    idempotency_key: Annotated[str, Field(max_length=200, description="The same key again stores nothing twice.")]
    | None = None,
    at_once: Annotated[
        bool,
        Field(description="True where a person wants it believed now: its facts become beliefs, or change some."),
    ] = False,
) -> Saved:
    """Store an episode, once; and at once let its facts meet what is believed."""
    line: dict[str, Any] = {
        "text": text, "project": project, "user": user, "agent": agent, "session": session, "speaker": speaker,
        "source": source, "occurred_at": occurred_at, "category": category, "importance": importance, "tags": tags,
        "idempotency_key": idempotency_key,
    }  # fmt: skip
    arrival = Arrival(
        workspace=caller.workspace, now=caller.now, allowed_projects=allowed_projects(caller.key), actor=caller.actor
    )
    if at_once:
        return _remember(line, arrival)
    [outcome] = take_episodes(raw_lines=[line], arrival=arrival)
    if isinstance(outcome, Rejected):
        raise Refused(outcome.detail)
    return Saved(id=outcome.id, deduplicated=outcome.is_duplicate, forgotten=outcome.is_forgotten)


def _remember(line: dict[str, Any], arrival: Arrival) -> Saved:
    remembered = remember(line=line, arrival=arrival)
    if isinstance(remembered, Rejected):
        raise Refused(remembered.detail)
    return Saved(
        id=remembered.episode_id,
        deduplicated=remembered.is_duplicate,
        forgotten=remembered.is_forgotten,
        state=remembered.state,
        reason=remembered.reason or None,
        beliefs={one.id: one.action for one in remembered.beliefs},
    )


def forget(
    caller: Caller,
    *,
    id: MemoryName,
    reason: Annotated[str, Field(max_length=200, description="Why; kept in the history."), STORABLE] = "",
) -> Forgotten:
    """Forget an episode or a belief, or a turn that waits to be read."""
    told: dict[str, Any] = {"actor": caller.actor, "now": caller.now, "reason": reason}
    key = caller.whole_id(id)
    if is_turn_id(key):
        forget_unread_turn(turn=caller.turn(key))
        return Forgotten(id=key, recomputed=0, archived=0)
    if is_episode_id(key):
        gone = forget_episode(episode=caller.episode(key), **told)
    else:
        gone = forget_belief(belief=caller.belief_to_change(key), even_pinned=caller.may(Permission.CURATE), **told)
    bereft, ids = gone.bereft, None
    if caller.may(Permission.READ):
        ids = sorted(bereft_in_sight(bereft=bereft, viewer=caller.viewer).beliefs)[:_MOST_IDS]
    return Forgotten(
        id=key,
        recomputed=len(bereft.beliefs),
        archived=len(bereft.archived),
        belief_ids=ids,
        merged=len(gone.along.merged),
        summaries=len(gone.along.summaries),
    )


def feedback(caller: Caller, *, id: MemoryId, value: Feedback) -> FeedbackTold:
    """Say whether a memory was of use."""
    memory = caller.memory(id)
    return FeedbackTold(id=id, feedback=round(give_feedback(memory=memory, value=value), DIGITS))
