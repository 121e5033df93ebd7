"""Give episodes their vectors as they come in, where the model is at hand."""

from collections.abc import Mapping

from memory.llm.workspace_model import embedder_of
from memory.models import EpisodeEmbedding
from memory.models.vectors import store_episode_vectors


def embed_matters(*, workspace_id: int, matters: Mapping[str, str]) -> None:
    """Embed what counts of each episode and store the vectors; a remote model is left to consolidation."""
    model = embedder_of(workspace_id)
    if not matters or not model.is_local:
        return
    store_episode_vectors(
        workspace_id=workspace_id,
        model=model.name,
        vectors=dict(zip(matters, model.embed(list(matters.values())), strict=True)),
        chunked={key for key, matter in matters.items() if model.is_overlong(matter)},
    )


def embed_anew(*, workspace_id: int, matters: Mapping[str, str], waiting: set[str]) -> None:
    """Embed episodes whose matter has changed; with a remote model those that wait are embedded by consolidation."""
    if not embedder_of(workspace_id).is_local:
        EpisodeEmbedding.objects.for_workspace(workspace_id).filter(episode__in=waiting).delete()
    embed_matters(workspace_id=workspace_id, matters=matters)
