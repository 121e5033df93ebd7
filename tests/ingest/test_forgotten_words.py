"""L4, B19: words that were forgotten or erased do not come back by being sent once more."""

from datetime import datetime, timedelta

import pytest

from memory.domain.identity import Actor, ActorKind
from memory.forgetting import forget_episode
from memory.ingest.schemas import Stored
from memory.models import Episode, Workspace
from tests import factories
from tests.factories import NOW
from tests.ingest.arriving import episode_of, take

pytestmark = pytest.mark.django_db

LENA = Actor(kind=ActorKind.PERSON, name="lena")
DAY = timedelta(days=1)


@pytest.fixture
def workspace(db: None) -> Workspace:
    return factories.workspace()


def forgotten(line: dict[str, str], *, workspace: Workspace, at: datetime = NOW) -> Episode:
    """Store a line and have it forgotten."""
    episode = episode_of(take(line, workspace=workspace)[0])
    forget_episode(episode=episode, actor=LENA, now=at)
    return episode


@pytest.mark.parametrize("session", ["old", "new"])
def test_what_happened_before_the_forgetting_is_not_stored(workspace: Workspace, session: str) -> None:
    """L4: compared over all origins; the answer is the id of what was forgotten."""
    episode = forgotten({"text": "Tabs.", "session": "old"}, workspace=workspace, at=NOW + DAY)
    again = take({"text": "tabs", "session": session}, workspace=workspace, now=NOW + DAY)
    assert again == [Stored(id=episode.pk, is_duplicate=True, is_forgotten=True)]
    assert Episode.objects.get().status == "forgotten"


def test_what_happened_later_elsewhere_is_a_new_episode(workspace: Workspace) -> None:
    """L4: a new origin, after the forgetting."""
    forgotten({"text": "Tabs.", "session": "old"}, workspace=workspace)
    [again] = take({"text": "Tabs.", "session": "new"}, workspace=workspace, now=NOW + DAY)
    assert isinstance(again, Stored)
    assert not again.is_duplicate
    assert episode_of(again).status == "active"


def test_what_happened_later_in_the_same_origin_is_not_stored(workspace: Workspace) -> None:
    episode = forgotten({"text": "Tabs.", "session": "old"}, workspace=workspace)
    again = take({"text": "Tabs.", "session": "old"}, workspace=workspace, now=NOW + DAY)
    assert again == [Stored(id=episode.pk, is_duplicate=True, is_forgotten=True)]


def test_a_key_of_what_was_forgotten_is_answered_truly(workspace: Workspace) -> None:
    """L4: by its idempotency key, too."""
    line = {"text": "Tabs.", "session": "old", "idempotency_key": "k1"}
    episode = forgotten(line, workspace=workspace)
    again = take(line, workspace=workspace, now=NOW + DAY)
    assert again == [Stored(id=episode.pk, is_duplicate=True, is_forgotten=True)]


def test_the_last_forgetting_counts(workspace: Workspace) -> None:
    forgotten({"text": "Tabs.", "session": "old"}, workspace=workspace)
    second = episode_of(take({"text": "Tabs.", "session": "new"}, workspace=workspace, now=NOW + DAY)[0])
    forget_episode(episode=second, actor=LENA, now=NOW + 3 * DAY)
    again = take({"text": "Tabs.", "session": "newer"}, workspace=workspace, now=NOW + 2 * DAY)
    assert again == [Stored(id=second.pk, is_duplicate=True, is_forgotten=True)]


@pytest.mark.parametrize("field", ["project", "user", "speaker"])
def test_another_one_may_say_the_same(workspace: Workspace, field: str) -> None:
    """L4: words are the same within project, user and speaker."""
    forgotten({"text": "Tabs.", "session": "old"}, workspace=workspace, at=NOW + DAY)
    [said] = take({"text": "Tabs.", "session": "new", field: "other"}, workspace=workspace)
    assert isinstance(said, Stored)
    assert not said.is_duplicate


def test_other_lines_of_the_batch_are_stored(workspace: Workspace) -> None:
    episode = forgotten({"text": "Tabs.", "session": "old"}, workspace=workspace, at=NOW + DAY)
    answers = take("Spaces.", {"text": "Tabs.", "session": "x"}, "Zebras.", workspace=workspace)
    assert [isinstance(one, Stored) and one.id == episode.pk for one in answers] == [False, True, False]
    assert Episode.objects.count() == 3


def test_another_workspace_knows_nothing_of_it(workspace: Workspace) -> None:
    forgotten({"text": "Tabs.", "session": "old"}, workspace=workspace, at=NOW + DAY)
    [said] = take("Tabs.", workspace=factories.workspace())
    assert isinstance(said, Stored)
    assert not said.is_duplicate
