"""What gates may know of beliefs, read from their rows at a time."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from memory.domain.changes import find_change_point
from memory.domain.destabilization import error_threshold, is_destabilised
from memory.domain.evidence import EvidenceRow, weigh_evidence
from memory.domain.gates import BeliefFacts
from memory.domain.lifecycle import BeliefStatus
from memory.domain.verdicts import Verdict
from memory.ledger.challenges import is_challenged
from memory.ledger.confidence import chosen_confidence, confidence_policy, read_rows_of
from memory.models import Belief, Cycle, StructuralJob, StructuralKind


def read_facts_of(*, beliefs: Sequence[Belief], now: datetime, cycle: Cycle | None) -> dict[str, BeliefFacts]:
    """Return what gates may know of beliefs, their twins aside, by id; the caller holds their locks."""
    ids = [belief.pk for belief in beliefs]
    rows, busy, undone = read_rows_of(beliefs=ids), busy_beliefs(ids), _undone_changes(ids)
    return {
        belief.pk: replace(
            _facts(belief, rows[belief.pk], now, cycle),
            has_open_structural_job=belief.pk in busy,
            since_revision_undone=_since(undone.get((belief.pk, StructuralKind.REVISE)), now),
            since_close_undone=_since(undone.get((belief.pk, StructuralKind.CLOSE)), now),
            since_split_undone=_since(undone.get((belief.pk, StructuralKind.SPLIT)), now),
        )
        for belief in beliefs
    }


def busy_beliefs(ids: Collection[str]) -> set[str]:
    """Find those that an open structural job is about."""
    jobs = StructuralJob.objects.open().filter(Q(belief__in=ids) | Q(twin__in=ids))
    return {key for pair in jobs.values_list("belief_id", "twin_id") for key in pair if key}


def _undone_changes(ids: Collection[str]) -> dict[tuple[str, str], datetime]:
    """Return by belief and kind when a person last had a change of it undone (B22)."""
    jobs = StructuralJob.objects.filter(belief__in=ids).undone().order_by("undone_at")
    return {(belief, kind): at for belief, kind, at in jobs.values_list("belief_id", "kind", "undone_at")}


def _facts(belief: Belief, rows: Sequence[EvidenceRow], now: datetime, cycle: Cycle | None) -> BeliefFacts:
    confidence = confidence_policy(belief.workspace)
    weighed = weigh_evidence(rows=rows, policy=confidence)
    age = max(now - belief.created_at, timedelta())
    numbers, error = settings.POLICY.destabilization, belief.prediction_error
    evidence_count = weighed.evidence_count
    return BeliefFacts(
        status=BeliefStatus(belief.status),
        confidence=chosen_confidence(belief),
        evidence_count=evidence_count,
        since_reinforced=max(now - (belief.last_reinforced_at or belief.created_at), timedelta()),
        peak_confidence=belief.peak_confidence,
        prediction_error=error,
        error_threshold=error_threshold(evidence_count=evidence_count, age=age, policy=numbers),
        is_destabilised=is_destabilised(error=error, evidence_count=evidence_count, age=age, policy=numbers),
        lineage_depth=belief.lineage_depth,
        since_changed=_since_changed(belief, now),
        is_pinned=belief.is_pinned,
        is_told=belief.is_told,
        is_challenged=is_challenged(belief),
        is_additive=belief.workspace.is_additive,
        since_restored_by_person=_since(belief.restored_by_person_at, now),
        was_changed_this_cycle=belief.lineage_depth > 0 and cycle is not None and belief.born_in_id == cycle.pk,
        supporting=weighed.rows.get(Verdict.SUPPORTS, 0),
        contradicting=weighed.rows.get(Verdict.CONTRADICTS, 0),
        partial=weighed.rows.get(Verdict.PARTIAL, 0),
        supporting_origins=weighed.origins.get(Verdict.SUPPORTS, 0),
        contradicting_origins=weighed.origins.get(Verdict.CONTRADICTS, 0),
        origins_against=weighed.origins_against,
        change=find_change_point(rows=rows, policy=confidence) if weighed.origins_against > 1 else None,
    )


def _since_changed(belief: Belief, now: datetime) -> timedelta | None:
    """Return the time since the last change of structure or statement; being born of a cluster is none."""
    is_as_born = belief.lineage_depth == 0 and belief.statement_changed_at <= belief.created_at
    return None if is_as_born else now - belief.statement_changed_at


def _since(moment: datetime | None, now: datetime) -> timedelta | None:
    return now - moment if moment else None
