"""R8: a conversation is summed up at every fifth turn, once, as what is recalled and never evidence."""

import pytest

from memory.domain.lifecycle import ConsolidationState
from memory.domain.taxonomy import ConversationTurn
from memory.ingest.schemas import IngestContext, Outcome, Stored
from memory.ingest.summaries import summarize_stretch
from memory.ingest.turn_facts import extraction_budget
from memory.llm.replies import Summary
from memory.llm.requests import SummaryRequest
from memory.models import Episode, ModelCall, Workspace
from tests import factories
from tests.factories import NOW
from tests.ingest.talking import TALK, said

pytestmark = pytest.mark.django_db(transaction=True)

TEXTS = (
    "I prefer short meetings in the morning.",
    "Long meetings tire me out.",
    "Our release is on Friday.",
    "My sister Ana tests the release.",
    "Meetings after lunch are a waste for me.",
)


@pytest.fixture
def workspace() -> Workspace:
    return factories.workspace()


def _sum_up(turns: list[ConversationTurn], workspace: Workspace) -> Outcome | None:
    arrival = IngestContext(workspace=workspace, now=NOW)
    return summarize_stretch(turns=turns, talk=TALK, arrival=arrival, budget=extraction_budget())


def test_five_turns_are_summed_up_as_a_derived_episode(workspace: Workspace) -> None:
    """R8: settled from the start, with the session and the time of its last turn."""
    turns = said(*TEXTS)

    outcome = _sum_up(turns, workspace)

    assert isinstance(outcome, Stored)
    episode = Episode.objects.get()
    assert episode.is_derived
    assert (episode.state, episode.state_reason) == (ConsolidationState.SETTLED, "derived")
    assert (episode.session, episode.user, episode.occurred_at) == ("s-1", "mara", turns[-1].occurred_at)
    assert 1 <= len(episode.text.split(". ")) <= 3


def test_a_stretch_is_summed_up_once(workspace: Workspace) -> None:
    """R8: a second time the answer names the first summary, and nothing is asked."""
    first = _sum_up(said(*TEXTS), workspace)
    second = _sum_up(said(*TEXTS), workspace)

    assert isinstance(first, Stored)
    assert second == Stored(id=first.id, is_duplicate=True)
    assert ModelCall.objects.count() == 1


def test_between_the_fifth_turns_nothing_is_summed_up(workspace: Workspace) -> None:
    """R8: nor before there are four."""
    assert _sum_up(said(*TEXTS, "And one more thing about the release in May."), workspace) is None
    assert _sum_up([], workspace) is None
    assert not Episode.objects.exists()


def test_what_stands_beside_a_stretch_is_shown_and_not_summed_up(workspace: Workspace) -> None:
    """R8, E5: it says what others mean."""
    arrival, turns = IngestContext(workspace=workspace, now=NOW), said(*TEXTS, "My brother Ben keeps bees in Graz.")
    bodies: list[SummaryRequest] = []

    def answer(request: SummaryRequest) -> Summary:
        bodies.append(request)
        return Summary(summary="Mara's sister Ana tests the release.")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("memory.llm.offline._answer", answer)
        outcome = summarize_stretch(
            turns=turns, talk=TALK, arrival=arrival, budget=extraction_budget(), numbers=range(3, 6)
        )
    assert isinstance(outcome, Stored)
    assert [turn.is_beside for turn in bodies[0].turns] == [True, True, False, False, False, True]
    assert Episode.objects.get().occurred_at == turns[4].occurred_at


def test_small_talk_is_not_summed_up(workspace: Workspace) -> None:
    """R8: and costs no call."""
    assert _sum_up(said("Hi!", "Hello Mara!", "How are you?", "Thanks, great!", "See you!"), workspace) is None
    assert not ModelCall.objects.exists()
