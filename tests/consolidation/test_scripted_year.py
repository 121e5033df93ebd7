"""A belief's whole life in a year of injected time, every number worked out by hand."""

from datetime import timedelta

import pytest

from memory.domain.evidence import Verdict
from memory.domain.lifecycle import BeliefStatus
from memory.ledger.confidence import find_drift
from memory.models import Belief, BeliefEmbedding, Cycle, Evidence, GateDecision, Lineage, StructuralJob
from tests.consolidation.world import World

FIVE = "The kiln of the pottery burns 5 hours."
SIX = "The kiln of the pottery burns 6 hours."
WINTER = "In winter the kiln of the pottery burns 6 hours."
SUMMER = "In summer the kiln of the pottery burns 5 hours."
WINTER_TOO = "In winter the kiln of the pottery burns 6 hours!"

EARLY = [f"Potter's log {n}: the kiln burnt for 5 hours." for n in range(1, 6)]
STORM = [f"Potter's log {n}: the kiln burnt for 6 hours." for n in range(11, 21)]
BOTH = [f"Potter's log {n}: 6 hours in winter, 5 in summer." for n in (31, 32)]
NOTES = [f"Winter note {n}: the kiln burnt for 6 hours." for n in (1, 2, 3)]

IRRELEVANT, AGAINST, IN_FAVOUR = Verdict.IRRELEVANT, Verdict.CONTRADICTS, Verdict.SUPPORTS


def script(world: World) -> None:
    """Lay down what every text means: where it lies, and what it says of each statement that will come up."""
    world.statements |= {"kiln": FIVE, "winter": WINTER_TOO}
    world.revisions[FIVE] = SIX
    world.divisions[SIX] = {"in winter": WINTER, "in summer": SUMMER}
    world.unions[WINTER] = ""
    places = {
        FIVE: {"kiln": 1.0},
        SIX: {"kiln": 0.9},
        WINTER: {"winter": 0.95},
        SUMMER: {"summer": 1.0},
        WINTER_TOO: {"winter": 1.0},
    }
    for text, matters in places.items():
        world.directions.place(text, matters)
    said = {
        SIX: dict.fromkeys(EARLY, AGAINST) | dict.fromkeys(STORM, IN_FAVOUR) | dict.fromkeys(BOTH, Verdict.PARTIAL),
        WINTER: dict.fromkeys(EARLY, IRRELEVANT) | dict.fromkeys([*STORM, *BOTH], IN_FAVOUR),
        SUMMER: dict.fromkeys([*EARLY[2:], *STORM], IRRELEVANT) | dict.fromkeys([*EARLY[:2], *BOTH], IN_FAVOUR),
    }
    world.verdicts |= {
        f"{statement}|{text}": verdict for statement, says in said.items() for text, verdict in says.items()
    }


def state(statement: str) -> tuple[float, float, int, int, str]:
    """Return α, β, evidence, depth and status of the newest belief with these words."""
    belief = Belief.objects.filter(statement=statement).latest("created_at")
    return belief.alpha, belief.beta, belief.evidence_count, belief.lineage_depth, belief.status


def reason(statement: str, gate: str, cycle: Cycle) -> str:
    """Return why a gate decided as it did about a belief in a cycle."""
    return GateDecision.objects.get(belief__statement=statement, gate=gate, cycle=cycle).reason


def is_born_and_reinforced(world: World) -> Belief:
    """B4: three episodes make it, two more strengthen it; elsewhere a twin of what will become of it forms."""
    # Day 0: three episodes, three origins: α = 1 + 3.
    world.say_all(EARLY[:3], about="kiln")
    assert world.cycle().counts["created"] == 1
    five = world.only_belief()
    assert (state(FIVE), five.confidence, five.peak_confidence) == ((4.0, 1.0, 3, 0, "active"), 0.8, 0.8)

    # Day 30: two more: α = 6, c = 6/7.
    world.say_all(EARLY[3:], about="kiln")
    cycle = world.cycle(after=timedelta(days=30))
    assert (state(FIVE), cycle.counts["reinforced"]) == ((6.0, 1.0, 5, 0, "active"), 1)
    assert reason(FIVE, "revise", cycle) == "still_confident"

    # Day 60: elsewhere a belief of its own forms.
    world.say_all(NOTES, about="winter")
    world.cycle(after=timedelta(days=30))
    assert state(WINTER_TOO) == (4.0, 1.0, 3, 0, "active")
    return five


def is_revised_by_a_storm(world: World, five: Belief) -> None:
    """B6, B15: ten contradictions from ten origins make one revision."""
    # Day 80: ten against, ten origins: α = 6, β = 11, c = 6/17 < 0.4.
    world.say_all(STORM, about="kiln", likeness=0.8, verdict=AGAINST)
    cycle = world.cycle(after=timedelta(days=20))
    assert (cycle.counts["contradicted"], cycle.counts["revised"], cycle.counts["archived"]) == (1, 1, 0)
    assert state(FIVE) == (6.0, 11.0, 15, 0, "revised")
    facts = GateDecision.objects.get(belief=five, gate="revise", cycle=cycle).facts
    assert facts["confidence"] == pytest.approx(6 / 17)
    assert facts["peak_confidence"] == pytest.approx(6 / 7)
    # 6/7 + 6/8 + … + 6/16, against min(3, 0.3·ln 16·ln 81 = 3.655)
    assert facts["prediction_error"] == pytest.approx(sum(6 / n for n in range(7, 17)))
    assert facts["error_threshold"] == 3.0
    # Judged anew: ten for it, five against it.
    six = Belief.objects.get(statement=SIX)
    assert state(SIX) == (11.0, 6.0, 15, 1, "active")
    assert (six.prediction_error, six.peak_confidence) == (0.0, 11 / 17)
    assert (six.pk != five.pk, BeliefEmbedding.objects.get(belief=five).is_active) == (True, False)


def is_split(world: World) -> None:
    """B12: two PARTIAL ones tell that it holds in one context, and not in the other."""
    # Day 100: two say that it holds in part: 10 for, 5 + 2 against, both sides of many origins.
    world.say_all(BOTH, about="kiln", likeness=0.8, verdict=Verdict.PARTIAL)
    cycle = world.cycle(after=timedelta(days=20))
    assert (cycle.counts["split"], cycle.counts["revised"]) == (1, 0)
    assert state(SIX) == (12.0, 7.0, 17, 1, "split")
    assert reason(SIX, "revise", cycle) == "still_confident"
    # C3: one half says what the other belief says, which takes its twelve words to the three it has.
    assert not Belief.objects.filter(statement=WINTER).exists()
    assert state(WINTER_TOO) == (16.0, 1.0, 15, 0, "active")
    assert state(SUMMER) == (5.0, 1.0, 4, 2, "active")


def rests(world: World) -> None:
    """B13: there is nothing left to merge."""
    for days in (7, 1):
        assert world.cycle(after=timedelta(days=days)).counts["merged"] == 0


def grows_stale(world: World) -> None:
    """B14: the weak one is archived on the first day after its ninety."""
    # Day 190: four rows and 90 days are not yet too old; day 191: they are.
    assert world.cycle(after=timedelta(days=82)).counts["archived"] == 0
    cycle = world.cycle(after=timedelta(days=1))
    assert (cycle.counts["archived"], state(SUMMER)[4]) == (1, "archived")
    assert reason(SUMMER, "archive", cycle) == "stale_and_weak"


def tells_its_story(world: World) -> None:
    """R10: nothing else happens, and the lineage tells what did."""
    # Day 365: nothing else happens.
    world.cycle(after=timedelta(days=174))
    told = Belief.objects.for_workspace(world.workspace).values_list("statement", "status")
    assert sorted(told) == sorted(
        [
            (FIVE, BeliefStatus.REVISED),
            (SIX, BeliefStatus.SPLIT),
            (WINTER_TOO, BeliefStatus.ACTIVE),
            (SUMMER, BeliefStatus.ARCHIVED),
        ]
    )
    story = Lineage.objects.order_by("pk").values_list("parent__statement", "kind", "child__statement")
    assert list(story) == [
        (FIVE, "revision", SIX),
        (SIX, "split", WINTER_TOO),
        (SIX, "split", SUMMER),
    ]
    assert list(StructuralJob.objects.order_by("pk").values_list("kind", "state")) == [
        ("revise", "applied"),
        ("split", "applied"),
    ]
    assert find_drift(workspace=world.workspace) == (4, [])
    assert Evidence.objects.filter(belief__statement=FIVE).count() == 15  # what was believed keeps its reasons
    assert {p: world.calls(p) for p in ("revise", "split", "merge")} == {"revise": 1, "split": 1, "merge": 0}


@pytest.mark.slow
@pytest.mark.usefixtures("without_closing")
def test_a_year(world: World) -> None:
    """B4, B6, B12, B13, B14, B15: born, reinforced, contradicted ten times, revised once, split, archived."""
    script(world)
    five = is_born_and_reinforced(world)
    is_revised_by_a_storm(world, five)
    is_split(world)
    rests(world)
    grows_stale(world)
    tells_its_story(world)
