"""Compute a belief's numbers from all of its evidence rows, and from nothing else (B4).

Nothing here adds a difference to α or β. What a row weighs depends on the other rows of its origin, and recomputing
gives the same result however often a message is delivered.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypedDict

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count

from memory.domain.evidence import (
    EvidenceRow,
    Verdict,
    additive_path,
    peak_confidence,
    prediction_error,
    weigh_evidence,
)
from memory.domain.gates import archive_due_after
from memory.domain.identity import Actor
from memory.domain.lifecycle import EpisodeStatus
from memory.domain.policy_beliefs import ConfidencePolicy
from memory.history import attribute_changes
from memory.ledger.transactions import lock_beliefs, lock_workspace
from memory.models import Belief, Evidence, EvidenceKind, Workspace

log = structlog.get_logger(__name__)

# Forgotten and invalidated episodes leave the evidence; merged, archived and superseded ones stay (R10).
WITHDRAWN_STATUSES = (EpisodeStatus.FORGOTTEN, EpisodeStatus.INVALIDATED)

_BATCH = 500


def recompute_beliefs(*, beliefs: Sequence[Belief], now: datetime) -> None:
    """Set α, β and all that follows from them by the rows there are; the caller holds the beliefs' locks.

    A belief whose counted evidence has changed is due for the gates, whoever changed it (C3).
    """
    numbers = compute_numbers(beliefs=beliefs)
    for belief in beliefs:
        counted = belief.alpha, belief.beta
        for name, value in numbers[belief.pk].items():
            setattr(belief, name, value)
        belief.confidence = belief.alpha / (belief.alpha + belief.beta)  # as the database computes it
        belief.is_due = belief.is_due or counted != (belief.alpha, belief.beta)
        belief.updated_at = now
    with connection.cursor() as cursor:
        cursor.executemany(
            _UPDATE, [{name: getattr(belief, name) for name in ("id", *_RECOMPUTED_COLUMNS)} for belief in beliefs]
        )


def compute_numbers(*, beliefs: Sequence[Belief]) -> dict[str, dict[str, Any]]:
    """Return by belief every number that its evidence gives, by the name of its column."""
    ids = [belief.pk for belief in beliefs]
    rows = read_evidence_rows_of(beliefs=ids)
    ever = Evidence.objects.filter(belief__in=ids, base_weight__gt=0).values_list("belief")
    strengths = dict(ever.annotate(Count("pk")).order_by())
    return {
        belief.pk: _numbers(belief, rows[belief.pk]) | {"storage_strength": strengths.get(belief.pk, 0)}
        for belief in beliefs
    }


def _numbers(belief: Belief, rows: Sequence[EvidenceRow]) -> dict[str, Any]:
    policy = confidence_policy(belief.workspace)
    weighed = weigh_evidence(rows=rows, policy=policy)
    additive = additive_path(rows=rows, confidence=policy, policy=settings.POLICY.additive)
    is_additive = belief.workspace.is_additive
    supports = [row for row in rows if row.verdict is Verdict.SUPPORTS and row.base_weight > 0]
    reinforced_at = max((row.recorded_at for row in supports if row.recorded_at), default=None)
    verified_at = max((row.said_at for row in supports if row.is_curators and row.said_at), default=None)
    wait = archive_due_after(
        confidence=additive[-1] if is_additive else weighed.posterior.mean,
        evidence_count=weighed.evidence_count,
        contradicting=weighed.rows.get(Verdict.CONTRADICTS, 0) if is_additive else None,
        policy=settings.POLICY.gate,
        is_told=belief.is_told,
    )
    return {
        "alpha": weighed.posterior.alpha,
        "beta": weighed.posterior.beta,
        "additive_confidence": additive[-1],
        "evidence_count": weighed.evidence_count,
        "peak_confidence": max(additive) if is_additive else peak_confidence(rows=rows, policy=policy),
        "prediction_error": _error_of(belief, rows, policy),
        "last_reinforced_at": reinforced_at,
        "last_verified_at": verified_at,
        "archive_due_at": None if wait is None else (reinforced_at or belief.created_at) + wait,
    }


def _error_of(belief: Belief, rows: Sequence[EvidenceRow], policy: ConfidencePolicy) -> float:
    """Return a belief's prediction error; what a structural change made it of surprises it no more (B6)."""
    changed = belief.lineage_depth > 0
    founding = {row.episode_id for row in rows if row.is_founding} if changed else frozenset[str]()
    return prediction_error(rows=rows, policy=policy, founding=founding)


def chosen_confidence(belief: Belief) -> float:
    """Return the confidence by the model that the belief's workspace has chosen (R10a)."""
    if belief.workspace.is_additive and belief.additive_confidence is not None:
        return belief.additive_confidence
    return belief.alpha / (belief.alpha + belief.beta)


_RECOMPUTED_COLUMNS = (
    "alpha", "beta", "additive_confidence", "evidence_count", "peak_confidence", "prediction_error",
    "storage_strength", "updated_at", "last_reinforced_at", "last_verified_at", "archive_due_at", "is_due",
)  # fmt: skip

# Sent for all beliefs of a job in one pipeline; saving each would be a round trip each.
_UPDATE = f"""
UPDATE memory_belief SET {", ".join(f"{name} = %({name})s" for name in _RECOMPUTED_COLUMNS)} WHERE id = %(id)s
"""  # noqa: S608  (names of columns)


def read_evidence_rows(*, belief_id: str) -> list[EvidenceRow]:
    """Read a belief's evidence as values, without what has left it."""
    return read_evidence_rows_of(beliefs=[belief_id])[belief_id]


def read_evidence_rows_of(*, beliefs: Collection[str]) -> dict[str, list[EvidenceRow]]:
    """Read the evidence of several beliefs, by belief; what lies outside of the time of one weighs nothing (C2)."""
    found: dict[str, list[EvidenceRow]] = {belief_id: [] for belief_id in beliefs}
    counted = Evidence.objects.filter(belief__in=beliefs).exclude(episode__status__in=WITHDRAWN_STATUSES)
    rows = list(counted.values(*_EVIDENCE_COLUMNS))
    kept: dict[str, list[datetime]] = defaultdict(list)
    for row in rows:
        if row["verdict"] == Verdict.SUPPORTS and row["base_weight"] > 0 and _is_own(row):
            kept[row["belief_id"]].append(row["episode__occurred_at"])
    for row in rows:
        at = row["valid_at"] or row["episode__occurred_at"]
        found[row["belief_id"]].append(
            EvidenceRow(
                episode_id=row["episode_id"],
                verdict=Verdict(row["verdict"]),
                base_weight=row["base_weight"] if _is_valid_at(row, at, kept[row["belief_id"]]) else 0.0,
                origin=row["episode__origin"],
                occurred_at=at,
                is_founding=row["is_founding"],
                recorded_at=row["created_at"],
                said_at=row["episode__occurred_at"],
                is_curators=row["kind"] == EvidenceKind.CURATOR,
            )
        )
    return found


def _is_own(row: Mapping[str, Any]) -> bool:
    """Tell whether a word is of its belief's own project and user."""
    said_of, said_in = (row["belief__user"], row["belief__project"]), (row["episode__user"], row["episode__project"])
    return bool(said_of == said_in)


def is_taken_back(*, said_at: datetime, day: datetime | None, kept: Collection[datetime]) -> bool:
    """Tell whether an end was taken back before its day: it was `kept` by a later word of the person concerned (F3)."""
    return day is not None and any(said_at < word < day for word in kept)


def _is_valid_at(row: Mapping[str, Any], at: datetime, kept: Collection[datetime]) -> bool:
    """Tell whether a row is of the time in which its belief holds; what announced the belief always is.

    What says when a belief ended closes it instead of disproving it, and says nothing once it is taken back.
    """
    begin, end = row["belief__valid_from"], row["belief__valid_until"]
    if row["kind"] == EvidenceKind.ANNOUNCED and row["verdict"] == Verdict.SUPPORTS:
        return True
    if row["kind"] == EvidenceKind.ENDED:
        is_over = end is not None or is_taken_back(said_at=row["episode__occurred_at"], day=row["valid_at"], kept=kept)
        if is_over:
            return False
    return (begin is None or at >= begin) and (end is None or at < end)


_EVIDENCE_COLUMNS = (
    "belief_id", "episode_id", "verdict", "base_weight", "episode__origin", "is_founding",
    "episode__occurred_at", "valid_at", "created_at", "kind", "belief__valid_from", "belief__valid_until",
    "belief__user", "belief__project", "episode__user", "episode__project",
)  # fmt: skip


def confidence_policy(workspace: Workspace) -> ConfidencePolicy:
    """Return the numbers of the workspace: whether repetition by one origin counts less is its choice."""
    policy: ConfidencePolicy = settings.POLICY.confidence
    return replace(policy, independence=policy.independence and workspace.discount_repeats)


# The choices of a workspace on which the numbers of its beliefs hang.
RECOMPUTE_FIELDS = ("confidence_model", "discount_repeats")


@transaction.atomic
def recompute_workspace(*, workspace_id: int, actor: Actor, reason: str, now: datetime) -> int:
    """Compute every belief's numbers, and when time archives it, by what its workspace has chosen; return how many.

    The choice is stored by then, in the same transaction, so that no gate counts by the old one afterwards.
    """
    lock_workspace(workspace_id)
    attribute_changes(actor=actor, reason=reason)
    counted = 0
    for ids in _id_batches(workspace_id):
        recompute_beliefs(beliefs=lock_beliefs(ids), now=now)
        counted += len(ids)
    log.info("beliefs_recounted", workspace=workspace_id, beliefs=counted, actor=str(actor))
    return counted


def _id_batches(workspace_id: int) -> Iterator[list[str]]:
    ids = list(Belief.objects.for_workspace(workspace_id).order_by("pk").values_list("pk", flat=True))
    return (ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH))


# The others (peak, when time archives it) hang on settings besides.
CHECKED_COLUMNS = (
    "alpha", "beta", "evidence_count", "prediction_error", "additive_confidence", "storage_strength",
    "last_reinforced_at", "last_verified_at",
)  # fmt: skip


class Drift(TypedDict):
    """A column of a belief that its evidence does not bear out."""

    id: str
    column: str
    stored: float | datetime | None
    given: float | datetime | None


def find_drift(*, workspace: Workspace) -> tuple[int, list[Drift]]:
    """Recompute every belief of a workspace; return how many were checked and what differs."""
    checked, drifts = 0, list[Drift]()
    for beliefs in _belief_batches(workspace):
        numbers = compute_numbers(beliefs=beliefs)
        drifts += [
            Drift(id=belief.pk, column=column, stored=getattr(belief, column), given=value)
            for belief in beliefs
            for column, value in numbers[belief.pk].items()
            if column in CHECKED_COLUMNS
            and getattr(belief, column) != value
            and (column, getattr(belief, column)) != ("additive_confidence", None)
        ]
        checked += len(beliefs)
    return checked, drifts


def _belief_batches(workspace: Workspace) -> Iterator[list[Belief]]:
    last = ""
    beliefs = Belief.objects.for_workspace(workspace).select_related("workspace").defer("search").order_by("pk")
    while batch := list(beliefs.filter(pk__gt=last)[:_BATCH]):
        yield batch
        last = batch[-1].pk
