"""D5, L18: facts whose vectors a server makes are weighed in the cycle that embeds them."""

from datetime import timedelta
from typing import Any

import pytest

from memory.domain.lifecycle import EpisodeStatus
from memory.models import Episode
from tests.consolidation.world import World


def test_a_fact_is_weighed_when_a_cycle_embeds_it(world: World) -> None:
    """D5: its importance moves once, however many cycles see it."""
    first = world.say("Ana keeps her bike in the shed.", about="shed", confidence=0.95)
    world.cycle()
    second = world.say("The bike of Ana is in the shed.", about="shed", confidence=0.95)
    world.cycle()
    world.cycle()

    for fact in (first, second):
        fact.refresh_from_db()
    assert first.distance == 1.0
    assert first.importance == pytest.approx(0.65)
    assert second.distance == pytest.approx(1 - 0.95**2, abs=0.01)
    assert second.importance < 0.5


def test_an_episode_that_nobody_extracted_keeps_its_importance(world: World) -> None:
    """D5: it is stored as it is."""
    episode = world.say("Ana keeps her bike in the shed.", about="shed")
    world.cycle()

    episode.refresh_from_db()
    assert (episode.importance, episode.distance) == (0.5, None)


def test_a_note_is_put_aside_in_the_cycle_that_embeds_the_newer_one(world: World) -> None:
    """L18: and takes no part in it any more."""
    given: dict[str, Any] = {"category": "preference", "confidence": 0.95, "speaker": "Ana", "source": "human"}
    old = world.say("Stand-up is at nine.", about="stand-up", likeness=0.99, **given)
    world.cycle()
    later = world.now + timedelta(hours=1)
    new = world.say("Stand-up is at ten now.", about="stand-up", likeness=0.99, occurred_at=later, **given)
    world.cycle()

    statuses = Episode.objects.in_bulk([old.pk, new.pk])
    assert statuses[old.pk].status == EpisodeStatus.SUPERSEDED
    assert statuses[new.pk].status == EpisodeStatus.ACTIVE
