"""What is forgotten stays so, even while somebody is about to believe it (R1, B19)."""

from typing import Any

import pytest

from memory.domain.identity import Actor, ActorKind
from memory.facts import remember
from memory.facts.remember import ask_for_reading
from memory.forgetting import forget_episode
from memory.models import (
    Belief,
    BeliefEmbedding,
    Episode,
    EpisodeEmbedding,
    Evidence,
    ModelCall,
)
from memory.reading.apply import AnsweredReading
from tests.consolidation.world import World
from tests.facts.telling import SPACES, TABS, actions, remembrance_of, tell, work_all
from tests.model_server_acts import refuse

pytestmark = pytest.mark.django_db


def test_forgotten_words_stay_forgotten(world: World) -> None:
    """R1, L4."""
    told = tell(world, TABS)
    forget(told.episode_id, world)
    again = tell(world, TABS)
    assert (again.state, again.beliefs, again.is_forgotten) == ("done", (), True)


def forget(episode_id: str, world: World) -> None:
    person = Actor(kind=ActorKind.PERSON, name="lena")
    forget_episode(episode=Episode.objects.get(pk=episode_id), actor=person, now=world.now)


def test_a_text_forgotten_while_it_waits_is_not_read(world: World, offline: None, sent: list[int]) -> None:
    """R1, B19: no model sees it, and nothing is believed of it."""
    told = tell(world, TABS)
    forget(told.episode_id, world)
    work_all(world)
    row = remembrance_of(told)
    assert (row.state, row.state_reason, row.claims) == ("done", "forgotten", 0)
    assert (Belief.objects.count(), ModelCall.objects.count(), row.facts.count()) == (0, 0, 0)


def read_and_forget(world: World, episode_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have an episode forgotten between the model's reply and its being applied, once."""

    def ask(**asked: Any) -> AnsweredReading | None:
        answered = ask_for_reading(**asked)
        monkeypatch.undo()
        forget(episode_id, world)
        return answered

    monkeypatch.setattr(remember, "ask_for_reading", ask)


def test_a_text_forgotten_while_it_is_read_founds_nothing(
    world: World, sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R1, B19."""
    world.trouble.broken["read"] = refuse(401)
    told = tell(world, TABS)
    world.trouble.broken.clear()
    read_and_forget(world, told.episode_id, monkeypatch)
    work_all(world)
    assert (remembrance_of(told).state, remembrance_of(told).state_reason) == ("done", "forgotten")
    assert (Belief.objects.count(), Evidence.objects.count()) == (0, 0)


def test_a_text_is_read_again_without_what_was_forgotten_beside_it(
    world: World, sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """F3, B19: the reply may tell of the message before it, which was shown."""
    earlier = tell(world, SPACES, session="s")
    read_and_forget(world, earlier.episode_id, monkeypatch)
    told = tell(world, TABS, session="s")
    assert (told.state, world.calls("read")) == ("queued", 2)
    work_all(world)
    assert remembrance_of(told).state == "done"
    assert list(Belief.objects.filter(status="active").values_list("statement", flat=True)) == [TABS]
    assert world.calls("read") == 3


def test_a_belief_that_waits_for_a_vector_gets_it_from_a_forgotten_text(
    world: World, hasty: None, sent: list[int]
) -> None:
    """R2, B19: and no more: what says the same by then is not borne out by it."""
    world.directions.place("Ana prefers tabs over spaces!", {"tabs": 0.95})
    world.trouble.broken["embed"] = refuse(500)
    told = tell(world, "Ana prefers tabs over spaces!")
    [(unmatched, _)] = actions(told)
    world.trouble.broken.clear()
    belief = world.hold(TABS, about="tabs", supports=3)
    forget(told.episode_id, world)
    work_all(world)
    assert (world.now_of(belief).alpha, Belief.objects.get(pk=unmatched).status) == (4.0, "archived")
    assert BeliefEmbedding.objects.filter(belief=unmatched).exists()
    assert not EpisodeEmbedding.objects.filter(episode=told.episode_id).exists()
    assert remembrance_of(told).state == "done"
