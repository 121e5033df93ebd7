"""A workspace moves to another embedding model while recall, writing and cycles go on (B8a)."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from memory.consolidation.cycle import open_cycle
from memory.ingest.store import embed_changed_episodes, embed_episodes
from memory.llm.embeddings import embedder_of
from memory.llm.offline import static_embedder
from memory.llm.registry import local_embedder
from memory.llm.types import Embedded, Embedder
from memory.maintenance import reindex
from memory.maintenance.reindex import CycleStillOpen, ReindexResult, reindex_workspace
from memory.models import (
    Belief,
    BeliefEmbedding,
    Claim,
    ClaimEmbedding,
    Cycle,
    Episode,
    EpisodeEmbedding,
    ModelCall,
    Trigger,
    VectorCount,
    Workspace,
)
from memory.models.fields import VectorKind
from memory.search.scope import recount_vectors
from memory.search.vectors import store_belief_vectors, store_claim_vectors
from tests import factories
from tests.faults.waiting import wait_until
from tests.faults.workforce import worker_environment
from tests.llm.tiny_onnx import make_folder
from tests.model_server import ModelServer
from tests.model_server_acts import refuse
from tests.recall.memories import ask, believed, ids, remembered

pytestmark = pytest.mark.django_db

OLD = static_embedder().name
TEA = "Mara prefers tea."


class Watched:
    """A model that lets something happen after each batch, and refuses what has a certain word."""

    is_local, is_multilingual = True, False

    def __init__(self, model: Embedder) -> None:
        self._model, self.name, self.profile = model, model.name, model.profile
        self.after: Callable[[], object] = lambda: None

    def embed_counted(self, texts: Any, *, timeout: float | None = None, is_query: bool = False) -> Embedded:
        """Embed, then do it."""
        found = self._model.embed_counted(texts, timeout=timeout, is_query=is_query)
        self.after()
        return found

    def embed(self, texts: Any, *, timeout: float | None = None, is_query: bool = False) -> Any:
        """Embed, then do it."""
        return self.embed_counted(texts, timeout=timeout, is_query=is_query).vectors

    def embed_weighted(self, text: str, *, weights: Any) -> Any:
        """Return what the model does."""
        return self._model.embed_weighted(text, weights=weights)

    def is_overlong(self, text: str) -> bool:
        """Tell what the model does."""
        return self._model.is_overlong(text)


@pytest.fixture
def workspace() -> Workspace:
    """Return a workspace with two episodes and a belief, embedded by the static model."""
    made = factories.workspace()
    remembered("The deploy failed on Friday.", workspace=made)
    remembered("Mara had tea with the others.", workspace=made)
    believed(TEA, workspace=made)
    made.refresh_from_db()
    return made


@pytest.fixture
def new(tmp_path: Path, settings: Settings) -> Watched:
    """Return the model of a folder, which the settings name."""
    local_embedder.cache_clear()
    settings.ENGRAM_EMBEDDINGS, settings.ENGRAM_EMBEDDING_MODEL = "local", str(make_folder(tmp_path / "tiny"))
    return Watched(local_embedder(settings.ENGRAM_EMBEDDING_MODEL))


def move(workspace: Workspace, model: Watched, **given: Any) -> ReindexResult:
    """Move a workspace, waiting for nothing unless it is said how long."""
    return reindex_workspace(workspace=workspace, model=model, **{"wait_seconds": 0.0} | given)


def vectors_of(workspace: Workspace) -> set[tuple[str, str]]:
    """Return who has a vector of which model."""
    episodes = EpisodeEmbedding.objects.for_workspace(workspace).values_list("episode_id", "model")
    return {*episodes, *BeliefEmbedding.objects.for_workspace(workspace).values_list("belief_id", "model")}


def test_the_first_vectors_decide_which_model_is_a_workspaces_own(workspace: Workspace, new: Watched) -> None:
    """B8a: what the settings name now is for new workspaces, and for those that are moved."""
    assert workspace.embedding_model == OLD
    assert embedder_of(workspace).name == embedder_of(workspace.pk).name == OLD
    assert embedder_of(factories.workspace()).name == new.name


def test_a_move_gives_all_a_new_vector_and_drops_the_old_ones(workspace: Workspace, new: Watched) -> None:
    other = factories.workspace()
    remembered("Of somebody else.", workspace=other)
    elsewhere = vectors_of(other)
    before = {key for key, _ in vectors_of(workspace)}

    moved = move(workspace, new)

    assert (moved.before, moved.model, moved.episodes, moved.beliefs, moved.dropped) == (OLD, new.name, 2, 1, 3)
    assert moved.claims == 0
    assert vectors_of(workspace) == {(key, new.name) for key in before}
    assert (embedder_of(workspace.pk).name, vectors_of(other)) == (new.name, elsewhere)
    stored = BeliefEmbedding.objects.get(workspace=workspace).vector
    assert np.allclose(np.asarray(stored), new.embed([TEA])[0], atol=1e-3)


def test_claims_are_moved_as_well(workspace: Workspace, new: Watched) -> None:
    """E1, B8a: each has one vector of the new model; what is its episode's whole text has none of its own."""
    episode = Episode.objects.filter(workspace=workspace).earliest("pk")
    fields = {"workspace": workspace, "episode": episode, "reader": "rules-1", "created_at": factories.NOW}
    claims = [Claim.objects.create(**fields, number=n, sentence=f"Mara said {n} things.") for n in (1, 2)]
    Claim.objects.create(**fields, number=3, sentence=episode.text, is_whole=True)
    old = static_embedder().embed([claim.sentence for claim in claims])
    given = {claim.pk: vector for claim, vector in zip(claims, old, strict=True)}
    store_claim_vectors(workspace_id=workspace.pk, model=OLD, vectors=given)
    recount_vectors(kind=VectorKind.EPISODE)
    counted = VectorCount.objects.for_workspace(workspace).filter(kind="episode").values_list("model", "active")
    assert list(counted.all()) == [(OLD, 2)]

    moved = move(workspace, new)

    assert (moved.claims, moved.dropped) == (2, 5)
    rows = ClaimEmbedding.objects.for_workspace(workspace)
    assert set(rows.values_list("claim", "model")) == {(claim.pk, new.name) for claim in claims}
    assert np.allclose(np.asarray(rows.get(claim=claims[0]).vector), new.embed([claims[0].sentence])[0], atol=1e-3)
    recount_vectors(kind=VectorKind.EPISODE)
    assert list(counted.all()) == [(new.name, 2)]


def test_recall_answers_as_before_until_the_very_change(workspace: Workspace, new: Watched) -> None:
    """Without downtime: the same memories, by the same channels, while both kinds of vectors are there."""
    expected = [
        (result.id, result.score) for result in ask("tea for Mara", workspace=workspace, is_explained=True).results
    ]
    seen: list[Any] = []

    def look(made: int, left: int) -> None:
        fresh = Workspace.objects.get(pk=workspace.pk)
        recalled = ask("tea for Mara", workspace=fresh, is_explained=True)
        seen.append((recalled.degraded, [(result.id, round(result.score, 9)) for result in recalled.results]))

    move(workspace, new, on_progress=look)

    assert seen == [((), [(key, round(score, 9)) for key, score in expected])] * 2
    after = ask("tea for Mara", workspace=Workspace.objects.get(pk=workspace.pk))
    assert (after.degraded, ids(after)) == ((), {key for key, _ in expected})


def test_what_comes_meanwhile_is_taken_along(workspace: Workspace, new: Watched) -> None:
    """What is stored during a move has a vector of the old model, and of the new one at its end."""
    came: list[str] = []

    def store() -> None:
        if not came:
            episode = factories.episode(workspace=workspace, text="Lunch was late.")
            came.append(episode.pk)
            embed_episodes(workspace_id=workspace.pk, matters={episode.pk: episode.text})
            assert EpisodeEmbedding.objects.get(episode=episode).model == OLD

    new.after = store
    move(workspace, new)
    assert (came[0], new.name) in vectors_of(workspace)
    assert {model for _, model in vectors_of(workspace)} == {new.name}


def test_a_text_that_changes_meanwhile_is_embedded_as_it_is_in_the_end(workspace: Workspace, new: Watched) -> None:
    belief = Belief.objects.get(workspace=workspace)

    def reword() -> None:
        if Belief.objects.filter(pk=belief.pk, statement=TEA).update(statement="The deploy failed."):
            [vector] = static_embedder().embed(["The deploy failed."])
            store_belief_vectors(workspace_id=workspace.pk, model=OLD, vectors={belief.pk: vector})

    new.after = reword
    move(workspace, new)
    stored = np.asarray(BeliefEmbedding.objects.get(belief=belief).vector)
    new.after = lambda: None
    assert np.allclose(stored, new.embed(["The deploy failed."])[0], atol=1e-3)


def test_a_matter_that_changes_after_it_was_moved_is_moved_again(workspace: Workspace, new: Watched) -> None:
    """A new vector under the old model takes that of the other one away: it was of another text."""
    open_cycle(workspace_id=workspace.pk, now=factories.NOW, trigger=Trigger.PERSON)
    with pytest.raises(CycleStillOpen):
        move(workspace, new)
    episode = Episode.objects.filter(workspace=workspace).first()
    assert episode is not None
    embed_changed_episodes(workspace_id=workspace.pk, matters={episode.pk: "another matter"}, waiting={episode.pk})
    assert list(EpisodeEmbedding.objects.filter(episode=episode).values_list("model", flat=True)) == [OLD]


def test_an_open_cycle_keeps_the_vectors_that_it_compares(workspace: Workspace, new: Watched) -> None:
    """A running cycle beside it: its thresholds and vectors stay those it began with."""
    open_cycle(workspace_id=workspace.pk, now=factories.NOW, trigger=Trigger.PERSON)
    with pytest.raises(CycleStillOpen):
        move(workspace, new)
    assert embedder_of(workspace.pk).name == OLD
    assert {model for _, model in vectors_of(workspace)} == {OLD, new.name}


def test_the_change_waits_for_the_cycles_end(
    workspace: Workspace, new: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_cycle(workspace_id=workspace.pk, now=factories.NOW, trigger=Trigger.PERSON)
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            Cycle.objects.update(state="finished", finished_at=factories.NOW)

    monkeypatch.setattr("memory.maintenance.reindex.time.sleep", wait)
    moved = move(workspace, new, wait_seconds=60.0)
    assert (len(waited), moved.dropped, embedder_of(workspace.pk).name) == (2, 3, new.name)


def test_moving_again_changes_nothing(workspace: Workspace, new: Watched) -> None:
    move(workspace, new)
    moved = move(Workspace.objects.get(pk=workspace.pk), new)
    assert (moved.episodes, moved.beliefs, moved.dropped) == (0, 0, 0)


def test_an_empty_workspace_moves_at_once(new: Watched) -> None:
    empty = factories.workspace(embedding_model=OLD)
    assert move(empty, new).episodes == 0
    assert embedder_of(empty.pk).name == new.name


@pytest.fixture
def served(settings: Settings) -> Iterator[ModelServer]:
    """Have the settings name a server's model."""
    settings.ENGRAM_EMBEDDINGS, settings.ENGRAM_EMBEDDING_MODEL = "openai", "served"
    with ModelServer() as running:
        settings.OPENAI_BASE_URL = settings.ENGRAM_EMBEDDING_BASE_URL = running.url
        yield running


def test_the_command_moves_to_a_server_within_the_ledger(
    workspace: Workspace, served: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """B9: every call of a move is counted."""
    call_command("reembed", "--workspace", workspace.name, "--json")
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "workspace": workspace.name, "before": OLD, "model": "served", "episodes": 2, "claims": 0, "beliefs": 1,
        "refused": 0, "dropped": 3, "is_calibrated": False,
    }  # fmt: skip
    assert ModelCall.objects.filter(workspace=workspace, model="served", outcome="ok").count() == 2
    counted = VectorCount.objects.filter(workspace=workspace, model="served")
    assert {row.kind: row.active for row in counted} == {"episode": 2, "belief": 1}  # recall chooses its way by these


@pytest.mark.django_db(transaction=True)
def test_while_another_makes_indexes_the_model_stays(workspace: Workspace, served: ModelServer) -> None:
    """B8a: recall would compare all of the new vectors one by one; no longer than one would wait."""
    facts = connection.settings_dict
    with psycopg.connect(host=facts["HOST"], port=facts["PORT"], user=facts["USER"], dbname=facts["NAME"]) as other:
        other.execute("SELECT pg_advisory_lock(4, 0)")
        with pytest.raises(CommandError, match=r"making indexes for 0\.1 s\. What was embedded is kept") as failed:
            call_command("reembed", "--workspace", workspace.name, "--wait", "0.1")
    assert (failed.value.returncode, embedder_of(workspace.pk).name) == (1, OLD)
    assert {model for _, model in vectors_of(workspace)} == {OLD, "served"}
    call_command("reembed", "--workspace", workspace.name, "--json")
    assert (embedder_of(workspace.pk).name, {model for _, model in vectors_of(workspace)}) == ("served", {"served"})


def test_a_server_that_fails_leaves_the_old_vectors_and_can_be_asked_again(
    workspace: Workspace, served: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    served.then(refuse(401))
    with pytest.raises(CommandError, match="start it again to go on"):
        call_command("reembed", "--workspace", workspace.name)
    assert (embedder_of(workspace.pk).name, {model for _, model in vectors_of(workspace)}) == (OLD, {OLD})
    call_command("reembed", "--workspace", workspace.name)
    assert "It runs uncalibrated" in capsys.readouterr().out
    assert {model for _, model in vectors_of(workspace)} == {"served"}


def test_a_server_of_too_many_dimensions_is_refused_by_name(workspace: Workspace, served: ModelServer) -> None:
    """A model that returns the wrong number of dimensions is refused by name."""
    served.dimensions, served.honours_dimensions = 1024, False
    with pytest.raises(CommandError, match="served returned 1024"):
        call_command("reembed", "--workspace", workspace.name)
    assert embedder_of(workspace.pk).name == OLD


def test_a_model_that_cannot_be_loaded_any_more_leaves_words(workspace: Workspace) -> None:
    """Queries are embedded with the old model if it can still be loaded, else text answers and says so."""
    Workspace.objects.update(embedding_model="gone@0123456789ab-012345")
    EpisodeEmbedding.objects.update(model="gone@0123456789ab-012345")
    recalled = ask("tea for Mara", workspace=Workspace.objects.get(pk=workspace.pk))
    assert recalled.degraded == ("vectors",)
    assert recalled.results


def test_a_folder_is_found_again_beside_the_new_one(tmp_path: Path, settings: Settings) -> None:
    local_embedder.cache_clear()
    before = local_embedder(str(make_folder(tmp_path / "before")))
    settings.ENGRAM_EMBEDDINGS, settings.ENGRAM_EMBEDDING_MODEL = "local", str(make_folder(tmp_path / "now", seed=8))
    assert embedder_of(factories.workspace(embedding_model=before.name)) is before
    make_folder(tmp_path / "before", seed=9)
    local_embedder.cache_clear()
    with pytest.raises(Exception, match="there is no such folder"):
        embedder_of(factories.workspace(embedding_model=before.name)).embed(["tea"])


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_move_that_was_killed_goes_on_where_it_was(
    workspace: Workspace, served: ModelServer, settings: Settings
) -> None:
    """Resumable: nothing that was stored is asked for again, and recall never went dark."""
    count = 2 * reindex.BATCH_TEXTS + 10
    for number in range(count):
        remembered(f"Note {number} of the kiln.", workspace=workspace)
    served.latency = 0.4
    environment = worker_environment(model_url=served.url, embedding_model="served", timeouts={})
    del environment["REDIS_URL"]  # the suite's own broker is the embedded one of its data folder
    given: dict[str, Any] = {"cwd": settings.BASE_DIR, "env": environment}
    command = [sys.executable, "manage.py", "reembed", "--workspace", workspace.name, "--json"]
    process = subprocess.Popen(command, **given)
    moved = EpisodeEmbedding.objects.filter(workspace=workspace, model="served")
    wait_until(moved.exists, what="the first vectors")
    process.kill()
    process.wait()
    kept = moved.count()
    assert 0 < kept < count + 2
    assert ask("kiln", workspace=Workspace.objects.get(pk=workspace.pk)).degraded == ()
    served.log.clear()
    served.latency = 0.0

    done = subprocess.run(command, **given, check=True, capture_output=True)

    told = json.loads(done.stdout)
    assert (told["episodes"], told["dropped"]) == (count + 2 - kept, count + 3)
    assert sum(len(call.texts) for call in served.calls("embed")) == told["episodes"] + told["beliefs"]
    assert {model for _, model in vectors_of(workspace)} == {"served"}
