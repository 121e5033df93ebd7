"""Simulated histories whose truth is known: what was so when, and what was said of it.

Each history is about one habit of one person, over half a year. In a third of them the habit stays; in a third the
person gives it up at a time between 30 and 70 % of the span; in a third it holds in one context and not in another,
where an episode names its context in 60 % of the cases, speaks of both in 15 % and else says nothing of it. A history
has 15 to 60 episodes at times drawn uniformly. Its noise is drawn from 10 to 30 %: with that probability an episode
says the opposite of what was so.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

SPAN_DAYS = 180.0
NOISE = (0.10, 0.30)
EPISODES = (15, 60)
CHANGE = (0.3, 0.7)  # of the span
JUST_DAYS = 30.0  # a mind has just changed
FIRST_CONTEXT = (0.3, 0.7)  # share of the occasions in the context where the habit holds
NAMED, BOTH = 0.60, 0.15  # shares of the episodes that name their context, or speak of both


class Kind(StrEnum):
    """How the truth of a history behaves."""

    STEADY = "steady"
    CHANGE = "change of mind"
    CONTEXTS = "contexts"


class Says(StrEnum):
    """What an episode says of a statement."""

    SUPPORTS = "SUPPORTS"
    CONTRADICTS = "CONTRADICTS"
    PARTIAL = "PARTIAL"
    IRRELEVANT = "IRRELEVANT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """A person's habit in words, with two contexts."""

    person: str
    does: str
    does_not: str
    contexts: tuple[str, str]


_HABITS = (
    ("Mia", "drinks tea", "does not drink tea"),
    ("Otto", "cycles to the harbour", "does not cycle to the harbour"),
    ("Priya", "answers letters by hand", "does not answer letters by hand"),
    ("Sven", "cooks without salt", "does not cook without salt"),
    ("Aiko", "reads the newspaper aloud", "does not read the newspaper aloud"),
    ("Luca", "wears a green jacket", "does not wear a green jacket"),
    ("Nadia", "plays chess with Petr", "does not play chess with Petr"),
    ("Rosa", "keeps the windows open", "does not keep the windows open"),
)
_CONTEXTS = (
    ("at work", "at home"),
    ("in summer", "in winter"),
    ("on weekdays", "on weekends"),
    ("in the city", "in the mountains"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A text's meaning: does the person do it (in a context)? With `elsewhere`, the opposite of the other context."""

    does: bool
    context: int | None = None
    elsewhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An episode: on which day of the history, and what it says."""

    day: float
    claim: Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One history: its truth and what was said, in order of time."""

    number: int
    kind: Kind
    habit: Habit
    noise: float
    changes_on: float  # the day on which the habit ends; infinite where it never does
    said: Sequence[Said]

    def is_true(self, claim: Claim, *, day: float) -> bool:
        """Tell whether a statement is true on a day.

        A statement that names no context claims all of them: where the truth hangs on the context it is false.
        """
        if self.kind is Kind.CONTEXTS:
            return claim.context is not None and claim.does == (claim.context == 0)
        return claim.does == (day < self.changes_on)

    def phase(self, *, day: float) -> str:
        """Name the kind of the history, and for one with a change how a day lies to it."""
        if self.kind is not Kind.CHANGE:
            return self.kind.value
        since = day - self.changes_on
        if since < 0.0:
            return f"before a {self.kind}"
        return f"{JUST_DAYS:.0f} days from a {self.kind}" if since < JUST_DAYS else f"later after a {self.kind}"

    def word(self, claim: Claim) -> str:
        """Return a claim as a sentence."""
        phrase = self.habit.does if claim.does else self.habit.does_not
        if claim.context is None:
            return f"{self.habit.person} {phrase}."
        here = self.habit.contexts[claim.context]
        sentence = f"{here[0].upper()}{here[1:]}, {self.habit.person} {phrase}"
        if claim.elsewhere:
            there = self.habit.contexts[1 - claim.context]
            sentence += f", but {there} it is the other way round"
        return f"{sentence}."


def make_histories(*, count: int, seed: int, change: tuple[float, float] = CHANGE) -> list[History]:
    """Draw histories, the three kinds in turn; the same seed gives the same ones, whatever the count.

    Minds change at a time drawn uniformly between two shares of the span.
    """
    kinds = list(Kind)
    return [_draw(at, kinds[at % len(kinds)], random.Random(f"{seed}/{at}"), change=change) for at in range(count)]


def _draw(number: int, kind: Kind, rng: random.Random, *, change: tuple[float, float]) -> History:
    person, does, does_not = _HABITS[number % len(_HABITS)]  # neighbours differ, so that they can share a workspace
    habit = Habit(person=person, does=does, does_not=does_not, contexts=rng.choice(_CONTEXTS))
    noise = rng.uniform(*NOISE)
    changes_on = SPAN_DAYS * rng.uniform(*change) if kind is Kind.CHANGE else float("inf")
    days = sorted(rng.uniform(0, SPAN_DAYS) for _ in range(rng.randint(*EPISODES)))
    first_context = rng.uniform(*FIRST_CONTEXT)
    said = []
    for day in days:
        is_noise = rng.random() < noise
        if kind is Kind.CONTEXTS:
            claim = _draw_in_context(0 if rng.random() < first_context else 1, is_noise, rng)
        else:
            claim = Claim(does=(day < changes_on) != is_noise)
        said.append(Said(day=day, claim=claim))
    return History(number=number, kind=kind, habit=habit, noise=noise, changes_on=changes_on, said=said)


def _draw_in_context(context: int, is_noise: bool, rng: random.Random) -> Claim:
    """Say on an occasion in a context whether the habit holds, in one of the three ways."""
    does = (context == 0) != is_noise
    drawn = rng.random()
    if drawn < BOTH:
        return Claim(does=does, context=context, elsewhere=True)
    return Claim(does=does, context=context if drawn < BOTH + NAMED else None)


def judge(*, said: Claim, statement: Claim) -> Says:
    """Return the verdict of an episode on a statement, as the prompt of a classification defines them (B11).

    One that names no context speaks of all. One that denies a general statement in a context says that it holds in
    some circumstances only: PARTIAL, as is one that speaks of both.
    """
    if statement.context is None and (said.elsewhere or (said.context is not None and said.does != statement.does)):
        return Says.PARTIAL
    if said.elsewhere:
        agrees = (said.does == (said.context == statement.context)) == statement.does
    elif None not in (said.context, statement.context) and said.context != statement.context:
        return Says.IRRELEVANT
    else:
        agrees = said.does == statement.does
    return Says.SUPPORTS if agrees else Says.CONTRADICTS


def state_majority(said: Iterable[Claim], *, among: Sequence[Claim]) -> Claim:
    """Return the statement that most episodes support net of those against it.

    Of equals it is the one whose context most of its supporters name, so that a context is neither lost nor invented.
    """
    heard = list(said)
    return max(among, key=lambda statement: (_net_support(heard, statement), _named_alike(heard, statement)))


def _net_support(heard: Sequence[Claim], statement: Claim) -> int:
    verdicts = [judge(said=claim, statement=statement) for claim in heard]
    return verdicts.count(Says.SUPPORTS) - verdicts.count(Says.CONTRADICTS)


def _named_alike(heard: Sequence[Claim], statement: Claim) -> int:
    return sum(
        claim.context == statement.context for claim in heard if judge(said=claim, statement=statement) is Says.SUPPORTS
    )


STATEMENTS = tuple(Claim(does=does, context=context) for context in (None, 0, 1) for does in (True, False))
