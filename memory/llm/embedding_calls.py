"""Embed on behalf of a workspace: a call to a server leaves its row in the ledger, as every call does."""

import hashlib
import time
from collections.abc import Collection, Sequence

import numpy as np
from django.db import transaction
from django.db.models.functions import Now
from numpy.typing import NDArray

from memory.llm.connection import rest_connection
from memory.llm.embeddings import Embedded, Embedder, WrongDimensions
from memory.llm.ledger import CallScope, cost_of, note_episodes
from memory.llm.model import CallFailed, FailureKind
from memory.llm.prompts import estimate_tokens
from memory.models import CallOutcome, ModelCall

PURPOSE = "embed"


def embed_in_ledger(
    *, scope: CallScope, model: Embedder, texts: Sequence[str], timeout: float, episodes: Collection[str] = ()
) -> NDArray[np.float32]:
    """Return unit vectors of shape (n, 768); raise CallFailed where a server gave none.

    A model on this machine costs nothing and leaves no row. No transaction is held while a server answers.
    """
    if model.is_local:
        return _embed(model, texts, timeout).vectors
    call_id = _open_row(scope, model, texts, episodes)
    rest_connection()
    began = time.monotonic()
    try:
        found = _embed(model, texts, timeout)
    except CallFailed as failure:
        _close_row(call_id, began, outcome=CallOutcome(failure.kind), error=str(failure)[:500])
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


def _embed(model: Embedder, texts: Sequence[str], timeout: float) -> Embedded:
    """Embed; a model whose vectors do not fit is a failed call that names it."""
    try:
        return model.embed_counted(texts, timeout=timeout)
    except WrongDimensions as error:
        raise CallFailed(str(error), kind=FailureKind.BAD_REQUEST) from error


@transaction.atomic
def _open_row(scope: CallScope, model: Embedder, texts: Sequence[str], episodes: Collection[str]) -> int:
    call = ModelCall.objects.create(
        workspace_id=scope.workspace_id,
        cycle_id=scope.cycle_id,
        job_id=scope.job_id,
        purpose=PURPOSE,
        model=model.name,
        input_hash=hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest(),
        input_tokens=estimate_tokens(*texts),
        is_estimated=True,
    )
    note_episodes(workspace_id=scope.workspace_id, seen=((call, key) for key in episodes))
    return call.pk


def _close_row(call_id: int, began: float, **outcome: object) -> None:
    latency = round((time.monotonic() - began) * 1000)
    ModelCall.objects.filter(pk=call_id).update(latency_ms=latency, finished_at=Now(), **outcome)
