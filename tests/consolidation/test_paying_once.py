"""What would change nothing is not paid for, and a limit delays without losing anything (B7, B8, B9)."""

from memory.domain.evidence import Verdict
from memory.models import Episode
from tests import factories
from tests.consolidation.conftest import Decree
from tests.consolidation.test_clusters import bikes
from tests.consolidation.world import World
from tests.model_server_acts import garbage

SHED = "The shed of the club is full of bikes."
CHAT = ("synthesize", "classify", "revise", "split", "merge")


def calls(world: World) -> int:
    """Count the calls to language models."""
    return sum(world.calls(purpose) for purpose in CHAT)


def test_a_second_cycle_over_the_same_episodes_asks_nothing(world: World) -> None:
    """B7: whether they became a belief, evidence, or nothing at all."""
    world.hold("The kiln of the pottery burns 5 hours.", about="kiln")
    world.say("The kiln of the pottery burns 6 hours.", about="kiln", likeness=0.8, verdict=Verdict.IRRELEVANT)
    world.say_all(bikes(3), about="shed")
    world.statements["barn"] = ""
    world.say_all([f"The barn {n} has a red door." for n in range(3)], about="barn")
    world.cycle()
    paid = calls(world)

    world.cycle()

    assert calls(world) == paid == 4


def test_a_refused_set_is_asked_about_again_once_it_changes(world: World) -> None:
    """B8.2: not before, and then once."""
    world.statements["shed"] = ""
    world.say_all(bikes(3), about="shed")
    for _ in range(2):
        world.cycle()
    assert calls(world) == 1

    world.say("Shed 9 holds the bikes of the club.", about="shed")
    for _ in range(2):
        world.cycle()

    assert calls(world) == 2


def test_garbage_costs_a_bounded_number_of_calls(world: World, hasty: None) -> None:
    """B11: a synthesis is tried twice a cycle, for three cycles; then nobody asks about its episodes any more."""
    world.server.script = lambda asked: garbage()
    said = world.say_all(bikes(3), about="shed")

    for _ in range(5):
        world.cycle()

    assert calls(world) == 6
    assert set(Episode.objects.dead()) == set(said)


# --- A limit only delays


def say_neighbours(world: World) -> None:
    """Say four matters that are clusters of their own, the statement of each being near the next one's episodes."""
    for number in range(4):
        statement = f"Shed {number} is near the sea."
        world.statements[f"shed {number}"] = statement
        world.directions.place(statement, {f"shed {number}": 1.0})
        for hour in range(3):
            text = f"Shed {number} was painted at {hour} by Ana."
            world.say(text, about=f"shed {number}")
            world.directions.place(text, {f"shed {number}": 0.66, f"shed {number - 1}": 0.72})


def beliefs_of(world: World) -> dict[str, int]:
    """Count each belief's evidence, by statement."""
    return dict(world.workspace.beliefs.values_list("statement", "evidence_count"))


def live_through(world: World, decree: Decree, *, clusters: int) -> tuple[dict[str, int], int]:
    """Consolidate four neighbours until nothing is left to do; return the beliefs, and how many calls it took."""
    decree("consolidation", clusters=clusters)
    world.workspace = factories.workspace()
    before = calls(world)
    say_neighbours(world)
    for _ in range(6):
        world.cycle()
    return beliefs_of(world), calls(world) - before


def test_clusters_that_wait_for_room_come_to_the_same_as_without_a_limit(world: World, decree: Decree) -> None:
    """B8.2, B9: the same beliefs with the same evidence, at the same cost."""
    at_once, one_by_one = (live_through(world, decree, clusters=number) for number in (10, 1))

    assert one_by_one == at_once
    assert len(at_once[0]) == 4


def test_what_was_believed_before_is_asked_about_however_long_a_cluster_waited(world: World, decree: Decree) -> None:
    """B8.4: only what was founded beside it is left to the gate."""
    decree("consolidation", clusters=1)
    belief = world.hold(SHED, about="shed", likeness=0.8)
    world.say_all([f"The barn {n} has a red door." for n in range(4)], about="barn")
    said = world.say_all(bikes(3), about="shed", likeness=0.9)
    world.cycle()
    assert set(world.states(*said)) == {"new"}

    world.cycle()

    assert world.now_of(belief).evidence_count == 6


def test_a_cluster_that_lost_an_episode_while_it_waited_is_formed_anew(world: World, decree: Decree) -> None:
    """B8.2: of those that are left."""
    decree("consolidation", clusters=1)
    world.say_all([f"The barn {n} has a red door." for n in range(5)], about="barn")
    said = world.say_all(bikes(4), about="shed")
    world.cycle()
    Episode.objects.filter(pk=said[0].pk).update(status="forgotten")

    world.cycle()

    assert sorted(beliefs_of(world).values()) == [3, 5]


def test_the_pool_is_not_asked_while_clusters_wait(world: World, decree: Decree) -> None:
    """B8.3: then about all that was founded meanwhile, in as few calls as it takes; what is new is asked at once."""
    decree("consolidation", clusters=1)
    pooled = world.say("The kiln of the pottery burns 6 hours.", about="kiln", likeness=0.8)
    world.cycle()
    belief = world.hold("The kiln of the pottery burns 5 hours.", about="kiln", supports=9)
    world.say_all(["The barn of the farm has a red door."] * 4, about="barn")
    world.say_all([SHED] * 3, about="shed")
    new = world.say("The kiln of the pottery burns 7 hours.", about="kiln", likeness=0.79)

    world.cycle()
    assert [call.texts for call in world.server.calls("classify")] == [[new.text]]
    world.cycle()

    assert [call.texts for call in world.server.calls("classify")] == [[new.text], [pooled.text]]
    assert world.now_of(belief).evidence_count == 11


def test_clusters_without_room_are_counted_as_put_off(world: World, decree: Decree) -> None:
    """B8.2: and not among those that the cycle took up."""
    decree("consolidation", clusters=2)
    for about in range(5):
        world.say_all([f"The barn {about} has a red door {n}." for n in range(3)], about=f"barn {about}")

    cycle = world.cycle()

    assert (cycle.counts["clusters"], cycle.counts["created"], cycle.counts["deferred"]) == (2, 2, 3)
