"""Requests that the tests of this folder send."""

from dataclasses import replace
from typing import Any

from memory.llm.requests import (
    ClassificationRequest,
    ContradictionRequest,
    EpisodeText,
    MergeRequest,
    Message,
    Purpose,
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


def episode(number: int, text: str = "") -> EpisodeText:
    """Make an episode with a readable id."""
    return EpisodeText(id=f"ep_{number:012x}", text=text or f"Mara prefers short meetings, said {number} times.")


def synthesis(*texts: str) -> SynthesisRequest:
    """Ask for a belief over a few episodes."""
    return SynthesisRequest(episodes=tuple(episode(n, text) for n, text in enumerate(texts or ("", "", ""))))


def classification(
    *texts: str, statement: str = "Mara prefers short meetings.", statements: tuple[str, ...] = ()
) -> ClassificationRequest:
    """Ask what a few episodes say about one belief, or several."""
    return ClassificationRequest(
        beliefs=tuple(replace(believed(one), id=f"bl_{place}") for place, one in enumerate(statements or (statement,))),
        episodes=tuple(episode(n, text) for n, text in enumerate(texts or ("",))),
    )


def believed(statement: str) -> StatedBelief:
    """State a belief about Mara."""
    return StatedBelief(statement=statement, subject="Mara", context="general", language="en")


def revision(*against: str, in_favour: tuple[str, ...] = (), statement: str = "Mara prefers tabs.") -> RevisionRequest:
    """Ask what is to be believed instead."""
    texts = [*in_favour, *against]
    return RevisionRequest(
        belief=believed(statement),
        episodes=tuple(episode(n, text) for n, text in enumerate(texts)),
        verdicts=("SUPPORTS",) * len(in_favour) + ("CONTRADICTS",) * len(against),
    )


def split(*partial: str, in_favour: tuple[str, ...], statement: str = "Mara prefers tabs.") -> SplitRequest:
    """Ask where a belief holds and where not."""
    texts = [*in_favour, *partial]
    return SplitRequest(
        belief=believed(statement),
        episodes=tuple(episode(n, text) for n, text in enumerate(texts)),
        verdicts=("SUPPORTS",) * len(in_favour) + ("PARTIAL",) * len(partial),
    )


def merge(one: str, other: str, *, similarity: float = 0.95) -> MergeRequest:
    """Ask whether two beliefs say the same."""
    return MergeRequest(beliefs=(believed(one), believed(other)), similarity=similarity)


def turn(number: int, text: str, *, role: str = "user", speaker: str = "Mara") -> TurnText:
    """Make a turn of a conversation."""
    return TurnText(number=number, role=role, text=text, speaker=speaker, said_on="2026-03-01")


def summary(*texts: str) -> SummaryRequest:
    """Ask what a few turns come down to."""
    return SummaryRequest(turns=tuple(turn(n, text) for n, text in enumerate(texts, start=1)))


def message(number: int, text: str, **given: Any) -> Message:
    """Make a message that Mara wrote."""
    fields: dict[str, Any] = {"speaker": "Mara", "occurred_on": "2026-03-01", "session": "s1"}
    return Message(id=f"ep_{number:012x}", text=text, **fields | given)


def reading(*messages: str | Message, beliefs: tuple[str | ShownBelief, ...] = (), **given: Any) -> ReadingRequest:
    """Ask what a few messages do to what is believed of Mara."""
    fields: dict[str, Any] = {"person": "Mara", "today": "2026-03-01"}
    return ReadingRequest(
        episodes=tuple(one if isinstance(one, Message) else message(n, one) for n, one in enumerate(messages)),
        beliefs=tuple(one if isinstance(one, ShownBelief) else shown(n, one) for n, one in enumerate(beliefs)),
        **fields | given,
    )


def shown(number: int, statement: str, **given: Any) -> ShownBelief:
    """Make a belief as a reading is shown it."""
    fields: dict[str, Any] = {"since": "2026-01-05"}
    return ShownBelief(id=f"bl_{number:012x}", statement=statement, **fields | given)


def contradiction(fact: str, *statements: str) -> ContradictionRequest:
    """Ask which of some beliefs a fact contradicts."""
    return ContradictionRequest(fact=believed(fact), beliefs=tuple(map(believed, statements)))


REQUESTS: dict[Purpose, Request] = {
    request.purpose: request
    for request in (
        synthesis(), classification(), revision("Spaces now."), split("Spaces at home.", in_favour=("Tabs.",)),
        merge("Mara prefers tabs.", "Mara likes tabs best."), summary("I prefer tabs."),
        contradiction("Mara prefers spaces.", "Mara prefers tabs."),
        reading("I keep bees.", "I drink tea.", beliefs=("Mara keeps bees.",)),
    )
}  # fmt: skip
