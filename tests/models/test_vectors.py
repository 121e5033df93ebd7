"""Vectors travel in binary and come back as they went."""

import numpy as np
import pytest
from django.db import DatabaseError, connection

from memory.models import Episode, EpisodeEmbedding, Workspace
from memory.search.vectors import Vectors, nearest_episode_cosines, read_episode_vectors, store_episode_vectors
from tests.models.test_constraints import make_episode, workspace  # noqa: F401

pytestmark = pytest.mark.django_db


def unit_vectors(count: int) -> Vectors:
    drawn = np.random.default_rng(7).normal(size=(count, 768)).astype(np.float32)
    unit: Vectors = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


def test_vectors_come_back_in_order_of_id(workspace: Workspace) -> None:  # noqa: F811
    episodes = sorted(make_episode(workspace, origin=str(i)).id for i in range(3))
    vectors = dict(zip(episodes, unit_vectors(3), strict=True))
    store_episode_vectors(workspace_id=workspace.pk, model="m", vectors=vectors)
    ids, read = read_episode_vectors(model="m", ids=episodes)
    assert ids == episodes
    assert np.abs(read - np.stack(list(vectors.values()))).max() < 1e-3


def test_vectors_of_another_model_are_not_read(workspace: Workspace) -> None:  # noqa: F811
    episode = make_episode(workspace)
    store_episode_vectors(workspace_id=workspace.pk, model="old", vectors={episode.id: unit_vectors(1)[0]})
    ids, read = read_episode_vectors(model="new", ids=[episode.id])
    assert (ids, read.shape) == ([], (0, 768))


def test_storing_again_replaces_and_copies_the_scope(workspace: Workspace) -> None:  # noqa: F811
    episode = make_episode(workspace, user="mara")
    for model in ("old", "new"):
        store_episode_vectors(workspace_id=workspace.pk, model=model, vectors={episode.id: unit_vectors(1)[0]})
    row = EpisodeEmbedding.objects.defer("vector").get(episode=episode)
    assert (row.model, row.user, row.is_active) == ("new", "mara", True)
    assert Episode.objects.filter(embedding__model="new").count() == 1


def test_storing_no_vectors_stores_nothing(workspace: Workspace) -> None:  # noqa: F811
    store_episode_vectors(workspace_id=workspace.pk, model="m", vectors={})
    assert not EpisodeEmbedding.objects.exists()


def test_vectors_of_another_workspace_are_not_stored(workspace: Workspace) -> None:  # noqa: F811
    episode = make_episode(workspace)
    store_episode_vectors(workspace_id=workspace.pk + 1, model="m", vectors={episode.id: unit_vectors(1)[0]})
    assert not EpisodeEmbedding.objects.exists()


@pytest.mark.parametrize("beside", [True, False])
def test_a_refusal_to_store_is_an_error_of_djangos(workspace: Workspace, beside: bool) -> None:  # noqa: F811
    """What a step tries again goes by that."""
    episode = make_episode(workspace)
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
    with pytest.raises(DatabaseError, match="read-only"):
        store_episode_vectors(
            workspace_id=workspace.pk, model="m", vectors={episode.id: unit_vectors(1)[0]}, is_beside=beside
        )


def test_a_refusal_to_read_is_an_error_of_djangos(workspace: Workspace) -> None:  # noqa: F811
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL search_path = pg_catalog")
    with pytest.raises(DatabaseError, match="memory_episodeembedding"):
        read_episode_vectors(model="m", ids=["ep_000000000000"])


def test_a_refusal_to_compare_is_an_error_of_djangos(workspace: Workspace) -> None:  # noqa: F811
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL search_path = pg_catalog")
    with pytest.raises(DatabaseError):
        nearest_episode_cosines(
            workspace_id=workspace.pk, model="m", user="", project_id=None, vector=unit_vectors(1)[0], count=3
        )
