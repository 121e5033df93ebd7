"""What many people tell: their matters, each in other words session after session, amid what leads to nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

UNREADABLE = "␀"  # the embedding model of `benchmarks.choking` chokes on it
UNJUDGEABLE = "␁"  # and its language model on this, if it is asked about the text at all

FIRST = (
    "Adaeze", "Bastian", "Celeste", "Dorian", "Elspeth", "Fabio", "Greta", "Hamid", "Ingrid", "Jovan",
    "Katya", "Leopold", "Mireille", "Nikolai", "Oona", "Pascal", "Renata", "Stellan", "Tamsin", "Ulrich",
)  # fmt: skip
LAST = ("Abara", "Brandt", "Castellan", "Duval", "Eklund", "Farkas", "Granger", "Holm", "Ishida", "Jansen")

# A matter: what it may be about, and the ways in which it is said.
MATTERS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        ("oat milk", "black coffee", "green tea", "apple juice", "ginger beer", "hot chocolate", "barley water"),
        (
            "{who} drinks {what} in the morning.",
            "In the morning {who} drinks {what}.",
            "Every morning {who} drinks {what}.",
            "{who} always drinks {what} in the morning.",
            "As ever, {who} drinks {what} in the morning.",
            "{who} still drinks {what} in the morning.",
        ),
    ),
    (
        ("the tram", "a red bicycle", "the ferry", "an old van", "the night bus", "a small scooter"),
        (
            "{who} takes {what} to work.",
            "To work {who} takes {what}.",
            "{who} usually takes {what} to work.",
            "On most days {who} takes {what} to work.",
            "{who} says that {what} is the way to work.",
            "{who} keeps taking {what} to work.",
        ),
    ),
    (
        ("cello", "trumpet", "accordion", "harp", "clarinet", "banjo", "oboe", "viola"),
        (
            "{who} plays the {what} in an orchestra.",
            "In an orchestra {who} plays the {what}.",
            "{who} plays the {what} in the town's orchestra.",
            "The {what} is what {who} plays in an orchestra.",
            "{who} has played the {what} in an orchestra for years.",
            "Twice a week {who} plays the {what} in an orchestra.",
        ),
    ),
    (
        ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"),
        (
            "{who} releases the reports on {what}.",
            "On {what} {who} releases the reports.",
            "The reports are released by {who} on {what}.",
            "{who} always releases the reports on {what}.",
            "{who} releases the monthly reports on {what}.",
            "It is on {what} that {who} releases the reports.",
        ),
    ),
    (
        ("tomatoes", "sunflowers", "pumpkins", "lavender", "strawberries", "beans"),
        (
            "{who} grows {what} behind the house.",
            "Behind the house {who} grows {what}.",
            "{who} grows {what} in the garden behind the house.",
            "Each summer {who} grows {what} behind the house.",
            "{who} likes to grow {what} behind the house.",
            "{who} grew {what} behind the house again.",
        ),
    ),
    (
        ("Rust", "Python", "Haskell", "Erlang", "Fortran", "Kotlin"),
        (
            "{who} prefers {what} for new services.",
            "For new services {who} prefers {what}.",
            "{who} still prefers {what} for new services.",
            "{who} prefers {what} whenever a new service is written.",
            "When it comes to new services, {who} prefers {what}.",
            "{who} would rather write new services in {what}.",
        ),
    ),
)
PLACES = ("the harbour", "a quarry", "the old mill", "the library", "a bakery", "the station", "the chapel", "a farm")
THINGS = ("ladder", "kettle", "violin case", "suitcase", "lantern", "carpet", "telescope", "wheelbarrow", "parasol")
HAPPENINGS = (
    "A {thing} was left at {place} last night.",
    "Who has seen the {thing} that stood near {place}?",
    "It rained so hard that {place} was closed.",
    "Somebody painted a {thing} on the wall of {place}.",
    "There was a {thing} for sale close to {place}.",
    "Thanks, the {thing} arrived.",
    "We met near {place} and talked about nothing much.",
    "The {thing} from {place} is broken again.",
)
SESSIONS = 6  # of one person
MATTERS_EACH, NOISE, WORDINGS = 4, 0.196, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One episode before it is posted."""

    text: str
    session: str

    @property
    def is_poison(self) -> bool:
        """Tell whether some step cannot digest it."""
        return UNREADABLE in self.text or UNJUDGEABLE in self.text


def tell(*, count: int, poison: int, mark: str = UNREADABLE, seed: int = 5) -> list[Line]:
    """Return so many lines in the order of telling, the same ones for the same seed, so many of them poison.

    Half of the poison is as alike to others as anything that is told, half of it stands alone; all has the mark.
    """
    random = Random(seed)
    names = [f"{first} {last}" for last in LAST for first in FIRST]
    noise = round(count * NOISE)
    people = max(-(-(count - noise - poison) // (MATTERS_EACH * WORDINGS)), 1)
    told = [line for number in range(people) for line in _life(names[number % len(names)], number, random)]
    lines = told[: count - noise - poison]
    lines += [_happening(random, number) for number in range(noise)]
    lines += [_poison(random, number, lines, mark) for number in range(poison)]
    random.shuffle(lines)
    return lines


def _life(who: str, number: int, random: Random) -> Iterator[Line]:
    """Yield what one person tells: a few matters, each in several wordings and sessions."""
    for subjects, wordings in random.sample(MATTERS, MATTERS_EACH):
        what = random.choice(subjects)
        for session, wording in enumerate(random.sample(wordings, WORDINGS)):
            yield Line(text=wording.format(who=who, what=what), session=f"{number}-{session % SESSIONS}")


def _happening(random: Random, number: int) -> Line:
    text = random.choice(HAPPENINGS).format(thing=random.choice(THINGS), place=random.choice(PLACES))
    return Line(text=f"{text} ({number})", session=f"noise-{number}")


def _poison(random: Random, number: int, lines: list[Line], mark: str) -> Line:
    sound = _happening(random, number) if number % 2 else random.choice(lines)
    return Line(text=f"{sound.text} {mark}", session=f"poison-{number}")
