"""POST /memories/{id}/feedback and /resolve."""

from typing import Any

import pytest
from django.utils import timezone

from memory.models import BeliefAccess, BeliefEvent, Episode, EpisodeAccess, Workspace
from tests import factories
from tests.api.caller import Caller, caller, is_problem
from tests.recall.memories import believed, remembered

pytestmark = pytest.mark.django_db


def say(who: Caller, key: str, *words: str) -> list[float]:
    return [who.post(f"/memories/{key}/feedback", {"value": word}).json()["feedback"] for word in words]


@pytest.mark.parametrize("store", [remembered, believed])
def test_words_add_up_between_minus_one_and_one(workspace: Workspace, writer: Caller, store: Any) -> None:
    """L13: each goes 0.3 of the way, so that the latest count most and a repeated one ever less."""
    memory = store("Tea is good.", workspace=workspace)
    said = say(writer, memory.pk, "useful", "useful", "wrong", "wrong")
    assert said == pytest.approx([0.3, 0.51, 0.057, -0.2601])
    memory.refresh_from_db()
    assert (memory.feedback, said[:2]) == (pytest.approx(said[-1]), [0.3, 0.51])  # as people read numbers


def test_no_number_of_words_leaves_the_range(workspace: Workspace, writer: Caller) -> None:
    """L13."""
    memory = believed("Tea is good.", workspace=workspace)
    assert max(say(writer, memory.pk, *["useful"] * 150)) <= 1
    assert min(say(writer, memory.pk, *["wrong"] * 150)) >= -1


def test_feedback_changes_neither_confidence_nor_history_nor_access(workspace: Workspace, writer: Caller) -> None:
    """B4, L13: evidence alone moves a confidence."""
    belief = believed("Tea is good.", workspace=workspace)
    before = belief.alpha, belief.beta, belief.updated_at, BeliefEvent.objects.count()
    say(writer, belief.pk, "wrong", "wrong")
    belief.refresh_from_db()
    assert (belief.alpha, belief.beta, belief.updated_at, BeliefEvent.objects.count()) == before
    assert not BeliefAccess.objects.exists()
    assert not EpisodeAccess.objects.exists()


def test_the_full_card_shows_feedback(workspace: Workspace) -> None:
    """L13, B18."""
    owner = caller(workspace=workspace)
    for memory in (remembered("Tea!", workspace=workspace), believed("Tea is good.", workspace=workspace)):
        say(owner, memory.pk, "useful")
        assert owner.get(f"/memories/{memory.pk}").json()["feedback"] == 0.3


def test_a_closed_set_says_what_is_in_it(workspace: Workspace, writer: Caller) -> None:
    memory = remembered("Tea!", workspace=workspace)
    response = writer.post(f"/memories/{memory.pk}/feedback", {"value": "great"})
    assert response.json()["errors"] == {"value": ["One of these is expected: useful, wrong."]}


def test_a_commitment_is_resolved_once(workspace: Workspace, writer: Caller) -> None:
    """L16: the first time counts."""
    episode = remembered("I will bring tea.", workspace=workspace, category="commitment")
    before = timezone.now()
    first, second = (writer.post(f"/memories/{episode.pk}/resolve").json() for _ in range(2))
    episode.refresh_from_db()
    assert episode.resolved_at is not None
    assert before <= episode.resolved_at <= timezone.now()
    assert first == second
    assert set(first) == {"id", "resolved_at"}


def test_only_commitments_are_resolved(workspace: Workspace, writer: Caller) -> None:
    """L16."""
    for memory in (remembered("Tea!", workspace=workspace, category="fact"), believed("Tea.", workspace=workspace)):
        assert is_problem(writer.post(f"/memories/{memory.pk}/resolve"), 409)
    assert not Episode.objects.filter(resolved_at__isnull=False).exists()


@pytest.mark.parametrize("act", ["feedback", "resolve"])
def test_what_is_out_of_sight_is_left_alone(workspace: Workspace, reader: Caller, act: str) -> None:
    """B21: nor does a key that may only read say anything."""
    ours, theirs = (factories.project(workspace=workspace, slug=slug) for slug in ("ours", "theirs"))
    episode = remembered("I will bring tea.", workspace=workspace, project=theirs, category="commitment")
    body = {"value": "wrong"} if act == "feedback" else {}
    limited = caller("write", workspace=workspace, projects=(ours,))
    assert is_problem(limited.post(f"/memories/{episode.pk}/{act}", body), 404)
    assert is_problem(reader.post(f"/memories/{episode.pk}/{act}", body), 403)
    episode.refresh_from_db()
    assert (episode.feedback, episode.resolved_at) == (0.0, None)
