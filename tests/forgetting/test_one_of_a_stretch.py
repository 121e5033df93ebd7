"""B19: one fact of turns that were summed up together goes alone: what else was said in them stays."""

from datetime import timedelta

import pytest

from memory.consolidation.cycle import database_now
from memory.erasure.erase import Erasure, erase_memories
from memory.forgetting import forget_episode
from memory.models import Conversation, Episode, Turn, TurnEpisode, Workspace
from tests import factories
from tests.api.caller import caller
from tests.factories import NOW
from tests.forgetting.forgetful import LENA
from tests.ingest.conftest import _no_dispatch
from tests.ingest.reading import MINUTE, read, say

__all__ = ["_no_dispatch"]

pytestmark = pytest.mark.django_db

REX = "My dog Rex hates the vet."
TALK = (
    "My sister Ana is a doctor in Graz.",
    "I prefer short meetings on Mondays.",
    "We decided to deploy the bakery on Fridays.",
    REX,
    "I always drink tea at five.",
)
OTHERS = [text for text in TALK if text != REX]


@pytest.fixture
def workspace() -> Workspace:
    """Return a workspace where five turns were read and summed up, by the model that reads offline."""
    workspace = factories.workspace()
    for number, text in enumerate(TALK):
        say(text, workspace=workspace, speaker="Mara", turn_id=f"t-{number}")
    assert read()
    rest()
    assert TurnEpisode.objects.filter(episode=summary()).count() == len(TALK)
    return workspace


def rest() -> None:
    """Let the conversation rest, so that it is summed up."""
    Conversation.objects.update(sum_due_at=database_now(plus=-1))
    read(after=20 * MINUTE)


def summary() -> Episode:
    return Episode.objects.get(is_derived=True)


def fact(word: str) -> Episode:
    return Episode.objects.get(text__contains=word, is_derived=False)


def erase(workspace: Workspace, *episodes: Episode) -> Erasure:
    named = Episode.objects.filter(pk__in=[episode.pk for episode in episodes])
    return erase_memories(workspace=workspace, episodes=named, actor=LENA, now=NOW + MINUTE)


def said() -> list[str]:
    return list(Turn.objects.order_by("number").values_list("content", flat=True))


def shown(workspace: Workspace, episode: Episode) -> list[int]:
    card = caller(workspace=workspace).get(f"/memories/{episode.pk}").json()
    return [turn["number"] for turn in card["turns"]]


def test_erasing_a_fact_leaves_what_else_was_summed_up_with_it(workspace: Workspace) -> None:
    """B19: its turn goes and the summary; the other turns stay, and so do the facts that they tell."""
    kept = Episode.objects.filter(is_derived=False).count() - 1
    done = erase(workspace, fact("Rex"))
    assert (done.turns, said(), Episode.objects.count()) == (1, OTHERS, kept)
    assert not Episode.objects.filter(is_derived=True).exists()
    assert shown(workspace, fact("Ana")) == [1]


def test_turns_that_were_summed_up_with_an_erased_one_are_not_refused(workspace: Workspace) -> None:
    """L4: they are known as they were; the erased one is refused."""
    erase(workspace, fact("Rex"))
    answers = [
        caller(workspace=workspace).post(
            "/turns", {"session": "s", "role": "user", "content": text, "speaker": "Mara", "turn_id": f"t-{number}"}
        )
        for number, text in enumerate(TALK)
    ]
    assert [answer.status_code for answer in answers] == [202, 202, 202, 409, 202]
    assert said() == OTHERS


def test_a_summary_that_is_named_goes_with_the_turns_that_it_sums_up(workspace: Workspace) -> None:
    """B19: it tells all of them; the facts stay."""
    facts = Episode.objects.filter(is_derived=False).count()
    done = erase(workspace, summary())
    assert (done.turns, done.episodes, said(), Episode.objects.count()) == (len(TALK), 1, [], facts)


def test_a_forgotten_fact_hides_its_own_turn_alone(workspace: Workspace) -> None:
    """B17, B19: the summary is forgotten with it, and cards of other facts show their turns as before."""
    rex = Turn.objects.get(content=REX)
    TurnEpisode.objects.create(workspace=workspace, turn=rex, episode=fact("Ana"))
    forget_episode(episode=fact("Rex"), actor=LENA, now=NOW + timedelta(hours=1))
    assert summary().status == "forgotten"
    assert (shown(workspace, fact("Ana")), shown(workspace, fact("Mondays"))) == ([1], [2])


def test_a_forgotten_summary_hides_no_turn(workspace: Workspace) -> None:
    """B17, B19: it is forgotten for itself."""
    forget_episode(episode=summary(), actor=LENA, now=NOW + timedelta(hours=1))
    assert [shown(workspace, fact(word)) for word in ("Ana", "Mondays", "Rex", "tea")] == [[1], [2], [4], [5]]


def test_words_that_were_forgotten_before_sum_up_another_stretch_without_harm(workspace: Workspace) -> None:
    """L4, B19: the summary of the same words is the forgotten one; the turns that it is linked to stay in sight."""
    forget_episode(episode=summary(), actor=LENA, now=NOW + timedelta(hours=1))
    for number, text in enumerate(TALK):
        say(text, workspace=workspace, speaker="Mara", turn_id=f"again-{number}", after=MINUTE)
    assert read(after=MINUTE)
    rest()
    assert TurnEpisode.objects.filter(episode=summary()).count() == 2 * len(TALK)
    assert summary().status == "forgotten"
    assert shown(workspace, fact("Ana")) == [1, 6]
