"""B22: what cycles recorded is replayed without a model, and gives the same beliefs under the same ids."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from memory.consolidation.cycle import open_cycle
from memory.consolidation.rebuild import CycleIsOpen, RebuildResult, rebuild_beliefs
from memory.consolidation.undo import undo_cycle
from memory.consolidation.undone import release_quarantined, select_quarantined
from memory.models import (
    Belief,
    BeliefEmbedding,
    BeliefEvent,
    ClusterJob,
    Cycle,
    Episode,
    Evidence,
    ModelCall,
    Transition,
    Trigger,
)
from tests.consolidation.generated import LENA, History
from tests.consolidation.test_near_duplicates import say_two_clusters
from tests.consolidation.test_scripted_year import BOTH, EARLY, FIVE, NOTES, STORM, script
from tests.consolidation.world import World

LATER = timedelta(days=400)


def live_a_year(world: World) -> None:
    """Let the scripted year pass: a belief is born, reinforced, revised, split, merged; another is archived."""
    script(world)
    world.say_all(EARLY[:3], about="kiln")
    world.cycle()
    world.say_all(EARLY[3:], about="kiln")
    world.cycle(after=timedelta(days=30))
    world.say_all(NOTES, about="winter")
    world.cycle(after=timedelta(days=30))
    world.say_all(STORM, about="kiln", likeness=0.8, verdict="CONTRADICTS")
    world.cycle(after=timedelta(days=20))
    world.say_all(BOTH, about="kiln", likeness=0.8, verdict="PARTIAL")
    world.cycle(after=timedelta(days=20))
    for days in (7, 1, 82, 1, 174):
        world.cycle(after=timedelta(days=days))


def rebuild(world: World, **given: Any) -> RebuildResult:
    return rebuild_beliefs(workspace=world.workspace, now=world.now + LATER, **given)


def wreck() -> None:
    """Spoil by hand, in the database, all that a replay can tell of beliefs."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM memory_evidence")
        cursor.execute("DELETE FROM memory_lineage")
        cursor.execute(
            "UPDATE memory_belief SET statement = 'Spoilt.', subject = 'x', predicate = 'x', context = 'x',"
            " timeframe = 'past', status = 'pruned', status_reason = 'x', is_pinned = true, alpha = 77, beta = 3,"
            " additive_confidence = 1, evidence_count = 1, peak_confidence = 1, prediction_error = 9,"
            " storage_strength = 0, lineage_depth = 9, last_reinforced_at = NULL, archive_due_at = now(),"
            " restored_by_person_at = now(), archived_by_person_at = now(), created_at = now()"
        )
        cursor.execute("UPDATE memory_beliefembedding SET is_active = false")


def without_keys(rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Leave out the keys that the database gives, and when a belief was last written."""
    return {
        name: sorted(
            ({key: value for key, value in row.items() if key not in _left_out(name)} for row in found), key=repr
        )
        for name, found in rows.items()
    }


def _left_out(name: str) -> set[str]:
    return {"updated_at", "id"} if name in ("Evidence", "Lineage") else {"updated_at"}


@pytest.mark.usefixtures("without_closing")
def test_a_year_is_the_same_again(world: World) -> None:
    """B22: same ids, statements, α and β, no call; history keeps no trace of it."""
    live_a_year(world)
    before, calls, events = world.rows(), len(world.server.log), BeliefEvent.objects.count()

    rebuilt = rebuild(world)

    assert (rebuilt.beliefs, rebuilt.cycles, rebuilt.differences) == (4, 10, [])
    assert (world.rows(), len(world.server.log), BeliefEvent.objects.count()) == (before, calls, events)


@pytest.mark.usefixtures("without_closing")
def test_all_that_was_spoilt_is_as_recorded_again(world: World) -> None:
    """B22: every column of every row, the keys that the database gives aside; no call."""
    live_a_year(world)
    before, calls = without_keys(world.rows()), ModelCall.objects.count()
    wreck()

    assert len(rebuild(world).differences) == 4

    assert without_keys(world.rows()) == before
    assert ModelCall.objects.count() == calls
    assert rebuild(world).differences == []


@pytest.mark.parametrize("seed", [1, 3, 5, 6, 10, 12])
def test_drawn_histories_are_the_same_again(world: World, seed: int) -> None:
    """B22: joined, suppressed, revised, split, merged, archived and returned ones, with curators' acts in between."""
    History(world, seed=seed).live(cycles=8)
    before, calls = without_keys(world.rows()), len(world.server.log)
    assert rebuild(world).differences == []
    wreck()

    rebuild(world)

    assert without_keys(world.rows()) == before
    assert len(world.server.log) == calls


def test_a_repair_is_attributed_and_leaves_the_past_as_it_was(world: World) -> None:
    """R10: one change more, by the command; what was believed in between stays what was believed."""
    world.say_all(EARLY[:3], about="kiln")
    world.cycle()
    belief = world.only_belief()
    events = BeliefEvent.objects.filter(pgh_obj=belief)
    earlier = list(events.order_by("pgh_id").values())
    Belief.objects.filter(pk=belief.pk).update(alpha=9)

    [difference] = rebuild(world).differences

    assert difference.columns == {"alpha": (9.0, 4.0)}
    assert list(events.order_by("pgh_id").values())[: len(earlier)] == earlier
    latest = events.latest("pgh_id")
    assert (latest.alpha, latest.pgh_context["actor"]) == (4.0, "system rebuild_beliefs")
    assert latest.updated_at == world.now + LATER


def test_what_no_trigger_keeps_is_kept_when_it_is_repaired(world: World) -> None:
    """R10, B22: a later cycle is undone to what was set right, not to what was wrong before."""
    cycles = [_founded(world), _supported(world)]
    Belief.objects.update(peak_confidence=0.99, storage_strength=77, last_reinforced_at=None)
    rebuild(world)
    right = _grown(world.only_belief())
    latest = BeliefEvent.objects.latest("pgh_id")
    assert (_grown(latest), latest.pgh_context["actor"]) == (right, "system rebuild_beliefs")

    last = _supported(world)
    undo_cycle(cycle_id=last.pk, actor=LENA, now=world.now)

    assert _grown(world.only_belief()) == right == (0.8333333333333334, 4, cycles[1].now)


def test_evidence_that_was_put_back_leaves_a_change(world: World) -> None:
    """R10, B22: also where α and β stayed as they were."""
    _founded(world)
    Evidence.objects.all()[0].delete()
    events = BeliefEvent.objects.count()

    rebuild(world)

    latest = BeliefEvent.objects.latest("pgh_id")
    assert (BeliefEvent.objects.count(), latest.alpha, latest.updated_at) == (events + 1, 4.0, world.now + LATER)
    assert latest.pgh_context == {"actor": "system rebuild_beliefs", "reason": "rebuilt from the recorded cycles"}


def _founded(world: World) -> Cycle:
    world.say_all(EARLY[:3], about="kiln")
    return world.cycle()


def _supported(world: World) -> Cycle:
    world.say(f"The kiln again, for the {len(world.verdicts)}th time.", about="kiln", likeness=0.8)
    return world.cycle(after=timedelta(days=1))


def _grown(belief: Any) -> tuple[Any, ...]:
    return belief.peak_confidence, belief.storage_strength, belief.last_reinforced_at


def test_a_vector_that_was_made_anew_survives(world: World) -> None:
    """B22: vectors, counters and what was published are nothing that a replay knows."""
    world.say_all(EARLY[:3], about="kiln")
    world.cycle()
    BeliefEmbedding.objects.update(model="another", vector=[1.0] + [0.0] * 767)
    Belief.objects.update(importance=9, published_confidence=0.7, alpha=2)

    rebuild(world)

    belief = world.only_belief()
    assert (belief.importance, belief.published_confidence, belief.alpha) == (9, 0.7, 4.0)
    assert BeliefEmbedding.objects.get().model == "another"


@pytest.mark.usefixtures("without_closing")
def test_a_dry_run_writes_nothing(world: World) -> None:
    live_a_year(world)
    Evidence.objects.all().delete()
    before = world.rows()

    rebuilt = rebuild(world, is_dry_run=True)

    assert len(rebuilt.differences) == 4
    assert world.rows() == before


def test_no_rebuilding_while_a_cycle_is_open(world: World) -> None:
    """B22."""
    cycle, _ = open_cycle(workspace_id=world.workspace.pk, now=world.now, trigger=Trigger.PERSON)
    with pytest.raises(CycleIsOpen, match=f"Cycle {cycle.pk} is queued; wait for it to end, or cancel it."):
        rebuild(world)


def test_what_no_cycle_made_keeps_its_status_and_gets_its_evidence_back(world: World) -> None:
    """B22: a belief without a record of its birth is not taken away."""
    belief = world.hold("The kiln of the pottery burns 5 hours.", about="kiln")
    world.say_all(EARLY[:3], about="kiln")
    world.cycle()
    before = world.verdicts_of(belief)
    Evidence.objects.filter(belief=belief, cycle__isnull=False).delete()
    Belief.objects.update(alpha=50)

    rebuild(world)

    after = world.now_of(belief)
    assert (after.alpha, after.status, world.verdicts_of(belief)) == (7.0, "active", before)


@pytest.mark.usefixtures("without_closing")
def test_an_undone_cycle_is_not_replayed(world: World) -> None:
    """B22: what it made stays as undoing left it, what it said of others stays away."""
    live_a_year(world)
    world.say_all([f"Log {n}: the weir is low." for n in range(3)], about="weir")
    cycle = world.cycle()
    [born] = Belief.objects.filter(created_in=cycle)
    undo_cycle(cycle_id=cycle.pk, actor=LENA, now=world.now)
    before = without_keys(world.rows())
    wreck()
    Belief.objects.filter(pk=born.pk).update(alpha=33)

    rebuild(world)

    found = without_keys(world.rows())
    assert [row for row in found["Belief"] if row["id"] != born.pk] == [
        row for row in before["Belief"] if row["id"] != born.pk
    ]
    assert found["Evidence"] == before["Evidence"]
    assert (world.now_of(born).status, world.now_of(born).alpha) == ("pruned", 1.0)  # as its evidence has it


@pytest.mark.parametrize("seed", [3, 6, 12, 16])
def test_drawn_histories_with_cycles_undone_are_the_same_again(world: World, seed: int) -> None:
    """B22: the last cycle is undone twice on the way, and its episodes are released once."""
    history = History(world, seed=seed)
    history.live(cycles=5)
    undo_cycle(cycle_id=_last(world), actor=LENA, now=world.now)
    history.live(cycles=2)
    undone = _last(world)
    undo_cycle(cycle_id=undone, actor=LENA, now=world.now)
    release_quarantined(episodes=select_quarantined(cycle=Cycle.objects.get(pk=undone)))
    history.live(cycles=2)

    assert rebuild(world).differences == []


def _last(world: World) -> str:
    cycles = Cycle.objects.for_workspace(world.workspace.pk).filter(undone_at=None)
    return str(cycles.latest("opened_at").pk)


def test_a_job_tells_which_twin_took_its_evidence(world: World) -> None:
    """B8.5: who joined whom cannot be told later, since the beliefs of then are not those of now."""
    say_two_clusters(world, (FIVE, FIVE))
    world.cycle()
    [job] = ClusterJob.objects.filter(outcome="joined")

    assert job.joined_belief is not None
    assert set(job.verdicts.filter(belief=None).exclude(verdict="IRRELEVANT").values_list("episode", flat=True)) <= set(
        Evidence.objects.filter(belief=job.joined_belief).values_list("episode", flat=True)
    )


def test_what_an_undone_cycle_said_first_is_not_said_by_a_later_one(world: World) -> None:
    """B22: a later job that repeated a verdict added nothing; with the row of the first one undone, none is left."""
    script(world)
    world.say_all(EARLY[:3], about="kiln")
    world.cycle()
    both = [f"Log {n}: 5 hours, and 6 in winter." for n in range(4)]
    spoken = [world.say(text, about="kiln") for text in both]
    for text in both:
        world.directions.place(text, {"kiln": 0.705, "winter": 0.705})
    undone = world.cycle(after=timedelta(days=1))
    world.say_all(NOTES, about="winter")
    world.cycle(after=timedelta(days=1))
    Episode.objects.filter(pk__in=[episode.pk for episode in spoken[:3]]).update(state="new")
    later = world.cycle(after=timedelta(days=1))
    undo_cycle(cycle_id=undone.pk, actor=LENA, now=world.now)
    assert ClusterJob.objects.get(cycle=later).verdicts.exclude(verdict="IRRELEVANT").count() == 6

    assert rebuild(world).differences == []
    assert Belief.objects.get(statement=FIVE).alpha == 4.0


def test_a_repaired_status_leaves_a_transition(world: World) -> None:
    """R10: wherever it strayed to, the table of transitions notwithstanding."""
    world.say_all(EARLY[:3], about="kiln")
    world.cycle()
    Belief.objects.update(status="forgotten")

    rebuild(world)

    change = Transition.objects.get()
    assert (change.old, change.new, change.actor) == ("forgotten", "active", "system rebuild_beliefs")
    assert world.only_belief().status_reason == ""
