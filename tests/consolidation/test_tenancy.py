"""B21: a cycle touches its own workspace's rows and no other's."""

from datetime import timedelta

from memory.models import Belief, Episode, Evidence
from tests import factories
from tests.consolidation.world import World

LOCKS = [f"The lock of the archive lasts {n} seconds." for n in (5, 7, 9)]


def rows_of(world: World) -> dict[str, list[dict[str, object]]]:
    """Return the rows of the world's workspace."""
    key = world.workspace.pk
    return {name: [row for row in rows if row.get("workspace_id") == key] for name, rows in world.rows().items()}


def test_the_same_history_next_door_is_not_touched(world: World) -> None:
    """B21: neither its new, nor its pooled, nor its failed episodes, nor its beliefs, due or not."""
    here = world.workspace
    world.workspace = factories.workspace()
    world.hold("The lock of the archive lasts 3 seconds.", about="lock", supports=2)
    world.say_all(LOCKS, about="lock")
    world.say("The lock of the archive is red.", about="lock", state="pooled", pooled_at=world.now)
    world.say("The lock of the archive is blue.", about="lock", state="failed")
    before = rows_of(world)
    next_door, world.workspace = world.workspace, here
    world.say_all(LOCKS, about="lock")

    world.cycle(after=timedelta(days=100))

    assert world.only_belief().evidence_count == 3
    world.workspace = next_door
    assert rows_of(world) == before


def test_two_workspaces_learn_the_same_apart(world: World) -> None:
    """B21: each pays for its own calls and gets its own belief; evidence never crosses."""
    here = world.workspace
    world.say_all(LOCKS, about="lock")
    world.cycle()
    world.workspace = factories.workspace()
    world.say_all(LOCKS, about="lock")
    world.cycle()

    assert world.calls("synthesize") == 2
    assert set(Belief.objects.values_list("workspace", "alpha")) == {(here.pk, 4.0), (world.workspace.pk, 4.0)}
    for evidence in Evidence.objects.select_related("belief", "episode"):
        assert evidence.workspace_id == evidence.belief.workspace_id == evidence.episode.workspace_id


def test_three_alike_in_three_workspaces_are_nobodys_three(world: World) -> None:
    """B21: no cluster crosses."""
    said: list[Episode] = []
    for text in LOCKS:
        world.workspace = factories.workspace()
        said.append(world.say(text, about="lock"))
        world.cycle()

    assert not Belief.objects.exists()
    assert set(world.states(*said)) == {"pooled"}
