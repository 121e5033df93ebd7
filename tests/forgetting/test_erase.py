"""B19: what is erased is gone with all that came of it, and what others said stays."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from memory.consolidation.cycle import open_cycle
from memory.consolidation.rebuild import CycleIsOpen
from memory.consolidation.undo import undo_cycle
from memory.domain.evidence import Verdict
from memory.domain.identity import content_hash
from memory.erasure.erase import Erasure, erase_memories, erase_user, erase_workspace
from memory.forgetting import forget_belief, forget_episode
from memory.ingest.schemas import Rejected, Stored
from memory.llm.call_log import settle_call
from memory.llm.types import Completion
from memory.models import (
    Belief,
    BeliefEvent,
    ClusterJob,
    Episode,
    Erased,
    Evidence,
    JobVerdict,
    ModelCall,
    StructuralJob,
    Trigger,
    Workspace,
)
from tests import factories
from tests.consolidation.generated import History
from tests.consolidation.test_rebuild import live_a_year
from tests.consolidation.test_scripted_year import BOTH, EARLY, FIVE, NOTES, SIX, STORM, WINTER_TOO, script, state
from tests.consolidation.world import World
from tests.forgetting.forgetful import DAY, LENA, all_is_sound, episode_of
from tests.ingest.arriving import take


def erase(world: World, *memories: Episode | Belief) -> Erasure:
    """Erase memories now; no belief may drift, and a rebuilding may find nothing to do."""
    erasure = erase_memories(
        workspace=world.workspace,
        episodes=Episode.objects.filter(pk__in=[one.pk for one in memories if isinstance(one, Episode)]),
        beliefs=[one.pk for one in memories if isinstance(one, Belief)],
        actor=LENA,
        now=world.now,
    )
    all_is_sound(world)
    return erasure


def live(world: World) -> Belief:
    """Found a belief of three episodes, and another of three; reinforce the first by two a day later."""
    script(world)
    world.say_all(EARLY[:3], about="kiln")
    world.say_all(NOTES, about="winter")
    world.cycle()
    world.say_all(EARLY[3:], about="kiln")
    world.cycle(after=DAY)
    return Belief.objects.get(statement=FIVE)


def hash_words() -> None:
    """Let episodes have the hashes of their words that storing them would have given them."""
    for episode in Episode.objects.all():
        Episode.objects.filter(pk=episode.pk).update(content_hash=content_hash(episode.text))


def test_a_belief_that_may_quote_it_goes_and_is_made_again_of_the_rest(world: World) -> None:
    """B19: with its history; four of five are asked about once more."""
    live(world)
    other = Belief.objects.filter(statement=WINTER_TOO).values().get()
    erasure = erase(world, episode_of(EARLY[1]))
    assert (erasure.episodes, erasure.beliefs, erasure.released, erasure.recomputed) == (1, 1, 4, 0)
    assert not BeliefEvent.objects.filter(statement=FIVE).exists()
    assert Belief.objects.values().get() == other
    world.server.log.clear()
    world.cycle(after=DAY)
    assert (state(FIVE), world.calls("synthesize")) == ((5.0, 1.0, 4, 0, "active"), 1)
    all_is_sound(world)


def test_a_belief_that_it_only_reinforced_stays(world: World) -> None:
    """B19: its words were there before; it counts without the erased support."""
    belief = live(world)
    erasure = erase(world, episode_of(EARLY[4]))
    assert (erasure.beliefs, erasure.released, erasure.recomputed) == (0, 0, 1)
    belief.refresh_from_db()
    assert (belief.alpha, belief.evidence_count, belief.storage_strength) == (5.0, 4, 4)
    assert belief.last_reinforced_at == belief.created_at + DAY


def test_what_models_said_of_it_is_gone_and_what_it_cost_stays(world: World) -> None:
    """B9, B19: of the other episodes of the same calls verdicts remain, and no word of a model."""
    live(world)
    spent = sorted(ModelCall.objects.values_list("purpose", "input_tokens", "cost_usd"))
    saw = set(ModelCall.objects.filter(episodes=episode_of(EARLY[4])).values_list("pk", flat=True))
    erase(world, episode_of(EARLY[4]))
    assert sorted(ModelCall.objects.values_list("purpose", "input_tokens", "cost_usd")) == spent
    assert {*ModelCall.objects.filter(reply="", input_hash="").values_list("pk", flat=True)} == saw
    assert saw
    assert set(JobVerdict.objects.filter(call__in=saw).values_list("reason", flat=True)) == {""}
    assert Evidence.objects.filter(call__in=saw, reason="").count() == 1


@pytest.mark.usefixtures("without_closing")
@pytest.mark.parametrize("text", [EARLY[0], EARLY[4], NOTES[1], STORM[3], BOTH[0]])
def test_a_whole_life_is_as_if_it_had_never_been_said(world: World, text: str) -> None:
    """B19, B22: revised, split, merged and archived beliefs too; the next cycle takes up what they were made of."""
    live_a_year(world)
    erase(world, episode_of(text))
    world.cycle(after=DAY)
    world.cycle(after=DAY)
    all_is_sound(world)
    assert not Episode.objects.filter(state="new").exists()


@pytest.mark.usefixtures("without_closing")
def test_what_a_revision_took_the_place_of_stands_again(world: World) -> None:
    """B15: one of the storm is erased: its revision falls with it, and is decided anew on the rest."""
    live(world)
    world.say_all(STORM, about="kiln", likeness=0.8, verdict=Verdict.CONTRADICTS)
    world.cycle(after=timedelta(days=79))
    assert state(FIVE)[4] == "revised"
    erase(world, episode_of(STORM[2]))
    assert state(FIVE) == (6.0, 10.0, 14, 0, "active")
    assert not Belief.objects.filter(statement=SIX).exists()
    assert list(StructuralJob.objects.order_by("pk").values_list("state", "refusal", "proposal")) == [
        ("refused", "erased", None), ("queued", "", None),
    ]  # fmt: skip
    world.cycle(after=DAY)
    assert (state(FIVE)[4], state(SIX)) == ("revised", (10.0, 6.0, 14, 1, "active"))
    all_is_sound(world)


def test_what_is_forgotten_is_erased_as_well(world: World) -> None:
    belief = live(world)
    forget_episode(episode=episode_of(EARLY[4]), actor=LENA, now=world.now)
    erase(world, episode_of(EARLY[4]))
    assert not Episode.objects.filter(text=EARLY[4]).exists()
    assert world.now_of(belief).alpha == 5.0


def test_a_tombstone_that_may_quote_it_goes_and_is_not_said_again(world: World) -> None:
    """B22, L4: nobody can read it any more, and its very words are refused."""
    belief = live(world)
    forget_belief(belief=belief, actor=LENA, now=world.now)
    erase(world, episode_of(EARLY[1]))
    assert not Belief.objects.filter(pk=belief.pk).exists()
    world.cycle(after=DAY)
    assert not Belief.objects.filter(statement=FIVE).exists()
    assert ClusterJob.objects.filter(refusal="suppressed", suppressed_by=None).count() == 1


def test_a_belief_is_erased_by_its_id(world: World) -> None:
    """B19: its episodes stay, and found none that says just the same."""
    belief = live(world)
    erasure = erase(world, belief)
    assert (erasure.episodes, erasure.beliefs, erasure.released) == (0, 1, 0)
    assert Episode.objects.filter(state="settled").count() == 8
    Episode.objects.update(state="new")
    world.cycle(after=DAY)
    assert not Belief.objects.filter(statement=FIVE).exists()


def test_the_same_words_are_refused(world: World) -> None:
    """L4: by a keyed hash, as the same user's, of whatever origin; another user may say them."""
    live(world)
    hash_words()
    erase(world, episode_of(EARLY[1]))
    said = [{"text": f"  {EARLY[1].upper()}", "session": "new"}, {"text": EARLY[1], "user": "mara"}]
    [refused, stored] = take(*said, workspace=world.workspace, now=world.now + DAY)
    assert isinstance(refused, Rejected)
    assert (refused.status, "erased" in refused.detail) == (409, True)
    assert isinstance(stored, Stored)
    [elsewhere] = take(said[0], workspace=factories.workspace())
    assert isinstance(elsewhere, Stored)


def test_what_is_kept_of_words_tells_nothing_without_the_key(world: World) -> None:
    """L4: the key is the workspace's own; no plain hash of the words is left."""
    live(world)
    episode = episode_of(EARLY[1])
    plain = episode.content_hash
    erase(world, episode)
    world.workspace.refresh_from_db()
    assert len(bytes(world.workspace.erasure_key or b"")) == 32
    [kept] = Erased.objects.all()
    assert kept.digest != plain


def test_what_an_undone_cycle_made_of_it_goes_too(world: World) -> None:
    """B22: invalidated beliefs and rows that were put aside are read for the past, and must not tell it."""
    live(world)
    last = Evidence.objects.latest("pk").cycle
    first = Evidence.objects.earliest("pk").cycle
    assert last
    assert first
    undo_cycle(cycle_id=last.pk, actor=LENA, now=world.now)
    undo_cycle(cycle_id=first.pk, actor=LENA, now=world.now)
    erase(world, episode_of(EARLY[1]))
    assert not BeliefEvent.objects.filter(statement=FIVE).exists()
    assert Belief.objects.get().statement == WINTER_TOO


def test_an_earlier_cycle_is_undone_afterwards(world: World) -> None:
    """B22: what the cycle gave goes, and nothing of what was erased comes back."""
    live(world)
    last = Evidence.objects.latest("pk").cycle
    assert last
    erase(world, episode_of(EARLY[4]))
    undo_cycle(cycle_id=last.pk, actor=LENA, now=world.now)
    all_is_sound(world)
    assert state(FIVE) == (4.0, 1.0, 3, 0, "active")
    assert world.states(episode_of(EARLY[3])) == ["held"]


def test_an_open_cycle_stands_in_the_way(world: World) -> None:
    """B19: workers hold words in their hands; the message names the cycle."""
    live(world)
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    acts: list[Callable[[], Erasure]] = [
        lambda: erase(world, episode_of(EARLY[1])),
        lambda: erase_user(workspace=world.workspace, user="mara", actor=LENA, now=world.now),
        lambda: erase_workspace(workspace=world.workspace, actor=LENA),
    ]
    for act in acts:
        with pytest.raises(CycleIsOpen, match=cycle.pk):
            act()
    assert Episode.objects.filter(text=EARLY[1]).exists()


def test_a_late_reply_is_not_written_down(world: World) -> None:
    """B19: a call that nobody waits for any more cannot bring back what it saw."""
    live(world)
    call = ModelCall.objects.filter(episodes=episode_of(EARLY[4])).first()
    assert call
    ModelCall.objects.filter(pk=call.pk).update(outcome="abandoned")
    erase(world, episode_of(EARLY[4]))
    late = Completion(reply=None, raw=EARLY[4], latency_ms=1, input_tokens=1, output_tokens=1)  # type: ignore[arg-type]
    settle_call(call_id=call.pk, model="scripted", result=late)
    assert ModelCall.objects.get(pk=call.pk).reply == ""


def test_all_of_a_user_goes_and_nothing_of_others(world: World) -> None:
    """B19: episodes and beliefs of theirs, and the words of both are refused as theirs."""
    script(world)
    world.say_all(EARLY[:3], about="kiln", user="mara")
    world.say_all(NOTES, about="winter", user="toma")
    world.cycle()
    hash_words()
    others = Belief.objects.filter(user="toma").values().get()
    erasure = erase_user(workspace=world.workspace, user="mara", actor=LENA, now=world.now)
    assert (erasure.episodes, erasure.beliefs, erasure.released) == (3, 1, 0)
    assert set(Episode.objects.values_list("user", flat=True)) == {"toma"}
    assert Belief.objects.values().get() == others
    all_is_sound(world)
    [again] = take({"text": EARLY[0], "user": "mara"}, workspace=world.workspace)
    assert isinstance(again, Rejected)


def test_a_workspace_is_as_new(world: World) -> None:
    """B19: but for its people, keys and projects; nothing is refused in it afterwards."""
    live(world)
    project = factories.project(workspace=world.workspace)
    factories.key(workspace=world.workspace, projects=(project,))
    elsewhere = factories.episode(workspace=factories.workspace())
    erase(world, episode_of(EARLY[1]))
    erase_workspace(workspace=world.workspace, actor=LENA)
    assert not any(world.rows()[name] for name in world.rows() if name != "Episode")
    assert (Episode.objects.get(), Erased.objects.count()) == (elsewhere, 0)
    assert world.workspace.api_keys.get().projects.get() == project
    assert Workspace.objects.get(pk=world.workspace.pk).erasure_key is None
    [again] = take(EARLY[1], workspace=world.workspace)
    assert isinstance(again, Stored)


def test_erasing_nothing_changes_nothing(world: World) -> None:
    live(world)
    before = world.rows()
    assert not any(erase(world).counts.values())
    assert world.rows() == before


class Erasing(History):
    """A history in which now and then something is erased, and curators act."""

    def _act(self) -> None:
        super()._act()
        known = list(Episode.objects.order_by("occurred_at", "text"))
        chosen = self.drawn.sample(known, k=min(self.drawn.randint(0, 2), len(known)))
        erase_memories(
            workspace=self.world.workspace,
            episodes=Episode.objects.filter(pk__in=[one.pk for one in chosen]),
            actor=LENA,
            now=self.world.now,
        )


@pytest.mark.parametrize("seed", [2, 4, 5])
def test_any_history_is_sound_whatever_is_erased_of_it(world: World, seed: int) -> None:
    """B19, B22: in the end no drift, and all as recorded."""
    history = Erasing(world, seed=seed)
    history.live(cycles=10)
    all_is_sound(world)
    assert Erased.objects.exists()
