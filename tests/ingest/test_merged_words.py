"""L4, D3: words that were merged into others lead to what they became one with, however often it was merged on."""

import pytest

from memory.domain.lifecycle import EpisodeStatus
from memory.erasure.erase import erase_memories
from memory.forgetting import forget_episode
from memory.ingest.schemas import ERASED, Stored
from memory.ledger.transactions import change_episode_status
from memory.models import Episode, Erased, Workspace
from tests import factories
from tests.factories import NOW
from tests.forgetting.forgetful import LENA
from tests.ingest.arriving import say, take

pytestmark = pytest.mark.django_db

TEA, REALLY = "Mara prefers tea.", "Mara really prefers tea."


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


@pytest.fixture
def notes(workspace: Workspace) -> list[Episode]:
    """Return a note and one that was merged into it."""
    return merged(*say(TEA, REALLY, workspace=workspace))


def merged(survivor: Episode, *others: Episode) -> list[Episode]:
    ids = [one.pk for one in others]
    reason = f"merged into {survivor.pk}"
    change_episode_status(ids=ids, new=EpisodeStatus.MERGED, reason=reason, actor=LENA, now=NOW)
    Episode.objects.filter(pk__in=ids).update(merged_into=survivor)
    return [survivor, *others]


def again(text: str, workspace: Workspace, **given: str) -> object:
    [outcome] = take({"text": text, "session": "s", **given}, workspace=workspace)
    return outcome


def test_merged_words_lead_to_the_survivor(workspace: Workspace, notes: list[Episode]) -> None:
    """L4: the answer names what is recalled."""
    assert again(REALLY, workspace) == Stored(id=notes[0].pk, is_duplicate=True)
    assert Episode.objects.count() == 2


def test_a_known_key_leads_to_the_survivor(workspace: Workspace) -> None:
    """L4: sent again under its idempotency key, too; with other words it is a conflict as ever."""
    take({"text": TEA, "session": "s"}, {"text": REALLY, "session": "s", "idempotency_key": "k"}, workspace=workspace)
    survivor, _ = merged(Episode.objects.get(text=TEA), Episode.objects.get(text=REALLY))
    assert again(REALLY, workspace, idempotency_key="k") == Stored(id=survivor.pk, is_duplicate=True)
    assert getattr(again("Otherwise.", workspace, idempotency_key="k"), "status", None) == 409


def test_the_way_goes_on_to_the_last(workspace: Workspace) -> None:
    """D3: over several merges."""
    first, second, third = say(TEA, REALLY, "Mara truly prefers tea.", workspace=workspace)
    merged(second, third)
    merged(first, second)
    assert again(third.text, workspace) == Stored(id=first.pk, is_duplicate=True)


def test_a_circle_has_an_end(workspace: Workspace, notes: list[Episode]) -> None:
    """D3: rows that nobody should have written do not hold anybody up."""
    Episode.objects.filter(pk=notes[0].pk).update(merged_into=notes[1], status="merged")
    assert isinstance(again(REALLY, workspace), Stored)


def test_an_archived_survivor_comes_back(workspace: Workspace, notes: list[Episode]) -> None:
    """L4: as if its own words had been said again."""
    Episode.objects.filter(pk=notes[0].pk).update(status="archived")
    again(REALLY, workspace)
    assert Episode.objects.get(pk=notes[0].pk).status == "active"


def test_a_merged_note_is_forgotten_with_its_survivor(workspace: Workspace, notes: list[Episode]) -> None:
    """B19, L4: its words stay out, too, and no belief leans on either."""
    belief = factories.belief(workspace=workspace, alpha=3.0)
    for note in notes:
        factories.evidence(belief=belief, episode=note)
    done = forget_episode(episode=notes[0], actor=LENA, now=NOW)
    assert (list(done.along.merged), set(done.bereft.archived)) == ([notes[1].pk], {belief.pk})
    assert again(REALLY, workspace) == Stored(id=notes[1].pk, is_duplicate=True, is_forgotten=True)


def test_a_survivor_stays_when_what_was_merged_is_forgotten(workspace: Workspace, notes: list[Episode]) -> None:
    """B19."""
    assert forget_episode(episode=notes[1], actor=LENA, now=NOW).along.all == []
    assert Episode.objects.get(pk=notes[0].pk).status == "active"


def test_a_merged_note_is_erased_with_its_survivor(workspace: Workspace, notes: list[Episode]) -> None:
    """B19, L4: the words of both are refused."""
    mine = Episode.objects.filter(pk=notes[0].pk)
    done = erase_memories(workspace=workspace, episodes=mine, actor=LENA, now=NOW)
    assert (done.episodes, Episode.objects.exists(), Erased.objects.count()) == (2, False, 2)
    assert [again(text, workspace) for text in (TEA, REALLY)] == [ERASED, ERASED]


def test_a_merged_note_is_erased_alone(workspace: Workspace, notes: list[Episode]) -> None:
    """B19: what it was merged into stays."""
    mine = Episode.objects.filter(pk=notes[1].pk)
    erase_memories(workspace=workspace, episodes=mine, actor=LENA, now=NOW)
    assert list(Episode.objects.all()) == [notes[0]]


def test_what_lives_again_is_merged_no_more(notes: list[Episode]) -> None:
    """D3."""
    change_episode_status(ids=[notes[1].pk], new=EpisodeStatus.ACTIVE, reason="so", actor=LENA, now=NOW)
    assert Episode.objects.get(pk=notes[1].pk).merged_into is None
