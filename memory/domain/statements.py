"""Which statements can be beliefs: one sentence that is short enough, no question, and about something."""

from enum import StrEnum

LONGEST_STATEMENT = 30  # words (B10)


class Refusal(StrEnum):
    """Why a statement is no belief."""

    EMPTY = "empty"
    QUESTION = "question"
    TOO_LONG = "too_long"


def refuse_statement(*, statement: str, longest: int = LONGEST_STATEMENT) -> Refusal | None:
    """Return why a statement of at most `longest` words cannot stand as a belief, None where it can."""
    words = [word for word in statement.split() if any(character.isalnum() for character in word)]
    if not words:
        return Refusal.EMPTY
    if statement.rstrip().endswith(("?", "？", "؟")):
        return Refusal.QUESTION
    return Refusal.TOO_LONG if len(words) > longest else None
