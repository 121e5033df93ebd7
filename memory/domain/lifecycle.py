"""Which status may follow which: for episodes, beliefs, cycles and cluster jobs (D3, R9, L12).

Erasing deletes rows and is therefore no transition. Undoing a cycle takes a status back to the one it came from, so
every status that a cycle can set leads back to `active` and `challenged`; what the cycle brought back from the archive
and then revised, merged or split goes back to `archived`; and what was born in it is invalidated, whatever became of
that since. `forgotten` is final: what a person had forgotten comes back as a new row or not at all.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar


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


class IllegalTransitionError(ValueError):
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
        _S.NEW: frozenset({_S.LEASED, _S.SETTLED, _S.HELD}),
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
        # Episodes without a cluster skip synthesis; what was refused or deferred gets a job of a later cycle.
        _J.QUEUED: frozenset({_J.SYNTHESIZED, _J.CLASSIFIED, _J.REFUSED, _J.DEFERRED, _J.FAILED}),
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
