"""Tools that look at all beliefs of a workspace, and tidy them: reflect, tidy, contradictions."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

from django.conf import settings
from pydantic import Field

from memory.consolidation.handmade import Hand
from memory.mcp.answers import FadedTold, PairTold, Reflected, RivalsTold, Tidied
from memory.mcp.callers import Caller, Refused
from memory.mcp.curating import told_belief
from memory.mcp.saving import DIGITS
from memory.models import Rival
from memory.remembering.meta import META_REASON, make_meta_beliefs
from memory.remembering.reflecting import Duplicate, list_prunable, propose_merges, prune
from memory.remembering.reflecting import reflect as look_at_all
from memory.remembering.rivals import check_rivals, find_rivals, list_rivals
from memory.remembering.subjects import backfill_subjects

_TOLD = 100  # an agent that is told more reads nothing else any more

Few = Annotated[int, Field(ge=1, le=100, description="Most of each kind that are listed.")]


class Tidying(StrEnum):
    """What may be done about all beliefs at once."""

    PRUNE = "prune"
    MERGE_DUPLICATES = "merge_duplicates"
    MAKE_META_BELIEFS = "make_meta_beliefs"
    BACKFILL_SUBJECTS = "backfill_subjects"


def reflect(caller: Caller, *, limit: Few = 20) -> Reflected:
    """Look at all active beliefs."""
    found = look_at_all(workspace=caller.workspace, now=caller.now, most=limit)
    return Reflected(
        beliefs=found.beliefs,
        duplicate_count=found.duplicate_count,
        duplicates=[_alike(pair) for pair in found.duplicates],
        faded_count=found.faded_count,
        faded=[
            FadedTold(
                id=one.id,
                statement=one.statement,
                effective_confidence=round(one.effective_confidence, DIGITS),
                is_prunable=one.is_prunable,
            )
            for one in found.faded
        ],
    )


def tidy(
    caller: Caller,
    *,
    what: Tidying,
    dry_run: Annotated[bool, Field(description="Of prune: only name what would be pruned.")] = False,
) -> Tidied:
    """Do one thing about all beliefs."""
    if what is Tidying.PRUNE:
        return _prune(caller, dry_run)
    if dry_run:
        raise Refused("dry_run: Only prune can be tried without changing anything.")
    return _TIDYINGS[what](caller)


def _prune(caller: Caller, is_rehearsal: bool) -> Tidied:
    if is_rehearsal:
        pruned = list_prunable(workspace=caller.workspace, now=caller.now)
    else:
        pruned = prune(workspace=caller.workspace, actor=caller.actor, now=caller.now)
    return Tidied(count=len(pruned), pruned=pruned[:_TOLD])


def _merge_duplicates(caller: Caller) -> Tidied:
    proposed = propose_merges(workspace=caller.workspace, now=caller.now)
    return Tidied(count=len(proposed), proposed=[_alike(pair) for pair in proposed[:_TOLD]])


def _make_meta_beliefs(caller: Caller) -> Tidied:
    hand = Hand(actor=caller.actor, reason=META_REASON, now=caller.now)
    done = make_meta_beliefs(workspace=caller.workspace, hand=hand)
    made = [told_belief(belief) for belief in done.made]
    return Tidied(count=len(made), made=made, unanswered=done.unanswered or None)


def _backfill_subjects(caller: Caller) -> Tidied:
    found = backfill_subjects(workspace=caller.workspace, actor=caller.actor, now=caller.now)
    return Tidied(count=len(found), subjects=dict(list(found.items())[:_TOLD]))


_TIDYINGS: dict[Tidying, Callable[[Caller], Tidied]] = {
    Tidying.MERGE_DUPLICATES: _merge_duplicates,
    Tidying.MAKE_META_BELIEFS: _make_meta_beliefs,
    Tidying.BACKFILL_SUBJECTS: _backfill_subjects,
}


def find_contradictions(
    caller: Caller,
    *,
    check: Annotated[bool, Field(description="Have a model asked about pairs that nobody was asked about.")] = False,
    limit: Few = 20,
) -> RivalsTold:
    """List pairs of beliefs that may contradict each other."""
    found = find_rivals(workspace=caller.workspace, now=caller.now, most=limit)
    settled, stopped = 0, ""
    if check:
        seconds = settings.POLICY.remember.answer_seconds
        done = check_rivals(workspace=caller.workspace, now=caller.now, seconds=seconds, most=limit)
        settled, stopped = done.settled, done.stopped
    rivals = list_rivals(workspace=caller.workspace)
    return RivalsTold(
        found=len(found),
        settled=settled,
        stopped=stopped or None,
        total=rivals.count(),
        pairs=[_rivals(rival) for rival in rivals[:limit]],
    )


def _alike(pair: Duplicate) -> PairTold:
    return PairTold(
        ids=list(pair.ids),
        statements=list(pair.statements),
        similarity=round(pair.similarity, DIGITS),
        passes_guard=pair.passes_guard,
    )


def _rivals(rival: Rival) -> PairTold:
    return PairTold(
        ids=[rival.first_id, rival.second_id],
        statements=[rival.first.statement, rival.second.statement],
        similarity=round(rival.similarity, DIGITS),
        state=rival.state,
        reason=rival.reason or None,
    )
