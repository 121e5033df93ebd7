"""B22: whatever a cycle did, and whatever went before, undoing it leaves what was there before, and the next agrees."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from memory.consolidation.undone import release_quarantined, select_quarantined
from memory.domain.evidence import Verdict
from memory.domain.lifecycle import BeliefStatus
from memory.models import Cycle, Episode, Evidence
from tests import factories
from tests.consolidation.restructuring import (
    NEW,
    OLD,
    SUMMER,
    TWIN,
    WINTER,
    contradict,
    divided,
    divisible,
    doubted,
    say_partially,
    twins,
)
from tests.consolidation.undoing import Snapshot, kept, snapshot, undo
from tests.consolidation.world import World

Draw = Callable[[st.SearchStrategy[Any]], Any]
Pairs = set[tuple[str, str]]

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
FEW = st.integers(1, 3)
SAID = st.sampled_from([Verdict.SUPPORTS, Verdict.CONTRADICTS, Verdict.PARTIAL, Verdict.IRRELEVANT])
DOUBT = st.sampled_from([Verdict.CONTRADICTS, Verdict.PARTIAL, Verdict.IRRELEVANT])
ORIGIN = st.integers(0, 6)  # few enough that some speak more than once, and weigh less each time


def speak(world: World, draw: Draw, verdict: str, *, about: str = "kiln") -> None:
    """Say something more about a matter, near enough to be asked about."""
    text = f"Log {len(world.verdicts)}: on the {about}."
    world.say(text, about=about, likeness=0.8, verdict=verdict, origin=f"session:{draw(ORIGIN)}")


def live_through(world: World, draw: Draw) -> None:
    """Have a history of its own, on other matters: beliefs that are founded, reinforced, and doubted."""
    for matter in draw(st.sets(st.sampled_from(["weir", "mill"]))):
        world.directions.place(f"The {matter} stands.", {matter: 1.0})
        world.statements[matter] = f"The {matter} stands."
        world.say_all([f"Note {n} on the {matter}." for n in range(3)], about=matter)
        world.cycle(after=DAY)
    gossip(world, draw)
    world.cycle(after=DAY)


def gossip(world: World, draw: Draw) -> None:
    """Say something about those matters."""
    for matter, verdict in draw(st.lists(st.tuples(st.sampled_from(["weir", "mill"]), SAID), max_size=3)):
        speak(world, draw, verdict, about=matter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One thing that a cycle can do: what must stand before it, what it takes, and how it is counted."""

    ground: Callable[[World, Draw], object]
    occasion: Callable[[World, Draw], object]
    counted: str  # never zero, so that each kind is certain to come about
    after: timedelta = HOUR


def nothing(world: World, draw: Draw) -> None:
    """Leave it at that."""


def believed(world: World, draw: Draw) -> None:
    world.hold(OLD, about="kiln", supports=draw(st.integers(3, 6)), is_pinned=draw(st.booleans()))


def weakly_believed(world: World, draw: Draw) -> None:
    world.hold(OLD, about="kiln", supports=draw(FEW))


def doubtfully_believed(world: World, draw: Draw) -> None:
    world.hold(OLD, about="kiln", supports=1, contradicts=2)


def on_the_verge(world: World, draw: Draw) -> None:
    supports = draw(st.integers(3, 4))
    doubted(world, supports=supports, against=supports + 2, speaks_for_new=10)


def told_twice(world: World, draw: Draw) -> None:
    twins(world)
    world.unions |= dict.fromkeys((OLD, TWIN), "")


def put_away(ground: Callable[[World, Draw], object]) -> Callable[[World, Draw], None]:
    """Have what stands there archived, all of it."""

    def archive(world: World, draw: Draw) -> None:
        ground(world, draw)
        assert world.cycle(after=181 * DAY).counts["archived"] >= 1

    return archive


def two_of_one_mind(world: World, draw: Draw) -> None:
    world.hold(OLD, about="kiln", supports=4)
    world.hold(TWIN, about="kiln", likeness=0.95, supports=draw(FEW))
    world.unions |= dict.fromkeys((OLD, TWIN), "")


def something_new(world: World, draw: Draw) -> None:
    world.statements["kiln"] = OLD
    world.directions.place(OLD, {"kiln": 1.0})
    for number in range(draw(st.integers(3, 5))):
        world.say(f"Page {number} on the kiln.", about="kiln", likeness=0.9)
    for verdict in draw(st.lists(st.sampled_from([Verdict.SUPPORTS, Verdict.IRRELEVANT]), max_size=2)):
        speak(world, draw, verdict)


def support(world: World, draw: Draw) -> None:
    for verdict in draw(st.permutations([Verdict.SUPPORTS, *draw(st.lists(SAID, max_size=2))])):
        speak(world, draw, verdict)


def doubt(world: World, draw: Draw) -> None:
    for verdict in draw(st.permutations([Verdict.CONTRADICTS, *draw(st.lists(DOUBT, max_size=2))])):
        speak(world, draw, verdict)


def storm(world: World, draw: Draw) -> None:
    for _ in range(draw(FEW)):
        contradict(world)


def return_and(occasion: Callable[[World, Draw], object]) -> Callable[[World, Draw], None]:
    """Say one word in favour, too, which brings back what was archived."""

    def speak_for_it(world: World, draw: Draw) -> None:
        text = f"Log {len(world.verdicts)}: 5 hours."
        world.verdicts |= {f"{part}|{text}": Verdict.SUPPORTS for part in (WINTER, SUMMER)}
        world.verdicts[f"{NEW}|{text}"] = Verdict.CONTRADICTS
        world.say(text, about="kiln", likeness=0.75)
        occasion(world, draw)

    return speak_for_it


def heavy_storm(world: World, draw: Draw) -> None:
    for _ in range(draw(st.integers(3, 4))):
        contradict(world)


def disbelief(world: World, draw: Draw) -> None:
    for number in range(draw(st.integers(2, 4))):
        world.say(f"Page {number} on the kiln: not so.", about="kiln", likeness=0.8, verdict=Verdict.CONTRADICTS)


KINDS: Mapping[str, Kind] = {
    "create": Kind(ground=nothing, occasion=something_new, counted="created"),
    "reinforce": Kind(ground=believed, occasion=support, counted="reinforced"),
    "contradict": Kind(ground=believed, occasion=doubt, counted="contradicted"),
    "revise": Kind(ground=on_the_verge, occasion=storm, counted="revised"),
    "split": Kind(ground=lambda world, draw: divided(world), occasion=nothing, counted="split"),
    "merge": Kind(ground=told_twice, occasion=nothing, counted="merged"),
    "archive": Kind(ground=weakly_believed, occasion=nothing, counted="archived", after=91 * DAY),
    "archive for doubt": Kind(ground=doubtfully_believed, occasion=disbelief, counted="archived"),
    "return": Kind(ground=put_away(weakly_believed), occasion=support, counted="reinforced"),
    "return and merge": Kind(ground=put_away(two_of_one_mind), occasion=return_and(nothing), counted="merged"),
    "return and split": Kind(
        ground=put_away(lambda world, draw: divisible(world)),
        occasion=return_and(lambda world, draw: say_partially(world)),
        counted="split",
    ),
    "return and revise": Kind(ground=put_away(on_the_verge), occasion=return_and(heavy_storm), counted="revised"),
}


def pairs_of(cycle: Cycle) -> Pairs:
    """Return what a cycle made evidence of which older beliefs."""
    rows = Evidence.objects.filter(cycle=cycle).exclude(belief__created_in=cycle)
    return set(rows.values_list("belief_id", "episode_id"))


def due_but_alive(before: Snapshot, place: World) -> set[str]:
    """Return the beliefs that were due to be archived and stand, since what a cycle heard of them renewed them.

    Once the cycle is undone, the next one archives them with good reason.
    """
    today = snapshot(place)
    return {
        key
        for key, (row, _, _) in before.items()
        if row["archive_due_at"] and row["archive_due_at"] <= place.now
        and row["status"] == today[key][0]["status"] == BeliefStatus.ACTIVE
    }  # fmt: skip


def without(seen: Snapshot, left_out: set[str]) -> Snapshot:
    """Return a snapshot less some beliefs."""
    return {key: value for key, value in seen.items() if key not in left_out}


@pytest.mark.slow
@pytest.mark.usefixtures("without_closing")
@pytest.mark.parametrize("name", KINDS)
@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.generate],  # an example takes a second: making a failing one smaller would take minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_what_was_there_before_a_cycle_is_there_after_it_was_undone(world: World, name: str, data: Any) -> None:
    """B22: and the next cycle does not do it again, unless the episodes are released."""
    kind, draw = KINDS[name], data.draw
    workspace = factories.workspace(discount_repeats=draw(st.booleans()))
    place = World(server=world.server, workspace=workspace, changes_its_mind=True)
    live_through(place, draw)
    kind.ground(place, draw)
    before = snapshot(place)
    kind.occasion(place, draw)
    gossip(place, draw)
    cycle = place.cycle(after=kind.after)
    assert cycle.counts[kind.counted] >= 1
    done, kept_alive = pairs_of(cycle), due_but_alive(before, place)

    undone = undo(place, cycle)
    assert kept(place, before) == before

    asked = len(place.server.log)
    place.cycle(after=HOUR)
    place.cycle(after=HOUR)
    assert without(kept(place, before), kept_alive) == without(before, kept_alive)
    assert len(place.server.log) == asked

    held = Episode.objects.filter(workspace=place.workspace, state="held").count()
    assert release_quarantined(episodes=select_quarantined(cycle=undone.cycle)) == held == undone.held
    again = place.cycle(after=HOUR)
    assert pairs_of(again) >= done
    assert again.counts["created"] == cycle.counts["created"]
    assert [again.counts[change] for change in ("revised", "split", "merged")] == [0, 0, 0]
