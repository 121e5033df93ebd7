"""Who runs after whom. Messages carry ids; what has been done is read from the rows.

    extract → cluster → [ synthesize → classify (→ apply, early) ] per job → gate
                      → [ restructure ] per structural job, if any → finish

Steps never raise and results are never read, so a chord's body always runs; where a message is lost all the same, the
sweeper begins another attempt at what the rows show unfinished.
"""

from collections.abc import Sequence

from celery import Signature, chain, chord, signature

from memory.consolidation.jobs import JobToJudge, jobs_to_judge
from memory.consolidation.structural import jobs_to_restructure
from memory.models import JobKind


def start_cycle(*, cycle_id: str, attempt: int) -> None:
    """Send a cycle's first steps; those already done return at once."""
    chain(*(_step(name, cycle_id, attempt) for name in ("extract", "cluster"))).delay()


def judge_jobs(*, cycle_id: str, attempt: int) -> None:
    """Send every job that still has calls to make, and the gate once all have come back.

    Only the rows of a clustered cycle say which jobs there are: the chain cannot hold them from the start.
    """
    gate = _step("gate", cycle_id, attempt)
    headers = [_judging(job, cycle_id, attempt) for job in jobs_to_judge(cycle_id=cycle_id)]
    if headers:
        chord(headers, gate).delay()
    else:
        gate.delay()


def apply_early(*, cycle_id: str, attempt: int) -> None:
    """Let somebody apply what is ready while models still answer about the rest; the gate applies what is left."""
    _step("apply", cycle_id, attempt).delay()


def end_cycle(*, cycle_id: str, attempt: int) -> None:
    """Send what the gates decided that needs a model's words, and the cycle's last step after it."""
    finish = _step("finish", cycle_id, attempt)
    headers = [_restructuring(job_id, cycle_id, attempt) for job_id in jobs_to_restructure(cycle_id=cycle_id)]
    if headers:
        chord(headers, finish).delay()
    else:
        finish.delay()


def read_conversations(*, conversation_ids: Sequence[int]) -> None:
    """Send a message for each conversation that is due; one that nobody needs any more finds nothing to do."""
    for conversation_id in conversation_ids:
        shown = f"(conversation {conversation_id})"
        signature(
            "workers.extract_turns", args=(conversation_id,), immutable=True, argsrepr=shown, kwargsrepr="{}"
        ).delay()


def _restructuring(job_id: int, cycle_id: str, attempt: int) -> Signature[None]:
    return _step("restructure", job_id, attempt, about=f"{cycle_id}, structural job {job_id}")


def _judging(job: JobToJudge, cycle_id: str, attempt: int) -> Signature[None]:
    about = f"{cycle_id}, job {job.number} of {job.of}"
    classify = _step("classify", job.id, attempt, about=about)
    if job.kind == JobKind.SINGLES:
        return classify
    return chain(_step("synthesize", job.id, attempt, about=about), classify)


def _step(name: str, key: str | int, attempt: int, *, about: str = "") -> Signature[None]:
    """Name a task and its ids; what the task before it returned is none of its business.

    Whoever looks at queues and tasks sees what the task is about in place of its arguments.
    """
    shown = f"({about or key}, attempt {attempt})"
    return signature(f"workers.{name}", args=(key, attempt), immutable=True, argsrepr=shown, kwargsrepr="{}")
