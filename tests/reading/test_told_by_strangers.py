"""What strangers said to the memory, in words that nothing was written for, as the offline reader reads it (F1, F6)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from memory.llm.offline_reading import read_offline
from memory.llm.replies import BeliefWord
from memory.llm.requests import Message, ReadingRequest, ShownBelief

MISREAD = pytest.mark.xfail(strict=True, reason="the reader of this release misreads it (docs/reader.md)")
FIRST_DAY, LATER_DAY = "2026-10-01", "2026-10-20"
CHANGES = [
    ("I live in Oslo.", "I moved to Bergen."),
    ("I live in Oslo.", "I live in Bergen now."),
    ("I live in Oslo.", "I've moved to Bergen."),
    ("I live in Oslo.", "We moved to Bergen on Friday."),
    ("I live in Oslo.", "I just moved to Bergen!"),
    ("I work at Siemens.", "I work at Bosch now."),
    ("I work at Siemens.", "I started a new job at Bosch."),
    ("I work at Siemens.", "I quit Siemens, I'm at Bosch now."),
    ("My boss is Dana.", "My new boss is Ravi."),
    ("My boss is Dana.", "Ravi is my boss now."),
    ("My boss is Dana.", "Dana left, Ravi took over as my boss."),
    ("I am vegetarian.", "I'm not vegetarian anymore."),
    ("I am vegetarian.", "I eat meat again."),
    ("I drink coffee every morning.", "I stopped drinking coffee."),
    ("I drink coffee every morning.", "I don't drink coffee anymore."),
    ("My gym costs 29 euros a month.", "My gym costs 35 euros a month now."),
    ("My gym costs 29 euros a month.", "The gym raised the price to 35 euros."),
    ("The standup is at 9:30.", "The standup is at 10 now."),
    ("The standup is at 9:30.", "Standup moved to 10."),
    ("Ich wohne in Leipzig.", "Ich wohne jetzt in Halle."),
    ("Ich wohne in Leipzig.", "Ich bin nach Halle gezogen."),
    ("My phone is an iPhone 12.", "I got a Pixel 9, the iPhone is gone."),
]


@dataclass(slots=True)
class Memory:
    """What is believed of one person, one message after the other, each said on a day of its own."""

    person: str = "Mara"
    beliefs: list[ShownBelief] = field(default_factory=list)
    said: list[tuple[str, BeliefWord]] = field(default_factory=list)  # of which belief, what

    def hear(self, text: str, day: str) -> None:
        """Read one message, and note what it founds, ends and says of what is believed."""
        message = Message(id="m", text=text, speaker=self.person, session=day, occurred_on=day)
        request = ReadingRequest(person=self.person, today=day, episodes=(message,), beliefs=tuple(self.beliefs))
        reply = read_offline(request)
        known = {str(number): place for place, number in enumerate(range(1, len(self.beliefs) + 1))}
        for number, line in enumerate(reply.new, start=1):
            if line is not None and line.kind == "lasting":
                known[f"n{number}"] = len(self.beliefs)
                self.beliefs.append(ShownBelief(id=line.statement, statement=line.statement, since=day))
        for about in reply.about:
            if about is not None:
                self._note(about.b, about.verdict, known, day)

    def _note(self, label: str, verdict: BeliefWord, known: dict[str, int], day: str) -> None:
        belief = self.beliefs[known[label]]
        self.said.append((belief.statement, verdict))
        if verdict in {BeliefWord.ENDED, BeliefWord.CONTRADICTS}:
            self.beliefs[known[label]] = ShownBelief(
                id=belief.id, statement=belief.statement, since=belief.since, until=day
            )

    def believed(self) -> list[str]:
        """Return what is believed and neither ended nor denied."""
        return [belief.statement for belief in self.beliefs if not belief.until]

    def verdicts(self, word: BeliefWord) -> list[str]:
        """Return the beliefs of which a message said so."""
        return [statement for statement, verdict in self.said if verdict is word]


def tell(*texts: str) -> Memory:
    """Return what is believed after messages of several days."""
    memory = Memory()
    for number, text in enumerate(texts):
        memory.hear(text, f"2026-03-{number + 1:02}")
    return memory


def test_most_plain_changes_end_what_was_so() -> None:
    """F1: of 22 everyday changes, in words of every kind, at least 18 end the older belief or speak against it."""
    followed = []
    for first, later in CHANGES:
        memory = Memory()
        memory.hear(first, FIRST_DAY)
        memory.hear(later, LATER_DAY)
        followed.append(bool(memory.beliefs) and bool(memory.beliefs[0].until))
    missed = [pair for pair, is_followed in zip(CHANGES, followed, strict=True) if not is_followed]
    assert len(missed) <= 4, missed


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("I like early meetings.", "I hate early meetings."),
        ("The pool is open on Sundays.", "The pool is closed on Sundays."),
        pytest.param("I avoid dairy.", "I eat dairy.", marks=MISREAD),
        ("I trust index funds.", "I distrust index funds."),
        ("The nightly export may run on Fridays.", "The nightly export may not run on Fridays."),
        ("We run Python 3.9 in production.", "We upgraded production to Python 3.13."),
        ("My rent is €1,200 a month.", "From June my rent is €1,350 a month."),
        ("I live in Graz.", "I moved to Linz last week."),
        ("Ich wohne in Graz.", "Ich bin umgezogen und wohne jetzt in Wien."),
    ],
)
def test_the_contrary_ends_what_was_said(first: str, later: str) -> None:
    """F1: the later word is never support, and the earlier one does not stand alone."""
    memory = tell(first, later)

    assert not memory.verdicts(BeliefWord.SUPPORTS)
    assert not any(first in statement for statement in memory.believed())


@pytest.mark.parametrize(
    "text",
    [
        "Please shorten this video script:\n---\nI have never trusted index funds.\n---",
        pytest.param("Proofread my character's monologue:\n\nI am a widower and I live on a houseboat.", marks=MISREAD),
        "Tom told me: I am moving to Rome.",
        "Suppose I am a diabetic. What could I eat?",
        "Assume I live in Berlin and have two kids. What does a flat cost?",
        "If I were a vegan, what would I cook tonight?",
    ],
)
def test_nobody_asserts_what_is_pasted_supposed_or_told_by_others(text: str) -> None:
    """F1: drafts, fiction, hypotheses and what others say of themselves found nothing of the user."""
    assert tell(text).believed() == []


def test_several_things_of_one_kind_stand_beside_each_other() -> None:
    """F1: another thing's number denies nothing."""
    memory = tell(
        "Server alpha has 16 GB of memory.", "Server beta has 32 GB of memory.", "Server gamma has 64 GB of memory."
    )
    assert len(memory.believed()) == 3
    assert not memory.said


def test_another_price_is_another_fact() -> None:
    """F1: what the phone costs says nothing of the gym."""
    memory = tell("The gym costs 30 euro a month.", "From June the phone costs 12 euro a month.")
    assert len(memory.believed()) == 2


def test_other_units_are_no_support() -> None:
    """F1: a gallon is no litre."""
    memory = tell("The rain tank holds 200 litres.", "The rain tank holds 200 gallons.")
    assert not memory.verdicts(BeliefWord.SUPPORTS)


def test_two_people_of_one_name_are_two() -> None:
    """F1: what the boss does bears out nothing of the neighbour."""
    memory = tell("My neighbour Maria is a nurse and has two cats.", "My boss Maria gave me a raise.")
    assert not any("nurse" in statement for statement in memory.verdicts(BeliefWord.SUPPORTS))


def test_an_employer_that_was_left_is_no_longer_believed() -> None:
    """F1: one sentence ends the old and states the new."""
    memory = tell("I work at Kestrel as an engineer.", "I have left Kestrel; I work at Nordwind now.")
    assert not any("as an engineer" in statement for statement in memory.believed())
    assert any("Nordwind" in statement for statement in memory.believed())


def test_what_is_cancelled_is_approved_no_longer() -> None:
    """F1: the last word counts, however often the first was said."""
    memory = tell(
        "Purchase Order #4521 approved for $50,000. This is a go!",
        "Just confirming again - Purchase Order #4521 approved for $50,000.",
        "Purchase Order #4521 CANCELLED due to budget freeze.",
    )
    assert not any("approved" in statement for statement in memory.believed())
