"""What makes the gates open in the story: one belief to be revised, one to be split, two that are one."""

from collections.abc import Iterable

from memory.domain.evidence import Verdict
from tests.consolidation.world import World

KILN_FIVE = "The kiln of the pottery burns 5 hours."
KILN_SIX = "The kiln of the pottery burns 6 hours."
FERRY = "The ferry to the island sails at 8."
FERRY_IN_SUMMER = "In summer the ferry to the island sails at 8."
FERRY_IN_WINTER = "In winter the ferry to the island sails at 9."
OVEN, OVEN_TWIN = "The oven of the bakery holds 4 trays.", "The oven of the bakery holds 4 trays!"
OVEN_UNITED = "The bakery's oven takes 4 trays."

CHANGES = [
    (FERRY, "split", FERRY_IN_SUMMER),
    (FERRY, "split", FERRY_IN_WINTER),
    (KILN_FIVE, "revision", KILN_SIX),
    (OVEN, "merge", OVEN_UNITED),
    (OVEN_TWIN, "merge", OVEN_UNITED),
]  # parent, kind, child


def tell_changes(world: World) -> None:
    """Hold four beliefs, and say the words that open the gates."""
    _tell_of_the_kiln(world)
    _tell_of_the_ferry(world)
    _tell_of_the_oven(world)


def _tell_of_the_kiln(world: World) -> None:
    """Three for it and five against, once believed: one word more against it, and it is said anew."""
    world.hold(KILN_FIVE, about="kiln", supports=3, contradicts=5, peak_confidence=0.8)
    world.revisions[KILN_FIVE] = KILN_SIX
    world.directions.place(KILN_SIX, {"kiln": 0.8})
    _judge(world, KILN_SIX, [_earlier(number, KILN_FIVE) for number in range(3)], Verdict.CONTRADICTS)
    world.say("The potter's log tells of 6 hours.", about="kiln", likeness=0.8, verdict=Verdict.CONTRADICTS)
    _judge(world, KILN_SIX, ["The potter's log tells of 6 hours."], Verdict.SUPPORTS)


def _tell_of_the_ferry(world: World) -> None:
    """Three for it and one against; two say that it is so in summer only, and it is divided."""
    world.hold(FERRY, about="ferry", supports=3, contradicts=1)
    world.divisions[FERRY] = {"in summer": FERRY_IN_SUMMER, "in winter": FERRY_IN_WINTER}
    told = [_earlier(number, FERRY) for number in range(4)]
    partial = [f"Timetable {number}: in summer at 8, in winter at 9." for number in (1, 2)]
    world.say_all(partial, about="ferry", likeness=0.8, verdict=Verdict.PARTIAL)
    _judge(world, FERRY_IN_SUMMER, [*told[:3], *partial], Verdict.SUPPORTS)
    _judge(world, FERRY_IN_SUMMER, told[3:], Verdict.IRRELEVANT)
    _judge(world, FERRY_IN_WINTER, [told[3], *partial], Verdict.SUPPORTS)
    _judge(world, FERRY_IN_WINTER, told[:3], Verdict.IRRELEVANT)


def _tell_of_the_oven(world: World) -> None:
    """Two beliefs say the same; a word in favour of one has them looked at."""
    world.hold(OVEN, about="oven", supports=4)
    world.hold(OVEN_TWIN, about="oven", likeness=0.95, supports=3)
    world.unions[OVEN] = OVEN_UNITED
    world.say("The baker counts 4 trays.", about="oven", likeness=0.75)


def _earlier(number: int, statement: str) -> str:
    """Spell what the world made somebody say about a belief that it holds."""
    return f"Earlier word {number} on: {statement}"


def _judge(world: World, statement: str, texts: Iterable[str], verdict: Verdict) -> None:
    world.verdicts |= {f"{statement}|{text}": verdict for text in texts}
