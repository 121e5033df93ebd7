"""Tools by which a memory is put right: correct, pin, set a status, and see how it came about."""

from enum import StrEnum
from typing import Annotated, Literal

from django.db.models import Q
from pydantic import Field

from memory.consolidation.by_hand import Reshaped
from memory.consolidation.curating import Act, curate_belief
from memory.consolidation.handmade import Wording
from memory.domain.ids import IdKind, id_pattern
from memory.ingest.corrections import correct_belief
from memory.ingest.lines import STORABLE
from memory.ledger.transactions import Author
from memory.mcp.answers import BeliefTold, ChangeTold, Corrected, StatusHistory
from memory.mcp.callers import Caller
from memory.mcp.saving import DIGITS, MemoryName
from memory.models import Belief, Transition
from memory.models.beliefs import Timeframe

BeliefId = Annotated[str, Field(pattern=f"^{id_pattern(IdKind.BELIEF)}$", description="A belief's id: bl_….")]
Reason = Annotated[str, Field(min_length=1, max_length=200, description="Why; kept in the history."), STORABLE]


class NewStatus(StrEnum):
    """What a curator may make of a belief's status."""

    ACTIVE = "active"
    CHALLENGED = "challenged"
    ARCHIVED = "archived"


_ACTS = {NewStatus.ACTIVE: Act.RESTORE, NewStatus.CHALLENGED: Act.CHALLENGE, NewStatus.ARCHIVED: Act.ARCHIVE}


def correct(
    caller: Caller,
    *,
    id: BeliefId,
    reason: Reason,
    statement: Annotated[
        str, Field(min_length=1, max_length=1000, description="What is right instead: one short sentence."), STORABLE
    ]
    | None = None,
    context: Annotated[str, Field(max_length=400, description="When that holds; general if always."), STORABLE]
    | None = None,
    timeframe: Literal["current", "past", "always"] | None = None,
) -> Corrected:
    """Say that a belief is wrong, and what is right instead."""
    wording = None
    if statement is not None:
        held = Timeframe(timeframe) if timeframe else None
        wording = Wording(statement=statement, context=context, timeframe=held)
    author = Author(actor=caller.actor, reason=reason, now=caller.now)
    return _corrected(correct_belief(belief=caller.belief_to_change(id), wording=wording, author=author))


def pin(caller: Caller, *, id: BeliefId, reason: Reason, pinned: bool = True) -> BeliefTold:
    """Pin a belief, or take the pin off."""
    return _act(caller, id, Act.PIN if pinned else Act.UNPIN, reason)


def update_status(caller: Caller, *, id: BeliefId, status: NewStatus, reason: Reason) -> BeliefTold:
    """Set a belief's status by hand."""
    return _act(caller, id, _ACTS[status], reason)


def status_history(caller: Caller, *, id: MemoryName) -> StatusHistory:
    """List the changes of a memory's status."""
    memory = caller.memory(caller.whole_id(id))
    own = Q(episode=memory.pk) | Q(belief=memory.pk)
    changes = Transition.objects.for_workspace(caller.workspace).filter(own).order_by("pk")
    told = [ChangeTold(at=row.at, old=row.old, new=row.new, reason=row.reason, actor=row.actor) for row in changes]
    return StatusHistory(id=memory.pk, status=memory.status, changes=told)


def _act(caller: Caller, belief_id: str, act: Act, reason: str) -> BeliefTold:
    belief = caller.belief_to_change(belief_id)
    return told_belief(curate_belief(belief_id=belief.pk, act=act, reason=reason, actor=caller.actor, now=caller.now))


def _corrected(reshaped: Reshaped) -> Corrected:
    return Corrected(
        made=[told_belief(one) for one in reshaped.made], changed=[told_belief(one) for one in reshaped.changed]
    )


def told_belief(belief: Belief) -> BeliefTold:
    """Tell a belief as it stands."""
    return BeliefTold(
        id=belief.pk,
        statement=belief.statement,
        confidence=round(belief.confidence, DIGITS),
        status=belief.status,
        is_pinned=belief.is_pinned,
    )
