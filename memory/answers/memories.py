"""What is told of one memory."""

from datetime import datetime

from pydantic import Field

from memory.answers.base import Answer, Rounded


class Feedback(Answer):
    """How a memory's feedback stands. Nothing else is told: whoever may write need not be allowed to read."""

    id: str
    feedback: Rounded = Field(ge=-1, le=1, description="From -1, wrong, to 1, useful.")


class Resolved(Answer):
    """A commitment that was done with."""

    id: str
    resolved_at: datetime = Field(description="When it was resolved first.")
