"""What can be asked of a memory."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from memory.domain.knowledge import PROCEDURAL, RecallMode, asks_for_procedures, categories_of
from memory.domain.lifecycle_policy import HIDDEN
from memory.domain.policy import LifecyclePolicy
from memory.models import FactType
from memory.recall.ranking import MemoryType
from memory.recall.search import Narrowing, RecallScope


class RecallProfile(StrEnum):
    """How memories are scored: by B17, or by R5."""

    DEFAULT = "default"
    ASSOCIATIVE = "associative"


# What every door says of a question that contradicts itself; of `occurred_before`, and of `graph`.
WRONG_ORDER = "It must be later than occurred_after."
LINKS_ARE_OF_NOW = "It cannot be asked with as_of: how links stood is not kept."


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query, and how it is to be answered.

    `occurred_from` and `occurred_before` bound a time, its start included; `as_of` asks how things stood then; `quotas`
    are the most results of one kind. `is_for_task` if the query tells of a task that memories are to bear on: else one
    that sets a task is taken to be about what that is done to. `follows_links` has the graph between episodes answer,
    too, as it is today. `session` is the conversation that asks: it has heard its own turns, which wait to be read.
    """

    query: str
    limit: int
    types: Collection[MemoryType] = tuple(MemoryType)
    mode: RecallMode = RecallMode.FULL_CONTEXT
    profile: RecallProfile = RecallProfile.DEFAULT
    occurred_from: datetime | None = None
    occurred_before: datetime | None = None
    as_of: datetime | None = None
    with_expired: bool = False
    is_explained: bool = False
    follows_links: bool = False
    quotas: Mapping[MemoryType, int] = field(default_factory=dict)
    is_for_task: bool = False
    session: str = ""

    @property
    def includes_waiting_turns(self) -> bool:
        """Tell whether turns that nobody has read yet may answer: of these it is known when they were said, no more."""
        return self.as_of is None and categories_of(mode=self.mode) is None and MemoryType.EPISODE in self.types

    def narrow(self, *, scope: RecallScope, policy: LifecyclePolicy) -> RecallScope:
        """Return the scope with what this question asks of memories beside its words (B1, D2, L14)."""
        narrowing = Narrowing(
            occurred=(self.occurred_from, self.occurred_before),
            categories=categories_of(mode=self.mode),
            fact_types=None if asks_for_procedures(mode=self.mode) else _NOT_PROCEDURES,
            with_expired=self.with_expired,
            hidden_states=HIDDEN if policy.enabled and policy.hides_stale else (),
        )
        return replace(scope, narrowing=narrowing)


_NOT_PROCEDURES = tuple(str(kind) for kind in FactType if kind != PROCEDURAL)
