"""B8.3: single episodes near beliefs, gathered into calls, so many a cycle, the others in the next."""

from datetime import timedelta

import pytest
from pytest_django import Settings

from memory.domain.evidence import Verdict
from memory.models import ClusterJob, Episode, Evidence, JobKind
from tests import factories
from tests.consolidation.conftest import Decree
from tests.consolidation.telling import Teller
from tests.consolidation.world import World

KILN = "The kiln of the pottery burns 5 hours."


def say_singles(world: World, count: int, *, about: str = "kiln", first: int = 6) -> list[Episode]:
    """Store episodes near a belief but not near each other, each a little less than the one before."""
    return [
        world.say(
            f"The {about} of the pottery burns {hours} hours.",
            about=about,
            likeness=0.79 - (hours - first) / 1000,
            verdict=Verdict.CONTRADICTS,
        )
        for hours in range(first, first + count)
    ]


def test_singles_are_gathered_into_calls(world: World) -> None:
    """B8.3: twelve episodes to a call, whichever belief they are near, the most similar first, no synthesis."""
    world.hold(KILN, about="kiln")
    world.hold("The oven of the bakery burns 5 hours.", about="oven")
    kilns, ovens = say_singles(world, 14), say_singles(world, 2, about="oven")

    world.cycle()

    asked = [[set(call.texts), set(call.beliefs)] for call in world.server.calls("classify")]
    nearest = {episode.text for episode in (*kilns[:10], *ovens)}
    assert sorted(asked, key=lambda call: len(call[0])) == [
        [{episode.text for episode in kilns[10:]}, {KILN}],
        [nearest, {KILN, "The oven of the bakery burns 5 hours."}],
    ]
    assert world.calls("synthesize") == 0
    assert set(world.states(*kilns, *ovens)) == {"settled"}


@pytest.mark.usefixtures("without_closing")
def test_what_finds_no_call_this_cycle_is_asked_in_the_next(world: World, decree: Decree) -> None:
    """B8.3: at most ten calls, here two; the most similar first, the rest as new as before."""
    decree("consolidation", gathered_calls=2, classify_episodes=2)
    belief = world.hold(KILN, about="kiln", supports=20)
    said = say_singles(world, 5)

    world.cycle()
    assert world.states(*said) == ["settled"] * 4 + ["new"]
    assert world.now_of(belief).beta == 5.0

    world.cycle()
    assert world.states(*said) == ["settled"] * 5
    assert world.now_of(belief).beta == 6.0
    assert [len(call.texts) for call in world.server.calls("classify")] == [2, 2, 1]


def test_an_episode_is_heard_by_every_belief_near_it_in_time(world: World, decree: Decree) -> None:
    """B8.3: evidence for one belief does not swallow a question about another that found no call."""
    decree("consolidation", gathered_calls=1, gathered_beliefs=1)
    kiln, oven = world.hold(KILN, about="kiln"), world.hold("The oven of the bakery burns 5 hours.", about="oven")
    said = world.say("Kiln and oven burn 7 hours.", about="", verdict=Verdict.CONTRADICTS)
    world.directions.place(said.text, {"kiln": 0.708, "oven": 0.705})

    world.cycle()
    assert (world.now_of(kiln).beta, world.now_of(oven).beta) == (2.0, 1.0)
    assert world.states(said) == ["new"]

    world.cycle()
    assert (world.now_of(kiln).beta, world.now_of(oven).beta) == (2.0, 2.0)
    assert world.states(said) == ["settled"]
    world.cycle()
    assert world.calls("classify") == 2


def test_a_batch_that_the_guard_answers_needs_no_call_and_takes_no_place(world: World, decree: Decree) -> None:
    """B8.3: only calls are counted."""
    decree("consolidation", gathered_calls=1)
    world.hold(KILN, about="kiln")
    oven = world.hold("The oven of the bakery burns 5 hours.", about="oven")
    same = world.say(oven.statement, about="oven", likeness=1.0)
    other = say_singles(world, 1)

    world.cycle()

    assert world.states(same, *other) == ["settled", "settled"]
    assert world.calls("classify") == 1


def test_an_irrelevant_single_is_pooled_and_its_reply_kept(world: World) -> None:
    """B8.5: IRRELEVANT is never evidence."""
    belief = world.hold(KILN, about="kiln")
    said = world.say("The kiln of the pottery is blue.", about="kiln", likeness=0.8, verdict=Verdict.IRRELEVANT)

    world.cycle()

    assert world.states(said) == ["pooled"]
    assert not Evidence.objects.filter(episode=said).exists()
    job = ClusterJob.objects.get(kind=JobKind.SINGLES, belief=belief)
    assert (job.state, list(job.verdicts.values_list("verdict", flat=True))) == ("refused", ["IRRELEVANT"])


@pytest.mark.parametrize("count", [1, 2])
def test_a_pooled_episode_is_held_against_a_belief_born_later(world: World, count: int) -> None:
    """B7: the pool is looked at again where a belief has come near."""
    pooled = say_singles(world, count)
    world.cycle()
    assert set(world.states(*pooled)) == {"pooled"}

    belief = world.hold(KILN, about="kiln")
    world.cycle(after=timedelta(days=1))

    assert world.now_of(belief).beta == 1.0 + count
    assert set(world.states(*pooled)) == {"settled"}


@pytest.mark.django_db
def test_this_machine_is_asked_about_one_belief_at_a_time(settings: Settings) -> None:
    """B8.3: its calls cost nothing, and an episode is not asked about what is far from it."""
    mara = Teller(workspace=factories.workspace())
    settings.ENGRAM_LLM, settings.ENGRAM_EMBEDDINGS = "offline", "static"
    for mark in ".!…":
        mara.tell(f"The oven of the bakery burns 5 hours{mark}", source="ingest", user="")
        mara.tell(f"The ferry to the island sails on Mondays{mark}", source="ingest", user="")
    mara.cycle()
    mara.tell(
        "The oven of the bakery burns 6 hours.", "The ferry to the island sails on Fridays.", source="ingest", user=""
    )
    mara.cycle()

    jobs = ClusterJob.objects.filter(kind=JobKind.SINGLES)
    assert jobs.exists()
    assert [len(job.pairs) for job in jobs] == [1] * len(jobs)
    assert not jobs.filter(belief=None).exists()
