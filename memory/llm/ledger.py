"""The ledger of model calls: a row before each call, settled after it, and reused where it holds an answer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Sum
from django.db.models.functions import Now, TruncDay

from memory.llm.budget import DailyCapReached
from memory.llm.model import CallFailed, Completion, LanguageModel
from memory.llm.prompts import VERSIONS, estimate_request
from memory.llm.replies import MalformedReply, Reply, validate_reply
from memory.llm.requests import Request, hash_request
from memory.models import CallOutcome, ModelCall, ModelCallEpisode, Workspace
from memory.models.rows import insert_new

MILLION = Decimal(1_000_000)
LONGEST_ERROR = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class CallScope:
    """On whose behalf calls are made."""

    workspace_id: int
    cycle_id: str | None = None
    job_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReply:
    """An answer that is already paid for."""

    call_id: int
    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What calls used."""

    tokens: int
    cost_usd: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What came of a call."""

    call_id: int
    model: str
    result: Completion | CallFailed


# Sent for all calls of a landing in one pipeline; through the ORM each would be a round trip and a commit.
_SETTLE = """
UPDATE memory_modelcall
SET outcome = %(outcome)s, input_tokens = %(input_tokens)s, output_tokens = %(output_tokens)s,
    is_estimated = %(is_estimated)s, cost_usd = %(cost_usd)s, latency_ms = %(latency_ms)s,
    reply = %(reply)s, error = %(error)s, finished_at = statement_timestamp()
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
    with transaction.atomic():
        check_daily_caps(workspace=_lock_ledger(scope.workspace_id))
        free = max(in_flight - count_in_flight(workspace_id=scope.workspace_id, call_seconds=call_seconds), 0)
        granted = requests[:free]
        calls = ModelCall.objects.bulk_create(rows[:free])
        seen = [(call, episode.id) for call, one in zip(calls, granted, strict=True) for episode in one.episodes]
        note_episodes(workspace_id=scope.workspace_id, seen=seen)
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


def check_daily_caps(*, workspace: Workspace) -> None:
    """Raise DailyCapReached where the calls of this UTC day, settled or reserved, have reached a cap (B9)."""
    if workspace.daily_token_cap is None and workspace.daily_cost_cap_usd is None:
        return
    spent = spent_today(workspace_id=workspace.pk)
    if workspace.daily_token_cap is not None and spent.tokens >= workspace.daily_token_cap:
        raise DailyCapReached("the workspace's tokens of this day are spent")
    if workspace.daily_cost_cap_usd is not None and spent.cost_usd >= workspace.daily_cost_cap_usd:
        raise DailyCapReached("the workspace's money of this day is spent")


def spent_today(*, workspace_id: int) -> Spent:
    """Add up the calls of this UTC day, settled or reserved, by the database's clock."""
    today = ModelCall.objects.for_workspace(workspace_id).filter(started_at__gte=TruncDay(Now(), tzinfo=UTC))
    sums = today.aggregate(
        tokens=Sum(F("input_tokens") + F("output_tokens"), default=0),
        cost_usd=Sum("cost_usd", default=Decimal(0)),
    )
    return Spent(**sums)


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
    failed = isinstance(result, CallFailed)
    return {
        "id": one.call_id,
        "outcome": CallOutcome(result.kind) if isinstance(result, CallFailed) else CallOutcome.OK,
        "input_tokens": result.input_tokens,
        "output_tokens": result.output_tokens,
        "is_estimated": result.tokens_estimated,
        "cost_usd": cost_of(model=one.model, input_tokens=result.input_tokens, output_tokens=result.output_tokens),
        "latency_ms": result.latency_ms,
        "reply": _storable(result.raw),
        "error": _storable(str(result))[:LONGEST_ERROR] if failed else "",
    }


def abandon_calls(*, workspace_id: int, job_id: int | None = None, older_than_seconds: float = 0.0) -> int:
    """Close open rows that nobody waits for any more, of one job or all that are old enough; return how many."""
    rows = ModelCall.objects.for_workspace(workspace_id).filter(outcome=CallOutcome.OPEN)
    if job_id is not None:
        rows = rows.filter(job=job_id)
    lost = rows.filter(started_at__lte=Now() - timedelta(seconds=older_than_seconds))
    return lost.update(outcome=CallOutcome.ABANDONED, finished_at=Now())


def cost_of(*, model: str, input_tokens: int, output_tokens: int) -> Decimal:
    """Return the price of a call in US dollars; a model without a price costs nothing."""
    sent, received = (Decimal(str(price)) for price in settings.ENGRAM_PRICES.get(model, (0, 0)))
    return (sent * input_tokens + received * output_tokens) / MILLION


def _lock_ledger(workspace_id: int) -> Workspace:
    """Let one reservation of a workspace at a time count and add; rows that only refer to it go on."""
    return Workspace.objects.select_for_update(no_key=True).get(pk=workspace_id)


def _open_row(scope: CallScope, request: Request, model: LanguageModel) -> ModelCall:
    """Reserve the prompt's tokens; they stay counted if nobody lives to settle the call."""
    name = model.model_for(request.purpose)
    tokens = 0 if model.is_offline else estimate_request(request=request)
    return ModelCall(
        workspace_id=scope.workspace_id,
        cycle_id=scope.cycle_id,
        job_id=scope.job_id,
        purpose=request.purpose,
        model=name,
        parameters=model.parameters_for(request.purpose),
        prompt_version=VERSIONS[request.purpose],
        input_hash=hash_request(request=request),
        input_tokens=tokens,
        is_estimated=tokens > 0,
        cost_usd=cost_of(model=name, input_tokens=tokens, output_tokens=0),
    )


def _storable(text: str) -> str:
    """Drop what PostgreSQL's text cannot hold: a broken server may send it."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
