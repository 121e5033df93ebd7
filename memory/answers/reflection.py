"""What a look at all beliefs found, and what came of tidying them."""

from pydantic import Field

from memory.answers.base import Answer, Rounded


class Duplicate(Answer):
    """Two beliefs that may say the same."""

    ids: list[str] = Field(min_length=2, max_length=2)
    statements: list[str] = Field(min_length=2, max_length=2)
    similarity: Rounded = Field(description="On the reference scale, 0 to 1.")
    passes_guard: bool = Field(
        description="Whether they may be merged: a rule (a negation, another order, other numbers or names) tells them "
        "apart otherwise, and they may contradict each other."
    )


class Faded(Answer):
    """A belief of which nothing was said for long."""

    id: str
    statement: str
    effective_confidence: Rounded = Field(description="What time has left of its confidence.")
    is_prunable: bool = Field(description="Whether pruning would take it.")


class Reflection(Answer):
    """What a look at all active beliefs found."""

    beliefs: int = Field(description="Active ones, all of which were looked at.")
    duplicate_count: int
    duplicates: list[Duplicate] = Field(description="The most similar first.")
    faded_count: int
    faded: list[Faded] = Field(description="Those of which least is left first.")


class Pruned(Answer):
    """Beliefs that faded."""

    pruned: list[Faded]
    dry_run: bool


class Proposed(Answer):
    """Pairs that the next cycle's merge gate looks at."""

    proposed: list[Duplicate]


class Subjects(Answer):
    """Subjects that were filled in."""

    subjects: dict[str, str] = Field(description="By belief.")
