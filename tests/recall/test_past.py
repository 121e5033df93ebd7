"""Recall as of a time: what was stored, believed and active then, and nothing that was said later."""

from datetime import timedelta
from typing import Any

import pytest

from memory.domain.identity import Actor, ActorKind
from memory.domain.lifecycle import BeliefStatus, EpisodeStatus
from memory.history import attribute_changes
from memory.ledger.confidence import recompute_beliefs
from memory.ledger.transactions import change_episode_status, change_status
from memory.models import Belief, BeliefAccess, EpisodeAccess, ShownMemory, Workspace
from memory.recall.query import MemoryType, Recalled
from tests import factories
from tests.factories import NOW
from tests.recall.memories import ask, believed, ids, remembered

pytestmark = pytest.mark.django_db

LENA = Actor(kind=ActorKind.PERSON, name="lena")
DAY = timedelta(days=1)
LATER = NOW + 90 * DAY


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def look_back(query: str, workspace: Workspace, *, day: float, **asked: Any) -> Recalled:
    return ask(query, workspace=workspace, as_of=NOW + day * DAY, now=LATER, **asked)


def state(belief: Belief, statement: str, *, day: float) -> None:
    attribute_changes(actor=LENA, reason="said anew")
    belief.statement, belief.updated_at = statement, NOW + day * DAY
    belief.save()


def test_what_was_stored_later_is_not_there_yet(workspace: Workspace) -> None:
    """R10, B17: the time of storing counts, not that of occurrence."""
    early = remembered("The ferry left at seven.", workspace=workspace)
    late = remembered("The ferry left at eight.", workspace=workspace, created_at=NOW + 2 * DAY, occurred_at=NOW - DAY)
    belief = believed("The ferry leaves on time.", workspace=workspace, created_at=NOW + DAY, updated_at=NOW + DAY)
    assert ids(look_back("ferry", workspace, day=0)) == {early.pk}
    assert ids(look_back("ferry", workspace, day=1)) == {early.pk, belief.pk}
    assert ids(look_back("ferry", workspace, day=3)) == {early.pk, belief.pk, late.pk}


def test_a_belief_is_shown_as_it_was_stated_then(workspace: Workspace) -> None:
    """R10: nor is it found by the words of a later statement, or by their vector."""
    belief = believed("The ferry leaves at seven.", workspace=workspace, embedded_as="Goats climb steep mountains.")
    state(belief, "Goats climb steep mountains.", day=5)
    [result] = look_back("ferry", workspace, day=1).results
    assert (result.id, result.text) == (belief.pk, "The ferry leaves at seven.")
    assert look_back("goats in the mountains", workspace, day=1).results == ()
    assert [result.text for result in look_back("goats in the mountains", workspace, day=6).results] == [
        "Goats climb steep mountains."
    ]


def test_a_belief_has_the_confidence_that_it_had(workspace: Workspace) -> None:
    """R10, B17: and one that was too weak then is not recalled."""
    belief = believed("The ferry leaves at seven.", workspace=workspace, alpha=1.0, beta=1.0)
    for day, verdict in enumerate(["SUPPORTS", "SUPPORTS", "CONTRADICTS", "CONTRADICTS", "CONTRADICTS"]):
        episode = factories.episode(workspace=workspace, text="Ahoy.", occurred_at=NOW + day * DAY)
        factories.evidence(belief=belief, episode=episode, verdict=verdict, created_at=NOW + day * DAY)
        attribute_changes(actor=LENA, reason="heard")
        recompute_beliefs(beliefs=[belief], now=NOW + day * DAY)
    assert [r.confidence for r in look_back("ferry", workspace, day=1, types=[MemoryType.BELIEF]).results] == [0.75]
    assert look_back("ferry", workspace, day=3, types=[MemoryType.BELIEF]).results[0].confidence == pytest.approx(3 / 6)
    belief.refresh_from_db()
    assert belief.confidence < 0.5


def test_what_was_active_then_is_recalled_whatever_became_of_it(workspace: Workspace) -> None:
    """R10, D3: save what a person had forgotten."""
    kept, lost = (remembered(f"The ferry is {name}.", workspace=workspace) for name in ("white", "blue"))
    gone, revoked = (believed(f"The ferry is {name}.", workspace=workspace) for name in ("fast", "slow"))
    change_episode_status(ids=[kept.pk], new=EpisodeStatus.ARCHIVED, reason="old", actor=LENA, now=NOW + DAY)
    change_episode_status(ids=[lost.pk], new=EpisodeStatus.FORGOTTEN, reason="asked", actor=LENA, now=NOW + DAY)
    change_status(belief=gone, new=BeliefStatus.ARCHIVED, reason="old", actor=LENA, now=NOW + DAY)
    change_status(belief=revoked, new=BeliefStatus.FORGOTTEN, reason="asked", actor=LENA, now=NOW + DAY)
    assert ids(look_back("ferry", workspace, day=0)) == {kept.pk, gone.pk}
    assert ids(look_back("ferry", workspace, day=2)) == set()


def test_what_was_brought_back_since_was_away_then(workspace: Workspace) -> None:
    """R10, D3."""
    episode = remembered("The ferry is white.", workspace=workspace)
    change_episode_status(ids=[episode.pk], new=EpisodeStatus.ARCHIVED, reason="old", actor=LENA, now=NOW + DAY)
    change_episode_status(ids=[episode.pk], new=EpisodeStatus.ACTIVE, reason="back", actor=LENA, now=NOW + 3 * DAY)
    found = [bool(look_back("ferry", workspace, day=day).results) for day in (0, 2, 4)]
    assert found == [True, False, True]


def test_validity_is_that_of_then(workspace: Workspace) -> None:
    """B1, R10."""
    remembered("The ferry is full.", workspace=workspace, valid_until=NOW + DAY)
    assert [bool(look_back("ferry", workspace, day=day).results) for day in (0.5, 1.5)] == [True, False]
    assert look_back("ferry", workspace, day=1.5, with_expired=True).results


def test_looking_back_is_no_access(workspace: Workspace) -> None:
    """B16: yet what a session was shown, it was shown."""
    remembered("The ferry is white.", workspace=workspace)
    believed("The ferry is fast.", workspace=workspace)
    look_back("ferry", workspace, day=1, session="s-1")
    assert not EpisodeAccess.objects.exists()
    assert not BeliefAccess.objects.exists()
    assert ShownMemory.objects.count() == 2


def test_a_later_recall_makes_nothing_stronger_then(workspace: Workspace) -> None:
    """B5, R10: when a belief was recalled before a time is not known, so all count as unread."""
    believed("The ferry is fast.", workspace=workspace)
    before = look_back("ferry", workspace, day=1).results[0].score
    ask("ferry", workspace=workspace, now=NOW + 2 * DAY)
    assert look_back("ferry", workspace, day=1).results[0].score == before


def test_scope_and_user_hold_in_the_past(workspace: Workspace) -> None:
    """B21, R10."""
    ours, theirs = (factories.project(workspace=workspace, slug=slug) for slug in ("ours", "theirs"))
    for project in (ours, theirs):
        for user in ("ann", "bob"):
            remembered(f"tea of {user}", workspace=workspace, project=project, user=user)
            believed(f"tea for {user}", workspace=workspace, project=project, user=user)
    believed("tea for all", workspace=workspace)
    asked = {"project": ours, "user": "ann"}
    texts = [result.text for result in look_back("tea", workspace, day=1, **asked).results]
    assert sorted(texts) == ["tea for all", "tea for ann", "tea of ann"]
    limited = look_back("tea", workspace, day=1, limited_to=(ours,))
    assert sorted(result.text for result in limited.results) == [
        "tea for ann", "tea for bob", "tea of ann", "tea of bob",
    ]  # fmt: skip


def test_the_past_can_explain_itself(workspace: Workspace) -> None:
    """R10, B17."""
    remembered("The ferry is white.", workspace=workspace)
    [result] = look_back("ferry", workspace, day=1, is_explained=True).results
    assert result.explain is not None
    assert result.explain.channels["text"].rank == 1
