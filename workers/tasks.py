"""The tasks, each of which calls one service and decides nothing, and the order in which they are sent.

    extract → read → [ read_messages → read_messages … ] per stream → cluster
            → [ synthesize → classify (→ apply, early) ] per job → gate
            → [ restructure ] per structural job, if any → finish

Messages carry ids; what has been done is read from the rows, and domain time is in the cycle's row. Steps never raise
and results are never read, so a chord's body always runs; where a message is lost all the same, the sweeper begins
another attempt at what the rows show unfinished.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import structlog
from celery import Signature, Task, chain, chord, shared_task, signature
from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections
from django.utils import timezone
from structlog.contextvars import bind_contextvars, clear_contextvars, get_contextvars

from beliefsite.observability import describe_span
from memory.consolidation.apply import apply_jobs, apply_ready
from memory.consolidation.cluster import cluster_episodes
from memory.consolidation.extract import extract_episodes
from memory.consolidation.finish import finish_cycle
from memory.consolidation.jobs import JobToJudge, find_cycle_to_apply, list_jobs_to_judge, place_of, place_of_change
from memory.consolidation.judge import classify_cluster, synthesize_cluster
from memory.consolidation.read import plan_readings
from memory.consolidation.read import read_messages as read_messages_of_job
from memory.consolidation.restructure import list_jobs_to_restructure, restructure_belief
from memory.consolidation.schedule import (
    open_backlog_cycles,
    open_cycles_after_pause,
    open_due_cycles,
    open_missed_cycles,
    open_next_cycle,
    open_overdue_cycles,
)
from memory.consolidation.schedule import sweep as sweep_rows
from memory.facts.job import send_due_jobs
from memory.facts.remember import run_remember_job
from memory.graph.linking import link_due_memories
from memory.ingest.extract import extract_conversation, log_context_of
from memory.ingest.scheduling import flush_surprising, wake_conversations
from memory.maintenance.maintain import maintain_due
from memory.metrics import count_redelivery
from memory.models import JobKind
from memory.publishing.publish import publish_after_cycle, publish_due
from memory.search.plan import keep_indexes as keep_vector_indexes
from memory.search.words import count_due_words

log = structlog.get_logger(__name__)
_OUTAGE = (OperationalError, InterfaceError)
_DAY_SECONDS = 24 * 3600
_PAUSE_SECONDS = 3  # between two tries while the database is away
_OUTAGE_RETRIES = math.ceil(settings.POLICY.budget.outage_seconds / _PAUSE_SECONDS)


class Step(Task[Any, Any]):
    """A step of the pipeline: outlives an outage of the database, and never raises.

    A chord whose header raises never runs its body; a step that could not do its work leaves that to be seen in the
    rows, and the sweeper comes back to it.
    """

    abstract = True
    default_retry_delay = 1  # also the delay after which a lost worker's task comes back
    max_retries = _OUTAGE_RETRIES
    place_of: Callable[[Any], dict[str, str | int]] = staticmethod(place_of)  # what its lines of the log are about
    ignore_result = True  # nobody reads one, and who awaits one subscribes to it: every sender, for every message

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.request.called_directly:
            close_old_connections()  # as before a web request: kept ones are looked at before they are used
        with _separate_log_fields():
            try:
                bind_contextvars(task=self.name)
                place = self.place_of(*args[:1])
                bind_contextvars(**place)
                describe_span(place)
                self._count_redelivery()
                return super().__call__(*args, **kwargs)
            except _OUTAGE as error:
                if self.request.called_directly or self.request.retries >= _OUTAGE_RETRIES:
                    log.exception("step_gave_up", task=self.name)
                    return None
                raise self.retry(exc=error, countdown=_PAUSE_SECONDS) from error
            except Exception:
                log.exception("step_failed", task=self.name, arguments=list(args))
                return None

    def _count_redelivery(self) -> None:
        """Count a message that came before: by the broker after a lost worker, or by ourselves after an outage."""
        if (self.request.delivery_info or {}).get("redelivered"):
            count_redelivery(task=self.name, reason="redelivered")
        elif self.request.retries:
            count_redelivery(task=self.name, reason="retried")


@contextmanager
def _separate_log_fields() -> Iterator[None]:
    """Keep what a step binds to its log lines from the next step of this process."""
    outside = get_contextvars()
    try:
        yield
    finally:
        clear_contextvars()
        bind_contextvars(**outside)


@shared_task(base=Step, name="workers.extract")
def extract(cycle_id: str, attempt: int) -> None:
    extract_episodes(cycle_id=cycle_id, attempt=attempt)


@shared_task(base=Step, name="workers.read")
def read(cycle_id: str, attempt: int) -> None:
    read_streams(cycle_id=cycle_id, attempt=attempt, streams=plan_readings(cycle_id=cycle_id, attempt=attempt))


@shared_task(base=Step, name="workers.read_messages", ignore_result=False)  # a chord counts its header's results
def read_messages(job_id: int, attempt: int) -> None:
    read_messages_of_job(job_id=job_id, attempt=attempt)


@shared_task(base=Step, name="workers.cluster")
def cluster(cycle_id: str, attempt: int) -> None:
    if cluster_episodes(cycle_id=cycle_id, attempt=attempt):
        judge_jobs(cycle_id=cycle_id, attempt=attempt)


@shared_task(base=Step, name="workers.synthesize", ignore_result=False)  # a chord counts its header's results
def synthesize(job_id: int, attempt: int) -> None:
    synthesize_cluster(job_id=job_id, attempt=attempt)


@shared_task(base=Step, name="workers.classify", ignore_result=False)  # a chord counts its header's results
def classify(job_id: int, attempt: int) -> None:
    classify_cluster(job_id=job_id, attempt=attempt)
    if cycle_id := find_cycle_to_apply(job_id=job_id):
        apply_early(cycle_id=cycle_id, attempt=attempt)


@shared_task(base=Step, name="workers.apply")
def apply(cycle_id: str, attempt: int) -> None:
    apply_ready(cycle_id=cycle_id, attempt=attempt)


@shared_task(base=Step, name="workers.gate")
def gate(cycle_id: str, attempt: int) -> None:
    if apply_jobs(cycle_id=cycle_id, attempt=attempt):
        end_cycle(cycle_id=cycle_id, attempt=attempt)


class StructuralStep(Step):
    """A step that takes the id of a structural job."""

    abstract = True
    place_of = staticmethod(place_of_change)


@shared_task(
    base=StructuralStep, name="workers.restructure", ignore_result=False
)  # a chord counts its header's results
def restructure(job_id: int, attempt: int) -> None:
    restructure_belief(job_id=job_id, attempt=attempt)


@shared_task(base=Step, name="workers.finish")
def finish(cycle_id: str, attempt: int) -> None:
    is_ours = finish_cycle(cycle_id=cycle_id, attempt=attempt)
    publish_after_cycle(cycle_id=cycle_id)  # of one that has ended; again where it could not be done the last time
    if is_ours:
        open_next_cycle(cycle_id=cycle_id, now=timezone.now())


class ConversationStep(Step):
    """A step that takes the id of a conversation."""

    abstract = True
    place_of = staticmethod(log_context_of)


@shared_task(base=ConversationStep, name="workers.extract_turns")
def extract_turns(conversation_id: int) -> None:
    extract_conversation(conversation_id=conversation_id, now=timezone.now())


class RememberStep(Step):
    """A step that takes the id of a remembrance."""

    abstract = True
    place_of = staticmethod(lambda remembrance_id: {"remembrance": remembrance_id})


@shared_task(base=RememberStep, name="workers.remember")
def remember(remembrance_id: int) -> None:
    run_remember_job(remembrance_id=remembrance_id, now=timezone.now())


@shared_task(base=Step, name="workers.sweep")
def sweep() -> None:
    sweep_rows()
    wake_conversations(now=timezone.now())
    open_cycles_after_pause(now=timezone.now())
    open_missed_cycles(now=timezone.now())
    open_backlog_cycles(now=timezone.now())
    send_due_jobs()
    flush_surprising()  # last: it asks a model, and nothing else waits for one that fails


@shared_task(base=Step, name="workers.count_words")
def count_words() -> None:
    count_due_words(policy=settings.POLICY.recall)


@shared_task(base=Step, name="workers.link_memories")
def link_memories() -> None:
    link_due_memories(policy=settings.POLICY)


@shared_task(base=Step, name="workers.maintain_memory")
def maintain_memory() -> None:
    maintain_due(now=timezone.now(), policy=settings.POLICY)


# Acknowledged before it begins: an index may take longer than a message waits, and beat asks again anyway.
@shared_task(
    base=Step, name="workers.keep_indexes", acks_late=False, soft_time_limit=_DAY_SECONDS, time_limit=_DAY_SECONDS
)
def keep_indexes() -> None:
    keep_vector_indexes(policy=settings.POLICY.recall)


@shared_task(base=Step, name="workers.publish_beliefs")
def publish_beliefs() -> None:
    publish_due(now=timezone.now())


@shared_task(base=Step, name="workers.tick")
def tick() -> None:
    open_due_cycles(now=timezone.now())


@shared_task(base=Step, name="workers.catch_up")
def catch_up() -> None:
    open_overdue_cycles(now=timezone.now())


def start_cycle(*, cycle_id: str, attempt: int) -> None:
    """Send a cycle's first steps; those already done return at once."""
    chain(*(_step_signature(name, cycle_id, attempt) for name in ("extract", "read"))).delay()


def read_streams(*, cycle_id: str, attempt: int, streams: Sequence[Sequence[int]]) -> None:
    """Send the readings of each stream one after the other, streams side by side; then the cluster step."""
    cluster_signature = _step_signature("cluster", cycle_id, attempt)
    headers = [
        chain(*(_step_signature("read_messages", key, attempt, about=f"{cycle_id}, reading {key}") for key in jobs))
        for jobs in streams
    ]
    if headers:
        chord(headers, cluster_signature).delay()
    else:
        cluster_signature.delay()


def judge_jobs(*, cycle_id: str, attempt: int) -> None:
    """Send every job that still has calls to make, and the gate once all have come back.

    Only the rows of a clustered cycle say which jobs there are: the chain cannot hold them from the start.
    """
    gate_signature = _step_signature("gate", cycle_id, attempt)
    headers = [_judge_signature(job, cycle_id, attempt) for job in list_jobs_to_judge(cycle_id=cycle_id)]
    if headers:
        chord(headers, gate_signature).delay()
    else:
        gate_signature.delay()


def apply_early(*, cycle_id: str, attempt: int) -> None:
    """Let somebody apply what is ready while models still answer about the rest; the gate applies what is left."""
    _step_signature("apply", cycle_id, attempt).delay()


def end_cycle(*, cycle_id: str, attempt: int) -> None:
    """Send what the gates decided that needs a model's words, and the cycle's last step after it."""
    finish_signature = _step_signature("finish", cycle_id, attempt)
    headers = [
        _step_signature("restructure", job_id, attempt, about=f"{cycle_id}, structural job {job_id}")
        for job_id in list_jobs_to_restructure(cycle_id=cycle_id)
    ]
    if headers:
        chord(headers, finish_signature).delay()
    else:
        finish_signature.delay()


def read_conversations(*, conversation_ids: Sequence[int]) -> None:
    """Send a message for each conversation that is due; one that nobody needs any more finds nothing to do."""
    for conversation_id in conversation_ids:
        shown = f"(conversation {conversation_id})"
        signature(
            "workers.extract_turns", args=(conversation_id,), immutable=True, argsrepr=shown, kwargsrepr="{}"
        ).delay()


def _judge_signature(job: JobToJudge, cycle_id: str, attempt: int) -> Signature[None]:
    about = f"{cycle_id}, job {job.number} of {job.of}"
    classify_signature = _step_signature("classify", job.id, attempt, about=about)
    if job.kind == JobKind.SINGLES:
        return classify_signature
    return chain(_step_signature("synthesize", job.id, attempt, about=about), classify_signature)


def _step_signature(name: str, key: str | int, attempt: int, *, about: str = "") -> Signature[None]:
    """Name a task and its ids; what the task before it returned is none of its business.

    Whoever looks at queues and tasks sees what the task is about in place of its arguments.
    """
    shown = f"({about or key}, attempt {attempt})"
    return signature(f"workers.{name}", args=(key, attempt), immutable=True, argsrepr=shown, kwargsrepr="{}")
