"""How many tokens do a fixed set of questions cost, by purpose?

    python -m benchmarks.prompt_tokens

Each question is worded as it is for a server, and has the reply that a model gives of few words and good sense. Prints
calls, tokens sent and received, at four bytes a token, and where one purpose asks about several texts what one costs.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from memory.llm.prompts import build_prompt, estimate_tokens
from memory.llm.replies import letter_of, validate_reply
from memory.llm.requests import (
    ClassificationRequest,
    ContradictionRequest,
    EpisodeText,
    MergeRequest,
    Message,
    MetaRequest,
    ReadingRequest,
    Request,
    RevisionRequest,
    ShownBelief,
    SplitRequest,
    StatedBelief,
    SummaryRequest,
    SynthesisRequest,
    TurnText,
)

_FENCE = "0123abcd"
PERSON = "Mara"

DEPLOYS = (
    ("2026-01-12", "We moved the release train: from now on I deploy on Thursdays, not on Fridays any more."),
    ("2026-01-22", "Thursday again, so the deploy went out at noon and nobody had to stay late."),
    ("2026-01-29", "I deployed today. Thursdays suit me, there is still a day left to mend things."),
    ("2026-02-05", "Deploy day. Same procedure as every Thursday, and it took twenty minutes."),
    ("2026-02-19", "The payment fix has to wait until Thursday, I don't deploy on any other day."),
    ("2026-03-05", "Could you draft the notes for Thursday's deploy? I want them out before lunch."),
)
MORNINGS = (
    ("2026-01-08", "I can't think before my first coffee, black and without sugar."),
    ("2026-01-13", "Please don't book me before ten, I write best in the early morning."),
    ("2026-01-20", "Ben drinks coffee all day; one cup in the morning is enough for me."),
    ("2026-02-03", "I switched to green tea last week because coffee kept me awake."),
    ("2026-02-10", "Green tea again this morning. I sleep much better since I gave up coffee."),
    ("2026-02-17", "My morning block is for writing; calls go into the afternoon."),
    ("2026-02-24", "No coffee for me, thanks, I'm a tea drinker now."),
    ("2026-03-03", "They served coffee at the fair and I stayed with my tea."),
    ("2026-03-10", "The new kettle arrived, so tea takes two minutes."),
)
BELIEFS = (
    "Mara drinks black coffee every morning.",
    "Mara writes in the early morning and takes calls in the afternoon.",
    "Mara sleeps badly when she drinks coffee.",
    "Ben drinks coffee all day.",
)
# By belief and by text: S, C, P or I, and why where that is more than a yes.
MORNING_VERDICTS: tuple[tuple[tuple[str, str], ...], ...] = (
    (
        ("S", "black coffee comes first"), ("I", "about meetings"), ("P", "one cup, maybe black"),
        ("C", "switched to green tea"), ("C", "gave up coffee"), ("I", "about writing"), ("C", "drinks tea now"),
        ("C", "stayed with tea"), ("I", "about a kettle"),
    ),
    (
        ("I", "about coffee"), ("P", "writes early, no word of calls"), ("I", "about coffee"), ("I", "about tea"),
        ("I", "about tea"), ("S", "morning writing, calls later"), ("I", "about tea"), ("I", "about tea"),
        ("I", "about a kettle"),
    ),
    (
        ("I", "no word of sleep"), ("I", "about meetings"), ("I", "no word of sleep"), ("S", "coffee kept her awake"),
        ("S", "sleeps better without coffee"), ("I", "about writing"), ("I", "no word of sleep"),
        ("I", "no word of sleep"), ("I", "about a kettle"),
    ),
    (
        ("I", "about Mara"), ("I", "about Mara"), ("S", "says so of Ben"), ("I", "about Mara"), ("I", "about Mara"),
        ("I", "about Mara"), ("I", "about Mara"), ("I", "about Mara"), ("I", "about Mara"),
    ),
)  # fmt: skip
SINGLES_VERDICTS = (("S", "deploys on Thursday"), ("S", "Thursdays suit her"), ("C", "deployed on a Friday"))
SINGLES = (*DEPLOYS[1:3], ("2026-03-13", "We had to deploy on Friday this week, the fix could not wait."))
TALK = (
    ("user", "My manager is Tove now, Jonas left the company at the end of February."),
    ("assistant", "Noted. Shall I address the weekly report to Tove from now on?"),
    ("user", "Yes, please. And keep it under one page, she hates long reports."),
    ("assistant", "One page at most, addressed to Tove."),
    ("user", "Great, another migration on a Monday, exactly what I always wanted."),
)
WORDS = {"S": "SUPPORTS", "C": "CONTRADICTS", "P": "PARTIAL", "I": "IRRELEVANT"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request and what a model answers."""

    request: Request
    reply: dict[str, Any]
    answers: int = 1  # verdicts or statements that are asked for, messages that are read

    @property
    def sent(self) -> int:
        """Count the tokens of the prompt."""
        prompt = build_prompt(request=self.request, fence=_FENCE)
        return estimate_tokens(prompt.system, prompt.user)

    @property
    def received(self) -> int:
        """Count the tokens of the reply, which must be one that is accepted."""
        raw = json.dumps(self.reply, ensure_ascii=False)
        validate_reply(self.request, raw)
        return estimate_tokens(raw)


def fixed_questions() -> list[Question]:
    """Return the questions, the same at every run."""
    questions = [*_syntheses(), *_classifications(), *_changes(), *_conversations(), *_comparisons()]
    return [replace(one, request=replace(cast(Any, one.request), person=PERSON)) for one in questions]


def count_by_purpose(*, questions: Sequence[Question]) -> dict[str, tuple[int, int, int, int]]:
    """Return calls, answers, tokens sent and tokens received by purpose."""
    found: dict[str, tuple[int, int, int, int]] = {}
    for one in questions:
        calls, answers, sent, received = found.get(one.request.purpose.value, (0, 0, 0, 0))
        found[one.request.purpose.value] = calls + 1, answers + one.answers, sent + one.sent, received + one.received
    return found


def main() -> int:
    """Print the table and return the exit status."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "beliefsite.settings")  # how much of a message is shown
    counted = count_by_purpose(questions=fixed_questions())
    print(f"{'purpose':<12}{'calls':>6}{'answers':>8}{'sent':>7}{'received':>9}{'an answer':>10}")
    for purpose, (calls, answers, sent, received) in counted.items():
        print(f"{purpose:<12}{calls:>6}{answers:>8}{sent:>7}{received:>9}{(sent + received) / answers:>10.1f}")
    sent, received = (sum(row[place] for row in counted.values()) for place in (2, 3))
    print(f"{'together':<12}{sum(row[0] for row in counted.values()):>6}{'':>8}{sent:>7}{received:>9}")
    return 0


def _episodes(said: Sequence[tuple[str, str]], *, speaker: str = "Mara") -> tuple[EpisodeText, ...]:
    return tuple(
        EpisodeText(id=f"ep_{number:02d}f3a9c1{number:04x}", text=text, speaker=speaker, language="en", occurred_on=day)
        for number, (day, text) in enumerate(said)
    )


def _believed(statement: str, *, context: str = "general") -> StatedBelief:
    return StatedBelief(statement=statement, subject=statement.split()[0], context=context, language="en")


def _stated(statement: str, predicate: str, *, context: str = "general") -> dict[str, Any]:
    return {
        "statement": statement, "subject": "Mara", "predicate": predicate, "context": context, "timeframe": "current"
    }  # fmt: skip


def _syntheses() -> Iterator[Question]:
    yield Question(
        request=SynthesisRequest(episodes=_episodes(DEPLOYS)),
        reply=_stated("Mara deploys on Thursdays.", "deploys on Thursdays") | {"since": "2026-01-12"},
    )
    yield Question(
        request=SynthesisRequest(episodes=_episodes(MORNINGS)),
        reply=_stated("Mara drinks green tea.", "drinks green tea") | {"since": "2026-01-27"},
    )


def _classifications() -> Iterator[Question]:
    yield _classification(BELIEFS, MORNINGS, MORNING_VERDICTS)
    yield _classification(("Mara deploys on Thursdays.",), SINGLES, (SINGLES_VERDICTS,))


def _classification(
    statements: Sequence[str], said: Sequence[tuple[str, str]], verdicts: Sequence[Sequence[tuple[str, str]]]
) -> Question:
    beliefs = tuple(replace(_believed(one), id=str(place)) for place, one in enumerate(statements))
    lists = [
        {"belief": letter_of(place), "texts": [_verdict(n, *one) for n, one in enumerate(row, start=1)]}
        for place, row in enumerate(verdicts)
    ]
    return Question(
        request=ClassificationRequest(beliefs=beliefs, episodes=_episodes(said)),
        reply={"verdicts": lists},
        answers=len(statements) * len(said),
    )


def _verdict(number: int, letter: str, reason: str) -> str:
    return f"{number} {letter} {reason}" if letter in "CP" else f"{number} {letter}"


def _changes() -> Iterator[Question]:
    verdicts = tuple(WORDS[letter] for letter, _ in MORNING_VERDICTS[0] if letter != "I")
    told = [one for one, (letter, _) in zip(MORNINGS, MORNING_VERDICTS[0], strict=True) if letter != "I"]
    yield Question(
        request=RevisionRequest(belief=_believed(BELIEFS[0]), episodes=_episodes(told), verdicts=verdicts),
        reply=_stated("Mara drinks green tea in the morning.", "drinks green tea in the morning")
        | {"since": "2026-01-27"},
    )
    yield Question(
        request=SplitRequest(belief=_believed(BELIEFS[0]), episodes=_episodes(told), verdicts=verdicts),
        reply={
            "parts": [
                _stated("Mara drank coffee until January.", "drank coffee", context="until January"),
                _stated("Mara drinks tea since February.", "drinks tea", context="since February"),
            ]
        },
    )
    yield Question(
        request=MergeRequest(
            beliefs=(_believed("Mara deploys on Thursdays."), _believed("Mara's deploys go out every Thursday.")),
            similarity=0.95,
        ),
        reply={"same": True, **_stated("Mara deploys on Thursdays.", "deploys on Thursdays")},
    )


def _conversations() -> Iterator[Question]:
    turns = tuple(
        TurnText(number=n, role=role, text=text, speaker="Mara" if role == "user" else "", said_on="2026-03-09")
        for n, (role, text) in enumerate(TALK, start=1)
    )
    summary = "Mara's manager is now Tove, since Jonas left. Reports go to Tove and stay under one page."
    yield Question(request=SummaryRequest(turns=turns), reply={"summary": summary})
    yield _reading()


def _reading() -> Question:
    """Ask what a conversation does to what is believed: an assistant's words stand beside those that are read."""
    messages = tuple(
        Message(
            id=f"ep_{number:02d}f3a9c1{number:04x}",
            text=text,
            speaker=PERSON if role == "user" else "",
            occurred_on="2026-03-09",
            role=role,
            session="s1",
            is_read=role == "user",
        )
        for number, (role, text) in enumerate(TALK)
    )
    beliefs = tuple(
        ShownBelief(id=f"bl_{place}", statement=statement, since="2026-01-12")
        for place, statement in enumerate((*BELIEFS, "Mara's manager is Jonas.", "Mara deploys on Thursdays."))
    )
    new = [
        {"m": 1, "statement": "Mara's manager is Tove.", "subject": "Mara", "category": "relationship",
         "entities": ["Mara", "Tove"], "kind": "lasting", "replaces": "5", "importance": 6},
        {"m": 2, "statement": "Mara wants the weekly report under one page.", "subject": "Mara",
         "category": "preference", "entities": ["Mara"], "kind": "lasting", "because": "n3", "importance": 5},
        {"m": 2, "statement": "Tove hates long reports.", "subject": "Tove", "category": "preference",
         "entities": ["Tove"], "kind": "lasting", "importance": 4},
    ]  # fmt: skip
    about = [{"m": 1, "b": "5", "verdict": "ENDED"}]
    return Question(
        request=ReadingRequest(person=PERSON, today="2026-03-09", episodes=messages, beliefs=beliefs),
        reply={"new": new, "about": about},
        answers=sum(message.is_read for message in messages),
    )


def _comparisons() -> Iterator[Question]:
    yield Question(
        request=ContradictionRequest(
            fact=_believed("Mara drinks green tea instead of coffee."),
            beliefs=tuple(map(_believed, BELIEFS)),
        ),
        reply={"contradicts": [1], "reason": "tea took the place of coffee"},
    )
    yield Question(
        request=MetaRequest(beliefs=tuple(map(_believed, BELIEFS[:3])), confidences=(0.71, 0.83, 0.75)),
        reply=_stated("Mara protects her mornings.", "protects her mornings") | {"since": ""},
    )


if __name__ == "__main__":
    sys.exit(main())
