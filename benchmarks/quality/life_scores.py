"""The format of a life that was told in messages, and what a memory of it scores.

A life is one JSON file: `id`; `user`, the name of who tells it; and in lists

    episodes   session, occurred_at, role (user or assistant), text; in the order of their times
    facts      id, kind (stable, changed, context, other_person), statement; `current` finds it in a belief's words,
               `not` finds what is no longer so, or never was; `sessions` in which the user said it
    traps      id, kind (advice, sarcasm, hypothetical, question, quote, wish, small_talk); `false` finds it believed
    questions  q, fact; `right` finds the answer in a result, `wrong` finds what was the answer once

`current`, `not`, `false`, `right` and `wrong` are lists of regular expressions, searched in lower-cased text. Patterns
score, no model judges: what none of them finds is unknown, neither true nor false.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

LONGEST = 30  # words of a belief
OFTEN = 3  # sessions: what was said in so many can be believed
LOOKED_AT = 3  # results of a question

_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|‘[^’]*’|(?<!\w)'[^']*'(?!\w)")
_FIRST_PERSON = re.compile(
    r"\b(?:i|i['’](?:m|ve|d|ll)|my|me|mine|we|our|ours|ich|mein\w*|mir|mich|wir|uns|unser\w*)\b(?!\.\w|\d)",
    re.IGNORECASE,
)  # not i.e.; and not us, which is a country, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What was said at a time, by the user or to them."""

    session: str
    occurred_at: str
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Patterns:
    """Regular expressions of which one is enough."""

    each: tuple[re.Pattern[str], ...]

    def __bool__(self) -> bool:
        return bool(self.each)

    def find(self, text: str) -> bool:
        """Tell whether one of them is found in a text."""
        return any(pattern.search(text.lower()) for pattern in self.each)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What is so at the end of a life, and what is not or no longer."""

    id: str
    kind: str
    statement: str
    current: Patterns
    former: Patterns
    sessions: int

    def is_stated_by(self, text: str) -> bool:
        """Tell whether a text says so, and nothing against it."""
        return self.current.find(text) and not self.former.find(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trap:
    """What was said and must not be believed."""

    id: str
    kind: str
    false: Patterns


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What may be asked of a fact at the end."""

    text: str
    fact: str
    right: Patterns
    wrong: Patterns

    def mark(self, result: str) -> bool | None:
        """Tell whether a result is right or wrong; None if it is neither, or both."""
        is_right, is_wrong = self.right.find(result), self.wrong.find(result)
        return None if is_right == is_wrong else is_right


class Mark(StrEnum):
    """What a belief counts as; the first of these that it is."""

    UNFIT = "unfit"
    FALSE = "false"
    TRUE = "true"
    UNKNOWN = "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """Who told what, and what may be believed of it."""

    id: str
    user: str
    messages: tuple[Message, ...]
    facts: tuple[Fact, ...]
    traps: tuple[Trap, ...]
    questions: tuple[Question, ...]

    def is_false(self, belief: str) -> bool:
        """Tell whether a belief states what is not so, or what was never asserted."""
        return any(fact.former.find(belief) for fact in self.facts) or any(
            trap.false.find(belief) for trap in self.traps
        )

    def is_true(self, belief: str) -> bool:
        """Tell whether a belief states a fact and nothing false."""
        return any(fact.is_stated_by(belief) for fact in self.facts) and not self.is_false(belief)

    def mark(self, belief: str) -> Mark:
        """Return what a belief counts as."""
        if is_unfit(belief):
            return Mark.UNFIT
        if self.is_false(belief):
            return Mark.FALSE
        return Mark.TRUE if self.is_true(belief) else Mark.UNKNOWN


class Memory(Protocol):
    """A memory that has taken in a life."""

    def beliefs(self) -> Sequence[str]:
        """Return all that is believed now."""

    def recall(self, question: str, *, limit: int) -> Sequence[str]:
        """Return so many results, best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Counts over some lives."""

    lives: int = 0
    beliefs: int = 0
    unfit: int = 0
    known: int = 0  # beliefs that some pattern finds
    true: int = 0
    false: int = 0
    doubled: int = 0  # beliefs beyond the first that state the same fact
    facts: int = 0  # said often enough to be believed
    found: int = 0
    changes: int = 0  # of these facts, the ones that changed
    changed: int = 0  # the new is believed and the old is not
    questions: int = 0
    right_first: int = 0
    right_soon: int = 0  # right among those looked at, and nothing wrong above it

    def __add__(self, other: "Score") -> "Score":
        return Score(**{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(Score)})


def read_lives(path: Path) -> list[Life]:
    """Read the life of a file, or those of all files of a folder."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    return [parse_life(json.loads(file.read_text(encoding="utf-8"))) for file in files]


def parse_life(row: dict[str, Any]) -> Life:
    """Make a life of its JSON."""
    return Life(
        id=row["id"],
        user=row["user"],
        messages=tuple(Message(**message) for message in row["episodes"]),
        facts=tuple(
            Fact(
                id=fact["id"], kind=fact["kind"], statement=fact["statement"], sessions=fact["sessions"],
                current=_compile(fact["current"]), former=_compile(fact["not"]),
            )
            for fact in row["facts"]
        ),
        traps=tuple(Trap(id=trap["id"], kind=trap["kind"], false=_compile(trap["false"])) for trap in row["traps"]),
        questions=tuple(
            Question(text=one["q"], fact=one["fact"], right=_compile(one["right"]), wrong=_compile(one["wrong"]))
            for one in row["questions"]
        ),
    )  # fmt: skip


def _compile(patterns: Sequence[str]) -> Patterns:
    return Patterns(tuple(re.compile(pattern) for pattern in patterns))


def is_unfit(belief: str) -> bool:
    """Tell whether a belief is too long, of several lines, or in the first person outside quotation marks."""
    if len(belief.split()) > LONGEST or "\n" in belief.strip():
        return True
    return bool(_FIRST_PERSON.search(_QUOTED.sub("", belief)))


def score_life(*, life: Life, memory: Memory) -> Score:
    """Count what a memory believes of a life, and what it answers."""
    return score_beliefs(life=life, beliefs=memory.beliefs()) + score_answers(life=life, memory=memory)


def score_beliefs(*, life: Life, beliefs: Sequence[str]) -> Score:
    """Count what is believed of a life."""
    stating = {fact.id: _stating(life, fact, beliefs) for fact in life.facts}
    often = [fact for fact in life.facts if fact.sessions >= OFTEN]
    changes = [fact for fact in often if fact.kind == "changed"]
    true, false = sum(map(life.is_true, beliefs)), sum(map(life.is_false, beliefs))
    return Score(
        lives=1,
        beliefs=len(beliefs),
        unfit=sum(map(is_unfit, beliefs)),
        known=true + false,
        true=true,
        false=false,
        doubled=sum(max(0, count - 1) for count in stating.values()),
        facts=len(often),
        found=sum(stating[fact.id] > 0 for fact in often),
        changes=len(changes),
        changed=sum(stating[fact.id] > 0 and not any(map(fact.former.find, beliefs)) for fact in changes),
    )


def _stating(life: Life, fact: Fact, beliefs: Sequence[str]) -> int:
    """Count the beliefs that state a fact as a belief should."""
    return sum(fact.is_stated_by(belief) and life.mark(belief) is Mark.TRUE for belief in beliefs)


def score_answers(*, life: Life, memory: Memory) -> Score:
    """Ask all questions of a life, and count the right answers."""
    score = Score()
    for question in life.questions:
        marks = [question.mark(result) for result in memory.recall(question.text, limit=LOOKED_AT)]
        clear = [mark for mark in marks if mark is not None]
        score += Score(questions=1, right_first=marks[:1] == [True], right_soon=clear[:1] == [True])
    return score


def figures_of(score: Score) -> dict[str, float]:
    """Return the measures, in per cent, or as numbers a life."""
    return {
        "beliefs": score.beliefs / max(1, score.lives),
        "unfit": score.unfit / max(1, score.lives),
        "known %": _share(score.known, score.beliefs),
        "found %": _share(score.found, score.facts),
        "true %": _share(score.true, score.known),
        "false": score.false / max(1, score.lives),
        "doubled": score.doubled / max(1, score.lives),
        "changed %": _share(score.changed, score.changes),
        "right@1 %": _share(score.right_first, score.questions),
        "right@3 %": _share(score.right_soon, score.questions),
    }


def _share(part: int, whole: int) -> float:
    return 100 * part / max(1, whole)


def find_faults(life: Life) -> Iterator[str]:
    """Yield what is wrong with the data of a life."""
    times = [datetime.fromisoformat(message.occurred_at) for message in life.messages]
    if times != sorted(times):
        yield "its messages are not in the order of their times"
    for fact in life.facts:
        yield from (f"{fact.id}: {fault}" for fault in _faults_of(fact, life))
    known = {fact.id for fact in life.facts}
    for question in life.questions:
        if question.fact not in known:
            yield f"a question about no fact: {question.text}"
        if not any(question.mark(message.text) for message in life.messages):
            yield f"nothing that was said answers: {question.text}"


def _faults_of(fact: Fact, life: Life) -> Iterator[str]:
    if not fact.is_stated_by(fact.statement):
        yield "its own patterns do not find its statement"
    if life.mark(fact.statement) in {Mark.FALSE, Mark.UNFIT}:
        yield f"its statement counts as {life.mark(fact.statement)}"
    if fact.kind == "changed" and not fact.former:
        yield "it changed, and nothing is false"
    for other in life.facts:
        if other is not fact and (other.is_stated_by(fact.statement) or other.former.find(fact.statement)):
            yield f"the patterns of {other.id} find its statement"
    said = {one.session for one in life.messages if one.role == "user" and fact.current.find(one.text)}
    if len(said) < min(fact.sessions, OFTEN):
        yield f"its patterns find it in {len(said)} of {fact.sessions} sessions"
