"""R10, B22: why something was believed can be told although the cycle that led to it was undone."""

from dataclasses import replace
from datetime import datetime

from memory.access import Viewer
from memory.consolidation.undone import release_quarantined, select_quarantined
from memory.domain.lifecycle import EpisodeStatus
from memory.ledger.transactions import change_episode_status
from memory.models import Belief, Cycle, Episode, Evidence, RevokedEvidence, RevokedLineage
from memory.recall.cards import BeliefCard, read_card, read_card_as_of
from tests import factories
from tests.consolidation.restructuring import child_of, contradict, doubted
from tests.consolidation.undoing import DAY, HOUR, LENA, created, reinforced, undo
from tests.consolidation.world import World


def card(world: World, belief: Belief, *, at: datetime, viewer: Viewer | None = None) -> BeliefCard:
    shown = read_card_as_of(belief=belief, at=at, viewer=viewer or Viewer(workspace=world.workspace))
    assert shown is not None
    return shown


def test_the_evidence_of_then_is_shown_as_of_then(world: World) -> None:
    """R10: with the weights and origins of before the undoing; as of now it is gone."""
    cycle = created(world)
    belief, then = world.only_belief(), world.now
    before = card(world, belief, at=then)
    world.now += DAY

    undo(world, cycle)

    after = card(world, belief, at=then)
    lines = [replace(line, claim="") for line in before.evidence]  # which claim gave it is not kept
    assert (after.evidence, after.origins, after.hidden_evidence) == (lines, before.origins, 0)
    assert len(after.evidence) == 3
    assert card(world, belief, at=world.now).evidence == []
    assert read_card(belief=world.only_belief(), viewer=Viewer(workspace=world.workspace)).evidence == []


def test_the_relatives_of_then_are_shown_as_of_then(world: World) -> None:
    """R10, B15: which belief took whose place, until that was undone."""
    old = doubted(world)
    contradict(world)
    cycle = world.cycle()
    new, then = child_of(old), world.now
    world.now += DAY

    undo(world, cycle)

    assert [(each.id, each.kind) for each in card(world, old, at=then).children] == [(new.pk, "revision")]
    assert [each.id for each in card(world, new, at=then).parents] == [old.pk]
    assert card(world, old, at=world.now).children == card(world, new, at=world.now).parents == []


def test_what_was_said_again_since_is_shown_once(world: World) -> None:
    """B4, R10: an undone row and the one that took its place are never counted side by side."""
    created(world)
    cycle = reinforced(world)
    belief, then = world.only_belief(), world.now
    world.now += HOUR
    undone = undo(world, cycle)
    between = world.now
    release_quarantined(episodes=select_quarantined(cycle=undone.cycle))
    world.cycle(after=HOUR)

    assert [len(card(world, belief, at=at).evidence) for at in (then, between, world.now)] == [4, 3, 4]


def test_what_lies_in_a_hidden_project_is_counted_and_not_shown(world: World) -> None:
    """B21, R10: as with evidence that is there."""
    created(world)
    cycle = reinforced(world)
    belief, then = world.only_belief(), world.now
    hidden, open_to_all = (factories.project(workspace=world.workspace) for _ in range(2))
    Episode.objects.filter(evidence__cycle=cycle).update(project=hidden)
    Episode.objects.filter(project=None).update(project=open_to_all)
    world.now += HOUR
    undo(world, cycle)

    shown = card(world, belief, at=then, viewer=Viewer(workspace=world.workspace, projects=(open_to_all.pk,)))

    assert (len(shown.evidence), shown.hidden_evidence) == (3, 1)


def test_what_was_forgotten_since_is_shown_no_more(world: World) -> None:
    """R10: it counts as of then, and its words are gone."""
    cycle = created(world)
    belief, then = world.only_belief(), world.now
    world.now += DAY
    undo(world, cycle)
    said = Episode.objects.order_by("pk")[0]

    change_episode_status(ids=[said.pk], new=EpisodeStatus.FORGOTTEN, reason="x", actor=LENA, now=world.now)

    shown = card(world, belief, at=then)
    assert (len(shown.evidence), shown.hidden_evidence, shown.belief.alpha) == (2, 1, 4.0)
    assert said.pk not in {line.episode for line in shown.evidence}


def test_what_is_erased_leaves_nothing_aside(world: World) -> None:
    """B1: an episode takes its undone evidence with it, a belief all that was undone about it."""
    old = doubted(world)
    contradict(world)
    undo(world, world.cycle())
    new = Belief.objects.exclude(pk=old.pk).get()
    assert (RevokedEvidence.objects.filter(belief=old).count(), RevokedLineage.objects.count()) == (1, 1)

    Episode.objects.filter(pk__in=RevokedEvidence.objects.filter(belief=old).values("episode")).delete()
    assert not RevokedEvidence.objects.filter(belief=old).exists()
    new.delete()

    assert not RevokedEvidence.objects.exists()
    assert not RevokedLineage.objects.exists()
    assert Evidence.objects.filter(belief=old).exists()


def test_it_stays_when_the_cycle_goes(world: World) -> None:
    """R10."""
    cycle = created(world)
    belief, then = world.only_belief(), world.now
    world.now += DAY
    undo(world, cycle)

    Cycle.objects.filter(pk=cycle.pk).delete()

    assert [line.cycle for line in card(world, belief, at=then).evidence] == [None] * 3
