"""What differs from the record is set right, and what cannot be made again goes, with the work left that it leaves."""

from collections.abc import Collection, Sequence
from datetime import datetime

from memory.consolidation.rebuild.stock import Difference, Stock
from memory.consolidation.structural import versions_of
from memory.domain.identity import REBUILD_ACTOR
from memory.domain.lifecycle import LIVE, BeliefStatus, ConsolidationState, JobState
from memory.history.attribution import attribute_changes, record_change
from memory.ledger.evidence import restore_evidence
from memory.ledger.transactions import repair_status
from memory.models import (
    Belief,
    ClusterJob,
    ClusterMember,
    Episode,
    Evidence,
    JobKind,
    Lineage,
    StructuralJob,
)
from memory.models.audit import TRACKED_COLUMNS
from memory.models.cycles import OPEN_JOB_STATES

REBUILT = "rebuilt from the recorded cycles"
LOST = "lost"  # what became of a job whose belief cannot be made again


def repair(*, differences: Sequence[Difference], now: datetime, is_due: bool = False) -> None:
    """Let every belief that could be made again stand as it was recorded; after a loss it is due for the gates."""
    attribute_changes(actor=REBUILD_ACTOR, reason=REBUILT)
    for difference in differences:
        if not difference.is_lost:
            _repair(difference, now, is_due)


def _repair(difference: Difference, now: datetime, is_due: bool) -> None:
    _put_rows_right(difference)
    columns = {name: recorded for name, (_, recorded) in difference.columns.items() if name != "status"}
    due = {"is_due": True} if is_due else {}
    Belief.objects.filter(pk=difference.id).update(updated_at=now, **due, **columns)
    belief = Belief.objects.get(pk=difference.id)
    if "status" in difference.columns:
        recorded = BeliefStatus(difference.columns["status"][1])
        repair_status(
            belief=belief,
            new=recorded,
            status_reason=difference.status_reason,
            reason=REBUILT,
            actor=REBUILD_ACTOR,
            now=now,
        )
    elif not columns.keys() & set(TRACKED_COLUMNS):
        record_change(belief=belief, actor=REBUILD_ACTOR, reason=REBUILT)


def _put_rows_right(difference: Difference) -> None:
    episodes = [row["episode_id"] for row in difference.evidence.surplus]
    Evidence.objects.filter(belief=difference.id, episode__in=episodes).delete()
    restore_evidence(rows=difference.evidence.missing)
    for row in difference.lineage.surplus:
        Lineage.objects.filter(child=difference.id, parent=row["parent_id"], kind=row["kind"]).delete()
    Lineage.objects.bulk_create(Lineage(**row) for row in difference.lineage.missing)


def give_up(*, lost: Collection[str], stood: Stock) -> int:
    """Delete the beliefs that cannot be made again; return how many episodes go back to the work that waits for it."""
    jobs = ClusterJob.objects.filter(created_belief__in=lost) | ClusterJob.objects.filter(joined_belief__in=lost)
    members = ClusterMember.objects.filter(job__in=jobs.values("pk"), job__created_belief__in=lost)
    episodes = set(members.values_list("episode_id", flat=True))
    episodes |= {episode for belief, episode in stood.evidence if belief in lost}
    jobs.update(outcome=LOST, members_hash="")
    Belief.objects.filter(pk__in=lost).delete()
    return take_up_again(episodes=episodes)


def take_up_again(*, episodes: Collection[str]) -> int:
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


def decide_anew(*, unrepeated: Sequence[StructuralJob]) -> int:
    """Leave the changes that could not be repeated to the next cycle's gates; return how many that are."""
    opened = 0
    for job in unrepeated:
        ids = [key for key in (job.belief_id, job.twin_id) if key]
        beliefs = {belief.pk: belief for belief in Belief.objects.filter(pk__in=ids, status__in=LIVE)}
        if len(beliefs) == len(ids) and not _are_busy(ids):
            _open_again(job, versions_of(list(beliefs.values())))
            opened += 1
    return opened


def _are_busy(beliefs: Sequence[str]) -> bool:
    open_jobs = StructuralJob.objects.filter(state__in=OPEN_JOB_STATES)
    return (open_jobs.filter(belief__in=beliefs) | open_jobs.filter(twin__in=beliefs)).exists()


def _open_again(job: StructuralJob, versions: dict[str, str]) -> None:
    StructuralJob.objects.create(
        workspace_id=job.workspace_id,
        kind=job.kind,
        belief_id=job.belief_id,
        twin_id=job.twin_id,
        belief_version=versions[job.belief_id],
        twin_version=versions[job.twin_id] if job.twin_id else "",
        decided_in_id=job.decided_in_id,
        state_reason=REBUILT,
        facts=job.facts,
    )
