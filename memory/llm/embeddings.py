"""Embed texts for a workspace.

`embedder_of` returns the model that a workspace's vectors are of: the settings' where it is new, its own until it is
moved. `embed_for_workspace` and `embed_query` call it; a call to a server leaves its row in the log, as every call
does.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.models.functions import Now
from numpy.typing import NDArray

from memory.domain.similarity import Profile
from memory.llm.call_log import NOBODY_WAITS, CallScope, check_recall_cap, release_connection, reserve_rows
from memory.llm.offline import static_embedder
from memory.llm.offline_embedder import NAME as OFFLINE_NAME
from memory.llm.onnx_models import file_with, weights_in
from memory.llm.profiles import load_profile
from memory.llm.prompts import estimate_tokens, reserve_tokens
from memory.llm.registry import default_embedder, local_embedder, models_folder, offline_embedder, remote_embedder
from memory.llm.runner import redact_texts
from memory.llm.types import CallFailed, Embedded, Embedder, FailureKind, WrongDimensions, cost_of
from memory.models import CallOutcome, ModelCall, Workspace
from memory.models.audit import PURPOSE_EMBED, PURPOSE_RECALL


def embedder_of(workspace: Workspace | int) -> Embedder:
    """Return the model whose vectors a workspace compares; one that cannot be loaded here fails every call."""
    if isinstance(workspace, Workspace):
        name = workspace.embedding_model
    else:
        name = Workspace.objects.values_list("embedding_model", flat=True).get(pk=workspace)
    try:
        return _load_named(name) if name else default_embedder()
    except ImproperlyConfigured as error:
        return MissingEmbedder(name=name or settings.ENGRAM_EMBEDDING_MODEL, reason=str(error))


_POLL_SECONDS = 0.1  # between two looks for a free place


def embed_for_workspace(
    *, scope: CallScope, model: Embedder, texts: Sequence[str], timeout: float, episodes: Collection[str] = ()
) -> NDArray[np.float32]:
    """Return unit vectors of shape (n, 768) within the workspace's caps and its calls in flight.

    Raises CallFailed where a server gave none, DailyCapReached. A model on this machine costs nothing and leaves no
    row. No transaction is held while a server answers, and the call is another thread's: what ends a task is raised in
    this one, and a client would take that for a broken answer.
    """
    if model.is_local:
        return _embed(model, texts, timeout).vectors
    coming = PendingEmbedding(scope=scope, model=model, texts=texts, timeout=timeout, episodes=episodes)
    release_connection()
    return coming.collect()


class PendingEmbedding:
    """Texts on their way to their vectors while something else is asked; rows are written in the caller's thread."""

    def __init__(
        self, *, scope: CallScope, model: Embedder, texts: Sequence[str], timeout: float, episodes: Collection[str]
    ) -> None:
        if not model.is_local:
            texts = redact_texts(workspace_id=scope.workspace_id, texts=texts)
        self._model, self._texts = model, texts
        row = None if model.is_local else _open_embedding_row(scope, model, texts, purpose=PURPOSE_EMBED)
        self._call_id = _reserve_place(row, episodes, timeout) if row else None
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
    row = _open_embedding_row(CallScope(workspace_id=workspace.pk), model, [text], purpose=PURPOSE_RECALL)
    check_recall_cap(workspace=workspace, tokens=row.input_tokens)
    row.save()
    release_connection()
    answer = partial(_embed, model, [text], timeout, is_query=True)
    found: NDArray[np.float32] = _settle(row.pk, model, [text], time.monotonic(), answer)[0]
    return found


def _reserve_place(row: ModelCall, episodes: Collection[str], timeout: float) -> int:
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
        _close_row(call_id, began, outcome=CallOutcome(failure.kind), error=str(failure)[:500], **_refund(failure))
        raise
    except BaseException:  # whoever waits is ended in its middle
        _close_row(call_id, began, outcome=CallOutcome.ABANDONED, error=NOBODY_WAITS)
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


def _refund(failure: CallFailed) -> dict[str, object]:
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


def _open_embedding_row(scope: CallScope, model: Embedder, texts: Sequence[str], *, purpose: str) -> ModelCall:
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


STATIC_MODEL = "wordllama-l2-supercat-256"
_FOLDER_MODEL = re.compile(r"(?P<folder>.+)@(?P<weights>[0-9a-f]{12})-[0-9a-f]{6}")


class MissingEmbedder:
    """Stands for a model that cannot be loaded: what needs vectors fails by name, what does not goes on without."""

    is_local = False
    is_multilingual = False

    def __init__(self, *, name: str, reason: str) -> None:
        self.name, self._reason = name, reason

    @property
    def profile(self) -> Profile:
        """Return the profile that ships for the model."""
        return load_profile(model=self.name)

    def embed(
        self, texts: Sequence[str], *, timeout: float | None = None, is_query: bool = False
    ) -> NDArray[np.float32]:
        """Raise CallFailed."""
        raise CallFailed(f"{self.name} cannot be loaded: {self._reason}", kind=FailureKind.AUTH)

    def embed_counted(self, texts: Sequence[str], *, timeout: float | None = None, is_query: bool = False) -> Embedded:
        """Raise CallFailed."""
        return Embedded(vectors=self.embed(texts), tokens=0)

    def embed_weighted(self, text: str, *, weights: Mapping[str, float]) -> NDArray[np.float32] | None:
        """Return nothing: there is no model."""
        return None

    def is_overlong(self, text: str) -> bool:
        """Tell nothing."""
        return False


def _load_named(name: str) -> Embedder:
    """Load a model by the name that its vectors carry."""
    if name == STATIC_MODEL:
        return static_embedder()
    if name.startswith(OFFLINE_NAME):
        return _load_offline(name)
    if match := _FOLDER_MODEL.fullmatch(name):
        return _load_folder(name, folder=match["folder"], weights=match["weights"])
    if settings.OPENAI_API_KEY or settings.ENGRAM_EMBEDDING_BASE_URL or settings.OPENAI_BASE_URL:
        return remote_embedder(name)
    raise ImproperlyConfigured("it is a server's model, and neither OPENAI_API_KEY nor a base URL is set")


def _load_offline(name: str) -> Embedder:
    model = offline_embedder()
    if model.name != name:
        raise ImproperlyConfigured(f"this release has {model.name}; `manage.py reembed` moves the workspace to it")
    return model


def _load_folder(name: str, *, folder: str, weights: str) -> Embedder:
    """Find the folder where the settings' own is, or in the data folder; what its files are must fit the name."""
    own = settings.ENGRAM_EMBEDDING_MODEL if settings.ENGRAM_EMBEDDINGS == "local" else ""
    looked = list(_possible_folders(folder, own))
    for path in looked:
        file = file_with(folder=path, weights=weights)
        if file is None:
            continue
        known = next((one for one in (own, str(path)) if one and weights_in(one) == file), str(file))
        found = local_embedder(known)  # by the name that others know it by: each is loaded once
        if found.name == name:
            return found
    raise ImproperlyConfigured(f"there is no such folder: {' or '.join(map(str, looked))}")


def _possible_folders(folder: str, own: str) -> Iterator[Path]:
    """Name where a folder may be: the settings' own or beside it, or in the data folder."""
    if own:
        path = Path(own).expanduser().resolve()
        above = [one for one in (path, *path.parents) if one.suffix != ".onnx" and one.name != "onnx"]
        yield above[0].parent / folder
    yield models_folder().resolve() / folder
