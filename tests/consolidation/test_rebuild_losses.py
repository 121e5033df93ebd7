"""B22: what was made of an episode that is gone is not made again; only that is consolidated anew."""

from datetime import timedelta

import pytest

from memory.domain.identity import Actor, ActorKind
from memory.domain.lifecycle import EpisodeStatus
from memory.ledger.transactions import change_episode_status
from memory.models import Belief, BeliefEvent, Episode, Lineage, StructuralJob
from tests.consolidation.test_rebuild import rebuild
from tests.consolidation.test_scripted_year import EARLY, FIVE, NOTES, SIX, STORM, WINTER_TOO, script, state
from tests.consolidation.world import World

LENA = Actor(kind=ActorKind.PERSON, name="lena")


def lose(text: str) -> None:
    """Take an episode away for good, as erasing does."""
    Episode.objects.get(text=text).delete()


def forget_uncounted(world: World, text: str) -> None:
    """Let an episode leave the evidence without a belief being computed anew."""
    episode = Episode.objects.get(text=text)
    change_episode_status(ids=[episode.pk], new=EpisodeStatus.FORGOTTEN, reason="private", actor=LENA, now=world.now)


def live(world: World) -> None:
    """Found two beliefs of three episodes, and reinforce the first by two."""
    script(world)
    world.say_all(EARLY[:3], about="kiln")
    world.say_all(NOTES, about="winter")
    world.cycle()
    world.say_all(EARLY[3:], about="kiln")
    world.cycle(after=timedelta(days=1))


def test_a_belief_founded_on_a_lost_episode_goes_and_the_others_stay(world: World) -> None:
    live(world)
    [kiln, winter] = Belief.objects.order_by("-evidence_count")
    other = Belief.objects.filter(pk=winter.pk).values().get()
    lose(EARLY[0])

    rebuilt = rebuild(world)

    assert [(d.id, d.is_lost) for d in rebuilt.differences] == [(kiln.pk, True)]
    assert rebuilt.released == 4
    assert Belief.objects.values().get() == other
    assert not BeliefEvent.objects.filter(statement=FIVE).exists()
    assert rebuild(world).differences == []


def test_the_next_cycle_asks_only_about_what_lost_a_member(world: World) -> None:
    """B22, B7: that its episodes were tried before keeps them from nothing."""
    live(world)
    lose(EARLY[0])
    rebuild(world)
    world.server.log.clear()

    world.cycle(after=timedelta(days=1))

    assert (state(FIVE)[0], state(WINTER_TOO)[0]) == (5.0, 4.0)
    assert world.calls("synthesize") == 1
    assert all(set(asked.texts) <= {FIVE} for asked in world.server.calls("embed"))
    assert rebuild(world).differences == []


def test_a_belief_founded_on_a_forgotten_episode_stays(world: World) -> None:
    """B19: it counts without that one, from when it was forgotten."""
    live(world)
    forget_uncounted(world, EARLY[1])

    [difference] = rebuild(world).differences

    assert (difference.is_lost, set(difference.columns)) == (
        False,
        {"alpha", "evidence_count", "archive_due_at", "peak_confidence"},
    )
    assert (state(FIVE), Episode.objects.filter(state="new").count()) == ((5.0, 1.0, 4, 0, "active"), 0)


def test_a_belief_that_lost_evidence_alone_stays_with_the_rest(world: World) -> None:
    """R10: α and β do without it."""
    live(world)
    lose(EARLY[4])

    [difference] = rebuild(world).differences

    assert (difference.is_lost, difference.columns["alpha"]) == (False, (6.0, 5.0))
    kiln = Belief.objects.get(statement=FIVE)
    assert (kiln.alpha, kiln.evidence.count()) == (5.0, 4)


@pytest.mark.usefixtures("without_closing")
def test_a_change_that_rests_on_lost_evidence_is_decided_anew(world: World) -> None:
    """B15: the revised belief stands again, what came of it goes, and the next cycle revises it on what is left."""
    live(world)
    world.say_all(STORM, about="kiln", likeness=0.8, verdict="CONTRADICTS")
    world.cycle(after=timedelta(days=79))
    six = Belief.objects.get(statement=SIX)
    lose(EARLY[4])

    rebuilt = rebuild(world)

    assert (rebuilt.decided_anew, state(FIVE)) == (1, (5.0, 11.0, 14, 0, "active"))
    assert not Belief.objects.filter(pk=six.pk).exists()
    cycle = world.cycle(after=timedelta(days=1))
    assert (cycle.counts["revised"], state(FIVE)[4]) == (1, "revised")
    assert state(SIX) == (11.0, 5.0, 14, 1, "active")
    assert Lineage.objects.get().child.statement == SIX
    assert list(StructuralJob.objects.order_by("pk").values_list("state", flat=True)) == ["applied", "applied"]
    assert rebuild(world).differences == []


def test_a_tombstone_stays_though_it_cannot_be_founded_again(world: World) -> None:
    """B22: what a person had forgotten must not come back because its episodes went."""
    live(world)
    kiln = Belief.objects.get(statement=FIVE)
    Belief.objects.filter(pk=kiln.pk).update(status="forgotten")
    lose(EARLY[0])

    assert rebuild(world).differences == []
    assert world.now_of(kiln).status == "forgotten"
