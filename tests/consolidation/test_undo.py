"""B22: what a cycle did is taken back, its episodes are held, and no later cycle does it again."""

import pytest
from django.db import transaction

from memory.consolidation.curator_actions import CreatedInUndoneCycle, CuratorAction, curate_belief
from memory.consolidation.cycle import open_cycle
from memory.consolidation.rebuild import rebuild_beliefs
from memory.consolidation.undo import CannotBeUndone, undo_cycle
from memory.consolidation.undone import release_quarantined, select_quarantined
from memory.domain.evidence import Verdict
from memory.history import beliefs_as_of
from memory.models import (
    Belief,
    BeliefEvent,
    Cycle,
    Episode,
    Evidence,
    Lineage,
    Transition,
    Trigger,
)
from tests.consolidation.restructuring import (
    OLD,
    SUMMER,
    TWIN,
    WINTER,
    child_of,
    contradict,
    doubted,
    twins,
)
from tests.consolidation.undoing import DAY, HOUR, LENA, TOMA, created, kept, reinforced, snapshot, undo
from tests.consolidation.world import World

# --- What goes back


def test_a_belief_born_in_the_cycle_is_believed_no_more(world: World) -> None:
    """B22: it stays as invalidated, so that it can be told what was believed; its evidence is gone."""
    cycle = created(world)
    born = world.only_belief()
    world.now += HOUR

    undone = undo(world, cycle)

    born = world.only_belief()
    assert (born.status, born.status_reason) == ("invalidated", f"cycle {cycle.pk} undone: it was a test")
    assert (born.alpha, born.beta, born.evidence_count, born.storage_strength) == (1.0, 1.0, 0, 0)
    assert undone.counts == {"restored": 0, "invalidated": 1, "evidence": 3, "lineage": 0, "held": 3}
    assert (undone.cycle.undone_at, undone.cycle.undone_by, undone.cycle.state) == (
        world.now, "person lena", "finished",
    )  # fmt: skip


def test_what_was_believed_before_it_was_undone_can_still_be_told(world: World) -> None:
    """R10, B22: as of a moment before the undoing the belief stands; its history names who took it back."""
    cycle = created(world)
    then = world.now
    world.now += DAY
    undo(world, cycle)

    mine = Belief.objects.for_workspace(world.workspace)
    assert [(event.status, event.alpha) for event in beliefs_as_of(beliefs=mine, at=then)] == [("active", 4.0)]
    assert [event.status for event in beliefs_as_of(beliefs=mine, at=world.now)] == ["invalidated"]
    assert {event.pgh_context["actor"] for event in BeliefEvent.objects.filter(updated_at=world.now)} == {"person lena"}
    told = Transition.objects.get(belief=world.only_belief())
    assert (told.old, told.new, told.actor) == ("active", "invalidated", "person lena")


def test_what_only_grows_goes_back_with_the_evidence(world: World) -> None:
    """B4, B6, B22: α, β, count, peak, error, storage strength, and when it was last reinforced."""
    created(world)
    before = snapshot(world)
    cycle = reinforced(world)
    assert world.only_belief().peak_confidence > 0.8

    undo(world, cycle)

    assert kept(world, before) == before


def test_a_revision_is_taken_back(world: World) -> None:
    """B15, B22: the old belief is active again, on its old evidence; what took its place is invalidated."""
    old = doubted(world)
    before = snapshot(world)
    contradict(world)
    cycle = world.cycle()
    new = child_of(old)

    undo(world, cycle)

    assert kept(world, before) == before
    assert (world.now_of(new).status, Lineage.objects.count()) == ("invalidated", 0)


def test_what_began_with_the_end_of_another_goes_back_with_it(world: World) -> None:
    """C2, B22: the successor gained nothing in the cycle but since when it holds."""
    old = world.hold(OLD, about="old", supports=5)
    new = world.hold(TWIN, about="new", supports=1)
    told = Episode.objects.filter(evidence__belief=old)
    told.update(occurred_at=world.now - 20 * DAY)
    Lineage.objects.create(workspace=world.workspace, parent=old, child=new, kind="supersession", created_at=world.now)
    for number in range(4):
        at = world.now - 9 * DAY + number * HOUR
        world.say(f"No {number}: {OLD}", about="old", likeness=0.8, verdict=Verdict.CONTRADICTS, occurred_at=at)
    cycle = world.cycle(after=HOUR)
    assert (world.now_of(old).status, world.now_of(new).valid_from) == ("invalidated", world.now_of(old).valid_until)

    undo(world, cycle)

    assert (world.now_of(old).status, world.now_of(old).valid_until) == ("active", None)
    assert world.now_of(new).valid_from is None


def test_an_archived_belief_that_came_back_lies_in_the_archive_again(world: World) -> None:
    """B14, B22: for the reason it was archived for, so that fresh support brings it back as ever."""
    created(world)
    assert world.cycle(after=91 * DAY).counts["archived"] == 1
    before = snapshot(world)
    cycle = reinforced(world)
    assert world.only_belief().status == "active"

    undo(world, cycle)

    assert kept(world, before) == before
    assert (world.only_belief().status, world.only_belief().status_reason) == ("archived", "stale_and_weak")
    release_quarantined(episodes=select_quarantined(cycle=Cycle.objects.get(pk=cycle.pk)))
    world.cycle(after=HOUR)
    assert world.only_belief().status == "active"


def test_a_belief_that_an_undone_cycle_archived_is_let_be_for_ninety_days(world: World) -> None:
    """B14, B22: as if a person had restored it."""
    created(world)
    before = snapshot(world)
    cycle = world.cycle(after=91 * DAY)

    undo(world, cycle)

    assert kept(world, before) == before
    assert world.only_belief().restored_by_person_at == world.now
    assert world.cycle(after=90 * DAY).counts["archived"] == 0
    assert world.cycle(after=DAY).counts["archived"] == 1


def test_a_cycle_that_did_nothing_is_undone_without_a_trace(world: World) -> None:
    created(world)
    before, cycle = snapshot(world), world.cycle(after=DAY)

    undone = undo(world, cycle)

    assert kept(world, before) == before
    assert set(undone.counts.values()) == {0}


def test_a_newborn_that_was_split_in_the_same_cycle_dies_with_its_children(world: World) -> None:
    """B12, B22: whatever became of what was born in the cycle, nothing of it lives."""
    world.statements["kiln"] = OLD
    world.directions.place(OLD, {"kiln": 0.99})
    world.divisions[OLD] = {"in winter": WINTER, "in summer": SUMMER}
    for number in range(7):
        verdict = Verdict.SUPPORTS if number < 4 else Verdict.PARTIAL
        text = f"Potter's log {number}: the oven was hot."
        world.say(text, about="kiln", likeness=0.85, verdict=verdict)
        for part in world.divisions[OLD].values():
            world.verdicts[f"{part}|{text}"] = Verdict.SUPPORTS
    cycle = world.cycle()
    assert (cycle.counts["created"], cycle.counts["split"]) == (1, 1)

    undone = undo(world, cycle)

    assert set(Belief.objects.values_list("status", flat=True)) == {"invalidated"}
    assert (undone.counts["invalidated"], Evidence.objects.count(), Lineage.objects.count()) == (3, 0, 0)


# --- What stands in the way


def test_two_cycles_are_undone_the_newest_first(world: World) -> None:
    """B22: a stack; at its bottom nothing is left."""
    start = snapshot(world)
    first = created(world)
    second = reinforced(world)

    undo(world, second)
    undo(world, first)

    assert kept(world, start) == start == {}
    assert set(Episode.objects.values_list("state", flat=True)) == {"held"}


def test_an_older_cycle_is_not_undone_under_a_later_one(world: World) -> None:
    """B22: the refusal names the later cycles, newest first, and what they changed; nothing has changed."""
    first = created(world)
    second, third = reinforced(world), reinforced(world)
    rows = world.rows()

    with pytest.raises(CannotBeUndone) as refused:
        undo_cycle(cycle_id=first.pk, actor=LENA, now=world.now)

    born = world.only_belief().pk
    assert f"{third.pk} changed {born}; {second.pk} changed {born}. Undo those first" in str(refused.value)
    assert world.rows() == rows


def test_a_cycle_is_built_on_where_a_later_one_made_what_it_had_decided(world: World) -> None:
    """B22: deciding is touching."""
    one, other = twins(world)
    world.unions |= {OLD: "", TWIN: ""}
    world.before_gate = lambda: Cycle.objects.filter(finished_at=None).update(budget_spent="enough")
    first = world.cycle()
    world.before_gate = lambda: None
    second = world.cycle(after=HOUR)
    assert second.counts["merged"] == 1

    with pytest.raises(CannotBeUndone, match=f"{second.pk} changed {min(one.pk, other.pk)}, {max(one.pk, other.pk)}"):
        undo_cycle(cycle_id=first.pk, actor=LENA, now=world.now)


def test_a_later_cycle_that_was_undone_is_nothing_to_build_on(world: World) -> None:
    """B22: an archiving and its undoing are nobody's word on the belief."""
    start = snapshot(world)
    first = created(world)
    second = world.cycle(after=91 * DAY)
    assert second.counts["archived"] == 1

    undo(world, second, actor=TOMA)
    undo(world, first)

    assert kept(world, start) == {}


def test_later_work_on_other_beliefs_does_not_stand_in_the_way(world: World) -> None:
    first = created(world)
    world.say_all([f"The weir was mended, note {n}." for n in range(3)], about="weir")
    world.cycle(after=HOUR)

    undo(world, first)

    assert sorted(Belief.objects.values_list("status", flat=True)) == ["active", "invalidated"]


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_cycle_that_has_not_ended_is_not_undone(world: World, state: str) -> None:
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    Cycle.objects.filter(pk=cycle.pk).update(state=state)

    with pytest.raises(CannotBeUndone, match=f"{cycle.pk} is still {state}"):
        undo_cycle(cycle_id=cycle.pk, actor=LENA, now=world.now)


def test_no_cycle_is_undone_while_another_is_open(world: World) -> None:
    """B22: it waits until that one has ended."""
    first = created(world)
    other, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)

    with pytest.raises(CannotBeUndone, match=f"{other.pk} is queued"):
        undo_cycle(cycle_id=first.pk, actor=LENA, now=world.now)

    assert world.only_belief().status == "active"


def test_a_cycle_is_undone_once(world: World) -> None:
    cycle = created(world)
    undo(world, cycle)

    with pytest.raises(CannotBeUndone, match="undone already, by person lena"):
        undo_cycle(cycle_id=cycle.pk, actor=TOMA, now=world.now)


def test_what_is_older_than_the_history_cannot_be_set_back(world: World) -> None:
    """R10, B22: of what no cycle made and nothing tells how it began, it says so and changes nothing."""
    world.hold(OLD, about="kiln", supports=1)
    cycle = world.cycle(after=91 * DAY)
    assert world.only_belief().status == "archived"
    BeliefEvent.objects.all().delete()
    rows = world.rows()

    with pytest.raises(CannotBeUndone, match="is not recorded"), transaction.atomic():
        undo_cycle(cycle_id=cycle.pk, actor=LENA, now=world.now)

    assert world.rows() == rows


def test_what_a_cycle_made_needs_no_history(world: World) -> None:
    """B22: its job tells what it was made of."""
    created(world)
    cycle = world.cycle(after=91 * DAY)
    BeliefEvent.objects.all().delete()

    undo(world, cycle)

    assert (world.only_belief().status, world.only_belief().status_reason) == ("active", "")


# --- What a person did since


@pytest.mark.parametrize(
    ("act", "status"),
    [
        (CuratorAction.ARCHIVE, "archived"),
        (CuratorAction.FORGET, "forgotten"),
        (CuratorAction.CHALLENGE, "invalidated"),
        (CuratorAction.PIN, "invalidated"),
    ],
)
def test_nothing_born_in_the_cycle_lives_but_what_a_person_put_away_stays_away(
    world: World, act: CuratorAction, status: str
) -> None:
    """B22: a tombstone stays one; a challenged belief would still be judged."""
    cycle = created(world)
    curate_belief(belief_id=world.only_belief().pk, act=act, reason="by hand", actor=TOMA, now=world.now)

    undo(world, cycle)

    born = world.only_belief()
    assert (born.status, born.is_pinned, born.evidence_count) == (status, act is CuratorAction.PIN, 0)


@pytest.mark.parametrize(
    ("act", "status"),
    [(CuratorAction.RESTORE, "active"), (CuratorAction.CHALLENGE, "challenged"), (CuratorAction.FORGET, "forgotten")],
)
def test_a_status_that_a_person_set_since_stays(world: World, act: CuratorAction, status: str) -> None:
    """B22: the cycle archived it, a person has spoken since."""
    created(world)
    cycle = world.cycle(after=91 * DAY)
    curate_belief(belief_id=world.only_belief().pk, act=act, reason="by hand", actor=TOMA, now=world.now)

    undo(world, cycle)

    assert world.only_belief().status == status


@pytest.mark.django_db(transaction=True)  # rebuilding goes by when rows were written
def test_a_pin_set_since_stays(world: World) -> None:
    """D9, B22: it neither stands in the way nor goes back."""
    created(world)
    cycle = reinforced(world)
    curate_belief(belief_id=world.only_belief().pk, act=CuratorAction.PIN, reason="by hand", actor=TOMA, now=world.now)

    undo(world, cycle)

    assert (world.only_belief().is_pinned, world.only_belief().alpha) == (True, 4.0)


@pytest.mark.parametrize("act", [CuratorAction.RESTORE, CuratorAction.CHALLENGE])
def test_what_was_born_in_an_undone_cycle_is_not_revived_by_hand(world: World, act: CuratorAction) -> None:
    """B22: it has no evidence to live by; releasing the episodes is the way."""
    cycle = created(world)
    undo(world, cycle)

    with pytest.raises(CreatedInUndoneCycle, match=f"{cycle.pk}, which was undone"):
        curate_belief(belief_id=world.only_belief().pk, act=act, reason="by hand", actor=TOMA, now=world.now)

    assert world.only_belief().status == "invalidated"


# --- What rebuilding set right


def test_what_rebuilding_set_right_is_nobodys_word(world: World) -> None:
    """B22: a revision that it put right is taken back as ever, and the old belief lives."""
    old = doubted(world)
    before = snapshot(world)
    contradict(world)
    cycle = world.cycle()
    new = child_of(old)
    Belief.objects.filter(pk=old.pk).update(status="active")
    rebuild_beliefs(workspace=world.workspace, now=world.now)
    assert world.now_of(old).status == "revised"

    undo(world, cycle)

    assert kept(world, before) == before
    assert (world.now_of(old).status, world.now_of(new).status) == ("active", "invalidated")
