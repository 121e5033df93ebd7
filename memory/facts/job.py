"""The lease on a remember job, and what its holder asks of models.

`lease_job` gives a job to one worker at a time; `ask_model`, `embed_own_text` and `embed_texts` call models on its
behalf; `send_due_jobs` sends jobs whose message was lost or whose wait is over, `retry_failed` those that a person
wants tried again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from memory.consolidation.cycle import budget_policy, database_now, find_paused_workspaces
from memory.consolidation.jobs import CLAIMED_TOO_OFTEN
from memory.consolidation.leases import Lease, hold, take_lease
from memory.domain.time_limits import CALL_SECONDS, cooldown
from memory.language.sentences import strip_echo
from memory.llm.call_log import CallBudget, CallScope, DailyCapReached
from memory.llm.embeddings import embed_for_workspace, embedder_of
from memory.llm.registry import language_model
from memory.llm.replies import Reply
from memory.llm.requests import Request
from memory.llm.runner import ModelAnswer, ModelRequest, run_requests
from memory.llm.types import CallFailed, FailureKind
from memory.models import Episode, RememberJob, RememberJobState, Workspace
from memory.models.leases import REASON_LENGTH
from memory.search.vectors import Vectors, read_episode_vectors, store_episode_vectors
from memory.signals import remembrance_ready

log = structlog.get_logger(__name__)
TOO_SLOW = "the model is too slow"
READING_SECONDS = "ENGRAM_READING_SECONDS"
_SENT_AT_ONCE = 100


def lease_job(*, remembrance_id: int) -> AbstractContextManager[JobLease | None]:
    """Hold a remembrance that waits and is free, else None; one that cost too many workers is left to consolidation."""
    return hold(_take_lease(remembrance_id))


@dataclass(slots=True, kw_only=True)
class JobLease(Lease[RememberJob]):
    """The right to work on one remembrance."""

    @property
    def remembrance(self) -> RememberJob:
        """Return the remembrance as it was when it was claimed."""
        return self.row

    def after_error(self) -> dict[str, Any]:
        """Have the sweeper wait with what broke."""
        return {"due_at": database_now(plus=self.next_pause())}

    def postpone(self, *, seconds: float, reason: str, is_failure: bool = False) -> None:
        """Let it wait for the sweeper; a try that failed counts."""
        failures = F("failures") + int(is_failure)
        self.held.update(due_at=database_now(plus=seconds), state_reason=reason[:REASON_LENGTH], failures=failures)
        log.info("remembrance_waits", remembrance=self.remembrance.pk, reason=reason, seconds=round(seconds))

    def put_off_slow(self, *, is_worker: bool) -> None:
        """Let it wait for a model that was too slow, each time longer; after so many tries it is left to consolidation.

        The reason tells how many there were: a person who reads it knows which setting to raise. Only a worker, which
        has more time than a caller, gives up.
        """
        tries, most = self.remembrance.failures + 1, settings.POLICY.remember.slow_tries
        seconds, setting = longest_call(is_worker=is_worker)
        reason = f"{TOO_SLOW}: no answer within {seconds:g} s ({setting}), try {tries} of {most}"
        self.postpone(seconds=self.next_pause(), reason=reason, is_failure=True)
        if is_worker and tries >= most:
            give_up(remembrance=self.remembrance, reason=reason)

    def next_pause(self) -> float:
        """Return the seconds to wait after one more failure in a row: twice as many each time (B9)."""
        return cooldown(failures=self.remembrance.failures, budget=budget_policy()).total_seconds()


def longest_call(*, is_worker: bool) -> tuple[float, str]:
    """Return the seconds that one call may take, and the setting that says so: a worker's reading has its own."""
    usual, reading = budget_policy().call_seconds, settings.POLICY.reading.seconds
    return (reading, READING_SECONDS) if is_worker and reading > usual else (usual, CALL_SECONDS)


def _take_lease(remembrance_id: int) -> JobLease | None:
    again_at = database_now(plus=settings.POLICY.remember.resend_seconds)
    owner = take_lease(RememberJob.objects.queued().filter(pk=remembrance_id), due_at=again_at)
    if owner is None:
        return None
    remembrance = RememberJob.objects.select_related("workspace", "episode").get(pk=remembrance_id)
    if remembrance.claims > budget_policy().job_claims:
        give_up(remembrance=remembrance, reason=CLAIMED_TOO_OFTEN)
        return None
    return JobLease(row=remembrance, owner=owner)


def give_up(*, remembrance: RememberJob, reason: str) -> None:
    """Leave a remembrance's episode to consolidation, which takes it up as any other.

    Beliefs of it that wait for a vector would be compared by nobody else: such a one rests as long as any failure does,
    and is then tried anew.
    """
    waiting = RememberJob.objects.queued().filter(pk=remembrance.pk)
    if remembrance.facts.filter(is_unmatched=True).exists():
        rest = timedelta(hours=budget_policy().cooldown_hours).total_seconds()
        waiting.fail(reason=reason, claims=0, due_at=database_now(plus=rest))
    else:
        waiting.fail(reason=reason, state=RememberJobState.FAILED, due_at=Now())
    log.warning("remembrance_failed", remembrance=remembrance.pk, episode=remembrance.episode_id, reason=reason)


_UNREADABLE_KINDS = (FailureKind.MALFORMED, FailureKind.BAD_REQUEST, FailureKind.OWN_ERROR)


class NoModelAnswer(Exception):
    """No model answered; asked again later one may. `is_slow`: it had all the time that a call may take."""

    def __init__(self, message: str, *, is_slow: bool = False) -> None:
        super().__init__(message)
        self.is_slow = is_slow


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReply:
    """A reply and its call; no reply where a model gave none that could be read."""

    reply: Reply | None
    call_id: int | None


def ask_model(*, hold: JobLease, budget: CallBudget, request: Request) -> JobReply:
    """Ask one thing; a reply that nobody can read is none. Raises NoModelAnswer where no model answered."""
    answers: list[ModelAnswer] = []
    failures = run_requests(
        asks=[ModelRequest(key="", request=request)],
        scope=CallScope(workspace_id=hold.remembrance.workspace_id),
        budget=budget,
        model=language_model(),
        store=answers.extend,
        fence=hold.renew,
    )
    if answers:
        return JobReply(reply=answers[0].reply, call_id=answers[0].call_id)
    if failures[0].kind not in _UNREADABLE_KINDS:
        kind = failures[0].kind
        raise NoModelAnswer(f"{kind}: {failures[0].message}", is_slow=kind is FailureKind.TIMEOUT)
    log.warning("remembering.reply_unreadable", purpose=request.purpose, kind=failures[0].kind)
    return JobReply(reply=None, call_id=None)


def embed_own_text(*, episode: Episode) -> Vectors | None:
    """Return the vector (768) of a text itself, stored by now; None where none can be had."""
    model, text = embedder_of(episode.workspace_id), strip_echo(episode.text, episode.speaker)
    _, stored = read_episode_vectors(model=model.name, ids=[episode.pk])
    if len(stored):
        vector: Vectors = stored[0]
        return vector
    if not text or not (made := embed_texts(texts=[text], episode=episode)):
        return None
    store_episode_vectors(
        workspace_id=episode.workspace_id,
        model=model.name,
        vectors={episode.pk: made[text]},
        chunked={episode.pk} if model.is_overlong(text) else (),
    )
    return made[text]


def embed_texts(*, texts: Sequence[str], episode: Episode) -> dict[str, Vectors]:
    """Return the vectors (768) of texts, by their words; none where a server does not answer."""
    if not texts:
        return {}
    try:
        vectors = embed_for_workspace(
            scope=CallScope(workspace_id=episode.workspace_id),
            model=embedder_of(episode.workspace_id),
            texts=texts,
            timeout=budget_policy().call_seconds,
            episodes=[episode.pk],
        )
    except (CallFailed, DailyCapReached) as error:
        log.warning("remembering.vectors_failed", error=str(error))
        return {}
    return dict(zip(texts, vectors, strict=True))


@transaction.atomic
def send_due_jobs() -> int:
    """Send what is due, each once however many sweep; what rests, or keeps no beliefs, is left. Return how many."""
    waiting = set(RememberJob.objects.due().values_list("workspace_id", flat=True))
    workspaces = list(Workspace.objects.believing().filter(pk__in=waiting))
    awake = {workspace.pk for workspace in workspaces} - find_paused_workspaces(workspaces=workspaces)
    rows = RememberJob.objects.due().filter(workspace__in=awake).order_by("due_at")
    due = list(
        rows.select_for_update(skip_locked=True, of=("self",), no_key=True).values_list("pk", flat=True)[:_SENT_AT_ONCE]
    )
    again_at = database_now(plus=settings.POLICY.remember.resend_seconds)
    RememberJob.objects.filter(pk__in=due).update(due_at=again_at)
    for remembrance_id in due:
        remembrance_ready.send(sender=RememberJob, remembrance_id=remembrance_id)
    return len(due)


def list_failed(*, workspace_id: int) -> QuerySet[RememberJob]:
    """Return a workspace's remembrances that failed, the latest first; `due_at` says when."""
    return RememberJob.objects.for_workspace(workspace_id).failed().order_by("-due_at", "pk")


def retry_failed(*, remembrances: QuerySet[RememberJob]) -> int:
    """Let the failed among some remembrances wait for a worker as if they had never failed; return how many."""
    failed = RememberJob.objects.failed().filter(pk__in=remembrances.order_by().values("pk"))
    return failed.update(state=RememberJobState.QUEUED, state_reason="", claims=0, failures=0, due_at=Now())
