"""Tools that look at all beliefs of a workspace, and tidy them: reflect, tidy, contradictions."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

from django.conf import settings
from pydantic import Field

from memory.ledger.transactions import Author
from memory.mcp.answers import FadedTold, PairTold, Reflected, RivalsTold, Tidied
from memory.mcp.callers import Caller, NothingThere, Refused
from memory.mcp.curating import told_belief
from memory.mcp.saving import DIGITS
from memory.models import Rival
from memory.remembering.meta import META_REASON, make_meta_beliefs
from memory.remembering.reflecting import Duplicate, Faded, list_prunable, propose_merges, prune
from memory.remembering.reflecting import reflect as look_at_all
from memory.remembering.rivals import (
    Checked,
    check_rivals,
    dismiss_rivals,
    find_rivals,
    list_rivals,
    reopen_rivals,
    standing_rivals,
)
from memory.remembering.subjects import backfill_subjects

_TOLD = 100  # an agent that is told more reads nothing else any more

Few = Annotated[int, Field(ge=1, le=100, description="Most of each kind that are listed.")]


class Tidying(StrEnum):
    """What may be done about all beliefs at once."""

    PRUNE = "prune"
    MERGE_DUPLICATES = "merge_duplicates"
    MAKE_META_BELIEFS = "make_meta_beliefs"
    BACKFILL_SUBJECTS = "backfill_subjects"
    DISMISS_PAIR = "dismiss_pair"
    REOPEN_PAIR = "reopen_pair"


def reflect(caller: Caller, *, limit: Few = 20) -> Reflected:
    """Look at all active beliefs."""
    found = look_at_all(workspace=caller.workspace, now=caller.now, most=limit)
    return Reflected(
        beliefs=found.beliefs,
        duplicate_count=found.duplicate_count,
        duplicates=[_alike(pair) for pair in found.duplicates],
        faded_count=found.faded_count,
        faded=[_faded(one) for one in found.faded],
    )


def tidy(
    caller: Caller,
    *,
    what: Tidying,
    dry_run: Annotated[bool, Field(description="Of prune: only name what would be pruned.")] = False,
    pair: Annotated[
        int | None, Field(description="Of dismiss_pair and reopen_pair: a number of memory_find_contradictions.")
    ] = None,
) -> Tidied:
    """Do one thing about all beliefs, or about one pair of them."""
    if dry_run and what is not Tidying.PRUNE:
        raise Refused("dry_run: Only prune can be tried without changing anything.")
    if (pair is None) == (what in _SETTLINGS):
        raise Refused("pair: It takes one to dismiss or reopen, and nothing else does.")
    if what is Tidying.PRUNE:
        return _prune(caller, dry_run)
    return _TIDYINGS[what](caller) if pair is None else _settle(caller, what, pair)


def _prune(caller: Caller, is_rehearsal: bool) -> Tidied:
    if is_rehearsal:
        pruned = list_prunable(workspace=caller.workspace, now=caller.now)
    else:
        pruned = prune(workspace=caller.workspace, actor=caller.actor, now=caller.now)
    return Tidied(count=len(pruned), dry_run=is_rehearsal, pruned=[_faded(one) for one in pruned[:_TOLD]])


def _merge_duplicates(caller: Caller) -> Tidied:
    proposed = propose_merges(workspace=caller.workspace, now=caller.now)
    return Tidied(count=len(proposed), proposed=[_alike(pair) for pair in proposed[:_TOLD]])


def _make_meta_beliefs(caller: Caller) -> Tidied:
    author = Author(actor=caller.actor, reason=META_REASON, now=caller.now)
    done = make_meta_beliefs(workspace=caller.workspace, author=author)
    made = [told_belief(belief) for belief in done.made]
    return Tidied(count=len(made), groups=done.groups, made=made, unanswered=done.unanswered or None)


def _backfill_subjects(caller: Caller) -> Tidied:
    found = backfill_subjects(workspace=caller.workspace, actor=caller.actor, now=caller.now)
    return Tidied(count=len(found), subjects=dict(list(found.items())[:_TOLD]))


def _settle(caller: Caller, what: Tidying, pair: int) -> Tidied:
    rivals = standing_rivals(workspace=caller.workspace).filter(pk=pair)
    count = _SETTLINGS[what](rivals=rivals)
    rival = rivals.first()
    if rival is None:
        raise NothingThere(f"There is no pair {pair}. Numbers come from memory_find_contradictions.")
    return Tidied(count=count, pair=_rivals(rival))


_SETTLINGS: dict[Tidying, Callable[..., int]] = {
    Tidying.DISMISS_PAIR: dismiss_rivals,
    Tidying.REOPEN_PAIR: reopen_rivals,
}
_TIDYINGS: dict[Tidying, Callable[[Caller], Tidied]] = {
    Tidying.MERGE_DUPLICATES: _merge_duplicates,
    Tidying.MAKE_META_BELIEFS: _make_meta_beliefs,
    Tidying.BACKFILL_SUBJECTS: _backfill_subjects,
}


def find_contradictions(
    caller: Caller,
    *,
    check: Annotated[bool, Field(description="Have a model asked about pairs that nobody was asked about.")] = False,
    again: Annotated[bool, Field(description="With check: also about those of which no model could tell.")] = False,
    limit: Few = 20,
) -> RivalsTold:
    """List pairs of beliefs that may contradict each other."""
    found = find_rivals(workspace=caller.workspace, now=caller.now, most=limit)
    done = Checked(outcomes={}, stopped="")
    if check:
        seconds = settings.POLICY.remember.answer_seconds
        done = check_rivals(workspace=caller.workspace, now=caller.now, seconds=seconds, most=limit, again=again)
    rivals = list_rivals(workspace=caller.workspace)
    return RivalsTold(
        found=len(found),
        outcomes=dict(done.outcomes),
        stopped=done.stopped or None,
        total=rivals.count(),
        unasked=standing_rivals(workspace=caller.workspace).only_alike().count() or None,
        pairs=[_rivals(rival) for rival in rivals[:limit]],
    )


def _alike(pair: Duplicate) -> PairTold:
    return PairTold(
        ids=list(pair.ids),
        statements=list(pair.statements),
        similarity=round(pair.similarity, DIGITS),
        passes_guard=pair.passes_guard,
    )


def _faded(one: Faded) -> FadedTold:
    return FadedTold(
        id=one.id,
        statement=one.statement,
        effective_confidence=round(one.effective_confidence, DIGITS),
        is_prunable=one.is_prunable,
    )


def _rivals(rival: Rival) -> PairTold:
    return PairTold(
        pair=rival.pk,
        ids=[rival.first_id, rival.second_id],
        statements=[rival.first.statement, rival.second.statement],
        similarity=round(rival.similarity, DIGITS),
        state=rival.state,
        reason=rival.why or None,
    )
