"""B11: what fails again and again becomes a dead letter, with its reason and a way back, and lets all else pass."""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from memory.consolidation.episode_states import list_dead_letters, retry_dead_letters
from memory.consolidation.finish import is_idle_after
from memory.models import ClusterMember, Episode
from tests.consolidation.conftest import Decree
from tests.consolidation.test_budget import say_matters
from tests.consolidation.world import World
from tests.model_server_acts import Asked, garbage, refuse

pytestmark = pytest.mark.usefixtures("hasty")


@pytest.fixture
def poison(world: World) -> Episode:
    """An episode of which the model speaks only nonsense, among eleven others about one belief."""
    world.hold("The shop opens at 8 on weekdays.", about="shop", supports=6)
    for hour in range(9, 20):
        world.say(f"The shop opens at {hour} on weekdays.", about="shop", likeness=0.8, verdict="IRRELEVANT")
    bad = world.say("The shop opens at 7 on weekdays.", about="shop", likeness=0.85)
    world.server.script = lambda asked: garbage() if bad.text in texts_of(asked) else world.answer(asked)
    return bad


def texts_of(asked: Asked) -> list[str]:
    return [episode["text"] for episode in asked.episodes]


def test_poison_is_found_by_halving_and_nobody_else_is_blamed(world: World, poison: Episode) -> None:
    """B11: down to one; the others keep their verdicts."""
    world.cycle()
    assert list(ClusterMember.objects.exclude(blame="").values_list("episode", flat=True)) == [poison.pk]
    assert dict(Episode.objects.filter(state="failed").values_list("pk", "failures"))[poison.pk] == 1
    assert set(Episode.objects.filter(failures__gt=0)) == {poison}


def test_after_three_failures_an_episode_is_a_dead_letter(world: World, poison: Episode) -> None:
    """B11: with its reason; nothing is pending any more, and no further cycle asks about it."""
    for _ in range(3):
        cycle = world.cycle()
    letter = list_dead_letters(workspace_id=world.workspace.pk).get()
    assert (letter.pk, letter.dead_at, letter.failures) == (poison.pk, world.now, 3)
    assert letter.state_reason.startswith("malformed")
    assert not Episode.objects.for_workspace(world.workspace).pending().exists()
    asked = len(world.server.log)
    cycle = world.cycle()
    assert len(world.server.log) == asked
    assert is_idle_after(cycle=cycle)


def test_until_idle_goes_on_until_poison_is_dead(world: World, poison: Episode) -> None:
    """B7, B11: each cycle that brings it nearer moves the work on."""
    cycles = [world.cycle()]
    while not is_idle_after(cycle=cycles[-1]):
        cycles.append(world.cycle())
    assert Episode.objects.dead().get() == poison
    assert len(cycles) <= 5


def test_a_dead_letter_can_be_tried_again(world: World, poison: Episode) -> None:
    """B11: as if it had never failed."""
    for _ in range(3):
        world.cycle()
    world.server.script = world.answer
    assert retry_dead_letters(letters=list_dead_letters(workspace_id=world.workspace.pk)) == 1
    world.cycle()
    poison.refresh_from_db()
    assert (poison.state, poison.failures, poison.dead_at) == ("settled", 0, None)


def test_the_command_lists_and_retries(world: World, poison: Episode) -> None:
    """B11: for people without a browser."""
    for _ in range(3):
        world.cycle()
    out = StringIO()
    call_command("dead_letters", "--workspace", world.workspace.name, "--json", stdout=out)
    [letter] = json.loads(out.getvalue())["dead_letters"]
    assert (letter["id"], letter["failures"]) == (poison.pk, 3)
    out = StringIO()
    call_command("dead_letters", poison.pk, "--workspace", world.workspace.name, "--retry", stdout=out)
    assert poison.pk in out.getvalue()
    assert world.states(poison) == ["new"]


def test_newer_episodes_are_leased_before_those_that_failed(world: World, decree: Decree) -> None:
    """B11: however many always fail, they starve nobody."""
    decree("consolidation", lease_episodes=3)
    failed = [world.say(f"Failing {n}.", about=f"fault {n}", failures=1, state="failed") for n in range(3)]
    new = say_matters(world, 1)
    world.cycle()
    assert world.states(*new) == ["settled"] * 3
    assert world.states(*failed) == ["failed"] * 3


def test_an_outage_is_nobodys_fault(world: World) -> None:
    """B11: where a server answers nothing at all, no episode comes nearer to the dead letters."""
    said = say_matters(world, 2)
    world.trouble.broken["synthesize"] = refuse(500)
    for _ in range(4):
        world.cycle()
    assert set(world.states(*said)) == {"failed"}
    assert not Episode.objects.filter(failures__gt=0).exists()


def test_a_server_that_fails_on_one_cluster_alone_blames_it(world: World) -> None:
    """B11: it answers others, so it is about what was in the call."""
    good, bad = say_matters(world, 2)[:3], "barn 1"
    world.server.script = lambda asked: (
        refuse(500) if bad in asked.episodes[0]["text"] and asked.purpose == "synthesize" else world.answer(asked)
    )
    world.cycle()
    assert set(world.states(*good)) == {"settled"}
    assert set(Episode.objects.filter(state="failed").values_list("failures", flat=True)) == {1}


def test_a_synthesis_that_fails_is_asked_over_fewer_episodes_the_next_time(world: World, decree: Decree) -> None:
    """B11: twelve, six, three: the poison is cornered, and what was not shown is not blamed."""
    decree("budget", episode_failures=4)
    world.say_all([f"The kiln of the pottery burns {n} hours." for n in range(20, 40)], about="kiln")
    world.trouble.broken["synthesize"] = garbage()
    for _ in range(4):
        world.cycle()
    shown = [len(call.texts) for call in world.server.calls("synthesize")]
    assert sorted(set(shown), reverse=True) == [12, 6, 3]


def test_a_text_that_times_out_is_found_among_others(world: World, decree: Decree) -> None:
    """B11: a batch of texts that takes too long is cut, and only what is too slow by itself stays behind."""
    decree("budget", call_seconds=0.5, margin_seconds=0.1)
    said = say_matters(world, 2)
    slow = world.say("A line that is slow to read.", about="slow")
    world.trouble.stalling_word = "slow to read"
    world.cycle()
    assert set(world.states(*said)) == {"settled"}
    assert (world.states(slow), Episode.objects.get(pk=slow.pk).state_reason) == (["failed"], "embedding: timeout")


def test_embedding_alone_is_progress(world: World, decree: Decree) -> None:
    """B7: a cycle whose time went into vectors is not the last one until idle."""
    said = say_matters(world, 2)
    decree("budget", working_seconds=3.0, call_seconds=1.0, margin_seconds=0.1)
    world.server.embedding_latency = 0.0
    world.trouble.after_embedding = lambda: decree("budget", call_seconds=10.0)
    cycle = world.cycle()
    assert (cycle.state, world.calls("embed") > 0, world.calls("synthesize")) == ("over_budget", True, 0)
    assert not is_idle_after(cycle=cycle)
    assert set(world.states(*said)) == {"new"}
