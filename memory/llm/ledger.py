"""The ledger of model calls: a row before each call, settled after it, and reused where it holds an answer."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now

from memory.llm.answers import cost_of
from memory.llm.budget import DailyCapReached
from memory.llm.caps import count_affordable, why_unaffordable
from memory.llm.model import CallFailed, Completion, FailureKind, LanguageModel
from memory.llm.prompts import VERSIONS, reply_tokens, reserve_request
from memory.llm.replies import LONGEST_REPLY, MalformedReply, Reply, validate_reply
from memory.llm.requests import Request, hash_request
from memory.models import CallOutcome, ModelCall, ModelCallEpisode, Workspace
from memory.models.fields import insert_new

LONGEST_ERROR = 500
UNHEARD = "nobody was left to wait for the answer"  # of a call whose worker was killed, or ended in its middle


@dataclass(frozen=True, slots=True, kw_only=True)
class CallScope:
    """On whose behalf calls are made."""

    workspace_id: int
    cycle_id: str | None = None
    job_id: int | None = None
    structural_job_id: int | None = None
    conversation_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReply:
    """An answer that is already paid for."""

    call_id: int
    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What came of a call."""

    call_id: int
    model: str
    result: Completion | CallFailed


# Sent for all calls of a landing in one pipeline; through the ORM each would be a round trip and a commit.
# What nobody knows the use of stays as it was reserved.
_SETTLE = """
UPDATE memory_modelcall
SET outcome = %(outcome)s, input_tokens = COALESCE(%(input_tokens)s, input_tokens),
    output_tokens = COALESCE(%(output_tokens)s, output_tokens),
    is_estimated = COALESCE(%(is_estimated)s, is_estimated), cost_usd = COALESCE(%(cost_usd)s, cost_usd),
    latency_ms = %(latency_ms)s, reply = %(reply)s, error = %(error)s, finished_at = statement_timestamp()
WHERE id = %(id)s AND outcome IN ('open', 'abandoned')
"""


def find_replies(*, scope: CallScope, requests: Sequence[Request], model: LanguageModel) -> list[StoredReply | None]:
    """Return for each request the newest validated reply of this workspace to the same words, prompt and model."""
    hashes = {hash_request(request=request) for request in requests}
    rows = ModelCall.objects.for_workspace(scope.workspace_id).filter(outcome=CallOutcome.OK, input_hash__in=hashes)
    newest = {(row.purpose, row.model, row.prompt_version, row.input_hash): row for row in rows.order_by("id")}
    return [_stored_reply(request, newest.get(_name_of(request, model))) for request in requests]


def _name_of(request: Request, model: LanguageModel) -> tuple[str, str, str, str]:
    """Name what two calls share that must have the same answer."""
    purpose = request.purpose
    return str(purpose), model.model_for(purpose), VERSIONS[purpose], hash_request(request=request)


def _stored_reply(request: Request, row: ModelCall | None) -> StoredReply | None:
    if row is None:
        return None
    try:
        return StoredReply(call_id=row.pk, reply=validate_reply(request, row.reply))
    except MalformedReply:
        return None  # written by an older release whose replies had another shape: ask again


def reserve_calls(
    *, scope: CallScope, requests: Sequence[Request], model: LanguageModel, in_flight: int, call_seconds: float
) -> list[int]:
    """Open a row for each request, in order, while the workspace has fewer than `in_flight` calls; return their ids.

    Raises DailyCapReached where the workspace has spent what it may in a day.
    """
    rows = [_open_row(scope, request, model) for request in requests]  # before the lock, for which others wait
    seen = [[episode.id for episode in request.episodes] for request in requests]
    return reserve_rows(rows=rows, seen=seen, in_flight=in_flight, call_seconds=call_seconds)


def reserve_rows(
    *, rows: Sequence[ModelCall], seen: Sequence[Collection[str]], in_flight: int, call_seconds: float
) -> list[int]:
    """Store the rows that may be called now, with the ids of the episodes that each will see; return their ids.

    What is settled and what is reserved together never exceed a cap. Where a reservation fits only if calls in flight
    turn out cheaper than they might, none is granted yet; without any in flight, DailyCapReached is raised.
    """
    workspace_id = rows[0].workspace_id
    with transaction.atomic():
        workspace = _lock_ledger(workspace_id)
        flying = count_in_flight(workspace_id=workspace_id, call_seconds=call_seconds)
        affordable = count_affordable(workspace=workspace, rows=rows)
        if not affordable and not flying:
            raise DailyCapReached(why_unaffordable(workspace=workspace, row=rows[0]))
        granted = min(affordable, max(in_flight - flying, 0))
        calls = ModelCall.objects.bulk_create(rows[:granted])
        links = [(call, key) for call, keys in zip(calls, seen, strict=False) for key in keys]
        note_episodes(workspace_id=workspace_id, seen=links)
    return [call.pk for call in calls]


def note_episodes(*, workspace_id: int, seen: Iterable[tuple[ModelCall, str]]) -> None:
    """Link calls to the episodes they see, so that erasing one finds the replies that quote it."""
    rows = [{"workspace_id": workspace_id, "call_id": call.pk, "episode_id": episode} for call, episode in seen]
    insert_new(model=ModelCallEpisode, rows=rows)


def count_in_flight(*, workspace_id: int, call_seconds: float) -> int:
    """Count open calls that can still be answered; a killed process leaves rows that are too old for that."""
    return (
        ModelCall.objects.for_workspace(workspace_id)
        .filter(outcome=CallOutcome.OPEN, started_at__gt=Now() - timedelta(seconds=call_seconds))
        .count()
    )


def settle_call(*, call_id: int, model: str, result: Completion | CallFailed) -> None:
    """Close a row with what came of the call; an answer that somebody gave up on still counts."""
    settle_calls(settlements=[Settlement(call_id=call_id, model=model, result=result)])


def settle_calls(*, settlements: Sequence[Settlement]) -> None:
    """Close rows with what came of their calls, in one go."""
    if settlements:
        with connection.cursor() as cursor:
            in_order = sorted(
                settlements, key=lambda one: one.call_id
            )  # so that two who settle cannot block each other
            cursor.executemany(_SETTLE, [_columns(one) for one in in_order])


def _columns(one: Settlement) -> dict[str, Any]:
    result = one.result
    return _usage(one) | {
        "id": one.call_id,
        "outcome": CallOutcome(result.kind) if isinstance(result, CallFailed) else CallOutcome.OK,
        "latency_ms": result.latency_ms,
        "reply": _storable(result.raw[:LONGEST_REPLY]),
        "error": _storable(str(result))[:LONGEST_ERROR] if isinstance(result, CallFailed) else "",
    }


def _usage(one: Settlement) -> dict[str, Any]:
    """Return what a call used; nothing where it timed out and the server may have billed all of it."""
    result = one.result
    if isinstance(result, CallFailed) and result.kind is FailureKind.TIMEOUT and not result.output_tokens:
        return dict.fromkeys(("input_tokens", "output_tokens", "is_estimated", "cost_usd"))
    sent, received = result.input_tokens, result.output_tokens
    return {
        "input_tokens": sent,
        "output_tokens": received,
        "is_estimated": result.tokens_estimated,
        "cost_usd": cost_of(model=one.model, input_tokens=sent, output_tokens=received),
    }


def abandon_calls(
    *,
    workspace_id: int,
    job_id: int | None = None,
    structural_job_id: int | None = None,
    call_ids: Collection[int] | None = None,
    older_than_seconds: float = 0.0,
) -> int:
    """Close open rows that nobody waits for any more, of one job or all that are old enough; return how many."""
    rows = ModelCall.objects.for_workspace(workspace_id).filter(outcome=CallOutcome.OPEN)
    if job_id is not None:
        rows = rows.filter(job=job_id)
    if structural_job_id is not None:
        rows = rows.filter(structural_job=structural_job_id)
    if call_ids is not None:
        rows = rows.filter(pk__in=call_ids)
    lost = rows.filter(started_at__lte=Now() - timedelta(seconds=older_than_seconds))
    return lost.update(outcome=CallOutcome.ABANDONED, error=UNHEARD, finished_at=Now())


def _lock_ledger(workspace_id: int) -> Workspace:
    """Let one reservation of a workspace at a time count and add; rows that only refer to it go on."""
    return Workspace.objects.select_for_update(no_key=True).get(pk=workspace_id)


def _open_row(scope: CallScope, request: Request, model: LanguageModel) -> ModelCall:
    """Reserve the most that a call can use; it stays counted if nobody lives to settle the call."""
    name = model.model_for(request.purpose)
    sent = 0 if model.is_offline else reserve_request(request=request)
    received = 0 if model.is_offline else reply_tokens(request=request)
    return ModelCall(
        workspace_id=scope.workspace_id,
        cycle_id=scope.cycle_id,
        job_id=scope.job_id,
        structural_job_id=scope.structural_job_id,
        conversation_id=scope.conversation_id,
        purpose=request.purpose,
        model=name,
        parameters=model.parameters_for(request.purpose),
        prompt_version=VERSIONS[request.purpose],
        input_hash=hash_request(request=request),
        input_tokens=sent,
        output_tokens=received,
        is_estimated=sent > 0,
        cost_usd=cost_of(model=name, input_tokens=sent, output_tokens=received),
    )


def _storable(text: str) -> str:
    """Drop what PostgreSQL's text cannot hold: a broken server may send it."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
