"""Give episodes their vectors as they come in, where the model is at hand."""

import time
from collections.abc import Mapping
from itertools import islice

import structlog

from memory.llm.embeddings import Embedder
from memory.llm.model import CallFailed
from memory.llm.workspace_model import embedder_of
from memory.models import EpisodeEmbedding
from memory.search.vectors import store_episode_vectors

log = structlog.get_logger(__name__)

PATIENCE_SECONDS = 3.0  # of whoever stores many episodes: a sentence model takes some 10 ms a text
_BATCH = 64


def embed_matters(*, workspace_id: int, matters: Mapping[str, str]) -> None:
    """Embed what counts of new episodes and store the vectors, for as long as a writer can wait.

    A remote model, and what a slow one leaves, is left to consolidation; so is a batch that the model cannot take, and
    there only the text that is to blame stays without a vector.
    """
    model = embedder_of(workspace_id)
    if model.is_local:
        _embed(workspace_id, model, matters, patience=PATIENCE_SECONDS)


def embed_anew(*, workspace_id: int, matters: Mapping[str, str], waiting: set[str]) -> None:
    """Embed episodes whose matter has changed; with a remote model those that wait are embedded by consolidation."""
    model = embedder_of(workspace_id)
    if model.is_local:
        _embed(workspace_id, model, matters, patience=float("inf"))
    else:
        EpisodeEmbedding.objects.for_workspace(workspace_id).filter(episode__in=waiting).delete()


def _embed(workspace_id: int, model: Embedder, matters: Mapping[str, str], *, patience: float) -> None:
    ends_at, left = time.monotonic() + patience, iter(matters.items())
    while (batch := dict(islice(left, _BATCH))) and time.monotonic() < ends_at:
        try:
            vectors = model.embed(list(batch.values()))
        except (CallFailed, ValueError) as failure:
            log.warning("not_embedded", workspace=workspace_id, episodes=len(batch), error=str(failure))
            continue
        store_episode_vectors(
            workspace_id=workspace_id,
            model=model.name,
            vectors=dict(zip(batch, vectors, strict=True)),
            chunked={key for key, matter in batch.items() if model.is_overlong(matter)},
        )
