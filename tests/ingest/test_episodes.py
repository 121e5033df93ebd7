"""What becomes of lines: new episodes, known ones, echoes."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest
from django.db import DataError

from memory.ingest import store
from memory.ingest.schemas import Draft, EpisodeLine, IngestContext, Outcome, Rejected, Stored
from memory.models import Cycle, Episode, EpisodeEmbedding, Workspace
from memory.search.vectors import read_episode_vectors
from tests import factories
from tests.factories import NOW
from tests.ingest.arriving import episode_of, say, take

pytestmark = pytest.mark.django_db

FLASH = "[Memory flash: Mara likes tabs.]"


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def test_line_without_more_gets_the_defaults(workspace: Workspace) -> None:
    """B1: source interaction, importance 0.5, valence 0; occurred when stored."""
    episode = episode_of(take("The build takes four minutes.", workspace=workspace)[0])
    assert (episode.source, episode.importance, episode.valence) == ("interaction", 0.5, 0)
    assert (episode.created_at, episode.occurred_at) == (NOW, NOW)
    assert episode.origin == "day:2026-03-01:interaction:"
    assert (episode.status, episode.state) == ("active", "new")


def test_storing_time_is_now_and_occurred_time_is_given(workspace: Workspace) -> None:
    """Clock: ages run on the time of storing."""
    episode = episode_of(take({"text": "x", "occurred_at": "2025-12-24T20:00:00+01:00"}, workspace=workspace)[0])
    assert episode.created_at == NOW
    assert episode.occurred_at.isoformat() == "2025-12-24T19:00:00+00:00"


def test_vector_of_the_matter_is_there_at_once(workspace: Workspace) -> None:
    """B1: pending episodes are found at once; the speaker's prefix is left out."""
    one, other = take(
        {"text": "Mara: I like tabs.", "speaker": "Mara"}, {"text": "I like tabs.", "user": "x"}, workspace=workspace
    )
    ids, vectors = read_episode_vectors(
        model="wordllama-l2-supercat-256", ids=[episode_of(one).pk, episode_of(other).pk]
    )
    assert len(ids) == 2
    assert (vectors[0] == vectors[1]).all()


def test_same_words_of_one_origin_are_one_episode(workspace: Workspace) -> None:
    """L4: also within a batch; the same sentence twenty times in one session is one episode."""
    outcomes = take(*[{"text": "Tabs.", "session": "s"}] * 20, workspace=workspace)
    assert [outcome.is_duplicate for outcome in outcomes if isinstance(outcome, Stored)] == [False] + [True] * 19
    assert Episode.objects.count() == 1


def test_same_words_of_twenty_sessions_are_twenty(workspace: Workspace) -> None:
    """L4: the same words from another origin are a new episode."""
    take(*({"text": "Tabs.", "session": f"s{number}"} for number in range(20)), workspace=workspace)
    assert Episode.objects.count() == 20


@pytest.mark.parametrize("field", ["project", "user", "speaker", "session", "document"])
def test_same_words_elsewhere_are_another_episode(workspace: Workspace, field: str) -> None:
    """L4: unique by project, user, speaker and origin."""
    outcomes = take("Tabs.", {"text": "Tabs.", field: "other"}, workspace=workspace)
    assert [outcome.is_duplicate for outcome in outcomes if isinstance(outcome, Stored)] == [False, False]


def test_archived_episode_comes_back(workspace: Workspace) -> None:
    """L4: the duplicate of an archived one restores it, with its vector."""
    episode = episode_of(take("Tabs.", workspace=workspace)[0])
    Episode.objects.update(status="archived")
    EpisodeEmbedding.objects.update(is_active=False)
    (outcome,) = take("tabs", workspace=workspace)
    episode.refresh_from_db()
    assert outcome == Stored(id=episode.pk, is_duplicate=True)
    assert (episode.status, EpisodeEmbedding.objects.get().is_active) == ("active", True)


@pytest.mark.parametrize("status", ["forgotten", "merged", "invalidated", "superseded", "challenged"])
def test_duplicate_changes_no_other_status(workspace: Workspace, status: str) -> None:
    """L4: over all statuses; what was forgotten is not stored again under its origin."""
    episode = episode_of(take("Tabs.", workspace=workspace)[0])
    Episode.objects.update(status=status)
    stands = Stored(id=episode.pk, is_duplicate=True, is_forgotten=status == "forgotten")
    assert take("Tabs.", workspace=workspace) == [stands]
    assert Episode.objects.get().status == status


def test_key_answers_even_where_the_origin_has_moved_on(workspace: Workspace) -> None:
    """L4: a retry after midnight is still the same line."""
    line = {"text": "Tabs.", "idempotency_key": "k"}
    (first,) = take(line, workspace=workspace)
    (again,) = take(line, workspace=workspace, now=NOW + timedelta(days=1))
    assert again == Stored(id=episode_of(first).pk, is_duplicate=True)
    assert Episode.objects.count() == 1


def test_key_with_other_content_is_refused_within_a_batch_too(workspace: Workspace) -> None:
    """L4: the first line of the batch has the key."""
    first, second = take(
        {"text": "Zebras.", "idempotency_key": "k"}, {"text": "Ants.", "idempotency_key": "k"}, workspace=workspace
    )
    assert episode_of(first).text == "Zebras."
    assert isinstance(second, Rejected)
    assert second.status == 409


def test_colliding_id_is_drawn_again(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids are never reused."""
    taken = episode_of(take("Tabs.", workspace=workspace)[0])
    monkeypatch.setattr(Episode._meta.pk, "default", lambda: taken.pk)
    fresh = episode_of(take("Spaces.", workspace=workspace)[0])
    assert fresh.pk != taken.pk
    assert set(Episode.objects.values_list("text", flat=True)) == {"Tabs.", "Spaces."}


def test_line_that_the_database_refuses_takes_none_with_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failures are isolated line by line."""
    original = store._store_batch

    def refuse_some(lines: Sequence[EpisodeLine], arrival: IngestContext) -> list[Outcome]:
        if any(line.text == "bad" for line in lines):
            raise DataError("refused")
        return original(lines, arrival)

    monkeypatch.setattr(store, "_store_batch", refuse_some)
    outcomes = take("one", "two", "bad", "four", "five", workspace=workspace)
    assert [isinstance(outcome, Stored) for outcome in outcomes] == [True, True, False, True, True]
    assert Episode.objects.count() == 4


def test_text_of_echo_alone_is_kept_but_never_pending(workspace: Workspace) -> None:
    """B4: echo by marker; stored, settled, and never evidence."""
    episode = episode_of(take(FLASH, workspace=workspace)[0])
    assert (episode.text, episode.state, episode.state_reason) == (FLASH, "settled", "echo")
    assert not EpisodeEmbedding.objects.exists()


def test_text_around_an_echo_is_pending(workspace: Workspace) -> None:
    """B4: the span is dropped, the text itself stays as it came."""
    text = f"{FLASH}\nYes, and I like short lines."
    episode, plain = (
        episode_of(outcome) for outcome in take(text, "Yes, and I like short lines.", workspace=workspace)
    )
    _, vectors = read_episode_vectors(model="wordllama-l2-supercat-256", ids=[episode.pk, plain.pk])
    assert (episode.text, episode.state) == (text, "new")
    assert (vectors[0] == vectors[1]).all()


def test_echo_behind_a_name_is_echo(workspace: Workspace) -> None:
    """B4."""
    (episode,) = say(f"Agent: {FLASH}", workspace=workspace)
    assert episode.state_reason == "echo"


def test_long_text_is_flagged(workspace: Workspace) -> None:
    """Bad input: text over the model's length is chunked and averaged, and flagged."""
    take("word " * 600, "short", workspace=workspace)
    assert sorted(EpisodeEmbedding.objects.values_list("is_chunked", flat=True)) == [False, True]


def test_language_is_given_or_detected(workspace: Workspace) -> None:
    """B3: each row has its own language."""
    outcomes = take(
        "Das ist nicht der Editor, den ich mag.",
        "This is not the editor that I like.",
        {"text": "Sisu.", "language": "fi-FI"},
        workspace=workspace,
    )
    assert [episode_of(outcome).language for outcome in outcomes] == ["de", "en", "fi"]


def test_bulk_takes_a_fixed_number_of_queries(workspace: Workspace, django_assert_max_num_queries: Any) -> None:
    """No query per line."""
    with django_assert_max_num_queries(20):
        take(*({"text": f"Ada: line {n}", "session": f"s{n % 3}"} for n in range(200)), workspace=workspace)
    assert Episode.objects.filter(speaker="Ada").count() == 200


@pytest.mark.parametrize(("count", "cycles"), [(19, 0), (20, 1)])
def test_twenty_new_episodes_start_a_cycle(
    workspace: Workspace, django_capture_on_commit_callbacks: Any, count: int, cycles: int
) -> None:
    """B7: after every 20 new episodes, once they are committed."""
    with django_capture_on_commit_callbacks(execute=True):
        take(*(f"Matter {number}." for number in range(count)), workspace=workspace)
    assert Cycle.objects.filter(workspace=workspace, now=NOW, trigger="episodes").count() == cycles


def test_known_and_echoed_lines_start_nothing(workspace: Workspace, django_capture_on_commit_callbacks: Any) -> None:
    """B7: only what is new counts."""
    take(*(f"Matter {number}." for number in range(20)), workspace=workspace)
    with django_capture_on_commit_callbacks(execute=True) as callbacks:
        take("Matter 1.", FLASH, workspace=workspace)
    assert callbacks == []


def test_what_a_draft_leaves_out_is_filled_in_as_the_model_would() -> None:
    """Drafts are no instances of the model: a column that they lack is the database's."""
    drafted = {field.name for field in fields(Draft)}
    stored = {field.attname: field for field in Episode._meta.concrete_fields if not field.generated}
    assert drafted <= stored.keys()
    for name in stored.keys() - drafted:
        field = stored[name]
        assert field.default == field.db_default, name
        assert field.null or field.has_db_default(), name
