"""B4: exact α and β through whole cycles: origins, repeats, contradictions."""

import math
from datetime import timedelta

import pytest
from pytest_django import Settings

from memory.domain.evidence import Verdict
from memory.ingest.schemas import IngestContext
from memory.ingest.store import store_raw_episodes
from memory.models import Episode, Evidence
from tests import factories
from tests.consolidation.inline import run_cycle
from tests.consolidation.world import World

TWENTY = sum(1 / n for n in range(1, 21))


def test_twenty_repeats_in_other_words_in_one_session_weigh_3_598(world: World) -> None:
    """B4: 1 + ½ + … + 1/20, however often one conversation says it."""
    world.say_all([f"Shed {n} holds the bikes of the club." for n in range(20)], about="shed", origin="session:long")

    world.cycle()

    belief = world.only_belief()
    assert belief.evidence_count == 20
    assert belief.alpha == pytest.approx(1 + 3.598, abs=0.0005)
    assert math.isclose(belief.alpha, 1 + TWENTY, rel_tol=1e-15)
    assert belief.beta == 1.0


def test_repeats_over_cycles_weigh_as_much_as_at_once(world: World) -> None:
    """B4: the series goes on where it stood: recomputed from all rows, never added to."""
    texts = [f"Shed {n} holds the bikes of the club." for n in range(20)]
    for start in range(0, 20, 5):
        world.say_all(texts[start : start + 5], about="shed", origin="session:long")
        world.cycle(after=timedelta(days=1))

    assert math.isclose(world.only_belief().alpha, 1 + TWENTY, rel_tol=1e-15)


def test_a_workspace_may_count_every_repeat_in_full(world: World) -> None:
    """B4: the setting that turns independence off."""
    world.workspace.discount_repeats = False
    world.workspace.save()
    world.say_all([f"Shed {n} holds the bikes of the club." for n in range(20)], about="shed", origin="session:long")

    world.cycle()

    assert world.only_belief().alpha == 21.0


def take(world: World, text: str, sessions: list[str]) -> None:
    """Take one sentence in from each session, as the API would."""
    lines = [{"text": text, "session": session, "language": "en"} for session in sessions]
    store_raw_episodes(raw_lines=lines, arrival=IngestContext(workspace=world.workspace, now=world.now, is_replay=True))


def test_the_same_sentence_twenty_times_in_one_session_is_one_episode(world: World) -> None:
    """B4, L4: repetition inside a session is a duplicate."""
    take(world, "The club keeps its bikes in the shed.", ["monday"] * 20)

    world.cycle()

    assert Episode.objects.count() == 1
    assert world.states(Episode.objects.get()) == ["pooled"]


def test_the_same_sentence_in_twenty_sessions_is_twenty_supports(world: World) -> None:
    """B4: α = 21."""
    take(world, "The club keeps its bikes in the shed.", [f"day {n}" for n in range(20)])

    world.cycle()

    belief = world.only_belief()
    assert (belief.alpha, belief.beta, belief.evidence_count) == (21.0, 1.0, 20)


TABS, SPACES = "Ana prefers tabs over spaces.", "Ana prefers spaces over tabs."


@pytest.mark.usefixtures("without_closing")
@pytest.mark.parametrize("together", [True, False])
def test_spaces_over_tabs_never_reinforces_tabs_over_spaces(world: World, together: bool) -> None:
    """B4, B8: the cosine is .995; the guard refuses, the model is asked, α stays and β rises."""
    belief = world.hold(TABS, about="indentation", supports=8)
    for number in range(3):
        world.say(SPACES, about="indentation", likeness=0.995, verdict=Verdict.CONTRADICTS, session=f"s{number}")
        if not together:
            world.cycle(after=timedelta(days=1))
    if together:
        world.cycle()

    belief = world.now_of(belief)
    assert (belief.alpha, belief.beta) == (9.0, 4.0)


def test_spaces_over_tabs_never_reinforces_by_rules_either(db: None, settings: Settings) -> None:
    """B4, B8: with the models of this machine, from the first episode on."""
    workspace = factories.workspace()
    now = factories.NOW

    def say(text: str, times: int) -> None:
        for _ in range(times):
            factories.episode(workspace=workspace, text=text, language="en", created_at=now, occurred_at=now)

    say(TABS, 5)
    run_cycle(workspace, now)
    belief = workspace.beliefs.get()
    assert belief.alpha == 6.0

    now += timedelta(days=1)
    say(SPACES, 3)
    run_cycle(workspace, now)

    belief.refresh_from_db()
    assert belief.alpha == 6.0
    assert not Evidence.objects.filter(belief=belief, episode__text=SPACES, verdict="SUPPORTS").exists()


def test_one_new_contradicting_episode_alone_lowers_its_belief(world: World) -> None:
    """B4, B8.3: alone it founds nothing, but it is heard in the very next cycle."""
    belief = world.hold(TABS, about="indentation", supports=4)
    world.say("Ana has gone over to spaces.", about="indentation", likeness=0.8, verdict=Verdict.CONTRADICTS)

    cycle = world.cycle()

    belief = world.now_of(belief)
    assert (belief.alpha, belief.beta, belief.confidence) == (5.0, 2.0, 5 / 7)
    assert cycle.counts["contradicted"] == 1


def test_evidence_for_and_against_from_one_origin_are_two_series(world: World) -> None:
    """B4: rows are ranked by verdict and origin: three supports and two contradictions of one session."""
    world.hold(TABS, about="indentation", supports=0)
    for number, verdict in enumerate([Verdict.SUPPORTS] * 3 + [Verdict.CONTRADICTS] * 2):
        text = f"In file {number} Ana prefers tabs over spaces."
        world.say(text, about="indentation", likeness=0.8, verdict=verdict, origin="session:one")

    world.cycle()

    belief = world.only_belief()
    assert (belief.alpha, belief.beta) == (1 + 1 + 1 / 2 + 1 / 3, 1 + 1 + 1 / 2)


def test_partial_evidence_gives_half_to_each_side(world: World) -> None:
    """B4: α and β rise by one half."""
    belief = world.hold(TABS, about="indentation", supports=4)
    world.say("Ana uses tabs in Go only.", about="indentation", likeness=0.8, verdict=Verdict.PARTIAL)

    world.cycle()

    belief = world.now_of(belief)
    assert (belief.alpha, belief.beta) == (5.5, 1.5)


def test_derived_episodes_are_never_taken_in(world: World) -> None:
    """B4: merged, summarised and dreamt ones are recalled, but never pending and never evidence."""
    said = [world.say(f"Shed {n} holds the bikes of the club.", about="shed", is_derived=True) for n in range(4)]

    world.cycle()

    assert not world.workspace.beliefs.exists()
    assert set(world.states(*said)) == {"new"}


def test_only_support_counts_as_reinforcement(world: World) -> None:
    """B2, B14: a contradiction moves neither the time of reinforcement nor the peak, but every row is one ever."""
    belief = world.hold(TABS, about="indentation", supports=4)
    then = world.now
    world.say("Ana has gone over to spaces.", about="indentation", likeness=0.8, verdict=Verdict.CONTRADICTS)
    world.cycle(after=timedelta(days=10))

    doubted = world.now_of(belief)
    assert (doubted.last_reinforced_at, doubted.peak_confidence) == (then, 5 / 6)
    assert doubted.storage_strength == belief.storage_strength + 1

    world.say(TABS, about="indentation", likeness=1.0)
    world.cycle(after=timedelta(days=10))

    assert world.now_of(belief).last_reinforced_at == world.now
    assert world.now_of(belief).archive_due_at is None


def test_evidence_knows_its_cycle_its_call_and_its_reason(world: World) -> None:
    """B4, B21: who said it, when, in which cycle, by which call; all of one workspace."""
    belief = world.hold(TABS, about="indentation")
    said = world.say("Ana has gone over to spaces.", about="indentation", likeness=0.8, verdict=Verdict.CONTRADICTS)

    cycle = world.cycle()

    row = Evidence.objects.get(belief=belief, episode=said)
    assert (row.cycle, row.created_at, row.reason, row.basis) == (cycle, world.now, "as scripted", "model")
    assert row.call is not None
    assert (row.call.purpose, row.call.outcome) == ("classify", "ok")
