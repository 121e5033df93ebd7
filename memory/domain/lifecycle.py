"""Which status may follow which: `check_transition` for episodes, beliefs, cycles and cluster jobs (D3, R9, L12).

Also the reasons for which beliefs change, the states of buffered turns and when they are read (L2), the states of the
lifecycle policy (L13, L14), and the errors of our own code that one text, not the whole round, pays for (E6).

Erasing deletes rows and is therefore no transition. Undoing a cycle takes a status back to the one it came from, so
every status that a cycle can set leads back to `active` and `challenged`; what the cycle brought back from the archive
and then revised, merged or split goes back to `archived`; and what was created in it is invalidated, whatever became of
that since. `forgotten` is final: what a person had forgotten comes back as a new row or not at all.
"""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import TypeVar

from memory.domain.errors import EngramError
from memory.domain.policy_memories import TurnsPolicy
from memory.domain.policy_recall import LifecyclePolicy


class EpisodeStatus(StrEnum):
    """What an episode is to those who recall; only active ones are recalled by default."""

    ACTIVE = "active"
    CHALLENGED = "challenged"
    INVALIDATED = "invalidated"
    MERGED = "merged"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"
    FORGOTTEN = "forgotten"


class BeliefStatus(StrEnum):
    """What a belief is to those who recall; only active ones are recalled by default."""

    ACTIVE = "active"
    CHALLENGED = "challenged"
    REVISED = "revised"
    MERGED = "merged"
    SPLIT = "split"
    ARCHIVED = "archived"
    INVALIDATED = "invalidated"
    PRUNED = "pruned"
    FORGOTTEN = "forgotten"


class ConsolidationState(StrEnum):
    """How far consolidation has come with an episode."""

    NEW = "new"
    LEASED = "leased"
    POOLED = "pooled"
    SETTLED = "settled"
    FAILED = "failed"
    HELD = "held"


class CycleState(StrEnum):
    """How far a cycle has come; queued and running ones are open."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    OVER_BUDGET = "over_budget"
    CANCELLED = "cancelled"
    FAILED = "failed"


class JobState(StrEnum):
    """How far a cluster's passage through its cycle has come."""

    QUEUED = "queued"
    SYNTHESIZED = "synthesized"
    CLASSIFIED = "classified"
    APPLIED = "applied"
    REFUSED = "refused"
    DEFERRED = "deferred"
    FAILED = "failed"


State = TypeVar("State", bound=StrEnum)


class IllegalTransitionError(EngramError, ValueError):
    """A status that cannot follow another; the message names both."""


_E, _B, _S, _C, _J = EpisodeStatus, BeliefStatus, ConsolidationState, CycleState, JobState
_LIVE_EPISODE = frozenset({_E.ACTIVE, _E.CHALLENGED})
_LIVE_BELIEF = frozenset({_B.ACTIVE, _B.CHALLENGED})

_TRANSITIONS: Mapping[type[StrEnum], Mapping[StrEnum, frozenset[StrEnum]]] = {
    EpisodeStatus: {
        _E.ACTIVE: frozenset(set(_E) - {_E.ACTIVE}),
        _E.CHALLENGED: frozenset(set(_E) - {_E.CHALLENGED}),
        _E.INVALIDATED: _LIVE_EPISODE | {_E.FORGOTTEN},
        _E.MERGED: _LIVE_EPISODE | {_E.FORGOTTEN},
        _E.SUPERSEDED: _LIVE_EPISODE | {_E.ARCHIVED, _E.FORGOTTEN},
        _E.ARCHIVED: _LIVE_EPISODE | {_E.FORGOTTEN},
        _E.FORGOTTEN: frozenset(),
    },
    BeliefStatus: {
        _B.ACTIVE: frozenset(set(_B) - {_B.ACTIVE}),
        _B.CHALLENGED: frozenset(set(_B) - {_B.CHALLENGED}),
        _B.REVISED: _LIVE_BELIEF | {_B.ARCHIVED, _B.INVALIDATED, _B.FORGOTTEN},
        _B.MERGED: _LIVE_BELIEF | {_B.ARCHIVED, _B.INVALIDATED, _B.FORGOTTEN},
        _B.SPLIT: _LIVE_BELIEF | {_B.ARCHIVED, _B.INVALIDATED, _B.FORGOTTEN},
        _B.ARCHIVED: _LIVE_BELIEF | {_B.INVALIDATED, _B.PRUNED, _B.FORGOTTEN},
        _B.INVALIDATED: _LIVE_BELIEF | {_B.PRUNED, _B.FORGOTTEN},
        _B.PRUNED: _LIVE_BELIEF | {_B.FORGOTTEN},
        _B.FORGOTTEN: frozenset(),
    },
    ConsolidationState: {
        # Evidence given by hand or on the direct path settles an episode that no cycle has leased.
        # One about which more is to be asked is new although a cycle made evidence of it: undoing that holds it, too.
        # A turn that was read as it was stored, and is no evidence, waits in the pool at once (F5).
        _S.NEW: frozenset({_S.LEASED, _S.SETTLED, _S.POOLED, _S.HELD}),
        _S.LEASED: frozenset({_S.NEW, _S.POOLED, _S.SETTLED, _S.FAILED}),
        # One whose claim fell with another episode is read again (E1).
        _S.POOLED: frozenset({_S.NEW, _S.LEASED, _S.SETTLED, _S.HELD}),
        # A settled episode is taken up anew when erasing took away the belief it was evidence for.
        # One that spoke only for the refused part of a split belief waits for others like it (B12).
        _S.SETTLED: frozenset({_S.NEW, _S.POOLED, _S.HELD}),
        _S.FAILED: frozenset({_S.NEW, _S.LEASED, _S.SETTLED, _S.HELD}),
        _S.HELD: frozenset({_S.NEW}),
    },
    CycleState: {
        _C.QUEUED: frozenset({_C.RUNNING, _C.CANCELLED, _C.FAILED}),
        _C.RUNNING: frozenset({_C.FINISHED, _C.OVER_BUDGET, _C.CANCELLED, _C.FAILED}),
        _C.FINISHED: frozenset(),
        _C.OVER_BUDGET: frozenset(),
        _C.CANCELLED: frozenset(),
        _C.FAILED: frozenset(),
    },
    JobState: {
        # A reading is applied as it is answered. Episodes without a cluster skip synthesis; what was refused or
        # deferred gets a job of a later cycle.
        _J.QUEUED: frozenset({_J.SYNTHESIZED, _J.CLASSIFIED, _J.APPLIED, _J.REFUSED, _J.DEFERRED, _J.FAILED}),
        _J.SYNTHESIZED: frozenset({_J.CLASSIFIED, _J.REFUSED, _J.DEFERRED, _J.FAILED}),
        _J.CLASSIFIED: frozenset({_J.APPLIED, _J.REFUSED, _J.DEFERRED, _J.FAILED}),
        _J.APPLIED: frozenset(),
        _J.REFUSED: frozenset(),
        _J.DEFERRED: frozenset(),
        _J.FAILED: frozenset(),
    },
}


def check_transition(*, old: State, new: State) -> None:
    """Raise IllegalTransitionError unless `new` may follow `old`."""
    if new not in next_states(state=old):
        raise IllegalTransitionError(f"What is {old} cannot become {new}.")


def next_states(*, state: State) -> frozenset[State]:
    """Return the states that may follow; none for a final one."""
    return _TRANSITIONS[type(state)][state]  # type: ignore[return-value]  # a table never leads out of its own enum


LIVE = frozenset({BeliefStatus.ACTIVE, BeliefStatus.CHALLENGED})
# The evidence of these counts for the beliefs that came in their place: it settles nothing any more.
REPLACED = frozenset({BeliefStatus.REVISED, BeliefStatus.SPLIT, BeliefStatus.MERGED})


class Reason(StrEnum):
    """Why a gate opened or stayed shut."""

    # close
    CHANGED = "changed"
    NO_CHANGE = "no_change"
    UNLIKELY_CHANGE = "unlikely_change"
    # challenges
    ANNOUNCED = "announced"
    DISPUTED = "disputed"
    REASON_ENDED = "reason_ended"
    UPHELD = "upheld"
    UNCONFIRMED = "unconfirmed"
    OPEN_CHALLENGE = "open_challenge"
    # revise
    DISPROVED = "disproved"
    STILL_CONFIDENT = "still_confident"
    NEVER_CONFIDENT = "never_confident"
    NOT_DESTABILISED = "not_destabilised"
    TOO_DEEP = "too_deep"
    # revise and split
    TOO_FEW_CONTRADICTIONS = "too_few_contradictions"
    TOO_LITTLE_EVIDENCE = "too_little_evidence"
    ONE_ORIGIN_AGAINST = "one_origin_against"
    # split
    TRUE_IN_PART = "true_in_part"
    TOO_FEW_SUPPORTS = "too_few_supports"
    TOO_FEW_PARTIALS = "too_few_partials"
    ONE_ORIGIN_IN_FAVOUR = "one_origin_in_favour"
    # merge
    SAYS_THE_SAME = "says_the_same"
    NO_TWIN = "no_twin"
    GUARD_FAILED = "guard_failed"
    NOT_CONFIDENT_ENOUGH = "not_confident_enough"
    CHANGED_LATELY = "changed_lately"
    FOUND_DIFFERENT_BEFORE = "found_different_before"
    # archive
    LOW_CONFIDENCE = "low_confidence"
    STALE_AND_WEAK = "stale_and_weak"
    DOUBTFUL = "doubtful"
    BY_PERSON = "by_person"
    UNSUPPORTED = "unsupported"
    NO_GROUND = "no_ground"
    RESTORED_BY_PERSON = "restored_by_person"
    # return
    NOT_ARCHIVED = "not_archived"
    FRESH_SUPPORT = "fresh_support"
    CONFIDENT_AGAIN = "confident_again"
    NOT_CONFIDENT_YET = "not_confident_yet"
    ARCHIVED_BY_PERSON = "archived_by_person"
    # several
    NOT_LIVE = "not_live"
    PINNED = "pinned"
    OPEN_STRUCTURAL_JOB = "open_structural_job"
    CHANGED_THIS_CYCLE = "changed_this_cycle"
    UNDONE_LATELY = "undone_lately"


# Why a belief is challenged by what was said.
CHALLENGES = frozenset({Reason.ANNOUNCED, Reason.DISPUTED, Reason.REASON_ENDED})


class TurnState(StrEnum):
    """How far a turn has come; the last three are ends."""

    BUFFERED = "buffered"
    LEASED = "leased"
    EXTRACTED = "extracted"
    ECHO = "echo"
    FAILED = "failed"


class DueReason(StrEnum):
    """Why buffered turns are read now."""

    SIGNAL = "a turn with a high signal"
    COUNT = "enough turns"
    AGE = "time since the last extraction"
    SURPRISE = "a surprising turn"
    PERSON = "a person asked for it"


def why_due(*, buffered: int, has_high: bool, since_extraction: timedelta, policy: TurnsPolicy) -> DueReason | None:
    """Name what makes buffered turns due, None where nothing does; surprise is looked for by whoever has vectors."""
    if not buffered:
        return None
    if has_high:
        return DueReason.SIGNAL
    if buffered >= policy.buffer:
        return DueReason.COUNT
    return DueReason.AGE if since_extraction >= timedelta(minutes=policy.age_minutes) else None


def is_surprising(*, surprise: float | None, policy: TurnsPolicy) -> bool:
    """Tell whether a turn is so far from all that is remembered that its buffer is read early."""
    return surprise is not None and surprise > policy.surprise


class LifecycleState(StrEnum):
    """How far the lifecycle policy trusts an episode."""

    CANDIDATE = "candidate"
    VALIDATED = "validated"
    ACTIVE = "active"
    STALE = "stale"
    ARCHIVED = "archived"


class Verification(StrEnum):
    """Who vouched for an episode."""

    UNVERIFIED = "unverified"
    USER_CONFIRMED = "user_confirmed"
    SYSTEM_INFERRED = "system_inferred"
    DISPUTED = "disputed"


HIDDEN_STATES = (LifecycleState.STALE, LifecycleState.ARCHIVED)


def lifecycle_boost(*, state: str, verification: str, policy: LifecyclePolicy) -> float:
    """Return what the policy state adds to a score; nothing where it is unknown or the policy is off (L14)."""
    if not policy.enabled:
        return 0.0
    by_state: float = getattr(policy, f"{LifecycleState(state)}_boost") if state else 0.0
    return by_state + (policy.disputed_boost if verification == Verification.DISPUTED else 0.0)


OWN_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

# What one workspace's share of a round may raise while those after it go on. A task whose time is up raises none of it.
WORKSPACE_ERRORS = (OSError, RuntimeError, *OWN_ERRORS)
OWN_ERROR_PREFIX = "our own error"  # how every such reason begins


def describe_own_error(error: BaseException | str) -> str:
    """Say in one line what broke, as a reason to be kept."""
    told = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return f"{OWN_ERROR_PREFIX}: {' '.join(told.split())}"[:200]
