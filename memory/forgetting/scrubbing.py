"""What must stay of calls, verdicts and jobs is made illegible: counts and verdicts remain, and no word."""

from collections.abc import Collection, Sequence
from typing import Any

from django.contrib.admin.models import LogEntry
from django.db import connection
from django.db.models import Model, Q

from memory.domain.lifecycle import JobState
from memory.forgetting.planner import look_anew
from memory.forgetting.traces import Traces
from memory.models import (
    CallOutcome,
    ChildVerdict,
    Episode,
    Evidence,
    JobVerdict,
    ModelCall,
    Rival,
    StructuralChild,
    StructuralJob,
    Surfaced,
    TextStatistics,
    Workspace,
)
from memory.models.cycles import OPEN_JOB_STATES
from memory.search.words import count_words

ERASED = "erased"  # why a structural job came to nothing, and what became of a job whose belief is gone

_BATCH = 1000

# What undoing put aside names no call: it is found by the verdict that it came of.
_UNDONE_REASONS = """
UPDATE memory_undoneevidence u SET reason = '' WHERE u.reason <> '' AND (
    EXISTS (SELECT FROM memory_jobverdict v JOIN memory_clusterjob j ON j.id = v.job_id
            WHERE v.episode_id = u.episode_id AND j.cycle_id = u.cycle_id AND v.call_id = ANY(%(calls)s))
    OR EXISTS (SELECT FROM memory_childverdict v JOIN memory_structuralchild c ON c.id = v.child_id
               JOIN memory_structuraljob s ON s.id = c.job_id
               WHERE v.episode_id = u.episode_id AND s.cycle_id = u.cycle_id AND v.call_id = ANY(%(calls)s)))
"""
# A failure's kind stands before the colon, and what a server said after it.
_FAILURES = """
UPDATE memory_episode e SET state_reason = split_part(e.state_reason, ':', 1)
FROM memory_clustermember m WHERE m.episode_id = e.id AND m.job_id = ANY(%(jobs)s) AND e.state = 'failed'
"""
_JOBS = """
UPDATE memory_clusterjob SET candidate = NULL, candidate_hash = '', candidate_language = '', candidate_vector = NULL,
    members_hash = '', pairs = '{}', state_reason = split_part(state_reason, ':', 1),
    outcome = CASE WHEN created_belief_id = ANY(%(beliefs)s) OR joined_belief_id = ANY(%(beliefs)s)
              THEN %(erased)s ELSE outcome END
WHERE id = ANY(%(jobs)s)
"""
# The database keeps the commonest words and values of columns for its planner.
_TABLES = (
    "memory_episode", "memory_belief", "memory_beliefevent", "memory_transition", "memory_evidence",
    "memory_undoneevidence", "memory_modelcall", "memory_clusterjob", "memory_jobverdict", "memory_structuraljob",
    "memory_structuralchild", "memory_childverdict", "memory_termfrequency", "memory_surfaced", "memory_conversation",
    "memory_turn", "django_admin_log",
    "memory_entity", "memory_mention", "memory_box", "memory_boxmember", "memory_edge",
    "memory_remembrance", "memory_rememberedfact", "memory_rival", "memory_claim",
)  # fmt: skip


def scrub_traces(*, traces: Traces) -> list[StructuralJob]:
    """Make traces illegible; return the changes of structure that fall with them and are to be decided anew."""
    scrub_calls(calls=traces.calls)
    ids: dict[str, Any] = {"jobs": list(traces.jobs), "beliefs": list(traces.beliefs), "erased": ERASED}
    with connection.cursor() as cursor:
        cursor.execute(_UNDONE_REASONS, {"calls": list(traces.calls)})
        cursor.execute(_FAILURES, ids)
        cursor.execute(_JOBS, ids)
    JobVerdict.objects.filter(job__in=traces.jobs, belief=None).update(statement_hash="")
    return _scrub_changes(traces)


def scrub_calls(*, calls: Collection[int]) -> None:
    """Leave of calls what they cost: their input's hash would tell who can guess it, and no late reply is let in."""
    ledger = ModelCall.objects.filter(pk__in=calls)
    ledger.filter(outcome__in=(CallOutcome.OPEN, CallOutcome.ABANDONED)).update(outcome=CallOutcome.TIMEOUT)
    ledger.update(reply="", error="", input_hash="")
    for table in (Evidence, JobVerdict, ChildVerdict, Rival):
        table._default_manager.filter(call__in=calls).exclude(reason="").update(reason="")


def _scrub_changes(traces: Traces) -> list[StructuralJob]:
    changes = StructuralJob.objects.filter(pk__in=traces.changes)
    about = Q(belief__in=traces.beliefs) | Q(twin__in=traces.beliefs)
    standing = changes.filter(state__in=(*OPEN_JOB_STATES, JobState.APPLIED)).exclude(about)
    fallen = list(standing.order_by("pk"))
    StructuralChild.objects.filter(job__in=traces.changes).delete()
    changes.update(proposal=None, state_reason="")
    changes.filter(pk__in=[job.pk for job in fallen]).update(
        state=JobState.REFUSED, refusal=ERASED, lease_owner="", leased_until=None, not_before=None
    )
    return fallen


def delete_rows(*, model: type[Model], ids: Sequence[str]) -> None:
    """Delete rows with all that refers to them, so many at a time."""
    for start in range(0, len(ids), _BATCH):
        model._default_manager.filter(pk__in=ids[start : start + _BATCH]).only("pk").delete()


def drop_log_entries(*, ids: Collection[str]) -> None:
    """Delete what the admin noted of changes: each entry holds the beginning of the words that were changed."""
    of_memories = Q(content_type__app_label="memory", content_type__model__in=("episode", "belief"))
    LogEntry.objects.filter(of_memories, object_id__in=ids).delete()


def drop_sessions(*, workspace: Workspace, sessions: Collection[str]) -> None:
    """Delete what is remembered of conversations of which no episode is left."""
    left = Episode.objects.for_workspace(workspace.pk).filter(session__in=sessions)
    gone = set(sessions) - set(left.values_list("session", flat=True).distinct())
    Surfaced.objects.for_workspace(workspace.pk).filter(session__in=gone).delete()


def clear_statistics(*, workspace: Workspace) -> None:
    """Count words anew, where they were counted, and let the planner forget those that it kept."""
    if TextStatistics.objects.for_workspace(workspace.pk).exists():
        count_words(workspace_id=workspace.pk, waits=True)
    look_anew(tables=_TABLES)
