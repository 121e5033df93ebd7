"""The log of model calls, the daily limits of a workspace, and the budget of a step.

A row is reserved before each call (`reserve_calls`), within what the workspace may still spend in a UTC day, settled
after it (`settle_calls`), and reused where it holds an answer (`find_replies`). Recall's embeddings have a limit of
their own: a memory that may not think any more today still answers (B9).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from decimal import Decimal
from typing import Any, Self

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Now, TruncDay

from memory.domain.policy_consolidation import BudgetPolicy
from memory.llm.prompts import VERSIONS, reply_tokens, reserve_request
from memory.llm.replies import LONGEST_REPLY, MalformedReply, Reply, validate_reply
from memory.llm.requests import Request, hash_request
from memory.llm.types import CallFailed, Completion, FailureKind, LanguageModel, cost_of
from memory.models import CallOutcome, ModelCall, ModelCallEpisode, Workspace
from memory.models.audit import PURPOSE_RECALL
from memory.models.fields import insert_new
from memory.signals import is_shutting_down


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReply:
    """An answer that is already paid for."""

    call_id: int
    reply: Reply


def find_replies(*, scope: CallScope, requests: Sequence[Request], model: LanguageModel) -> list[StoredReply | None]:
    """Return for each request the newest validated reply of this workspace to the same words, prompt and model."""
    hashes = {hash_request(request=request) for request in requests}
    rows = ModelCall.objects.for_workspace(scope.workspace_id).filter(outcome=CallOutcome.OK, input_hash__in=hashes)
    newest = {(row.purpose, row.model, row.prompt_version, row.input_hash): row for row in rows.order_by("id")}
    return [_stored_reply(request, newest.get(_reply_key(request, model))) for request in requests]


def has_timed_out(*, scope: CallScope, request: Request, model: LanguageModel) -> bool:
    """Tell whether this model was asked the same before, and did not answer in time."""
    purpose, name, version, input_hash = _reply_key(request, model)
    calls = ModelCall.objects.for_workspace(scope.workspace_id).filter(
        purpose=purpose, model=name, prompt_version=version, input_hash=input_hash, outcome=CallOutcome.TIMEOUT
    )
    return calls.filter(episodes=request.episodes[0].id).exists()  # an index finds them by it


def _reply_key(request: Request, model: LanguageModel) -> tuple[str, str, str, str]:
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
        workspace = _lock_spending(workspace_id)
        flying = count_in_flight(workspace_id=workspace_id, call_seconds=call_seconds)
        affordable = count_affordable(workspace=workspace, rows=rows)
        if not affordable and not flying:
            raise DailyCapReached(why_unaffordable(workspace=workspace, row=rows[0]))
        granted = min(affordable, max(in_flight - flying, 0))
        calls = ModelCall.objects.bulk_create(rows[:granted])
        links = [(call, key) for call, keys in zip(calls, seen, strict=False) for key in keys]
        link_episodes(workspace_id=workspace_id, seen=links)
    return [call.pk for call in calls]


def settle_calls(*, settlements: Sequence[Settlement]) -> None:
    """Close rows with what came of their calls, in one go."""
    if settlements:
        with connection.cursor() as cursor:
            in_order = sorted(
                settlements, key=lambda one: one.call_id
            )  # so that two who settle cannot block each other
            cursor.executemany(_SETTLE_SQL, [_settled_columns(one) for one in in_order])


def _settled_columns(one: Settlement) -> dict[str, Any]:
    result = one.result
    return _used_columns(one) | {
        "id": one.call_id,
        "outcome": CallOutcome(result.kind) if isinstance(result, CallFailed) else CallOutcome.OK,
        "latency_ms": result.latency_ms,
        "reply": _storable(result.raw[:LONGEST_REPLY]),
        "error": _storable(str(result))[:MAX_ERROR] if isinstance(result, CallFailed) else "",
    }


def _used_columns(one: Settlement) -> dict[str, Any]:
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


MAX_ERROR = 500
NOBODY_WAITS = "nobody was left to wait for the answer"  # of a call whose worker was killed, or ended in its middle


@dataclass(frozen=True, slots=True, kw_only=True)
class CallScope:
    """On whose behalf calls are made."""

    workspace_id: int
    cycle_id: str | None = None
    job_id: int | None = None
    structural_job_id: int | None = None
    conversation_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What came of a call."""

    call_id: int
    model: str
    result: Completion | CallFailed


# Sent for all calls of a landing in one pipeline; through the ORM each would be a round trip and a commit.
# What nobody knows the use of stays as it was reserved.
_SETTLE_SQL = """
UPDATE memory_modelcall
SET outcome = %(outcome)s, input_tokens = COALESCE(%(input_tokens)s, input_tokens),
    output_tokens = COALESCE(%(output_tokens)s, output_tokens),
    is_estimated = COALESCE(%(is_estimated)s, is_estimated), cost_usd = COALESCE(%(cost_usd)s, cost_usd),
    latency_ms = %(latency_ms)s, reply = %(reply)s, error = %(error)s, finished_at = statement_timestamp()
WHERE id = %(id)s AND outcome IN ('open', 'abandoned')
"""


def link_episodes(*, workspace_id: int, seen: Iterable[tuple[ModelCall, str]]) -> None:
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
    return lost.update(outcome=CallOutcome.ABANDONED, error=NOBODY_WAITS, finished_at=Now())


def _lock_spending(workspace_id: int) -> Workspace:
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


def count_affordable(*, workspace: Workspace, rows: Sequence[ModelCall]) -> int:
    """Count how many of some reservations, in their order, fit under the workspace's caps.

    The caller holds the ledger's lock. Raises DailyCapReached where a cap is reached already.
    """
    if not _has_cap(workspace):
        return len(rows)
    spent = spent_today(workspace_id=workspace.pk)
    if reason := reached_cap(workspace=workspace, spent=spent):
        raise DailyCapReached(reason)
    tokens, cost = spent.tokens, spent.cost_usd
    for count, row in enumerate(rows):
        tokens, cost = tokens + row.input_tokens + row.output_tokens, cost + row.cost_usd
        if _exceeds(tokens, workspace.daily_token_cap) or _exceeds(cost, workspace.daily_cost_cap_usd):
            return count
    return len(rows)


def why_unaffordable(*, workspace: Workspace, row: ModelCall) -> str:
    """Name the cap under which a reservation does not fit."""
    tokens = spent_today(workspace_id=workspace.pk).tokens + row.input_tokens + row.output_tokens
    return TOKENS_ARE_SPENT if _exceeds(tokens, workspace.daily_token_cap) else MONEY_IS_SPENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What calls used."""

    tokens: int
    cost_usd: Decimal


def spent_today(*, workspace_id: int) -> Spending:
    """Add up the calls of this UTC day, recall's embeddings apart."""
    sums = _calls_today(workspace_id).exclude(purpose=PURPOSE_RECALL).aggregate(
        tokens=Sum(F("input_tokens") + F("output_tokens"), default=0),
        cost_usd=Sum("cost_usd", default=Decimal(0)),
    )  # fmt: skip
    return Spending(**sums)


def reached_cap(*, workspace: Workspace, spent: Spending) -> str:
    """Name the cap that has been reached; nothing if there is none, or room below it."""
    if workspace.daily_token_cap is not None and spent.tokens >= workspace.daily_token_cap:
        return TOKENS_ARE_SPENT
    if workspace.daily_cost_cap_usd is not None and spent.cost_usd >= workspace.daily_cost_cap_usd:
        return MONEY_IS_SPENT
    return ""


def recall_tokens_today(*, workspace_id: int) -> int:
    """Add up the tokens of this UTC day's query embeddings."""
    today = _calls_today(workspace_id).filter(purpose=PURPOSE_RECALL)
    tokens: int = today.aggregate(tokens=Sum(F("input_tokens") + F("output_tokens"), default=0))["tokens"]
    return tokens


def recall_token_cap(*, workspace: Workspace) -> int:
    """Return the workspace's own cap on recall's embeddings, else the setting."""
    usual: int = settings.POLICY.recall.daily_tokens
    return usual if workspace.daily_recall_token_cap is None else workspace.daily_recall_token_cap


def check_recall_cap(*, workspace: Workspace, tokens: int) -> None:
    """Raise DailyCapReached where a query's embedding would go over the cap of its own; what is in flight may."""
    if recall_tokens_today(workspace_id=workspace.pk) + tokens > recall_token_cap(workspace=workspace):
        raise DailyCapReached(RECALL_IS_SPENT)


def _calls_today(workspace_id: int) -> QuerySet[ModelCall]:
    rows: QuerySet[ModelCall] = ModelCall.objects.for_workspace(workspace_id)
    return rows.filter(started_at__gte=TruncDay(Now(), tzinfo=UTC))


def _has_cap(workspace: Workspace) -> bool:
    return workspace.daily_token_cap is not None or workspace.daily_cost_cap_usd is not None


def _exceeds(amount: int | Decimal, cap: int | Decimal | None) -> bool:
    return cap is not None and amount > cap


@dataclass(slots=True, kw_only=True)
class CallBudget:
    """Time and further attempts of one step, shared by all its asks; `deadline` is a reading of time.monotonic()."""

    deadline: float
    call_timeout: float
    attempts: int
    max_parallel: int
    wait_limit: float = 5.0
    margin: float = 1.0

    @classmethod
    def of_step(cls, *, seconds: float, policy: BudgetPolicy) -> Self:
        """Return the budget of a step that has so many seconds."""
        return cls(
            deadline=time.monotonic() + seconds,
            call_timeout=policy.call_seconds,
            attempts=policy.call_attempts,
            max_parallel=policy.calls_in_flight,
            wait_limit=policy.wait_seconds,
            margin=policy.margin_seconds,
        )

    def seconds_left(self) -> float:
        """Return the seconds to the deadline, negative after it."""
        return self.deadline - time.monotonic()

    def allows_call(self, *, after: float = 0.0) -> bool:
        """Tell whether a call begun after so many seconds would end before the deadline, and the process goes on."""
        return not is_shutting_down() and self.seconds_left() - after > self.call_timeout + self.margin

    def take_attempt(self) -> bool:
        """Spend one further attempt; return False where none is left."""
        if self.attempts < 1:
            return False
        self.attempts -= 1
        return True

    def give_attempt(self) -> None:
        """Return an attempt that brought the work forward."""
        self.attempts += 1


TOKENS_ARE_SPENT = "the workspace's tokens of this day are spent"
MONEY_IS_SPENT = "the workspace's money of this day is spent"
RECALL_IS_SPENT = "the tokens of this day for recall's embeddings are spent"
CAP_REASONS = {TOKENS_ARE_SPENT, MONEY_IS_SPENT}


class RetryLater(Exception):
    """A model asks for more patience than a step has; the caller gives its lease back for that long."""

    def __init__(self, *, seconds: float) -> None:
        super().__init__(f"wait {seconds:.1f} s")
        self.seconds = seconds


class OutOfBudget(Exception):
    """No further call can be afforded; the message says why.

    `is_slow`: a call before it was not answered in its time.
    """

    def __init__(self, message: str, *, is_slow: bool = False) -> None:
        super().__init__(message)
        self.is_slow = is_slow


class DailyCapReached(OutOfBudget):
    """The workspace has spent the tokens or the money that it may spend in a day: waiting within a cycle is no use."""


class LeaseLost(Exception):
    """Somebody else has taken the work over; what was in flight is in the ledger for them."""


def release_connection() -> None:
    """Give the connection back before a wait, or keep it, to be looked at when it is next used.

    A server may restart while a model thinks: the next statement on a kept connection asks first whether it is alive,
    and opens another where it is not. Inside a transaction there is no choice.
    """
    if connection.in_atomic_block:
        return
    if settings.ENGRAM_KEEP_CONNECTIONS:
        connection.close_if_unusable_or_obsolete()
    else:
        connection.close()
