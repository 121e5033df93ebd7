"""Make illegible what must stay of calls, verdicts and jobs: counts and verdicts remain, and no word.

`anonymize_references` does so for rows, `clear_statistics` for counts of words and the planner's statistics,
`rewrite_tables` for the database's files, where erased rows lie as dead ones until then.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.db import connection, transaction
from django.db.models import Model, Q
from django.db.utils import ProgrammingError

from memory.domain.lifecycle import JobState
from memory.erasure.references import References
from memory.models import (
    Belief,
    BeliefEvent,
    CallOutcome,
    ChildVerdict,
    ClusterJob,
    ContradictionCandidate,
    Episode,
    Evidence,
    JobVerdict,
    ModelCall,
    ReadingStream,
    ShownMemory,
    StructuralChild,
    StructuralJob,
    TextStatistics,
    Workspace,
)
from memory.models.cycles import OPEN_JOB_STATES
from memory.reading.messages import stream_of_user
from memory.search.words import count_words

ERASED = "erased"  # why a structural job came to nothing, and what became of a job whose belief is gone
_BATCH = 1000
# What undoing put aside names no call: it is found by the verdict that it came of.
_UNDONE_REASONS = """
UPDATE memory_revokedevidence u SET reason = '' WHERE u.reason <> '' AND (
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
_CLEAR_STATISTICS = """
SELECT pg_clear_attribute_stats(schemaname, tablename, attname, inherited) FROM pg_stats
WHERE schemaname = current_schema() AND tablename = ANY(%s)
"""
_ADMIN_LOG = "django_admin_log"
_POLL_SECONDS = 0.25  # between two looks whether the last transaction that sees erased rows has ended
# What holds back dead rows of this database, as VACUUM counts it: sessions, prepared transactions, and what replicas
# and slots ask to keep. A plain VACUUM shows as if it did, and does not.
_OLDER = """
SELECT format('process %%s (%%s%%s since %%s)', pid, coalesce(nullif(application_name, '') || ', ', ''),
    coalesce(state, backend_type), to_char(xact_start, 'YYYY-MM-DD HH24:MI:SS'))
FROM pg_stat_activity WHERE (datname = current_database() OR datname IS NULL)
    AND greatest(age(backend_xmin), age(backend_xid)) > age(%(mark)s::xid)
    AND pid <> pg_backend_pid() AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
UNION ALL SELECT format('prepared transaction %%s', gid) FROM pg_prepared_xacts
WHERE database = current_database() AND age(transaction) > age(%(mark)s::xid)
UNION ALL SELECT format('replication slot %%s', slot_name) FROM pg_replication_slots
WHERE greatest(age(xmin), age(catalog_xmin)) > age(%(mark)s::xid)
"""


def anonymize_references(*, traces: References) -> list[StructuralJob]:
    """Make traces illegible; return the changes of structure that fall with them and are to be decided anew."""
    anonymize_calls(calls=traces.calls)
    ids: dict[str, Any] = {"jobs": list(traces.jobs), "beliefs": list(traces.beliefs), "erased": ERASED}
    with connection.cursor() as cursor:
        cursor.execute(_UNDONE_REASONS, {"calls": list(traces.calls)})
        cursor.execute(_FAILURES, ids)
        cursor.execute(_JOBS, ids)
    JobVerdict.objects.filter(job__in=traces.jobs, belief=None).update(statement_hash="")
    return _anonymize_changes(traces)


def anonymize_calls(*, calls: Collection[int]) -> None:
    """Leave of calls what they cost: their input's hash would tell who can guess it, and no late reply is let in."""
    ledger = ModelCall.objects.filter(pk__in=calls)
    ledger.filter(outcome__in=(CallOutcome.OPEN, CallOutcome.ABANDONED)).update(outcome=CallOutcome.TIMEOUT)
    ledger.update(reply="", error="", input_hash="")
    for table in (Evidence, JobVerdict, ChildVerdict, ContradictionCandidate):
        table._default_manager.filter(call__in=calls).exclude(reason="").update(reason="")


# The database keeps the commonest words and values of columns for its planner.
_TABLES = (
    "memory_episode", "memory_belief", "memory_beliefevent", "memory_transition", "memory_evidence",
    "memory_revokedevidence", "memory_modelcall", "memory_clusterjob", "memory_jobverdict", "memory_structuraljob",
    "memory_structuralchild", "memory_childverdict", "memory_termfrequency", "memory_shownmemory",
    "memory_conversation",
    "memory_turn", "memory_readingstream", "django_admin_log",
    "memory_entity", "memory_mention", "memory_box", "memory_boxmember", "memory_edge",
    "memory_rememberjob", "memory_rememberedfact", "memory_contradictioncandidate", "memory_claim",
)  # fmt: skip


def _anonymize_changes(traces: References) -> list[StructuralJob]:
    changes = StructuralJob.objects.filter(pk__in=traces.changes)
    about = Q(belief__in=traces.beliefs) | Q(twin__in=traces.beliefs)
    standing = changes.filter(state__in=(*OPEN_JOB_STATES, JobState.APPLIED)).exclude(about)
    fallen = list(standing.order_by("pk"))
    StructuralChild.objects.filter(job__in=traces.changes).delete()
    changes.update(proposal=None, state_reason="")
    changes.filter(pk__in=[job.pk for job in fallen]).revoke(state=JobState.REFUSED, refusal=ERASED)
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
    ShownMemory.objects.for_workspace(workspace.pk).filter(session__in=gone).delete()


def drop_reasons(*, beliefs: Collection[str]) -> None:
    """Take the statements of beliefs from the episodes whose claims name these as their reason."""
    told = BeliefEvent.objects.filter(pgh_obj__in=beliefs).values_list("statement", flat=True)
    statements = {*told, *Belief.objects.filter(pk__in=beliefs).values_list("statement", flat=True)}
    rows = list(Episode.objects.filter(claims__because__in=beliefs).distinct().defer("search"))
    for row in rows:
        row.causes = [reason for reason in row.causes if reason not in statements]
    Episode.objects.bulk_update(rows, ["causes"])


def drop_stream(*, workspace: Workspace, user: str) -> None:
    """Delete the row by which readers of a user's messages wait for each other, and its name in what they read."""
    name = stream_of_user(user)
    ReadingStream.objects.filter(workspace=workspace, name=name).delete()
    ClusterJob.objects.for_workspace(workspace.pk).filter(stream=name).update(stream="")


def clear_statistics(*, workspace: Workspace) -> None:
    """Count words anew, where they were counted, and let the planner forget those that it kept."""
    if TextStatistics.objects.for_workspace(workspace.pk).exists():
        count_words(workspace_id=workspace.pk, waits=True)
    refresh_planner_statistics(tables=_TABLES)


@transaction.atomic
def clear_planner_statistics(*, tables: Sequence[str]) -> None:
    """Let the planner forget these tables' columns: by itself it keeps for ever what it knew of a table now empty.

    Nobody else can have it look at them until the transaction ends.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {', '.join(tables)} IN SHARE UPDATE EXCLUSIVE MODE")
        cursor.execute("SELECT to_regproc('pg_clear_attribute_stats') IS NOT NULL")  # from PostgreSQL 18 on
        if cursor.fetchone()[0]:
            cursor.execute(_CLEAR_STATISTICS, [list(tables)])


def refresh_planner_statistics(*, tables: Sequence[str]) -> None:
    """Let the planner know these tables as they are now, and nothing of what they were."""
    clear_planner_statistics(tables=tables)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {', '.join(tables)}")


class StillSeen(RuntimeError):
    """Some transaction began before the erasing ended: what it still sees would only be copied into the new files."""


def tables_to_rewrite() -> list[str]:
    """List the tables in which words may have stood, and at last where the planner keeps columns' values."""
    return [*_own_tables(), "pg_catalog.pg_statistic"]


def _own_tables() -> list[str]:
    ours = (model._meta.db_table for model in apps.get_app_config("memory").get_models())
    return [*sorted(ours), _ADMIN_LOG]


def rewrite_tables(*, wait_seconds: float) -> Iterator[str]:
    """Write each table and its indexes anew and yield its name; nobody reads or writes it meanwhile.

    Outside of any transaction. In the end the files that the old ones were are gone from their folders. Raise StillSeen
    where an older transaction does not end in time: nothing is written then.
    """
    clear_planner_statistics(tables=_own_tables())
    _await_older_transactions(wait_seconds)
    with connection.cursor() as cursor:
        for table in tables_to_rewrite():
            cursor.execute(f"VACUUM (FULL, ANALYZE) {table}")
            yield table
        try:
            cursor.execute("CHECKPOINT")
        except ProgrammingError:  # not for every role; the server makes one by itself within minutes
            return


def _await_older_transactions(seconds: float) -> None:
    """Wait until whatever could see a row that is dead by now is over."""
    gives_up_at = time.monotonic() + seconds
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()::xid::text")
        (mark,) = cursor.fetchone()
        while True:
            cursor.execute(_OLDER, {"mark": mark})
            older = [who for (who,) in cursor.fetchall()]
            if not older:
                return
            if time.monotonic() > gives_up_at:
                raise StillSeen(f"What was erased can still be seen by {', '.join(older)}.")
            time.sleep(_POLL_SECONDS)
