"""Make beliefs again from the recorded cycles, without a model, and write only what differs from how they stand (B22).

`rebuild_beliefs` replays in a savepoint, compares two snapshots, rolls back, and repairs what differs;
`rebuild_some_beliefs` does so for some beliefs after an erasure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog
from django.db import transaction

from memory.consolidation.gates import compute_versions
from memory.consolidation.replay import replay
from memory.consolidation.replay_record import ReplayRecord, read_curator_events, read_replay_record
from memory.domain.errors import EngramError
from memory.domain.identity import REBUILD_ACTOR
from memory.domain.lifecycle import LIVE, BeliefStatus, ConsolidationState, JobState
from memory.history import record_change
from memory.ledger.confidence import WITHDRAWN_STATUSES
from memory.ledger.evidence import EVIDENCE_COLUMNS, restore_evidence
from memory.ledger.transactions import Author, lock_workspace, repair_status
from memory.models import (
    Belief,
    ClusterJob,
    ClusterMember,
    Cycle,
    Episode,
    Evidence,
    JobKind,
    Lineage,
    StructuralJob,
    Workspace,
)
from memory.models.audit import TRACKED_COLUMNS
from memory.models.cycles import OPEN_JOB_STATES

log = structlog.get_logger(__name__)
REBUILT_REASON = "rebuilt from the recorded cycles"
LOST_OUTCOME = "lost"  # what became of a job whose belief cannot be made again


@transaction.atomic
def rebuild_beliefs(
    *,
    workspace: Workspace,
    now: datetime,
    is_dry_run: bool = False,
    on_cycle: Callable[[int], object] = lambda total: None,
) -> RebuildResult:
    """Make a workspace's beliefs again from its recorded cycles and write what differs; no model is asked.

    A dry run writes nothing. `on_cycle` hears after each cycle of how many there are. Raise CycleIsOpen while one is.
    """
    comparison = _compare_with_record(workspace, on_cycle)
    differences, released, decided_anew = comparison.differences, 0, 0
    if differences and not is_dry_run:
        write_differences(differences=differences, author=_rebuilder(now))
        released = delete_lost_beliefs(lost=comparison.lost, stood=comparison.current)
        decided_anew = reopen_structural_jobs(unrepeated=comparison.unrepeated)
        log.info("beliefs_rebuilt", workspace=workspace.pk, differences=len(differences), released=released)
    return RebuildResult(
        beliefs=len(comparison.record.made),
        cycles=len(comparison.record.cycles),
        evidence=len(comparison.current.evidence),
        differences=differences,
        released=released,
        decided_anew=decided_anew,
    )


def _rebuilder(now: datetime) -> Author:
    return Author(actor=REBUILD_ACTOR, reason=REBUILT_REASON, now=now)


def rebuild_some_beliefs(
    *, workspace: Workspace, beliefs: Collection[str], fallen: Sequence[StructuralJob], now: datetime
) -> frozenset[str]:
    """Let some beliefs alone stand as the record has it that is left after a loss; return those that did not.

    Changes of structure that fell with the loss, and those that cannot be repeated, are left to the next cycle.
    """
    if not beliefs:
        return frozenset()
    comparison = _compare_with_record(workspace)
    differences = [difference for difference in comparison.differences if difference.id in beliefs]
    write_differences(differences=differences, author=_rebuilder(now), is_due=True)
    delete_lost_beliefs(lost=comparison.lost & set(beliefs), stood=comparison.current)
    reopen_structural_jobs(unrepeated=[*fallen, *(job for job in comparison.unrepeated if job.belief_id in beliefs)])
    return frozenset(difference.id for difference in differences)


def stand_as_recorded(*, workspace: Workspace, author: Author) -> frozenset[str]:
    """Let every belief stand as the record has it that is left; return those of which it cannot tell.

    What comes back from the archive so is left alone by gates as if a person had restored it (B14).
    """
    comparison = _compare_with_record(workspace)
    archived = {key for key, row in comparison.current.beliefs.items() if row["status"] == BeliefStatus.ARCHIVED}
    write_differences(differences=comparison.differences, author=author)
    back = {one.id for one in comparison.differences if "status" in one.columns} & archived
    returned = Belief.objects.filter(pk__in=back).exclude(status=BeliefStatus.INVALIDATED)
    returned.update(restored_by_person_at=author.now, archived_by_person_at=None)
    return frozenset({*comparison.lost, *comparison.record.others})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparison:
    """A workspace's beliefs as they stand and as they were recorded."""

    record: ReplayRecord
    current: Snapshot
    differences: list[BeliefDifference]
    unrepeated: list[StructuralJob]

    @property
    def lost(self) -> set[str]:
        """Return the ids of the beliefs that cannot be made again."""
        return {difference.id for difference in self.differences if difference.is_lost}


def _compare_with_record(workspace: Workspace, on_cycle: Callable[[int], object] = lambda total: None) -> _Comparison:
    """Replay in a savepoint, look at what came of it, and let all be as it was."""
    lock_all_beliefs(workspace=workspace)
    record = read_replay_record(workspace=workspace)
    keys = record.made.keys() | record.others
    current = take_snapshot(beliefs=keys)
    acts = read_curator_events(record=record)
    savepoint = transaction.savepoint()
    try:
        unrepeated = replay(record=record, acts=acts, on_cycle=lambda: on_cycle(len(record.cycles)))
        recorded = take_snapshot(beliefs=keys)
    finally:
        transaction.savepoint_rollback(savepoint)
    tombstones = set(Belief.objects.for_workspace(workspace.pk).tombstones().values_list("pk", flat=True))
    differences = compare_snapshots(stands=current, recorded=recorded, tombstones=tombstones)
    return _Comparison(record=record, current=current, differences=differences, unrepeated=unrepeated)


def lock_all_beliefs(*, workspace: Workspace) -> None:
    """Keep cycles, gates and curators from the workspace's beliefs until the transaction ends."""
    lock_workspace(workspace.pk)
    check_no_cycle_open(workspace=workspace)
    locked = Belief.objects.for_workspace(workspace.pk).select_for_update(no_key=True).order_by("pk")
    list(locked.values_list("pk"))


def check_no_cycle_open(*, workspace: Workspace) -> None:
    """Raise CycleIsOpen while a cycle of the workspace is; the caller holds the workspace's lock."""
    under_way = Cycle.objects.for_workspace(workspace.pk).open().first()
    if under_way is not None:
        raise CycleIsOpen(f"Cycle {under_way.pk} is {under_way.state}; wait for it to end, or cancel it.")


RowValues = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDifference:
    """Rows of one table that a belief has too many, and those that it lacks; one that changed is both."""

    surplus: list[RowValues] = field(default_factory=list)
    missing: list[RowValues] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.surplus or self.missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefDifference:
    """In what a belief differs from what was recorded of it."""

    id: str
    statement: str
    is_lost: bool = False  # it could not be made again
    columns: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)  # as it stands, as it was recorded
    status_reason: str = ""  # that goes with a status which differs
    evidence: RowDifference = field(default_factory=RowDifference)
    lineage: RowDifference = field(default_factory=RowDifference)  # towards its parents


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildResult:
    """What came of replaying the recorded cycles."""

    beliefs: int  # that recorded cycles made
    cycles: int
    evidence: int  # rows of these beliefs that count
    differences: list[BeliefDifference]
    released: int = 0  # episodes that wait for consolidation again
    decided_anew: int = 0  # structural changes left to the next cycle


class CycleIsOpen(EngramError, ValueError):
    """Beliefs are neither rebuilt nor erased while a cycle works on them."""


def take_snapshot(*, beliefs: Collection[str]) -> Snapshot:
    """Read how beliefs stand, their evidence that counts, and what they came from."""
    ids = list(beliefs)
    rows = Evidence.objects.filter(belief__in=ids).exclude(episode__status__in=WITHDRAWN_STATUSES)
    came_from = Lineage.objects.filter(child__in=ids)
    return Snapshot(
        beliefs={row["id"]: row for row in Belief.objects.filter(pk__in=ids).values("id", *COMPARED_COLUMNS)},
        evidence={(row["belief_id"], row["episode_id"]): row for row in rows.values(*EVIDENCE_COLUMNS)},
        lineage={(row["child_id"], row["parent_id"], row["kind"]): row for row in came_from.values(*_LINEAGE_COLUMNS)},
    )


def compare_snapshots(*, stands: Snapshot, recorded: Snapshot, tombstones: Collection[str]) -> list[BeliefDifference]:
    """List the beliefs that do not stand as was recorded, by id.

    A tombstone that cannot be made again is no difference: what a person had forgotten must not come back for it.
    """
    evidence = _compare_rows(stands.evidence, recorded.evidence)
    lineage = _compare_rows(stands.lineage, recorded.lineage)
    found = []
    for key, row in sorted(stands.beliefs.items()):
        if key not in recorded.beliefs:
            lost = BeliefDifference(id=key, statement=row["statement"], is_lost=True)
            found += [] if key in tombstones else [lost]
            continue
        was = recorded.beliefs[key]
        difference = BeliefDifference(
            id=key,
            statement=row["statement"],
            columns={name: (row[name], was[name]) for name in COMPARED_COLUMNS if row[name] != was[name]},
            status_reason=was["status_reason"],
            evidence=evidence.get(key, RowDifference()),
            lineage=lineage.get(key, RowDifference()),
        )
        if difference.columns or difference.evidence or difference.lineage:
            found.append(difference)
    return found


def _compare_rows(
    stand: Mapping[tuple[str, ...], RowValues], recorded: Mapping[tuple[str, ...], RowValues]
) -> dict[str, RowDifference]:
    """Return the rows that differ, by the belief that their keys begin with."""
    apart: dict[str, RowDifference] = {}
    for key in stand.keys() | recorded.keys():
        here, there = stand.get(key), recorded.get(key)
        if here == there:
            continue
        rows = apart.setdefault(key[0], RowDifference())
        rows.surplus.extend([here] if here else [])
        rows.missing.extend([there] if there else [])
    return apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Beliefs by id, evidence by belief and episode, lineage by parent, child and kind."""

    beliefs: Mapping[str, RowValues]
    evidence: Mapping[tuple[str, ...], RowValues]
    lineage: Mapping[tuple[str, ...], RowValues]


# All that a replay says of a belief. Whose it is, its kind of fact and its use it cannot know.
COMPARED_COLUMNS = (
    "statement", "statement_hash", "subject", "predicate", "context", "timeframe", "language", "status",
    "status_reason", "alpha", "beta", "additive_confidence", "evidence_count", "peak_confidence", "prediction_error",
    "storage_strength", "lineage_depth", "is_pinned", "valid_from", "valid_until",
    "restored_by_person_at", "archived_by_person_at", "created_at", "statement_changed_at",
    "last_reinforced_at", "last_verified_at", "archive_due_at",
)  # fmt: skip
_LINEAGE_COLUMNS = ("workspace_id", "parent_id", "child_id", "kind", "reason", "cycle_id", "created_at")


def write_differences(*, differences: Sequence[BeliefDifference], author: Author, is_due: bool = False) -> None:
    """Let every belief that could be made again stand as it was recorded; after a loss it is due for the gates."""
    author.sign()
    for difference in differences:
        if not difference.is_lost:
            _write_difference(difference, author, is_due)


def _write_difference(difference: BeliefDifference, author: Author, is_due: bool) -> None:
    _write_rows(difference)
    columns = {name: recorded for name, (_, recorded) in difference.columns.items() if name != "status"}
    due = {"is_due": True} if is_due else {}
    Belief.objects.filter(pk=difference.id).update(updated_at=author.now, **due, **columns)
    belief = Belief.objects.get(pk=difference.id)
    if "status" in difference.columns:
        recorded = BeliefStatus(difference.columns["status"][1])
        repair_status(
            belief=belief,
            new=recorded,
            status_reason=difference.status_reason,
            reason=author.reason,
            actor=author.actor,
            now=author.now,
        )
    elif not columns.keys() & set(TRACKED_COLUMNS):
        record_change(belief=belief, actor=author.actor, reason=author.reason)


def _write_rows(difference: BeliefDifference) -> None:
    episodes = [row["episode_id"] for row in difference.evidence.surplus]
    Evidence.objects.filter(belief=difference.id, episode__in=episodes).delete()
    restore_evidence(rows=difference.evidence.missing)
    for row in difference.lineage.surplus:
        Lineage.objects.filter(child=difference.id, parent=row["parent_id"], kind=row["kind"]).delete()
    Lineage.objects.bulk_create(Lineage(**row) for row in difference.lineage.missing)


def delete_lost_beliefs(*, lost: Collection[str], stood: Snapshot) -> int:
    """Delete the beliefs that cannot be made again; return how many episodes go back to the work that waits for it."""
    jobs = ClusterJob.objects.filter(created_belief__in=lost) | ClusterJob.objects.filter(joined_belief__in=lost)
    members = ClusterMember.objects.filter(job__in=jobs.values("pk"), job__created_belief__in=lost)
    episodes = set(members.values_list("episode_id", flat=True))
    episodes |= {episode for belief, episode in stood.evidence if belief in lost}
    jobs.update(outcome=LOST_OUTCOME, members_hash="")
    Belief.objects.filter(pk__in=lost).delete()
    return consolidate_again(episodes=episodes)


def consolidate_again(*, episodes: Collection[str]) -> int:
    """Have episodes consolidated anew; that a cluster of theirs was tried before keeps them from nothing."""
    tried = ClusterJob.objects.filter(
        kind=JobKind.CLUSTER,
        state__in=(JobState.APPLIED, JobState.REFUSED),
        created_belief=None,
        pk__in=ClusterMember.objects.filter(episode__in=episodes).values("job"),
    )
    tried.update(members_hash="")
    settled = Episode.objects.active().filter(pk__in=episodes, state=ConsolidationState.SETTLED)
    return settled.update(state=ConsolidationState.NEW, state_reason="", pooled_at=None)


def reopen_structural_jobs(*, unrepeated: Sequence[StructuralJob]) -> int:
    """Leave the changes that could not be repeated to the next cycle's gates; return how many that are."""
    opened = 0
    for job in unrepeated:
        ids = [key for key in (job.belief_id, job.twin_id) if key]
        beliefs = {belief.pk: belief for belief in Belief.objects.filter(pk__in=ids, status__in=LIVE)}
        if len(beliefs) == len(ids) and not _are_busy(ids):
            _reopen_job(job, compute_versions(list(beliefs.values())))
            opened += 1
    return opened


def _are_busy(beliefs: Sequence[str]) -> bool:
    open_jobs = StructuralJob.objects.filter(state__in=OPEN_JOB_STATES)
    return (open_jobs.filter(belief__in=beliefs) | open_jobs.filter(twin__in=beliefs)).exists()


def _reopen_job(job: StructuralJob, versions: dict[str, str]) -> None:
    StructuralJob.objects.create(
        workspace_id=job.workspace_id,
        kind=job.kind,
        belief_id=job.belief_id,
        twin_id=job.twin_id,
        belief_version=versions[job.belief_id],
        twin_version=versions[job.twin_id] if job.twin_id else "",
        decided_in_id=job.decided_in_id,
        state_reason=REBUILT_REASON,
        facts=job.facts,
    )
