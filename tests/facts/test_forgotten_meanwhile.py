"""What is forgotten stays so, even while somebody is about to believe it (R1, B19)."""

from typing import Any

import pytest

from memory.domain.identity import Actor, ActorKind
from memory.facts import remember
from memory.facts.remember import FactReading, Remembered, read_text
from memory.forgetting import forget_episode
from memory.models import (
    Belief,
    BeliefEmbedding,
    Episode,
    EpisodeEmbedding,
    Evidence,
    ModelCall,
)
from tests.consolidation.world import World
from tests.facts.telling import TABS, actions, remembrance_of, tell, work_all
from tests.model_server_acts import refuse

pytestmark = pytest.mark.django_db


def test_forgotten_words_stay_forgotten(world: World) -> None:
    """R1, L4."""
    told = tell(world, TABS)
    person = Actor(kind=ActorKind.PERSON, name="lena")
    forget_episode(episode=Episode.objects.get(pk=told.episode_id), actor=person, now=world.now)
    again = tell(world, TABS)
    assert (again.state, again.beliefs, again.is_forgotten) == ("done", (), True)


def forget(told: Remembered, world: World) -> None:
    person = Actor(kind=ActorKind.PERSON, name="lena")
    forget_episode(episode=Episode.objects.get(pk=told.episode_id), actor=person, now=world.now)


def test_a_text_forgotten_while_it_waits_is_not_read(world: World, offline: None, sent: list[int]) -> None:
    """R1, B19: no model sees it, and nothing is believed of it."""
    told = tell(world, TABS)
    forget(told, world)
    work_all(world)
    row = remembrance_of(told)
    assert (row.state, row.state_reason, row.claims) == ("done", "forgotten", 0)
    assert (Belief.objects.count(), ModelCall.objects.count(), row.facts.count()) == (0, 0, 0)


def test_a_text_forgotten_while_it_is_read_founds_nothing(
    world: World, offline: None, sent: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R1, B19: between the model's reply and the gate, somebody forgets it."""
    told = tell(world, TABS)

    def read_and_forget(**asked: Any) -> FactReading:
        reading = read_text(**asked)
        forget(told, world)
        return reading

    monkeypatch.setattr(remember, "read_text", read_and_forget)
    work_all(world)
    assert (remembrance_of(told).state, remembrance_of(told).state_reason) == ("done", "forgotten")
    assert (Belief.objects.count(), Evidence.objects.count()) == (0, 0)


def test_a_belief_that_waits_for_a_vector_gets_it_from_a_forgotten_text(
    world: World, hasty: None, sent: list[int]
) -> None:
    """R2, B19: and no more: what the text would have borne out stays as it is."""
    belief = world.hold(TABS, about="tabs", supports=3)
    world.directions.place("Ana prefers tabs over spaces!", {"tabs": 0.95})
    world.trouble.broken["embed"] = refuse(500)
    told = tell(world, "Ana prefers tabs over spaces!")
    [(unmatched, _)] = actions(told)
    forget(told, world)
    world.trouble.broken.clear()
    work_all(world)
    assert (world.now_of(belief).alpha, Belief.objects.get(pk=unmatched).status) == (4.0, "archived")
    assert BeliefEmbedding.objects.filter(belief=unmatched).exists()
    assert not EpisodeEmbedding.objects.filter(episode=told.episode_id).exists()
    assert remembrance_of(told).state == "done"
