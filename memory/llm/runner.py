"""Run requests within one budget: rows in this thread, single model calls in a few others.

`run_requests` takes secrets out, reuses stored replies, retries, halves what a model cannot answer, and hands replies
on as they come.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from memory.llm.call_log import (
    CallBudget,
    CallScope,
    DailyCapReached,
    LeaseLost,
    OutOfBudget,
    RetryLater,
    Settlement,
    abandon_calls,
    find_replies,
    has_timed_out,
    release_connection,
    reserve_calls,
    settle_calls,
)
from memory.llm.replies import Reply
from memory.llm.requests import ReadingRequest, Request, halve_request
from memory.llm.types import CallFailed, Completion, FailureKind, LanguageModel
from memory.redaction.service import redact_all

log = structlog.get_logger(__name__)


def always() -> bool:
    return True


def run_requests(
    *,
    asks: Sequence[ModelRequest],
    scope: CallScope,
    budget: CallBudget,
    model: LanguageModel,
    store: Callable[[Sequence[ModelAnswer]], None],
    fence: Callable[[], bool] = always,
) -> list[FailedRequest]:
    """Get an answer to every ask and hand them to `store` as they come, those together that come together.

    Returns what failed for good.

    Secrets are taken out first. Stored replies are reused without a call. Raises RetryLater, OutOfBudget
    (DailyCapReached is one) or LeaseLost where requests are left over; by then all that was in flight is settled, and
    stored unless the lease is lost.
    """
    calls = _Run(scope=scope, budget=budget, model=model, store=store, fence=fence)
    calls.admit([_WaitingRequest(ask=_redacted(ask, scope)) for ask in asks])
    calls.run()
    return calls.failures


BACKOFF_SECONDS = 0.5
JITTER_SHARE = 0.25
GATHER_SECONDS = 0.03  # how long the first of several answers waits for the others
OUTAGE_PAUSE_SECONDS = 1.0  # between two tries to settle while the database is away
POLL_SECONDS = 0.1  # between two looks for a free place while the workspace has all the calls in flight it may have
FATAL_KINDS = {FailureKind.AUTH, FailureKind.BILLING}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A request and the caller's name for it."""

    key: str
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """A validated reply to an ask, or to a part of it after halving."""

    key: str
    request: Request
    reply: Reply
    call_id: int
    reused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRequest:
    """An ask, or a part of it, that got no answer; its episodes stay pending."""

    key: str
    request: Request
    kind: FailureKind
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _WaitingRequest:
    """An ask that waits for its next attempt; times are readings of time.monotonic()."""

    ask: ModelRequest
    pauses: int = 0
    spoilt: int = 0  # malformed replies so far
    is_part: bool = False
    ready_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _CallInFlight:
    """A call that another thread is making."""

    pending: _WaitingRequest
    call_id: int
    overdue_at: float


class _Run:
    """The asks of one step on their way: waiting, in flight, or failed for good."""

    def __init__(
        self,
        *,
        scope: CallScope,
        budget: CallBudget,
        model: LanguageModel,
        store: Callable[[Sequence[ModelAnswer]], None],
        fence: Callable[[], bool],
    ) -> None:
        self.scope, self.budget, self.model, self.store, self.fence = scope, budget, model, store, fence
        self.waiting: list[_WaitingRequest] = []
        self.flying: dict[Future[Completion], _CallInFlight] = {}
        self.failures: list[FailedRequest] = []
        self.stopped: RetryLater | OutOfBudget | LeaseLost | None = None
        self.crowded_since: float | None = None
        self.last_failure: FailureKind | None = None

    def admit(self, pendings: Sequence[_WaitingRequest]) -> None:
        """Answer asks from the ledger, and line up the others for a call."""
        requests = [pending.ask.request for pending in pendings]
        found = find_replies(scope=self.scope, requests=requests, model=self.model)
        answers = []
        for pending, stored in zip(pendings, found, strict=True):
            request = pending.ask.request
            if stored is not None:
                answers.append(_answer_to(pending.ask, stored.reply, call_id=stored.call_id, reused=True))
            elif _count_to_read(request) > 1 and has_timed_out(scope=self.scope, request=request, model=self.model):
                self._give_up(pending, _timed_out())  # a step has no time to find out anew, and still read the halves
            else:
                self.waiting.append(pending)
        if answers:
            self.store(answers)

    def run(self) -> None:
        """Call until nothing is left to call or nothing more may be called; raise why asks are left over."""
        threads = ThreadPoolExecutor(max_workers=self.budget.max_parallel)  # each starts when it is needed
        try:
            while self.waiting or self.flying:
                self._start(threads)
                if self.stopped and not self.flying:
                    break
                if not self.model.is_offline:
                    release_connection()
                self._land(self._wait())
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            self._abandon_flying()
        if self.stopped and self.waiting:
            raise self.stopped

    def _abandon_flying(self) -> None:
        """Close what is in flight where the step is ended in its middle; what cannot be closed is left to the sweeper.

        An answer that comes later is nobody's: the next worker asks anew.
        """
        if not self.flying:
            return
        lost = [flight.call_id for flight in self.flying.values()]
        try:
            abandon_calls(workspace_id=self.scope.workspace_id, call_ids=lost)
        except (DatabaseError, InterfaceError):
            log.warning("calls_left_open", calls=lost)

    # --- Before a call

    def _start(self, threads: ThreadPoolExecutor) -> None:
        """Begin as many calls as are ready, allowed and affordable."""
        places = self.budget.max_parallel - len(self.flying)
        ready = [pending for pending in self.waiting if pending.ready_at <= time.monotonic()][: max(places, 0)]
        if self.stopped or not ready:
            return
        if not self.budget.allows_call():
            self.stopped = self._out_of_time()
        elif not self.fence():
            self.stopped = LeaseLost()
        else:
            self._launch(threads, ready)

    def _out_of_time(self) -> OutOfBudget:
        """Say that no call would end in time, and what became of the last one where it was in vain."""
        last = self.last_failure
        why = f"; the last one failed: {last}" if last else ""
        is_slow = last is FailureKind.TIMEOUT
        return OutOfBudget(f"the deadline is too near for another call{why}", is_slow=is_slow)

    def _launch(self, threads: ThreadPoolExecutor, ready: list[_WaitingRequest]) -> None:
        try:
            call_ids = reserve_calls(
                scope=self.scope,
                requests=[pending.ask.request for pending in ready],
                model=self.model,
                in_flight=settings.POLICY.budget.calls_in_flight,
                call_seconds=self.budget.call_timeout,
            )
        except DailyCapReached as spent:
            self.stopped = spent
            return
        self._note_crowding(is_crowded=not call_ids)
        for pending, call_id in zip(ready, call_ids, strict=False):
            self.waiting.remove(pending)
            seconds = self.budget.call_timeout
            future = threads.submit(self.model.complete, request=pending.ask.request, timeout=seconds)
            overdue_at = time.monotonic() + seconds + self.budget.margin
            self.flying[future] = _CallInFlight(pending=pending, call_id=call_id, overdue_at=overdue_at)

    def _note_crowding(self, *, is_crowded: bool) -> None:
        """Give up the step when other steps have held all places of the workspace for too long."""
        now = time.monotonic()
        self.crowded_since = (self.crowded_since or now) if is_crowded else None
        if self.crowded_since is not None and now - self.crowded_since > self.budget.wait_limit:
            self.stopped = RetryLater(seconds=self.budget.wait_limit)

    # --- During calls

    def _wait(self) -> list[Future[Completion]]:
        """Sleep until a call is done, a retry is due or a call is overdue; return the calls done, oldest first."""
        now = time.monotonic()
        moments = [flight.overdue_at for flight in self.flying.values()]
        if not self.stopped and len(self.flying) < self.budget.max_parallel:
            moments += [max(pending.ready_at, now + POLL_SECONDS) for pending in self.waiting]
        seconds = max(min(moments, default=now) - now, 0.0)
        if not self.flying:
            time.sleep(seconds)
            return []
        done, flying = wait(self.flying, timeout=seconds, return_when=FIRST_COMPLETED)
        if done and flying:  # calls begun together end together: one connection settles them all
            done |= wait(flying, timeout=GATHER_SECONDS).done
        return sorted(done, key=lambda future: self.flying[future].call_id)

    def _land(self, done: list[Future[Completion]]) -> None:
        """Settle what has come and what will never come in time, then store and mend: a reply is paid for only once."""
        landed = [(self.flying.pop(future), _result_of(future)) for future in done]
        now = time.monotonic()
        overdue = [future for future, flight in self.flying.items() if now > flight.overdue_at]
        landed += [(self.flying.pop(future), _timed_out()) for future in overdue]
        _settle_through_outage([self._settlement(flight, result) for flight, result in landed])
        self._succeed([(flight, result) for flight, result in landed if isinstance(result, Completion)])
        for flight, result in landed:
            if isinstance(result, CallFailed):
                self._fail(flight, result)

    # --- After a call

    def _settlement(self, flight: _CallInFlight, result: Completion | CallFailed) -> Settlement:
        model = self.model.model_for(flight.pending.ask.request.purpose)
        return Settlement(call_id=flight.call_id, model=model, result=result)

    def _succeed(self, landed: Sequence[tuple[_CallInFlight, Completion]]) -> None:
        """Hand on the answers; a step that has lost its lease leaves them in the ledger for whoever has it now."""
        for flight, _ in landed:
            if flight.pending.is_part:
                self.budget.give_attempt()
        if landed and not isinstance(self.stopped, LeaseLost):
            self.store([_answer_to(f.pending.ask, c.reply, call_id=f.call_id, reused=False) for f, c in landed])

    def _fail(self, flight: _CallInFlight, failure: CallFailed) -> None:
        pending = flight.pending
        purpose = pending.ask.request.purpose
        self.last_failure = failure.kind
        log.warning("model_call_failed", call_id=flight.call_id, purpose=purpose, kind=failure.kind)
        if failure.kind in FATAL_KINDS:
            self._give_up_all(pending, failure)
        elif self.stopped:
            self.waiting.append(pending)
        elif failure.kind is FailureKind.OWN_ERROR:
            self._corner(pending, failure)
        elif failure.kind in (FailureKind.MALFORMED, FailureKind.BAD_REQUEST):
            self._mend(pending, failure)
        elif failure.kind is FailureKind.TIMEOUT and _count_to_read(pending.ask.request):
            self._give_up(pending, failure)
        else:
            self._postpone(pending, failure)

    def _postpone(self, pending: _WaitingRequest, failure: CallFailed) -> None:
        """Line up another attempt after a pause, or stop the step if the pause is too long for it."""
        backoff = BACKOFF_SECONDS * 2**pending.pauses
        pause = backoff if failure.retry_after is None else failure.retry_after
        if pause > self.budget.wait_limit:
            self.stopped = RetryLater(seconds=pause)
            self.waiting.append(pending)
        elif not self.budget.take_attempt():
            self._give_up(pending, failure)
        else:
            self._delay(replace(pending, pauses=pending.pauses + 1), failure, pause)

    def _delay(self, pending: _WaitingRequest, failure: CallFailed, pause: float) -> None:
        """Hold one ask back; a rate limit holds all of them back."""
        ready_at = time.monotonic() + pause + _jitter(pause)
        self.waiting.append(replace(pending, ready_at=ready_at))
        if failure.kind is FailureKind.RATE_LIMITED:
            self.waiting = [replace(other, ready_at=max(other.ready_at, ready_at)) for other in self.waiting]
        if not self.budget.allows_call(after=pause):
            self.stopped = self._out_of_time()

    def _mend(self, pending: _WaitingRequest, failure: CallFailed) -> None:
        """Ask once more, then halve the batch (B11); only halves that bring an answer give their attempt back.

        What a server refuses to read it would refuse again: that is halved at once.
        """
        halves = halve_request(request=pending.ask.request)
        is_unread = failure.kind is FailureKind.BAD_REQUEST
        may_repeat = pending.spoilt == 0 and not (pending.is_part and halves) and not is_unread
        if not (may_repeat or halves) or not self.budget.take_attempt():
            self._give_up(pending, failure)
        elif may_repeat:
            self.waiting.append(replace(pending, spoilt=pending.spoilt + 1))
        else:
            self._halve(pending, halves or ())

    def _corner(self, pending: _WaitingRequest, failure: CallFailed) -> None:
        """Halve what our own code broke on down to the one text that breaks it (E6): that costs no attempt."""
        if halves := halve_request(request=pending.ask.request):
            self._halve(pending, halves)
        else:
            self._give_up(pending, failure)

    def _halve(self, pending: _WaitingRequest, halves: Sequence[Request]) -> None:
        self.admit([_WaitingRequest(ask=replace(pending.ask, request=half), is_part=True) for half in halves])

    def _give_up(self, pending: _WaitingRequest, failure: CallFailed) -> None:
        ask = pending.ask
        self.failures.append(FailedRequest(key=ask.key, request=ask.request, kind=failure.kind, message=str(failure)))

    def _give_up_all(self, pending: _WaitingRequest, failure: CallFailed) -> None:
        """Spare the other asks a refusal that would be the same for each."""
        for other in (pending, *self.waiting):
            self._give_up(other, failure)
        self.waiting = []


def _redacted(ask: ModelRequest, scope: CallScope) -> ModelRequest:
    return replace(ask, request=redact_request(workspace_id=scope.workspace_id, request=ask.request))


def _answer_to(ask: ModelRequest, reply: Reply, *, call_id: int, reused: bool) -> ModelAnswer:
    return ModelAnswer(key=ask.key, request=ask.request, reply=reply, call_id=call_id, reused=reused)


def _result_of(future: Future[Completion]) -> Completion | CallFailed:
    """Return what came of a call; an error of our own is told from the model's, and those beside it are settled."""
    try:
        return future.result()
    except CallFailed as failure:
        return failure
    except Exception as error:
        log.exception("model_call_broke")
        return CallFailed(f"{type(error).__name__}: {error}", kind=FailureKind.OWN_ERROR)


def _settle_through_outage(settlements: Sequence[Settlement]) -> None:
    """Settle calls, outliving an outage of the database: the replies are paid for and exist only here."""
    began = time.monotonic()
    while True:
        try:
            settle_calls(settlements=settlements)
        except (OperationalError, InterfaceError):
            late = time.monotonic() - began > settings.POLICY.budget.outage_seconds
            if late or connection.in_atomic_block:
                raise
            log.warning("replies_wait_for_the_database", calls=len(settlements))
            connection.close()
            time.sleep(OUTAGE_PAUSE_SECONDS)
        else:
            return


def _timed_out() -> CallFailed:
    return CallFailed("no answer in time", kind=FailureKind.TIMEOUT)


def _count_to_read(request: Request) -> int:
    """Count the messages that the caller halves after a time-out, since fewer may be read in time (F2); else 0."""
    return len(request.read) if isinstance(request, ReadingRequest) and not request.is_to_be_remembered else 0


def _jitter(pause: float) -> float:
    """Spread the retries of several workers over time, never earlier than the server asked for."""
    return random.uniform(0, JITTER_SHARE * pause)  # noqa: S311 - guards no secret


Asked = TypeVar("Asked", bound=Request)


def redact_request(*, workspace_id: int, request: Asked) -> Asked:
    """Return a request without secrets in any of its texts, itself if it has none; what was taken out is counted."""
    texts: list[str] = []
    _collect_texts(request, texts)
    clean = dict(zip(texts, redact_all(workspace_id=workspace_id, texts=texts), strict=True))
    if all(text == found for text, found in clean.items()):
        return request
    redacted: Asked = _replace_texts(request, clean)
    return redacted


def redact_texts(*, workspace_id: int, texts: Sequence[str]) -> list[str]:
    """Return texts that a server is to embed without secrets; what was taken out is counted."""
    return redact_all(workspace_id=workspace_id, texts=texts)


def _collect_texts(value: Any, texts: list[str]) -> None:
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, tuple):
        for item in value:
            _collect_texts(item, texts)
    elif is_dataclass(value):
        for field in fields(value):
            _collect_texts(getattr(value, field.name), texts)


def _replace_texts(value: Any, clean: dict[str, str]) -> Any:
    if isinstance(value, str):
        return clean.get(value, value)
    if isinstance(value, tuple):
        return tuple(_replace_texts(item, clean) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{field.name: _replace_texts(getattr(value, field.name), clean) for field in fields(value)}
        )
    return value
