"""Tools that change memories: save, forget, feedback, correct, pin, set a status; and those that look at all."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, Literal

from django.conf import settings
from pydantic import Field

from memory.access import missing_permission
from memory.answers.changes import Faded
from memory.answers.changes import Feedback as FeedbackAnswer
from memory.consolidation.curation import BeliefText
from memory.consolidation.curator_actions import CuratorAction, curate_belief
from memory.domain.errors import EngramError
from memory.domain.identity import is_episode_id, is_turn_id
from memory.domain.taxonomy import Category
from memory.erasure.erase import erase_unread_turn
from memory.facts.contradictions import (
    CheckOutcome,
    believed_candidates,
    check_contradiction_candidates,
    dismiss_contradiction_candidates,
    find_contradiction_candidates,
    list_contradiction_candidates,
    reopen_contradiction_candidates,
)
from memory.facts.meta_beliefs import META_REASON, make_meta_beliefs
from memory.facts.reflection import (
    backfill_subjects,
    list_prunable,
    propose_merges,
    prune,
)
from memory.facts.reflection import reflect as look_at_all
from memory.facts.remember import remember
from memory.forgetting import bereft_in_sight, forget_belief, forget_episode
from memory.ingest.corrections import correct_belief
from memory.ingest.schemas import STORABLE, IngestContext, Rejected
from memory.ingest.store import store_raw_episodes
from memory.ledger.transactions import Author, NotFound
from memory.mcp.answers import (
    BeliefTold,
    Corrected,
    Forgotten,
    PairTold,
    Reflected,
    RivalsTold,
    Saved,
    Tidied,
)
from memory.mcp.interface import (
    BeliefId,
    Caller,
    Effect,
    InvalidRequest,
    MemoryId,
    MemoryName,
    ProjectName,
    Reason,
    UserName,
    tool,
)
from memory.models import ContradictionCandidate, Permission
from memory.models.beliefs import Timeframe
from memory.publishing.publish import publish_episode
from memory.recall.usage import Feedback, give_feedback

_MOST_IDS = 100
_Source = Annotated[
    Literal["human", "ai", "interaction", "ingest"],
    Field(description="human: a person said it; ai: you concluded it; interaction: it came up between you."),
]


@tool("memory_save", title="Save a memory", permission=Permission.WRITE, effect=Effect.REPEATABLE)
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
    source: _Source = "interaction",
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
    in_file: Annotated[
        bool,
        Field(
            description="True where a person wants it in MEMORY.md, which is read with every prompt: takes a server "
            "that the client starts on its own machine, and a key with the permission curate."
        ),
    ] = False,
) -> Saved:
    """Save one thing that happened or was said and that will matter in another conversation: a preference, a decision
    and its reason, a correction, a fact about a person or project, how something is done. Save it when it comes up,
    one thing a call, with names instead of pronouns, so that it makes sense by itself. With `at_once: true` its
    facts meet what is believed now, and change it: for what a person asks you to remember, not for what you noticed
    yourself. Give the session: what several sessions say counts for more than what one repeats. Not for what is in
    files anyway, for small talk, or for what memory_recall just told you. Saving the same words of the same session
    again changes nothing. An answer with `forgotten: true` says that somebody had these very words forgotten:
    nothing was saved, and saying it in other words would go against their will.
    """
    line: dict[str, Any] = {
        "text": text, "project": project, "user": user, "agent": agent, "session": session, "speaker": speaker,
        "source": source, "occurred_at": occurred_at, "category": category, "importance": importance, "tags": tags,
        "idempotency_key": idempotency_key,
    }  # fmt: skip
    arrival = IngestContext.of_key(key=caller.key, now=caller.now)
    saved = _remember(line, arrival) if at_once else _store(line, arrival)
    return _put_into_file(saved, caller) if in_file and not saved.forgotten else saved


def _store(line: dict[str, Any], arrival: IngestContext) -> Saved:
    [outcome] = store_raw_episodes(raw_lines=[line], arrival=arrival)
    if isinstance(outcome, Rejected):
        raise InvalidRequest(outcome.detail)
    return Saved(id=outcome.id, deduplicated=outcome.is_duplicate, forgotten=outcome.is_forgotten)


def _remember(line: dict[str, Any], arrival: IngestContext) -> Saved:
    remembered = remember(line=line, arrival=arrival)
    if isinstance(remembered, Rejected):
        raise InvalidRequest(remembered.detail)
    return Saved(
        id=remembered.episode_id,
        deduplicated=remembered.is_duplicate,
        forgotten=remembered.is_forgotten,
        state=remembered.state,
        reason=remembered.reason or None,
        beliefs={one.id: one.action for one in remembered.beliefs},
    )


def _put_into_file(saved: Saved, caller: Caller) -> Saved:
    """P12: have the file of its project and user keep what was saved; what cannot be done is told, and it is saved."""
    if not caller.is_local:
        return saved.model_copy(update={"file_problem": "It is saved; over HTTP nothing is put into a file."})
    if not caller.may(Permission.CURATE):
        return saved.model_copy(update={"file_problem": f"It is saved. {missing_permission(Permission.CURATE)}"})
    try:
        path = publish_episode(episode=caller.episode(saved.id), now=caller.now)
    except (EngramError, OSError) as error:
        return saved.model_copy(update={"file_problem": f"It is saved. {error}"})
    return saved.model_copy(update={"file": path})


@tool("memory_forget", title="Forget a memory", permission=Permission.WRITE, effect=Effect.DESTROY)
def forget(
    caller: Caller,
    *,
    id: MemoryName,
    reason: Annotated[str, Field(max_length=200, description="Why; kept in the history."), STORABLE] = "",
) -> Forgotten:
    """Forget one memory by its id, because a person asks for it or because it should never have been saved. It is
    recalled no more; beliefs that rested on it are computed anew. This cannot be taken back. To say that something
    is no longer so, use memory_correct: that keeps what was believed, and why it changed.
    """
    told: dict[str, Any] = {"actor": caller.actor, "now": caller.now, "reason": reason}
    key = caller.whole_id(id)
    if is_turn_id(key):
        erase_unread_turn(turn=caller.turn(key))
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


@tool("memory_feedback", title="Say whether a memory was of use", permission=Permission.WRITE, effect=Effect.CHANGE)
def feedback(caller: Caller, *, id: MemoryId, value: Feedback) -> FeedbackAnswer:
    """Say of a recalled memory that it was `useful` for what you did, or `wrong` for it. That is noted on the memory,
    for people to see; no confidence moves by it. Use it once you know, once for a memory and task. Where a person
    says what is right instead, use memory_correct.
    """
    memory = caller.memory(id)
    return FeedbackAnswer(id=id, feedback=give_feedback(memory=memory, value=value))


class NewStatus(StrEnum):
    """What a curator may make of a belief's status."""

    ACTIVE = "active"
    CHALLENGED = "challenged"
    ARCHIVED = "archived"


_ACTS = {
    NewStatus.ACTIVE: CuratorAction.RESTORE,
    NewStatus.CHALLENGED: CuratorAction.CHALLENGE,
    NewStatus.ARCHIVED: CuratorAction.ARCHIVE,
}


@tool("memory_correct", title="Correct a belief", permission=Permission.CURATE, effect=Effect.DESTROY)
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
    """Say that a belief is wrong because a person said so, or because you have seen it to be wrong. With `statement`,
    one short sentence that stands by itself, that takes the belief's place at once; without one the belief only
    loses confidence. The correction counts five times as much as an ordinary episode, so do not use it for mere
    doubts: save what you saw instead, and the belief adjusts by itself.
    """
    wording = None
    if statement is not None:
        held = Timeframe(timeframe) if timeframe else None
        wording = BeliefText(statement=statement, context=context, timeframe=held)
    author = Author(actor=caller.actor, reason=reason, now=caller.now)
    reshaped = correct_belief(belief=caller.belief_to_change(id), wording=wording, author=author)
    return Corrected.model_validate(reshaped)


@tool("memory_pin", title="Pin a belief", permission=Permission.CURATE, effect=Effect.REPEATABLE)
def pin(caller: Caller, *, id: BeliefId, reason: Reason, pinned: bool = True) -> BeliefTold:
    """Pin a belief that a person wants kept: no pass archives or merges it. It can still be found wrong. With `pinned:
    false` the pin is taken off. Only when a person asks for it.
    """
    return _curate(caller, id, CuratorAction.PIN if pinned else CuratorAction.UNPIN, reason)


@tool("memory_update_status", title="Set a belief's status", permission=Permission.CURATE, effect=Effect.CHANGE)
def update_status(caller: Caller, *, id: BeliefId, status: NewStatus, reason: Reason) -> BeliefTold:
    """Set a belief's status by hand. `challenged` marks it as doubtful: it is not recalled until somebody restores it,
    and still gathers evidence. `archived` puts it away, with what says the same, until somebody restores it.
    `active` restores it. To say what is right instead use memory_correct.
    """
    return _curate(caller, id, _ACTS[status], reason)


def _curate(caller: Caller, belief_id: str, act: CuratorAction, reason: str) -> BeliefTold:
    belief = caller.belief_to_change(belief_id)
    return BeliefTold.model_validate(
        curate_belief(belief_id=belief.pk, act=act, reason=reason, actor=caller.actor, now=caller.now)
    )


_MOST_LISTED = 100  # an agent that is told more reads nothing else any more
Few = Annotated[int, Field(ge=1, le=100, description="Most of each kind that are listed.")]


class Tidying(StrEnum):
    """What may be done about all beliefs at once."""

    PRUNE = "prune"
    MERGE_DUPLICATES = "merge_duplicates"
    MAKE_META_BELIEFS = "make_meta_beliefs"
    BACKFILL_SUBJECTS = "backfill_subjects"
    DISMISS_PAIR = "dismiss_pair"
    REOPEN_PAIR = "reopen_pair"


@tool(
    "memory_reflect",
    title="Look at all beliefs",
    permission=Permission.READ,
    effect=Effect.READ,
    is_for_whole_workspace=True,
)
def reflect(caller: Caller, *, limit: Few = 20) -> Reflected:
    """Look at all beliefs: which may say the same (those that do not say the same may contradict each other instead),
    and which have faded because nothing was said of them for long. Nothing changes by it. Use it when somebody wants
    the memory looked through or tidied, not while answering: it compares everything with everything.
    """
    found = look_at_all(workspace=caller.workspace, now=caller.now, most=limit)
    return Reflected.model_validate(found)


@tool(
    "memory_tidy",
    title="Tidy all beliefs",
    permission=Permission.CURATE,
    effect=Effect.DESTROY,
    is_for_whole_workspace=True,
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
    """Do one thing about all beliefs, when a person asks for it. `prune` takes out of recall those that have faded to
    almost nothing (see them first with `dry_run: true`; restore one with memory_update_status). `merge_duplicates`
    has the next consolidation ask whether those that memory_reflect found alike are one. `make_meta_beliefs` has a
    model say what groups of like beliefs come down to. `backfill_subjects` fills in whom or what a belief is about,
    where that is missing. `dismiss_pair` takes a pair of memory_find_contradictions off its list, `reopen_pair` puts
    it back.
    """
    if dry_run and what is not Tidying.PRUNE:
        raise InvalidRequest("dry_run: Only prune can be tried without changing anything.")
    if (pair is None) == (what in _PAIR_ACTIONS):
        raise InvalidRequest("pair: It takes one to dismiss or reopen, and nothing else does.")
    if what is Tidying.PRUNE:
        return _prune(caller, dry_run)
    return _TIDY_ACTIONS[what](caller) if pair is None else _decide_pair(caller, what, pair)


def _prune(caller: Caller, is_rehearsal: bool) -> Tidied:
    if is_rehearsal:
        pruned = list_prunable(workspace=caller.workspace, now=caller.now)
    else:
        pruned = prune(workspace=caller.workspace, actor=caller.actor, now=caller.now)
    return Tidied(
        count=len(pruned), dry_run=is_rehearsal, pruned=[Faded.model_validate(one) for one in pruned[:_MOST_LISTED]]
    )


def _merge_duplicates(caller: Caller) -> Tidied:
    proposed = propose_merges(workspace=caller.workspace, now=caller.now)
    return Tidied(count=len(proposed), proposed=[PairTold.model_validate(pair) for pair in proposed[:_MOST_LISTED]])


def _make_meta_beliefs(caller: Caller) -> Tidied:
    author = Author(actor=caller.actor, reason=META_REASON, now=caller.now)
    done = make_meta_beliefs(workspace=caller.workspace, author=author)
    made = [BeliefTold.model_validate(belief) for belief in done.made]
    return Tidied(count=len(made), groups=done.groups, made=made, unanswered=done.unanswered or None)


def _backfill_subjects(caller: Caller) -> Tidied:
    found = backfill_subjects(workspace=caller.workspace, actor=caller.actor, now=caller.now)
    return Tidied(count=len(found), subjects=dict(list(found.items())[:_MOST_LISTED]))


def _decide_pair(caller: Caller, what: Tidying, pair: int) -> Tidied:
    rivals = believed_candidates(workspace=caller.workspace).filter(pk=pair)
    count = _PAIR_ACTIONS[what](rivals=rivals)
    rival = rivals.first()
    if rival is None:
        raise NotFound(f"There is no pair {pair}. Numbers come from memory_find_contradictions.")
    return Tidied(count=count, pair=_contradiction_answer(rival))


_PAIR_ACTIONS: dict[Tidying, Callable[..., int]] = {
    Tidying.DISMISS_PAIR: dismiss_contradiction_candidates,
    Tidying.REOPEN_PAIR: reopen_contradiction_candidates,
}

_TIDY_ACTIONS: dict[Tidying, Callable[[Caller], Tidied]] = {
    Tidying.MERGE_DUPLICATES: _merge_duplicates,
    Tidying.MAKE_META_BELIEFS: _make_meta_beliefs,
    Tidying.BACKFILL_SUBJECTS: _backfill_subjects,
}


@tool(
    "memory_find_contradictions",
    title="Find beliefs that may contradict each other",
    permission=Permission.CURATE,
    effect=Effect.CHANGE,
    is_for_whole_workspace=True,
)
def find_contradictions(
    caller: Caller,
    *,
    check: Annotated[bool, Field(description="Have a model asked about pairs that nobody was asked about.")] = False,
    again: Annotated[bool, Field(description="With check: also about those of which no model could tell.")] = False,
    limit: Few = 20,
) -> RivalsTold:
    """List pairs of beliefs that may contradict each other. With `check: true` a model is asked about them first, which
    takes up to half a minute. No belief changes by it: tell the person what was found, let them say what is right,
    and then use memory_correct.
    """
    found = find_contradiction_candidates(workspace=caller.workspace, now=caller.now, most=limit)
    done = CheckOutcome(outcomes={}, stopped="")
    if check:
        seconds = settings.POLICY.remember.answer_seconds
        done = check_contradiction_candidates(
            workspace=caller.workspace, now=caller.now, seconds=seconds, most=limit, again=again
        )
    rivals = list_contradiction_candidates(workspace=caller.workspace)
    return RivalsTold(
        found=len(found),
        outcomes=dict(done.outcomes),
        stopped=done.stopped or None,
        total=rivals.count(),
        unasked=believed_candidates(workspace=caller.workspace).only_alike().count() or None,
        pairs=[_contradiction_answer(rival) for rival in rivals[:limit]],
    )


def _contradiction_answer(rival: ContradictionCandidate) -> PairTold:
    return PairTold(
        pair=rival.pk,
        ids=[rival.first_id, rival.second_id],
        statements=[rival.first.statement, rival.second.statement],
        similarity=rival.similarity,
        state=rival.state,
        reason=rival.why or None,
    )
