"""Beliefs on the verge of being revised, split or merged."""

from typing import Any

from memory.domain.evidence import Verdict
from memory.models import Belief, Cycle, GateDecision, Lineage, StructuralJob
from tests.consolidation.world import World

OLD = "The kiln of the pottery burns 5 hours."
NEW = "The kiln of the pottery burns 6 hours."
WINTER = "In winter the kiln of the pottery burns 5 hours."
SUMMER = "In summer the kiln of the pottery burns 6 hours."
TWIN = "The kiln of the pottery burns 5 hours!"  # the same words: the reader of this machine is sure of nothing less


def doubted(world: World, *, supports: int = 3, against: int = 5, speaks_for_new: int = 10) -> Belief:
    """Hold a belief, once sure of it, at 4/10: one word more and it is revised.

    Of the old contradictions, so many support the new statement; the old supports contradict it.
    """
    belief = world.hold(OLD, about="kiln", supports=supports, contradicts=against, peak_confidence=0.8)
    for number in range(supports + against):
        verdict = Verdict.CONTRADICTS if number < supports else Verdict.SUPPORTS
        if number >= supports + speaks_for_new:
            verdict = Verdict.IRRELEVANT
        world.verdicts[f"{NEW}|Earlier word {number} on: {OLD}"] = verdict
    world.revisions[OLD] = NEW
    world.directions.place(NEW, {"kiln": 0.8})
    return belief


def contradict(world: World, *, likeness: float = 0.8) -> None:
    """Say the one word more."""
    text = f"Potter's log {len(world.verdicts)}: 6 hours."
    world.verdicts[f"{NEW}|{text}"] = Verdict.SUPPORTS
    world.say(text, about="kiln", likeness=likeness, verdict=Verdict.CONTRADICTS)


def divided(world: World, *, for_summer: int = 3) -> Belief:
    """Hold a belief that three support and one contradicts, and say the two partial words more that split it."""
    belief = divisible(world, for_summer=for_summer)
    say_partially(world)
    return belief


_PARTIAL = [f"Potter's log {n}: 5 hours in winter only." for n in (1, 2)]


def divisible(world: World, *, for_summer: int = 3) -> Belief:
    """Hold a belief that three support and one contradicts; two partial words more and it is split."""
    belief = world.hold(OLD, about="kiln", supports=3, contradicts=1)
    texts = [f"Earlier word {number} on: {OLD}" for number in range(4)]
    for text in [*texts, *_PARTIAL]:
        world.verdicts[f"{WINTER}|{text}"] = Verdict.IRRELEVANT if text == texts[3] else Verdict.SUPPORTS
        world.verdicts[f"{SUMMER}|{text}"] = Verdict.IRRELEVANT
    for text in [texts[3], *_PARTIAL][:for_summer]:
        world.verdicts[f"{SUMMER}|{text}"] = Verdict.SUPPORTS
    world.divisions[OLD] = {"in winter": WINTER, "in summer": SUMMER}
    return belief


def say_partially(world: World) -> None:
    """Say the two partial words."""
    world.say_all(_PARTIAL, about="kiln", likeness=0.8, verdict=Verdict.PARTIAL)


def twins(world: World, *, likeness: float = 0.95, **given: Any) -> tuple[Belief, Belief]:
    """Hold two beliefs that say the same, and say something in favour of the first."""
    one = world.hold(OLD, about="kiln", supports=4)
    other = world.hold(TWIN, about="kiln", likeness=likeness, supports=3, **given)
    world.say("Potter's log: 5 hours.", about="kiln", likeness=0.75)
    return one, other


def job_of(world: World) -> StructuralJob:
    """Return the workspace's one structural job."""
    return StructuralJob.objects.get(workspace=world.workspace)


def child_of(belief: Belief) -> Belief:
    """Return the one belief that came of another."""
    return Lineage.objects.get(parent=belief).child


def reasons(belief: Belief, cycle: Cycle) -> dict[str, str]:
    """Return what each gate said of a belief in a cycle."""
    rows = GateDecision.objects.filter(belief=belief, cycle=cycle)
    return dict(rows.values_list("gate", "reason"))
