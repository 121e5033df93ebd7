"""Step 6: structural jobs ask for new statements, have the old evidence judged anew, and are applied (B8.6).

Each phase leaves its rows before the next begins, so that going on after a crash asks only what is missing.
"""

from django.db.models import Q

from memory.consolidation.asking import embed_statement
from memory.consolidation.leases import JobLease, leased_change
from memory.consolidation.offspring import apply_structural_job
from memory.consolidation.proposing import propose
from memory.consolidation.rejudging import judge_children, unite_verdicts
from memory.domain.lifecycle import JobState
from memory.llm.embeddings import embedder_of
from memory.models import StructuralJob, StructuralKind
from memory.models.cycles import OPEN_JOB_STATES


def restructure_belief(*, job_id: int, attempt: int) -> None:
    """Take a structural job from wherever it is to its end; one that is not ours or has ended is left alone."""
    with leased_change(job_id=job_id, attempt=attempt, ready=Q(state__in=OPEN_JOB_STATES)) as lease:
        if lease is None:
            return
        if lease.job.state == JobState.QUEUED and not propose(lease=lease):
            return
        if lease.job.state == JobState.SYNTHESIZED and not _judge(lease):
            return
        # A tombstone is found by today's vectors; the job may have been judged before the model changed.
        if not _embed_children(lease):
            return
        apply_structural_job(lease=lease)


def _judge(lease: JobLease[StructuralJob]) -> bool:
    """Embed the children and get every verdict on them; false if some are left."""
    if not _embed_children(lease):
        return False
    if lease.job.kind == StructuralKind.MERGE:
        unite_verdicts(job=lease.job)
    elif not judge_children(lease=lease):
        return False
    return lease.mine.update(state=JobState.CLASSIFIED) == 1


def _embed_children(lease: JobLease[StructuralJob]) -> bool:
    model = embedder_of(lease.job.workspace_id)
    for child in lease.job.children.exclude(vector_model=model.name):
        vector = embed_statement(lease=lease, statement=child.statement)
        if vector is None:
            return False
        child.vector, child.vector_model = vector.tolist(), model.name
        child.save(update_fields=["vector", "vector_model"])
    return True
