"""Embed on behalf of a workspace: a call to a server leaves its row in the ledger, as every call does."""

import hashlib
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from django.conf import settings
from django.db.models.functions import Now
from numpy.typing import NDArray

from memory.llm.answers import cost_of
from memory.llm.caps import check_recall_cap
from memory.llm.connection import rest_connection
from memory.llm.embeddings import Embedded, Embedder, WrongDimensions
from memory.llm.ledger import UNHEARD, CallScope, reserve_rows
from memory.llm.model import CallFailed, FailureKind
from memory.llm.prompts import estimate_tokens, reserve_tokens
from memory.llm.redacting import redact_texts
from memory.models import CallOutcome, ModelCall, Workspace
from memory.models.audit import PURPOSE_EMBED, PURPOSE_RECALL

_POLL_SECONDS = 0.1  # between two looks for a free place


def embed_in_ledger(
    *, scope: CallScope, model: Embedder, texts: Sequence[str], timeout: float, episodes: Collection[str] = ()
) -> NDArray[np.float32]:
    """Return unit vectors of shape (n, 768) within the workspace's caps and its calls in flight.

    Raises CallFailed where a server gave none, DailyCapReached. A model on this machine costs nothing and leaves no
    row. No transaction is held while a server answers, and the call is another thread's: what ends a task is raised in
    this one, and a client would take that for a broken answer.
    """
    if model.is_local:
        return _embed(model, texts, timeout).vectors
    coming = EmbeddingMeanwhile(scope=scope, model=model, texts=texts, timeout=timeout, episodes=episodes)
    rest_connection()
    return coming.collect()


class EmbeddingMeanwhile:
    """Texts on their way to their vectors while something else is asked; rows are written in the caller's thread."""

    def __init__(
        self, *, scope: CallScope, model: Embedder, texts: Sequence[str], timeout: float, episodes: Collection[str]
    ) -> None:
        if not model.is_local:
            texts = redact_texts(workspace_id=scope.workspace_id, texts=texts)
        self._model, self._texts = model, texts
        row = None if model.is_local else _row(scope, model, texts, purpose=PURPOSE_EMBED)
        self._call_id = _reserve(row, episodes, timeout) if row else None
        self._began = time.monotonic()
        threads = ThreadPoolExecutor(max_workers=1)
        self._coming = threads.submit(_embed, model, texts, timeout)
        threads.shutdown(wait=False)

    def collect(self) -> NDArray[np.float32]:
        """Wait for the vectors (n, 768), and settle the call; raise CallFailed where none came."""
        if self._call_id is None:
            return self._coming.result().vectors
        return _settle(self._call_id, self._model, self._texts, self._began, self._coming.result)


def embed_query(*, workspace: Workspace, model: Embedder, text: str, timeout: float) -> NDArray[np.float32]:
    """Return a query's unit vector (768) within recall's own cap; raise CallFailed or DailyCapReached."""
    if model.is_local:
        vector: NDArray[np.float32] = _embed(model, [text], timeout, is_query=True).vectors[0]
        return vector
    [text] = redact_texts(workspace_id=workspace.pk, texts=[text])
    row = _row(CallScope(workspace_id=workspace.pk), model, [text], purpose=PURPOSE_RECALL)
    check_recall_cap(workspace=workspace, tokens=row.input_tokens)
    row.save()
    rest_connection()
    answer = partial(_embed, model, [text], timeout, is_query=True)
    found: NDArray[np.float32] = _settle(row.pk, model, [text], time.monotonic(), answer)[0]
    return found


def _reserve(row: ModelCall, episodes: Collection[str], timeout: float) -> int:
    """Store a row once the workspace has a place for another call."""
    patience = settings.POLICY.budget.wait_seconds
    gives_up_at = time.monotonic() + patience
    places = settings.POLICY.budget.calls_in_flight
    while not (granted := reserve_rows(rows=[row], seen=[episodes], in_flight=places, call_seconds=timeout)):
        if time.monotonic() > gives_up_at:
            raise CallFailed("other calls take every place", kind=FailureKind.RATE_LIMITED, retry_after=patience)
        time.sleep(_POLL_SECONDS)
    return granted[0]


def _settle(
    call_id: int, model: Embedder, texts: Sequence[str], began: float, answer: Callable[[], Embedded]
) -> NDArray[np.float32]:
    """Close a call's row with what comes of it."""
    try:
        found = answer()
    except CallFailed as failure:
        _close_row(call_id, began, outcome=CallOutcome(failure.kind), error=str(failure)[:500], **_unused(failure))
        raise
    except BaseException:  # whoever waits is ended in its middle
        _close_row(call_id, began, outcome=CallOutcome.ABANDONED, error=UNHEARD)
        raise
    tokens = found.tokens or estimate_tokens(*texts)
    _close_row(
        call_id,
        began,
        outcome=CallOutcome.OK,
        input_tokens=tokens,
        is_estimated=not found.tokens,
        cost_usd=cost_of(model=model.name, input_tokens=tokens, output_tokens=0),
    )
    return found.vectors


def _unused(failure: CallFailed) -> dict[str, object]:
    """Give back what was reserved, but where the server may have done the work."""
    kept = failure.kind in (FailureKind.TIMEOUT, FailureKind.MALFORMED)
    return {} if kept else {"input_tokens": 0, "cost_usd": 0}


def _embed(model: Embedder, texts: Sequence[str], timeout: float, *, is_query: bool = False) -> Embedded:
    """Embed; texts that a model cannot take, and vectors that do not fit, are a failed call that says so."""
    try:
        return model.embed_counted(texts, timeout=timeout, is_query=is_query)
    except WrongDimensions as error:
        raise CallFailed(str(error), kind=FailureKind.MALFORMED) from error
    except ValueError as error:
        raise CallFailed(str(error), kind=FailureKind.BAD_REQUEST) from error


def _row(scope: CallScope, model: Embedder, texts: Sequence[str], *, purpose: str) -> ModelCall:
    tokens = reserve_tokens(*texts)
    return ModelCall(
        workspace_id=scope.workspace_id,
        cycle_id=scope.cycle_id,
        job_id=scope.job_id,
        structural_job_id=scope.structural_job_id,
        conversation_id=scope.conversation_id,
        purpose=purpose,
        model=model.name,
        input_hash=hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest(),
        input_tokens=tokens,
        is_estimated=True,
        cost_usd=cost_of(model=model.name, input_tokens=tokens, output_tokens=0),
    )


def _close_row(call_id: int, began: float, **outcome: object) -> None:
    latency = round((time.monotonic() - began) * 1000)
    ModelCall.objects.filter(pk=call_id).update(latency_ms=latency, finished_at=Now(), **outcome)
