"""B19: what is forgotten is evidence of nothing any more, and beliefs are as if it had never been among it."""

from datetime import timedelta

import pytest

from memory.consolidation.undo import undo_cycle
from memory.domain.evidence import Verdict
from memory.domain.lifecycle import IllegalTransitionError
from memory.forgetting import PinnedBelief, forget_belief, forget_episode
from memory.models import Belief, BeliefEvent, Episode, EpisodeEmbedding, Evidence, StructuralJob, Transition
from tests.consolidation.generated import History
from tests.consolidation.test_rebuild import live_a_year, rebuild
from tests.consolidation.test_scripted_year import BOTH, EARLY, FIVE, NOTES, SIX, STORM, script, state
from tests.consolidation.world import World
from tests.forgetting.forgetful import DAY, LENA, all_is_sound, episode_of, forget


def live(world: World) -> Belief:
    """Found a belief of three episodes; reinforce it by two a day later, and contradict it by one."""
    script(world)
    world.say_all(EARLY[:3], about="kiln")
    world.cycle()
    world.say_all(EARLY[3:], about="kiln")
    last = {"occurred_at": world.now + DAY}
    world.say(STORM[0], about="kiln", likeness=0.8, verdict=Verdict.CONTRADICTS, **last)
    world.cycle(after=DAY)
    return world.only_belief()


def test_a_belief_counts_without_what_was_forgotten(world: World) -> None:
    """B19, B4: α, β, counts and error are those of the rest; its row stays for the past."""
    belief = live(world)
    assert state(FIVE) == (6.0, 2.0, 6, 0, "active")
    told = forget(world, episode_of(EARLY[1]))
    assert state(FIVE) == (5.0, 2.0, 5, 0, "active")
    assert (set(told.bereft.beliefs), told.bereft.archived) == ({belief.pk}, frozenset())
    assert world.now_of(belief).evidence.count() == 6


def test_prediction_error_is_that_of_the_rest(world: World) -> None:
    """B6: four supports, then one against, at c = 5/6."""
    belief = live(world)
    forget(world, episode_of(EARLY[1]))
    assert world.now_of(belief).prediction_error == pytest.approx(5 / 6)
    forget(world, episode_of(STORM[0]))
    assert world.now_of(belief).prediction_error == 0.0


def test_history_says_who_and_why(world: World) -> None:
    """R10: of the episode the reason that was given, of the belief that evidence left."""
    belief = live(world)
    episode = episode_of(EARLY[1])
    forget(world, episode)
    change = Transition.objects.get(episode=episode)
    assert (change.new, change.reason, change.actor) == ("forgotten", "private", "person lena")
    event = BeliefEvent.objects.filter(pgh_obj=belief).latest("pgh_id")
    assert (event.alpha, event.pgh_context) == (5.0, {"actor": "person lena", "reason": "evidence was forgotten"})


def test_without_support_a_belief_is_archived_for_that_reason(world: World) -> None:
    """B19: by no gate, and as no tombstone of a person's."""
    belief = live(world)
    for text in EARLY[:4]:
        forget(world, episode_of(text))
    assert world.now_of(belief).status == "active"
    told = forget(world, episode_of(EARLY[4]))
    belief.refresh_from_db()
    assert (set(told.bereft.archived), belief.status, belief.status_reason) == ({belief.pk}, "archived", "unsupported")
    assert (belief.alpha, belief.beta, belief.evidence_count) == (1.0, 2.0, 1)
    assert belief.archived_by_person_at is None
    assert belief.embeddings.get().is_active is False


def test_a_pinned_belief_stays_without_support(world: World) -> None:
    """D9: immune to every archiving."""
    belief = live(world)
    Belief.objects.update(is_pinned=True)
    for text in EARLY:
        told = forget_episode(episode=episode_of(text), actor=LENA, now=world.now)
        assert told.bereft.archived == frozenset()
    assert (world.now_of(belief).status, world.now_of(belief).confidence) == ("active", 1 / 3)


def test_fresh_support_brings_it_back(world: World) -> None:
    """B14: as a stale one, at once."""
    belief = live(world)
    for text in [*EARLY, STORM[0]]:
        forget(world, episode_of(text))
    world.say("Potter's log 9: 5 hours again.", about="kiln", likeness=0.8)
    world.cycle(after=DAY)
    assert (world.now_of(belief).status, world.now_of(belief).alpha) == ("active", 2.0)
    all_is_sound(world)


def test_the_due_time_hangs_on_the_last_support_that_is_left(world: World) -> None:
    """B14: 90 days after what reinforced it last, for a belief of few rows."""
    belief = live(world)
    born = belief.created_at
    assert belief.last_reinforced_at == born + DAY
    for text in EARLY[3:]:
        forget(world, episode_of(text))
    belief.refresh_from_db()
    assert belief.last_reinforced_at == born
    assert belief.archive_due_at == born + timedelta(days=90)


def test_forgetting_again_changes_nothing(world: World) -> None:
    live(world)
    episode = episode_of(EARLY[1])
    forget(world, episode)
    before = world.rows()
    told = forget(world, episode)
    assert (told.bereft.beliefs, world.rows()) == (frozenset(), before)
    assert Transition.objects.filter(episode=episode).count() == 1


def test_searches_do_not_see_it(world: World) -> None:
    live(world)
    episode = episode_of(EARLY[1])
    forget(world, episode)
    assert EpisodeEmbedding.objects.get(episode=episode).is_active is False


@pytest.mark.usefixtures("without_closing")
@pytest.mark.parametrize("text", [EARLY[0], EARLY[4], NOTES[1], STORM[3], BOTH[0]])
def test_a_whole_life_is_rebuilt_as_it_stands(world: World, text: str) -> None:
    """B22: revised, split, merged and archived beliefs too: the forgetting has its place among the cycles."""
    live_a_year(world)
    forget(world, episode_of(text))
    beliefs = {(belief.pk, belief.status) for belief in Belief.objects.all()}
    assert rebuild(world).differences == []
    assert {(belief.pk, belief.status) for belief in Belief.objects.all()} == beliefs


@pytest.mark.usefixtures("without_closing")
def test_what_cycles_do_afterwards_is_rebuilt_too(world: World) -> None:
    """B22: the storm's revision rests on the evidence that was left then."""
    live(world)
    forget(world, episode_of(EARLY[1]))
    world.say_all(STORM[1:], about="kiln", likeness=0.8, verdict=Verdict.CONTRADICTS)
    world.cycle(after=timedelta(days=79))
    assert StructuralJob.objects.get().state == "applied"
    assert state(FIVE)[4] == "revised"
    all_is_sound(world)
    forget(world, episode_of(STORM[4]))
    assert state(SIX)[:3] == (10.0, 5.0, 13)


def test_an_earlier_cycle_is_undone_afterwards(world: World) -> None:
    """B22: what the cycle gave goes, what was forgotten stays gone."""
    live(world)
    last = Evidence.objects.latest("pk").cycle
    assert last
    forget(world, episode_of(EARLY[1]))
    undo_cycle(cycle_id=last.pk, actor=LENA, now=world.now)
    assert state(FIVE) == (3.0, 1.0, 2, 0, "active")
    all_is_sound(world)


def test_what_an_undone_cycle_released_does_not_come_back(world: World) -> None:
    live(world)
    last = Evidence.objects.latest("pk").cycle
    assert last
    forget(world, episode_of(EARLY[3]))
    undo_cycle(cycle_id=last.pk, actor=LENA, now=world.now)
    Episode.objects.filter(state="held").update(state="new")
    world.cycle(after=DAY)
    assert not Evidence.objects.filter(episode=episode_of(EARLY[3])).exists()
    assert state(FIVE) == (5.0, 2.0, 5, 0, "active")


def test_a_forgotten_belief_stays_as_a_tombstone(world: World) -> None:
    """B22: what says the same is suppressed."""
    belief = live(world)
    forget(world, belief)
    world.say_all([f"Potter's word {n}: 5 hours." for n in range(3)], about="kiln")
    world.cycle(after=DAY)
    assert (world.only_belief().status, world.only_belief().status_reason) == ("forgotten", "private")
    all_is_sound(world)


def test_a_pin_keeps_a_belief_from_those_who_may_not_take_it_off(world: World) -> None:
    """D9, B19."""
    belief = live(world)
    Belief.objects.update(is_pinned=True)
    with pytest.raises(PinnedBelief, match=f"{belief.pk} is pinned"):
        forget_belief(belief=belief, actor=LENA, now=world.now)
    assert world.now_of(belief).status == "active"
    forget_belief(belief=belief, actor=LENA, now=world.now, even_pinned=True)
    with pytest.raises(IllegalTransitionError):
        forget_belief(belief=belief, actor=LENA, now=world.now, even_pinned=True)


class Forgetful(History):
    """A history in which now and then something is forgotten."""

    def _act(self) -> None:
        super()._act()
        known = list(Episode.objects.active().order_by("occurred_at", "text"))
        for episode in self.drawn.sample(known, k=min(self.drawn.randint(0, 5), len(known))):
            forget_episode(episode=episode, actor=LENA, now=self.world.now)


@pytest.mark.parametrize("seed", [1, 3, 6])
def test_any_history_is_sound_whatever_is_forgotten_of_it(world: World, seed: int) -> None:
    """B19, B22: in the end no drift, and all as recorded."""
    history = Forgetful(world, seed=seed)
    history.live(cycles=12)
    all_is_sound(world)
    assert Episode.objects.filter(status="forgotten").exists()
    assert Belief.objects.exists()
